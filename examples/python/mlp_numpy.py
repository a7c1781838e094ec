"""A tensor-parallel MLP with numpy alone, and ranks as threads, against the same on one rank."""

import numpy as np
import untax

ranks, tokens, width, hidden = 4, 256, 128, 512
random = np.random.default_rng(7)
x = random.standard_normal((tokens, width), np.float32)
up = random.standard_normal((hidden, width), np.float32) / width**0.5
down = random.standard_normal((width, hidden), np.float32) / hidden**0.5
expected = np.maximum(x @ up.T, 0) @ down.T


def body(world):
    def part(matrix, axis=0):
        return np.ascontiguousarray(np.split(matrix, world.size, axis)[world.rank])

    # Each rank has some of the tokens, of the hidden features, and of the results.
    first = untax.AllGatherGemm(world, tokens, hidden // ranks, width, "fp32")
    second = untax.GemmReduceScatter(world, tokens, width, hidden, "fp32")
    y = second(np.maximum(first(part(x), part(up)), 0), part(down, axis=1))

    error = np.linalg.norm(y - part(expected)) / np.linalg.norm(part(expected))
    assert error < 1e-5, f"rank {world.rank}: relative error {error}"
    return error, first.explain(), second.explain()


error, *explained = untax.run_threads(ranks, body)[0]
print(f"{ranks} ranks, threads: relative error {error:.1e}, within the tolerance of 1e-5")
print("\n".join(explained))
