"""A selector for kernels of one's own: two ways to look numbers up, measured, and trees that choose between them."""

import time

import numpy
import untax


def seconds(work):
    best = numpy.inf
    for _ in range(3):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best


# A table takes memory for the whole range of the values; only a pass over them tells the range.
def look(values):
    return {"spread": float(values.max() - values.min())}


random = numpy.random.default_rng(1)
records = []
for n in (100, 1000, 10000, 50000):
    for top in (100, 10000, 1000000, 1000000000) * 2:
        x, values = random.integers(0, top, (2, n))
        record = {"n": n, **look(values), "gather": seconds(lambda: look(values))}
        record["t_sort"] = seconds(lambda: numpy.isin(x, values, kind="sort"))
        record["t_table"] = seconds(lambda: numpy.isin(x, values, kind="table")) if top < 1e7 else None
        records.append(record)

schema = {"known": ["n"], "gathered": ["spread"], "gathering": "gather", "candidates": [
    {"name": "sort", "time": "t_sort"}, {"name": "table", "time": "t_table", "guard": "spread <= 1e7"}]}
selector = untax.Selector.train(schema, records)
print(selector)

for top in (1000, 1000000000):
    x, values = random.integers(0, top, (2, 20000))
    kind = selector.choose({"n": values.size}, lambda: look(values))
    assert kind == "sort" or top < 1e7, "the guard"
    assert (numpy.isin(x, values, kind=kind) == numpy.isin(x, values)).all()
    print(f"numbers below {top}: {kind}")
