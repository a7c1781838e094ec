"""Prints what the verbs become for a Hopper GPU, which need not be there; for test_triton.py."""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import untax.triton as ut


@triton.jit
def sender(to, source, counter, context, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    ut.put_signal(to + i, source + i, counter, 3, 1 - context.rank, context)


@triton.jit
def receiver(to, source, counter, context, TILE: tl.constexpr):
    peer = 1 - context.rank
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    ut.wait(counter, 3, peer, context)
    ut.get(to + i, source + i, peer, context)


@triton.jit
def words(to, source, counter, context, TILE: tl.constexpr):
    peer = 1 - context.rank
    i = tl.arange(0, TILE)
    value = ut.load(source + i, peer, context, sem="acquire")
    ut.store(to + i, value, peer, context, sem="release")
    before = ut.atomic_cas(counter, 0, 1, peer, context)
    ut.atomic_min(counter, before, peer, context, sem="relaxed", scope="gpu")


for kernel, element in ((sender, "*bf16"), (receiver, "*bf16"), (words, "*fp32")):
    signature = {"to": element, "source": element, "counter": "*i64", "context": ut.DeviceContext("i32", "i32", "i32", "*i64"),
                 "TILE": "constexpr"}
    aligned = {(argument,): [["tt.divisibility", 16]] for argument in range(3)}
    compiled = triton.compile(ASTSource(kernel, signature, {(4,): 1024}, aligned), target=GPUTarget("cuda", 90, 32))
    print(f"kernel {kernel.__name__}\n{compiled.asm['ptx']}")
