"""A sparse matrix times vectors: ten steps of the heat equation on a grid, in every way that this host has."""

import numpy
import untax

# Five elements a row at most: a point of a grid, and its neighbours.
side = 200
grid = numpy.arange(side * side, dtype=numpy.int32).reshape(side, side)
rows, columns, values = [], [], []
for dy, dx, value in ((0, 0, 0.6), (0, 1, 0.1), (0, -1, 0.1), (1, 0, 0.1), (-1, 0, 0.1)):
    center = grid[max(0, -dy) : side - max(0, dy), max(0, -dx) : side - max(0, dx)]
    neighbor = grid[max(0, dy) : side + min(0, dy), max(0, dx) : side + min(0, dx)]
    rows.append(center.ravel())
    columns.append(neighbor.ravel())
    values.append(numpy.full(center.size, value))

# By compressed rows. scipy.sparse and torch have such matrices; Spmv takes those as they are.
rows, columns, values = (numpy.concatenate(parts) for parts in (rows, columns, values))
order = numpy.lexsort((columns, rows))
columns, values = columns[order], values[order]
offsets = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(rows, minlength=grid.size))])
matrix = offsets, columns, values, (grid.size, grid.size)

start = numpy.zeros(grid.size)
start[grid[side // 2, side // 2]] = 1.0
ends = {}
for way in untax.spmv_ways():
    try:
        product = untax.Spmv(matrix, way=way, threads=2)  # made ready once
    except untax.Unsupported:
        continue  # cuSPARSE needs a GPU
    heat, after = start.copy(), numpy.empty_like(start)
    for _ in range(10):
        product(heat, after)
        heat, after = after, heat
    ends[way] = heat

for way, heat in ends.items():
    assert abs(heat.sum() - 1) < 1e-12 and numpy.allclose(heat, ends["csr_thread"], rtol=1e-12), way
print(f"{len(ends)} ways, the same heat")
