"""The time of a GEMM by the planner's model: the same arithmetic as engines/gpu/gemm/cost.cpp, on plans read from JSON.

`untax bench gemm --every-plan --json` writes plans and their measured times. fit.py looks for the parameters.
"""

import dataclasses
import json
import os
import re

BLOCK_K = 64
NUM_SMS = 132  # of an H200 and of an H100
L2_BYTES = 60e6


def ceil_div(a, b):
    return -(-a // b)


@dataclasses.dataclass(frozen=True)
class Plan:
    m: int
    n: int
    k: int
    block_n: int
    cluster: int
    stages: int
    swap_ab: bool
    epilogue_buffers: int
    warpgroup_split_k: bool
    cluster_split_k: int
    m_tiles: int
    n_tiles: int
    clusters: int
    stream_k_tiles: int
    raster_group: int
    tall: dataclasses.InitVar[int] = 1  # times the rows of a tile that existing kernels have

    def __post_init__(self, tall):
        put = lambda name, value: object.__setattr__(self, name, value)
        rows = (64 if self.warpgroup_split_k else 128) * tall
        put("products_of_16", 2 * 4 * tall)  # warpgroups, times 16 elements, of 64 rows each
        depth = BLOCK_K * (2 if self.warpgroup_split_k else 1)
        along_n = self.m if self.swap_ab else self.n
        put("tile_rows", rows)
        put("depth", depth)
        put("tiles", self.m_tiles * self.n_tiles)
        put("tile_stages", ceil_div(self.k, depth))
        put("cluster_blocks", self.cluster * self.cluster_split_k)
        put("blocks", self.clusters * self.cluster_blocks)
        put("multicast_rows", ceil_div(ceil_div(min(along_n, self.block_n), self.cluster), 8) * 8)
        put("partial_bytes", rows * self.block_n * 4)
        part = max(self.block_n // self.cluster_split_k, 16)
        put("subtiles", part // max(c for c in range(8, 65, 8) if part % c == 0))
        if self.cluster_split_k > 1:
            way = "cluster"
        elif self.stream_k_tiles == 0:
            way = "whole"
        elif self.stream_k_tiles == self.tiles and self.clusters % self.tiles == 0:
            way = "splits"
        else:
            way = "shares"
        put("way", way)
        put("too_wide", self.swap_ab and self.block_n > 2 * 16 * ceil_div(self.m, 16))

    @property
    def kernel(self):
        """The name of the kernel in kernels.hpp; empty if the kernel does not exist any more."""
        fields = (self.block_n, self.cluster, self.stages, self.swap_ab, self.epilogue_buffers)
        return KERNELS.get(fields + (self.warpgroup_split_k, self.cluster_split_k))


ENGINE = os.path.join(os.path.dirname(__file__), "../../engines/gpu/gemm")
KERNEL_LINE = re.compile(r"^ +\{(.*)\}, +// (\w+)$", re.M)


def kernels_of(name):
    """The names of the kernels in a list of kernels.hpp, by fields of tile_config."""
    with open(os.path.join(ENGINE, "kernels.hpp"), encoding="utf-8") as text:
        listed = re.search(name + r"\[\] = \{(.*?)\n\};", text.read(), re.S)
    lines = KERNEL_LINE.findall(listed.group(1))
    return {tuple(json.loads(f) for f in fields.split(", ")): kernel for fields, kernel in lines}


KERNELS = kernels_of("gemm_kernels")
COSTS = os.path.join(ENGINE, "cost.def")
COST_LINE = re.compile(r"UNTAX_COST\((\w+), ([-+.e0-9]+), ([-+.e0-9]+), (\w[.\w]*)\)")
GPUS = ["h200", "h100"]  # the columns of cost.def


def parameters(gpu="h200"):
    """The parameters in cost.def, which has a comment for each."""
    with open(COSTS, encoding="utf-8") as text:
        return {line[0]: float(line[1 + GPUS.index(gpu)]) for line in COST_LINE.findall(text.read())}


def write_parameters(values, gpu):
    def changed(line):
        columns = [line[2], line[3]]
        columns[GPUS.index(gpu)] = f"{values[line[1]]:.4g}"
        return f"UNTAX_COST({line[1]}, {', '.join(columns)}, {line[4]})"

    with open(COSTS, encoding="utf-8") as text:
        old = text.read()
    with open(COSTS, "w", encoding="utf-8") as text:
        text.write(COST_LINE.sub(changed, old))


def cycles(p, v):
    """The cycles of a plan without its launch, with these values of the parameters."""
    first = cycles_at(p, v, 1.0)
    # Multiprocessors that do not multiply leave power to the others, whose clock rises.
    busy = p.tiles * p.tile_stages * p.cluster * stage_math(p, v) / (NUM_SMS * first)
    taken = cycles_at(p, v, 1 + v["idle_gain"] * (1 - min(1.0, busy)))
    if p.cluster_blocks > 1:
        return taken
    # Blocks without a cluster get out of step. The part of the common operand that exceeds L2, counted on both of its
    # sides, is read again.
    beyond = min(1.0, max(0.0, 2 * (min(p.m, p.n) * p.k * 2 / L2_BYTES - 1 / 3)))
    return taken * (1 + v["drift"] * beyond * taken * 1e-6)


def stage_math(p, v):
    """For each 16 elements the tensor cores read 64 rows of one operand and all rows of the other, where TMA has
    written both."""
    bytes_of_shared = p.products_of_16 * (64 + p.block_n) * 32 + (p.tile_rows + p.block_n) * p.depth * 2
    products = p.tile_rows * p.block_n * p.depth
    return max(products / v["products_per_cycle"], bytes_of_shared / v["shared_memory"]) + v["stage_change"]


def cycles_at(p, v, clock):
    if p.warpgroup_split_k or p.cluster == 1:
        kind = "alone" if p.cluster == 1 else "halves" if p.cluster == 2 else "quarters"
        l2 = v["l2_alone"]
    else:
        kind, l2 = "shared", v["l2_shared"]
    share = NUM_SMS / p.blocks
    if p.warpgroup_split_k or p.cluster == 1:
        l2 = min(l2 * share, v["most_l2_alone"])
    math = stage_math(p, v) / clock
    read = (p.tile_rows + p.multicast_rows) * p.depth * 2 / l2
    rate = min(v["memory_" + kind] * share, v["most_" + kind])
    stages = p.tiles * p.tile_stages * p.cluster
    weights = p.n * p.k * 2
    again = weights * (p.n_tiles - 1) * v["weights_again"] if p.swap_ab and weights > L2_BYTES else 0
    operands = (p.m * p.k * 2 + weights + again) / stages / rate
    stage = max(math, read, operands)
    whole_tile = v["whole_tile"] + v["whole_column"] * p.block_n + v["subtile"] * p.subtiles
    if p.way == "whole":
        return (stage * p.tile_stages + whole_tile) * ceil_div(p.tiles, p.clusters)
    if p.way == "cluster":
        sent = p.partial_bytes * (p.cluster_split_k - 1) / p.cluster_split_k
        return stage * ceil_div(p.tile_stages, p.cluster_split_k) + v["joined"] + whole_tile + sent / v["joined_rate"]
    sums_rate = v["sums_rate" if p.swap_ab else "wide_sums_rate"]
    sums = lambda splits: (splits - 1) * p.partial_bytes / sums_rate
    if p.way == "splits":
        splits = p.clusters // p.tiles
        return stage * ceil_div(p.tile_stages, splits) + whole_tile + v["handover_at_once"] + sums(splits)
    tile = (stage * p.tile_stages + whole_tile) / p.clusters
    again = v["out_of_step_weights" if p.swap_ab else "out_of_step"] / p.block_n
    if p.swap_ab and p.n_tiles == 1:
        again = 0  # a single block cannot get out of step
    # The part of the operands of all shares that exceeds L2 is read from memory for each share.
    tall = min(p.m_tiles, p.raster_group)
    rows = p.tile_rows * p.cluster
    held = L2_BYTES / (2 * p.k) / (rows * tall + p.block_n * ceil_div(p.stream_k_tiles, tall))
    each = max(0, 1 - held) * (rows + p.block_n) * p.k * 2 / (v["memory_" + kind] * NUM_SMS)
    late = each - stage_math(p, v) * p.tile_stages * p.cluster / NUM_SMS
    splits = ceil_div(p.clusters, p.stream_k_tiles) + 1
    return (tile * (p.tiles + again * p.stream_k_tiles) + v["handover"] + sums(splits)
            + v["from_memory"] * max(late, 0) * p.stream_k_tiles)
