"""all_reduce_norm between GPUs, beside all_reduce alone and NCCL with a kernel that normalises."""
from tables import bars, table, timed

FUSED, LIBRARY = "all_reduce_norm", "bulk_library graph"
NOTE = ("us of one run in a CUDA graph, all in turn. The sum alone is untax's all_reduce, the quicker of through rooms and "
        "direct. The library is NCCL's all-reduce, then a kernel that adds the residual and normalises.\n")


def sum_alone(problem):
    """The quicker way of untax's all_reduce, or None."""
    return min((t for t in (timed(problem, way) for way in ("all_reduce", "all_reduce direct")) if t), default=None)


def factors(document):
    """(factor, name, time of untax, time of the library) of each problem."""
    return [(timed(p, LIBRARY) / timed(p, FUSED), f"{p['tokens']} tokens of {p['hidden']}", timed(p, FUSED),
             timed(p, LIBRARY)) for p in document["problems"] if timed(p, LIBRARY) and timed(p, FUSED)]


def rows(problems):
    cells = []
    for p in problems:
        shown = [timed(p, FUSED), timed(p, "one phase"), timed(p, "two phases"), sum_alone(p), timed(p, LIBRARY),
                 timed(p, "bulk_library eager"), timed(p, "NCCL alone")]
        cells.append([str(p["hidden"]), str(p["tokens"]), *(f"{1e6 * t:.1f}" if t else "" for t in shown),
                      f"{timed(p, LIBRARY) / timed(p, FUSED):.2f}"])
    return table(["hidden", "tokens", "us", "one phase", "two phases", "sum alone", "library", "library, eager",
                  "NCCL alone", "library / us"], cells, left=0)


def title(document):
    return f"all_reduce_norm, {document['ranks']} {document['device'].removeprefix('NVIDIA ').split()[0]}, {document['dtype']}"


def details(name, document, place, settings):
    return (f"\n## {title(document)}\n\n{NOTE}\n{rows(document['problems'])}\n{bars(document)}\n{settings}Medians of "
            f"{document['repeats']} runs. [{name}]({name}), {place}.\n")
