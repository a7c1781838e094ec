"""The line under a table that names the machine and the commit of its measurements."""
import kernels


def place(document):
    commit = document["commit"] or "unknown"
    where = f"{document['cpu']}, {document['cores']} cores, {document['machine']}" if "cpu" in document else ""
    if "gpus" in document:
        where = f"{document['gpus']}, driver {document['driver']}, {document['libraries']}"
    if document["format"] == "untax-bench-tune-check":
        where = f"{document['device']}, {document['library']}"
    elif "device" in document:
        where = (f"{document['ranks']} x {document['device']}, driver {document['driver']}, {document['runtime']}"
                 + (f", {document['library']}" if "library" in document else ""))
    if "gpu" in document:
        where = f"one {document['gpu']}, {document['library']}"
    since = "; the kernels have changed since" if kernels.older(document) else ""
    return f"{where}; commit {commit}, {document['date'][:10]}{since}"
