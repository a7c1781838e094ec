"""One step of decoding through the MLP of a layer, where all ranks have all tokens, with numpy and ranks as threads."""

import numpy as np
import untax

ranks, tokens, width, hidden, epsilon = 4, 3, 64, 256, 1e-5
random = np.random.default_rng(7)
residual, attended = (random.standard_normal((tokens, width), np.float32) for _ in range(2))
weight, next_weight = (1 + random.standard_normal(width, np.float32) / 8 for _ in range(2))
up = random.standard_normal((hidden, width), np.float32) / width**0.5
down = random.standard_normal((width, hidden), np.float32) / hidden**0.5


def normalised(x, norm_weight):
    return x / np.sqrt((x**2).mean(1, keepdims=True) + epsilon) * norm_weight


def body(world):
    def part(matrix, axis=0):
        return np.ascontiguousarray(np.split(matrix, world.size, axis)[world.rank])

    # Each rank has attended with some of the heads: here a fourth of the sum each.
    norm = untax.AllReduceNorm(world, tokens, width, "fp32", epsilon=epsilon)
    y, x = norm(attended / ranks, residual, weight)

    # Each rank has some of the hidden features; the operator completes the sum of the partial results at every rank.
    inner = np.maximum(y @ part(up).T, 0)
    sum_of_ranks = untax.GemmAllReduce(world, tokens, width, hidden, "fp32")
    z = sum_of_ranks(inner, part(down, axis=1))

    # The same sum with the norm that begins the next layer: AllReduceNorm takes the partial results.
    y, x = norm(inner @ part(down, axis=1).T, x, next_weight)
    return y, x, z, norm.explain(), sum_of_ranks.explain()


x = attended + residual
z = np.maximum(normalised(x, weight) @ up.T, 0) @ down.T
expected = normalised(x + z, next_weight), x + z, z
results = untax.run_threads(ranks, body)
for rank, result in enumerate(results):
    for got, right in zip(result[:3], expected):
        error = np.linalg.norm(got - right) / np.linalg.norm(right)
        assert error < 1e-5, f"rank {rank}: relative error {error}"
    assert all((got == same).all() for got, same in zip(result[:3], results[0]))
print(f"{ranks} ranks, threads: right, and the same bits at every rank")
print("\n".join(results[0][3:]))
