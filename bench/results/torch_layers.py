"""The two operators of torch's asynchronous tensor parallelism, by torch, by untax and with NCCL."""
from math import exp, log

from tables import table

WAYS = [("untax", "untax"), ("torch", "torch"), ("nccl", "matmul and NCCL")]
NOTE = ("us of an eager call, of ten behind each other, all ways in turn. torch: its own `symm_mem::fused_all_gather_matmul` "
        "and `symm_mem::fused_matmul_reduce_scatter`. untax: the same, taken over by `untax.torch.install()`. Calls of "
        "few tokens take as long as the host needs for them. Partial sums travel in bf16.\n")


def median(row, way):
    return row["eager"][way][1]


def mean_factor(rows, way):
    return exp(sum(log(median(r, way) / median(r, "untax")) for r in rows) / len(rows))


MULTICAST_ROWS = 2048  # up to here torch gathers by NVLink multicast, where that is on


def without_multicast_path(rows):
    """The shapes for which torch has no path by multicast."""
    return [row for row in rows if row["operator"] != "all_gather_matmul" or row["tokens"] > MULTICAST_ROWS]


def sentence(document):
    """For who looks at the project first."""
    rows = document["rows"]
    others = without_multicast_path(rows)
    tokens = [row["tokens"] for row in rows]
    return (f"Eager calls from PyTorch, on {document['ranks']} {document['device'].removeprefix('NVIDIA ').split()[0]}: the "
            f"operators of torch's asynchronous tensor parallelism, taken over, are **{mean_factor(rows, 'torch'):.2f} times as "
            f"fast** as torch's own, and {mean_factor(rows, 'nccl'):.2f} times as fast as matmul with NCCL: geometric means of "
            f"{len(rows)} projections of {min(tokens)} to {max(tokens)} tokens. torch's path by NVLink multicast, for gathers of up to "
            f"{MULTICAST_ROWS} rows, could not run there; over the {len(others)} projections that it does not concern untax is "
            f"{mean_factor(others, 'torch'):.2f} times as fast as torch.\n")


def details(name, document, place):
    rows = document["rows"]
    cells = [[row["layer"], str(row["tokens"]), *(f"{1e6 * median(row, way):.1f}" for way, _ in WAYS),
              *(f"{median(row, way) / median(row, 'untax'):.2f}" for way, _ in WAYS[1:])] for row in rows]
    shown = table(["layer", "tokens", *(title for _, title in WAYS), "torch / untax", "NCCL / untax"], cells)
    return (f"\n## torch's asynchronous tensor parallelism, {document['ranks']} GPUs, {document['dtype']}\n\n{NOTE}\n{shown}\n"
            f"* torch / untax, geometric mean: {mean_factor(rows, 'torch'):.2f}\n"
            f"* matmul and NCCL / untax, geometric mean: {mean_factor(rows, 'nccl'):.2f}\n"
            f"* torch / untax where torch's path by NVLink multicast, for gathers of up to {MULTICAST_ROWS} rows, could not have run "
            f"either: {mean_factor(without_multicast_path(rows), 'torch'):.2f}. Multicast was off.\n\n"
            f"Medians of {document['repeats']} runs. [{name}]({name}), {place}.\n")
