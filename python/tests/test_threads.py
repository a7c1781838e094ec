"""One operator that several threads call."""

import threading
import time

import numpy
import pytest

import untax


def results_of(run, refused):
    """The results of two threads that call `run` at a time, of which one waits for another rank until `refused` is set."""
    got = []

    def call():
        try:
            got.append(run())
        except untax.Error as error:
            got.append(error)
            refused.set()

    both = [threading.Thread(target=call) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(30)
    return got


@pytest.mark.parametrize("kind", [untax.AllReduce, untax.AllGather, untax.Broadcast])
def test_a_second_thread_is_refused_at_once(kind):
    refused, got = threading.Event(), []

    def body(world):
        op = kind(world, 8, "fp32")
        x = numpy.ones(op.operand("in")[0], numpy.float32)
        out = numpy.empty(op.operand("out")[0], numpy.float32)
        if world.rank == world.size - 1:
            begin = time.monotonic()
            got.extend(results_of(lambda: op(x, out.copy()), refused))
            got.append(time.monotonic() - begin)
        else:
            assert refused.wait(10), "both threads ran"
            op(x, out)
        world.let_runs_follow(None)  # nothing to follow on a host
        op(x, out)

    untax.run_threads(2, body, wait_limit=20)
    *results, seconds = got
    errors = [r for r in results if isinstance(r, untax.Error)]
    assert len(results) == 2 and len(errors) == 1, results
    assert isinstance(errors[0], untax.InvalidArgument) and "another thread is in a run" in str(errors[0])
    assert seconds < 10
