"""Waits that take long, with the rules of flow/device_watch.cuh: a wait publishes its record where the host reads it,
ends when the world was stopped, and after the limit stops the kernels of all ranks, whose hosts then raise the error.

The threads of a program load and read clocks separately, but have to take the same branches. A scalar atomic is
executed by one thread, which passes its result to the others. So all values that decide about a branch come from scalar
atomics.
"""

from __future__ import annotations

import time

import triton
import triton.language as tl

# The words of a context's state.
_CLOCK = tl.constexpr(0)
_HEARD = tl.constexpr(1)  # whether the host has stopped the world
_LIMIT = tl.constexpr(2)
_CLOCK_OFFSET = tl.constexpr(3)
_RECORDS = tl.constexpr(4)
_PROGRESS = tl.constexpr(5)
_FIRST_SLOT = tl.constexpr(6)
_SLOTS = tl.constexpr(7)
_HOST_STOP = tl.constexpr(8)
_STOP = tl.constexpr(9)
_STOP_SPAN = tl.constexpr(10)
_OUTCOME = tl.constexpr(11)
_NAME = tl.constexpr(12)


@triton.jit
def _word(context, index):
    """The address that a word of the state holds."""
    return tl.load(context.state + index).to(tl.pointer_type(tl.int64))


#: Whether kernels of this process are carried out on the CPU.
interpreted = not isinstance(_word, triton.JITFunction)

if interpreted:
    _POLLS = tl.constexpr(4)  # polls between two looks

    def _clock():
        return time.monotonic_ns()

    def _pause():
        time.sleep(50e-6)  # there are more ranks than cores
else:
    from triton.language.extra import cuda

    _POLLS = tl.constexpr(1024)

    @triton.jit
    def _clock():
        return cuda.globaltimer()

    @triton.jit
    def _pause():
        pass


@triton.jit
def _agreed(word, value):
    """The largest of the values that the threads pass, the same in all threads of the program."""
    tl.atomic_max(word, value, sem="relaxed", scope="gpu")
    return tl.atomic_max(word, 0, sem="relaxed", scope="gpu")


@triton.jit
def _fence(context):
    """Orders the stores of the program before the fence and after it, also for the host."""
    tl.debug_barrier()
    tl.atomic_or(_word(context, _STOP), 0, sem="acq_rel", scope="sys")
    tl.debug_barrier()


@triton.jit
def _slot():
    return tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))


@triton.jit
def _publish(context, slot, value, peer, seen, since):
    record = _word(context, _RECORDS) + 8 * slot
    tl.store(record, 0)
    _fence(context)
    wait_until: tl.constexpr = 2
    no_room: tl.constexpr = 0xFFFFFFFF << 24
    tl.store(record + 1, no_room + wait_until + (tl.cast(peer, tl.int64) & 0xFFFF) * 256)
    tl.store(record + 2, value)
    tl.store(record + 3, seen)
    for i in range(4):
        tl.store(record + 4 + i, tl.load(context.state + _NAME + i))
    tl.store(_word(context, _PROGRESS) + slot, 0)
    _fence(context)
    tl.store(record, since + tl.load(context.state + _CLOCK_OFFSET))


@triton.jit
def _give_up(context, slot):
    outcome = _word(context, _OUTCOME)
    stop = tl.load(context.state + _STOP)
    if tl.atomic_xchg(stop.to(tl.pointer_type(tl.int64)), 1, sem="acq_rel", scope="sys") == 0:
        if tl.load(outcome) == 0:
            tl.store(outcome, 1 + slot + tl.load(context.state + _FIRST_SLOT))
        _fence(context)
        for peer in range(context.size):
            at = stop + tl.cast(peer - context.rank, tl.int64) * tl.load(context.state + _STOP_SPAN)
            tl.atomic_xchg(at.to(tl.pointer_type(tl.int64)), 1, sem="release", scope="sys")
    else:  # another wait of this rank reports for it
        tl.store(outcome + 1, 1)


@triton.jit
def _stopped(context):
    """Whether the world was stopped. If so, tells the host that this kernel has stopped."""
    host = _agreed(context.state + _HEARD, tl.load(_word(context, _HOST_STOP), volatile=True))
    stopped = (tl.atomic_or(_word(context, _STOP), 0, sem="acquire", scope="sys") != 0) | (host != 0)
    if stopped:
        tl.store(_word(context, _OUTCOME) + 1, 1)
    return stopped


@triton.jit
def wait_long(counter, value, peer, context, seen, scope: tl.constexpr):
    """Polls until the counter has `value`, or the wait fails. Returns the last number seen."""
    last = tl.load(context.state + _SLOTS) - 1
    slot = tl.minimum(_slot(), last)  # programs beyond the table share its last record, and own it only when they give up
    since = _agreed(context.state + _CLOCK, _clock())
    limit = tl.load(context.state + _LIMIT)
    going = _stopped(context) == 0  # the record of the failed wait stays
    if going & (slot < last):
        _publish(context, slot, value, peer, seen, since)
    while going:
        polls = 0
        while (seen < value) & (polls < _POLLS):
            _pause()
            seen = tl.atomic_or(counter, 0, sem="acquire", scope=scope)
            polls += 1
        if seen >= value:
            if slot < last:
                tl.store(_word(context, _RECORDS) + 8 * slot, 0)
            going = False
        elif _stopped(context):
            going = False
        else:
            now = _agreed(context.state + _CLOCK, _clock())
            if slot < last:
                tl.store(_word(context, _RECORDS) + 8 * slot + 3, seen)
            if (limit > 0) & (now - since >= limit):
                if slot == last:
                    _publish(context, slot, value, peer, seen, since)
                _give_up(context, slot)
                going = False
    return seen
