"""The verbs, for kernels in Triton.

A pointer points into this rank's symmetric memory, or is a block of such pointers; `peer` is the rank whose copy is
accessed, and may be this rank; `context` is the result of `untax.triton.context`. `sem` and `scope` are those of
Triton: "relaxed", "acquire", "release" or "acq_rel", and "cta", "gpu" or "sys", of which only "sys" reaches other
ranks. A verb that releases does so for all threads of the program, and so does one that acquires. docs/triton.md has
the rules.
"""

import triton
import triton.language as tl

from .waits import wait_long

ACQ_REL = tl.constexpr("acq_rel")  # some versions of Triton do not accept plain text as a default of an inner function
SYSTEM = tl.constexpr("sys")


@triton.jit
def translate(pointer, peer, context):
    """The address at `peer` of the element that `pointer` points to. Memories of ranks are whole pages apart, so both addresses
    have the same alignment."""
    bits: tl.constexpr = pointer.dtype.element_ty.primitive_bitwidth
    page: tl.constexpr = 4096 * 8 // (bits if bits > 8 else 8)
    return pointer + tl.cast(peer - context.rank, tl.int64) * context.pages * page


@triton.jit
def _release(sem: tl.constexpr):
    """Precedes an access that releases, so that it releases for all threads of the program."""
    if sem == "release" or sem == "acq_rel":
        tl.debug_barrier()


@triton.jit
def _acquire(sem: tl.constexpr):
    """Follows an access that acquires, so that it acquires for all threads of the program."""
    if sem == "acquire" or sem == "acq_rel":
        tl.debug_barrier()


@triton.jit
def _as_integers(pointer):
    """The pointer as a pointer to integers, which all atomics take."""
    bits: tl.constexpr = pointer.dtype.element_ty.primitive_bitwidth
    tl.static_assert(bits == 32 or bits == 64, "ordered loads and stores are of 32 or 64 bits")
    integer: tl.constexpr = tl.int64 if bits == 64 else tl.int32
    return pointer.to(tl.pointer_type(integer), bitcast=True)


@triton.jit
def load(pointer, peer, context, mask=None, other=None, sem: tl.constexpr = None, scope: tl.constexpr = SYSTEM):
    """Reads a value, or a tile of values, of `peer`. With `sem`, "relaxed" or "acquire", each value is read whole, and
    not before its order allows; without `sem` the read is an ordinary one."""
    at = translate(pointer, peer, context)
    if sem is None:
        return tl.load(at, mask=mask, other=other)
    else:
        tl.static_assert(other is None, "an ordered load has no value for what the mask leaves out")
        value = tl.atomic_or(_as_integers(at), 0, mask=mask, sem=sem, scope=scope)
        _acquire(sem)
        return value.to(pointer.dtype.element_ty, bitcast=True)


@triton.jit
def store(pointer, value, peer, context, mask=None, sem: tl.constexpr = None, scope: tl.constexpr = SYSTEM):
    """Writes a value, or a tile of values, at `peer`. With `sem`, "relaxed" or "release", each value is written whole,
    and not before its order allows; without `sem` the write is an ordinary one."""
    at = translate(pointer, peer, context)
    if sem is None:
        tl.store(at, value, mask=mask)
    else:
        words = _as_integers(at)
        element = pointer.dtype.element_ty
        _release(sem)
        tl.atomic_xchg(words, tl.cast(value, element).to(words.dtype.element_ty, bitcast=True), mask=mask, sem=sem, scope=scope)


@triton.jit
def copy(to, source, to_peer, from_peer, context, mask=None):
    """Copies a tile from `from_peer` to `to_peer`, through this rank."""
    tl.store(translate(to, to_peer, context), tl.load(translate(source, from_peer, context), mask=mask), mask=mask)


@triton.jit
def put(to, source, peer, context, mask=None):
    """Copies a tile of this rank's memory, which need not be symmetric, to `peer`."""
    tl.store(translate(to, peer, context), tl.load(source, mask=mask), mask=mask)


@triton.jit
def get(to, source, peer, context, mask=None):
    """Copies a tile of `peer` to this rank's memory, which need not be symmetric."""
    tl.store(to, tl.load(translate(source, peer, context), mask=mask), mask=mask)


@triton.jit
def signal(counter, value, peer, context, scope: tl.constexpr = SYSTEM):
    """Raises the counter at `peer` to `value`, and never lowers it. Release: a program that sees the value by `wait`
    sees all earlier writes of this program, at any rank. A counter is an int64 with one writer."""
    tl.debug_barrier()  # one thread releases for the whole program
    tl.atomic_max(translate(counter, peer, context), value, sem="release", scope=scope)


