"""The first fused operator, with numpy and ranks as threads."""

import numpy
import untax

m, n, k = 512, 256, 1024


def body(world):
    # Planned once, by all ranks together.
    op = untax.AllGatherGemm(world, m, n, k, "fp32")

    a = numpy.ones((m // world.size, k), numpy.float32)  # this rank's rows of A
    weights = numpy.full((n, k), 0.5, numpy.float32)  # its own weights

    # Run many times. Rows of A travel while tiles that do not need them are multiplied.
    c = op(a, weights)
    return c[0, 0]


for rank, first in enumerate(untax.run_threads(4, body)):
    print(f"rank {rank}: c[0] is {first:g}")
