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