@triton.jit
def put_signal(to, source, counter, value, peer, context, mask=None):
    """`put`, then `signal`: the tile is there before the counter says so."""
    put(to, source, peer, context, mask=mask)
    signal(counter, value, peer, context)


@triton.jit
def wait(counter, value, peer, context, scope: tl.constexpr = SYSTEM):
    """Waits until this rank's counter, which `peer` raises, is at least `value`. Acquire. Returns whether it is: false
    if the limit of the world has passed, or the world was stopped. Then later waits end at once, results are invalid,
    and `world.check()` raises the reason."""
    seen = tl.atomic_or(counter, 0, sem="acquire", scope=scope)
    if seen < value:
        seen = wait_long(counter, value, peer, context, seen, scope)
    tl.debug_barrier()
    return seen >= value


@triton.jit
def atomic_add(pointer, value, peer, context, mask=None, sem: tl.constexpr = ACQ_REL, scope: tl.constexpr = SYSTEM):
    """Adds, and returns the value before."""
    _release(sem)
    before = tl.atomic_add(translate(pointer, peer, context), value, mask=mask, sem=sem, scope=scope)
    _acquire(sem)
    return before


@triton.jit
def atomic_sub(pointer, value, peer, context, mask=None, sem: tl.constexpr = ACQ_REL, scope: tl.constexpr = SYSTEM):
    """Subtracts, and returns the value before."""
    _release(sem)
    before = tl.atomic_add(translate(pointer, peer, context), -value, mask=mask, sem=sem, scope=scope)
    _acquire(sem)
    return before


@triton.jit
def atomic_and(pointer, value, peer, context, mask=None, sem: tl.constexpr = ACQ_REL, scope: tl.constexpr = SYSTEM):
    """Keeps the bits that are set in both, and returns the value before."""
    _release(sem)
    before = tl.atomic_and(translate(pointer, peer, context), value, mask=mask, sem=sem, scope=scope)
    _acquire(sem)
    return before


@triton.jit
def atomic_or(pointer, value, peer, context, mask=None, sem: tl.constexpr = ACQ_REL, scope: tl.constexpr = SYSTEM):
    """Sets the bits that are set in `value`, and returns the value before."""
    _release(sem)
    before = tl.atomic_or(translate(pointer, peer, context), value, mask=mask, sem=sem, scope=scope)
    _acquire(sem)
    return before


@triton.jit
def atomic_xor(pointer, value, peer, context, mask=None, sem: tl.constexpr = ACQ_REL, scope: tl.constexpr = SYSTEM):
    """Flips the bits that are set in `value`, and returns the value before."""
    _release(sem)
    before = tl.atomic_xor(translate(pointer, peer, context), value, mask=mask, sem=sem, scope=scope)
    _acquire(sem)
    return before


@triton.jit
def atomic_min(pointer, value, peer, context, mask=None, sem: tl.constexpr = ACQ_REL, scope: tl.constexpr = SYSTEM):
    """Keeps the smaller value, and returns the value before."""
    _release(sem)
    before = tl.atomic_min(translate(pointer, peer, context), value, mask=mask, sem=sem, scope=scope)
    _acquire(sem)
    return before


@triton.jit
def atomic_max(pointer, value, peer, context, mask=None, sem: tl.constexpr = ACQ_REL, scope: tl.constexpr = SYSTEM):
    """Keeps the larger value, and returns the value before."""
    _release(sem)
    before = tl.atomic_max(translate(pointer, peer, context), value, mask=mask, sem=sem, scope=scope)
    _acquire(sem)
    return before


@triton.jit
def atomic_xchg(pointer, value, peer, context, mask=None, sem: tl.constexpr = ACQ_REL, scope: tl.constexpr = SYSTEM):
    """Writes `value`, and returns the value before."""
    _release(sem)
    before = tl.atomic_xchg(translate(pointer, peer, context), value, mask=mask, sem=sem, scope=scope)
    _acquire(sem)
    return before


@triton.jit
def atomic_cas(pointer, expected, value, peer, context, sem: tl.constexpr = ACQ_REL, scope: tl.constexpr = SYSTEM):
    """Writes `value` if the value equals `expected`, and returns the value before."""
    element = pointer.dtype.element_ty
    at = translate(pointer, peer, context)
    _release(sem)
    before = tl.atomic_cas(at, tl.cast(expected, element), tl.cast(value, element), sem=sem, scope=scope)
    _acquire(sem)
    return before
