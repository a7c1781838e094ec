"""Kernels in Triton between GPUs: rates of the verbs, and GEMM + all-scatter beside untax's operator and NCCL."""
from tables import table

NOTE = ("Bytes from rank 0's memory to rank 1's (store) and back (load), by a kernel in Triton, and by torch's copy.\n")
PRODUCTS = ("GEMM + all-scatter of fp16, eagerly, in us, called from PyTorch: the patterns of `examples/python/triton`, "
            "`untax.torch.matmul_all_scatter`, and torch's matmul with NCCL's all-gather, which leaves the columns of ranks behind "
            "each other, or in place with a copy. N counts the columns of all ranks.\n")


def median(row, way):
    return row["seconds"][way]["median"]


def quickest(row):
    """The best pattern in Triton."""
    return min((way for way in row["seconds"] if way.startswith("triton")), key=lambda way: median(row, way))


def right(document):
    """The products that were right and have a time."""
    return [row for row in document["products"] if "seconds" in row]


def factors(document):
    return [median(row, "NCCL in place") / median(row, quickest(row)) for row in right(document)]


def details(name, document, place):
    ways = list(dict.fromkeys(figure["way"] for figure in document["rates"] or []))
    rate_of = {(figure["way"], figure["bytes"]): figure for figure in document["rates"] or []}
    sizes = sorted({size for _, size in rate_of})

    def rate(way, size):
        beside = rate_of[way, size].get("of_rma")
        return f"{1e-9 * rate_of[way, size]['bytes_per_second']:.1f}" + (f" ({beside:.2f} of `bench rma`)" if beside else "")

    rates = table(["KiB", *(f"{way}, GB/s" for way in ways)],
                  [[str(size >> 10), *(rate(way, size) for way in ways)] for size in sizes])
    titles = [way for row in right(document)[:1] for way in row["seconds"]]
    products = table(["M x N x K", *titles],
                     [[f"{row['m']} x {row['n']} x {row['k']}", *(f"{1e6 * median(row, way):.0f}" for way in titles)]
                      for row in right(document)])
    examples = ", ".join(f"{example} is {result}" for example, result in document["examples"].items())
    return (f"\n## Kernels in Triton, {document['ranks']} GPUs\n\n{NOTE}\n{rates}\n{PRODUCTS}\n{products}\nExamples: {examples}. "
            f"Triton {document['triton']}. [{name}]({name}), {place}.\n")
