#!/usr/bin/env python3
"""Finds tiles without a kernel that would make products faster, by the planner's model.

  candidates.py GPU FILE... [--most N]   adds one kernel after the other, always the one that gains most

GPU is a column of cost.def (h200 or h100), and FILE the output of `untax bench gemm --every-plan --json FILE`: problems
of more than 128 rows, with the time of the library and of every plan. A kernel that does not exist has only a time of
the model, so its gain is the ratio of two times of the model, applied to the measured time.
"""

import argparse
import itertools

import fit
import model

PLACES = {1: 132, 2: 66}  # the clusters that run at a time, by their blocks
SHARED_BYTES = 227 * 1024 - 2048  # shared memory of a block, without its barriers


def plans(m, n, k, config, tall=1):
    """The plans that gemm_plans in engines/gpu/gemm/plan.cpp makes, for kernels whose clusters do not share a tile."""
    block_n, cluster, stages, swap_ab, buffers = config
    plan_of = lambda clusters, cut: model.Plan(m, n, k, block_n, cluster, stages, swap_ab, buffers, False, 1, m_tiles, n_tiles,
                                            clusters, cut, 8, tall)
    m_tiles = model.ceil_div(n if swap_ab else m, 128 * tall * cluster)
    n_tiles = model.ceil_div(m if swap_ab else n, block_n)
    tiles, places, k_blocks = m_tiles * n_tiles, PLACES[cluster], model.ceil_div(k, model.BLOCK_K)
    if swap_ab and block_n > 128 and 2 * m <= block_n:
        return
    yield plan_of(min(tiles, places), 0)
    last = tiles % places + (places if tiles > places else 0)
    if tiles % places != 0:
        yield plan_of(min(places, last * k_blocks), last)
    splits = min(places // tiles, k_blocks)
    if splits > 1 and splits * tiles < places:
        yield plan_of(tiles * splits, tiles)


def candidates():
    """(configuration, tall) of each candidate: sub-tiles are of one width, and there is room for four stages."""
    for tall in (1, 2):
        for block_n, (cluster, swap_ab) in itertools.product(range(64, 257 if tall == 1 else 129, 8),
                                                             ((2, False), (2, True), (1, True))):
            subtile = max(c for c in range(8, 65, 8) if block_n % c == 0)
            stage = (128 * tall + block_n) * model.BLOCK_K * 2
            buffer = (subtile if swap_ab else 64) * 64 * 2 * 2 * tall
            stages = (SHARED_BYTES - buffer) // stage
            if subtile >= 24 and stages >= 4:
                yield (block_n, cluster, min(stages, 6), swap_ab, 1), tall


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpu", choices=model.GPUS)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--most", type=int, default=8, help="kernels to add")
    options = parser.parse_args()
    values = model.parameters(options.gpu)
    problems = [p for name in options.files for p in fit.problems_of(name) if p.m > 128]
    time_of = lambda made: min((model.cycles(p, values) for p in made if not p.too_wide), default=1e300) + values["launch"]
    current = [time_of(plan for plan, _ in p.usual) for p in problems]
    ratios = [p.library / p.best for p in problems]
    print(f"{len(problems)} problems; library / best timed plan {fit.mean(map(fit.math.log, ratios)):.3f}, "
          f"under 0.90: {sum(r < 0.9 for r in ratios)}")
    times = {c: [time_of(plans(p.m, p.n, p.k, *c)) for p in problems] for c in candidates()}
    first = list(current)
    gain = lambda times: fit.mean(fit.math.log(a / min(a, b)) for a, b in zip(current, times))
    for _ in range(options.most):
        best = max(times, key=lambda c: gain(times[c]))
        gained = gain(times[best])
        current = [min(a, b) for a, b in zip(current, times.pop(best))]
        expected = [r * a / b for r, a, b in zip(ratios, first, current)]
        (block_n, cluster, _, swap_ab, _), tall = best
        print(f"{128 * tall} rows of {'B' if swap_ab else 'A'} by {block_n}, clusters of {cluster}: {gained:.4f}; then "
              f"{fit.mean(map(fit.math.log, expected)):.3f}, under 0.90: {sum(r < 0.9 for r in expected)}")


if __name__ == "__main__":
    main()
