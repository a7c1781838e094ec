#!/usr/bin/env python3
"""The errors of sums over ranks, by the type in which partial results travel: the table of docs/numerics.md.

    python bench/partial_sums.py            prints it
    python bench/partial_sums.py --write    puts it into docs/numerics.md

Ranks are threads of this process, on the CPU. Products of m x n x k are compared with those of the same operands in
fp64. The error of a sum is its distance over its norm; the worst element is its distance over the root mean square of
the sum. `rounded once` is the exact sum, rounded to the type: no result in this type is nearer.
"""

import argparse
from pathlib import Path

import torch

import untax
import untax.torch

M, N, K = 256, 256, 4096
BEGIN, END = "<!-- from bench/partial_sums.py -->\n", "<!-- end -->"


def operands(kind, dtype):
    """The operands of all ranks together: of equal signs, so that no partial result cancels another one, or random."""
    generator = torch.Generator().manual_seed(1)
    a, b = torch.randn(M, K, generator=generator), torch.randn(K, N, generator=generator)
    if kind == "of like signs":
        a, b = a.abs(), b.abs()
    return (a / K**0.5).to(dtype), b.to(dtype)


def errors(got, exact):
    distance = got.double() - exact
    size = exact.norm() / exact.numel() ** 0.5
    return (distance.norm() / exact.norm()).item(), (distance.abs().max() / size).item()


def measured(kind, dtype, ranks, partials):
    a, b = operands(kind, dtype)
    exact = a.double() @ b.double()
    if ranks == 1:
        return errors(exact.to(dtype), exact)
    part = K // ranks

    def body(world):
        mine = slice(world.rank * part, (world.rank + 1) * part)
        return untax.torch.matmul_reduce_scatter(a[:, mine].contiguous(), b[mine].contiguous(), group=world,
                                                 partials=partials)

    try:
        return errors(torch.cat(untax.run_threads(ranks, body)), exact)
    finally:
        untax.torch.close()


def table():
    lines = [f"{M} x {N} x {K}, k shared by the ranks; error of the sum, then of its worst element.", "",
             "| operands | type | rounded once | partials | 2 ranks | 4 ranks | 8 ranks |", "|---|---|---|---|---|---|---|"]
    for kind in ("random", "of like signs"):
        for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
            for partials in (None, "fp32"):
                cells = [measured(kind, dtype, ranks, partials) for ranks in (1, 2, 4, 8)]
                once, *more = (f"{whole:.1e}, {worst:.1e}" for whole, worst in cells)
                lines.append(f"| {kind} | {name} | {once} | {partials or name} | " + " | ".join(more) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="into docs/numerics.md")
    if not parser.parse_args().write:
        print(table(), end="")
        return
    page = Path(__file__).resolve().parents[1] / "docs/numerics.md"
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
