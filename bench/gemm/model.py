"""What a GEMM takes by the planner's model: the same arithmetic as engines/gpu/gemm/plan.cpp, on plans read from JSON.

`untax bench gemm --every-plan --json` writes them, with what each took. fit.py looks for the parameters.
"""

import dataclasses

BLOCK_K = 64
NUM_SMS = 132  # of an H200


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

    def __post_init__(self):
        put = lambda name, value: object.__setattr__(self, name, value)
        rows = 64 if self.warpgroup_split_k else 128
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
        free = NUM_SMS if self.cluster_blocks <= 2 else NUM_SMS - 16
        put("places", free // self.cluster_blocks)
        if self.cluster_split_k > 1:
            way = "cluster"
        elif self.stream_k_tiles == 0:
            way = "whole"
        elif self.clusters % self.tiles == 0 and (self.clusters < self.places or self.cluster > 2):
            way = "splits"
        else:
            way = "shares"
        put("way", way)

    @property
    def kernel(self):
        name = f"{'weights' if self.swap_ab else 'rows'}_by_{self.block_n}"
        if self.warpgroup_split_k and self.block_n > 64:
            name += "_halves"
        if self.cluster_split_k > 1:
            name += f"_{'two_' if self.cluster == 2 and self.swap_ab else ''}{'pairs' if self.cluster_split_k == 2 else 'fours'}"
        elif self.cluster == 4:
            name += "_clusters"
        return name


# Cycles of 1755 MHz; what each stands for is said in plan.cpp.
PARAMETERS = {
    "products_per_cycle": 1700.0,
    "stage_change": 30.0,
    "l2_shared": 55.0,  # bytes a cycle that come to each multiprocessor
    "l2_alone": 36.5,
    "memory_shared": 18.0,
    "memory_alone": 19.7,
    "memory_halves": 20.2,
    "most_shared": 26.0,
    "most_alone": 21.5,
    "most_halves": 22.0,
    "out_of_step": 26.0,
    "out_of_step_weights": 0.0,
    "handover": 2000.0,
    "sums_rate": 16.0,
    "wide_sums_rate": 12.0,
    "joined_rate": 24.0,
    "whole_tile": 1200.0,
    "whole_column": 0.0,
    "launch": 3000.0,
    "idle_gain": 0.1,
    "joined": 500.0,
}


def cycles(p, v):
    """Of a plan, with these values of the parameters, but for the launch."""
    first = cycles_at(p, v, 1.0)
    # Multiprocessors that do not multiply leave power to the others, whose clock rises.
    busy = p.tiles * p.tile_stages * p.cluster * stage_math(p, v) / (NUM_SMS * first)
    return cycles_at(p, v, 1 + v["idle_gain"] * (1 - min(1.0, busy)))


def stage_math(p, v):
    return p.tile_rows * p.block_n * p.depth / v["products_per_cycle"] + v["stage_change"]


def cycles_at(p, v, clock):
    if p.warpgroup_split_k or p.cluster == 1:
        kind = "alone" if p.cluster == 1 else "halves"
        l2 = v["l2_alone"]
    else:
        kind, l2 = "shared", v["l2_shared"]
    share = NUM_SMS / p.blocks
    if p.warpgroup_split_k or p.cluster == 1:
        l2 *= share
    math = stage_math(p, v) / clock
    read = (p.tile_rows + p.multicast_rows) * p.depth * 2 / l2
    rate = min(v["memory_" + kind] * share, v["most_" + kind])
    stages = p.tiles * p.tile_stages * p.cluster
    operands = (p.m + p.n) * p.k * 2 / stages / rate
    stage = max(math, read, operands)
    whole_tile = v["whole_tile"] + v["whole_column"] * p.block_n
    if p.way == "whole":
        return (stage * p.tile_stages + whole_tile) * ceil_div(p.tiles, p.clusters)
    if p.way == "cluster":
        sent = p.partial_bytes * (p.cluster_split_k - 1) / p.cluster_split_k
        return stage * ceil_div(p.tile_stages, p.cluster_split_k) + v["joined"] + whole_tile + sent / v["joined_rate"]
    sums_rate = v["sums_rate" if p.swap_ab else "wide_sums_rate"]
    split = lambda splits: v["handover"] + (splits - 1) * p.partial_bytes / sums_rate
    if p.way == "splits":
        splits = p.clusters // p.tiles
        return stage * ceil_div(p.tile_stages, splits) + whole_tile + split(splits)
    tile = (stage * p.tile_stages + whole_tile) / p.clusters
    again = v["out_of_step_weights" if p.swap_ab else "out_of_step"] / p.block_n
    return tile * (p.tiles + again * p.stream_k_tiles) + split(ceil_div(p.clusters, p.stream_k_tiles) + 1)
