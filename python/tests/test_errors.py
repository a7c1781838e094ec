"""Refused arguments, and the errors of ranks whose peers fail."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import untax

f32 = np.float32


def test_errors_have_a_kind_a_text_and_a_suspect():
    assert issubclass(untax.PeerLost, untax.Error) and issubclass(untax.Timeout, TimeoutError)
    with pytest.raises(untax.InvalidArgument, match="0 ranks") as caught:
        untax.World.threads(0)
    assert caught.value.suspect == -1 and isinstance(caught.value, ValueError)
    assert caught.value.code == "invalid_argument"


def one_row(rows, cols):
    """Rows that are all the same memory, which may be written."""
    return np.lib.stride_tricks.as_strided(np.ones(cols, f32), (rows, cols), (0, 4))


@pytest.mark.parametrize("wrong, text", [
    (lambda w: untax.AllReduce(w, 4, "int8"), "int8"),
    (lambda w: untax.AllReduce(w, 4, "fp32", reduction="mean"), "'mean'; it can be sum, max, min"),
    (lambda w: untax.AllReduce(w, 4, "fp32", pattern="magic"), "'magic'"),
    (lambda w: untax.AllReduce(w, 4, "fp32", speed=3), "there is no speed; all_reduce has count, type"),
    (lambda w: untax.AllReduce(w, "four", "fp32"), "count is 'four'"),
    (lambda w: untax.AllGatherGemm(w, 4, 4, -1, "fp32"), "-1"),
    (lambda w: untax.AllReduce(w, 4, "fp32")(np.ones(3, f32)), "has 3 elements"),
    (lambda w: untax.AllReduce(w, 4, "fp32")(np.ones(4, np.float16)), "fp16"),
    (lambda w: untax.AllReduce(w, 4, "fp32", patern="x"), "there is no patern; all_reduce has count"),
    (lambda w: untax.AllReduce(w, 4, "fp32", workers="two"), "workers is 'two'; it has to be a number"),
    (lambda w: untax.AllReduce(w, 4, "fp32", pattern=99), "pattern is 99; it can be 0 to 7: automatic"),
    (lambda w: untax.AllGatherGemm(w, 4, 4, 4, "fp32", gather=7), "gather is 7; it can be rows, k"),
    (lambda w: untax.AllReduce(w, 4, "fp32")(np.ones(4)), "a has elements of float64; they have to be fp32, fp16 or bf16"),
    (lambda w: untax.AllReduce(w, 4, "fp32")(np.ones(4, np.uint8), np.ones(4, f32)), "a has elements of uint8"),
    (lambda w: untax.AllGatherGemm(w, 4, 4, 4, "fp32")([[1.0] * 4] * 4, np.ones((4, 4), f32)), "like a list; pass arrays"),
    (lambda w: untax.AllReduce(w, 4, "fp32")(np.ones(8, f32)[::2]), "side by side"),
    (lambda w: untax.AllReduce(w, 4, "fp32")("four", np.ones(4, f32)), "a is a str"),
    (lambda w: untax.AllReduce(w, 4, "fp32")([1.0] * 4), "pass out="),
    (lambda w: untax.AllGatherGemm(w, 4, 4, 4, "fp32")(np.ones(16, f32), np.ones((4, 4), f32)), "has 1 dimensions"),
    (lambda w: untax.AllGatherGemm(w, 4, 2, 4, "fp32")(np.ones((4, 4), f32), np.ones((4, 2), f32).T), "columns of weights"),
    (lambda w: untax.AllGatherGemm(w, 4, 3, 4, "fp32")(np.ones((4, 4), f32), np.ones((4, 4), f32)), "weights is 4 x 4"),
    (lambda w: untax.AllGatherGemm(w, 4, 2, 4, "fp32")(np.broadcast_to(np.ones(4, f32), (4, 4)), np.ones((2, 4), f32)),
     "all rows of a lie at the same place"),
    (lambda w: untax.AllGatherGemm(w, 4, 2, 4, "fp32")(np.ones((4, 4), f32), np.ones((2, 4), f32), one_row(4, 2)),
     "all rows of out lie at the same place"),
])
def test_impossible_requests_are_refused_with_the_reason(wrong, text):
    with untax.World.threads(1)[0] as world:
        with pytest.raises(untax.InvalidArgument) as caught:
            wrong(world)
        assert text in str(caught.value)
        assert (untax.AllReduce(world, 2, "fp32")(np.ones(2, f32)) == 1).all()


def test_a_result_that_may_not_be_written_is_refused():
    out = np.ones(4, f32)
    out.flags.writeable = False
    with untax.World.threads(1)[0] as world, pytest.raises(untax.InvalidArgument, match="may be written"):
        untax.AllReduce(world, 4, "fp32").run(np.ones(4, f32), out)


def test_rows_that_cannot_overlap_may_have_any_stride():
    with untax.World.threads(1)[0] as world:
        op = untax.AllGatherGemm(world, 1, 2, 4, "fp32")
        assert (op(np.broadcast_to(np.ones(4, f32), (1, 4)), np.ones((2, 4), f32)) == 4).all()


def test_ranks_that_plan_different_problems_disagree():
    def body(world):
        with pytest.raises(untax.Disagreement, match="all_reduce"):
            untax.AllReduce(world, 4 + world.rank, "fp32")

    untax.run_threads(2, body)


def test_a_rank_that_raises_is_named_by_the_others():
    heard = []

    def body(world):
        if world.rank == 1:
            raise KeyError("the tokenizer")
        with pytest.raises(untax.Aborted, match="KeyError: 'the tokenizer'") as caught:
            world.barrier()
        heard.append(caught.value.suspect)

    with pytest.raises(KeyError):
        untax.run_threads(3, body)
    assert heard == [1, 1]


class Mute(Exception):
    """An error that has no text."""

    def __str__(self):
        raise LookupError("no text")


@pytest.mark.parametrize("error, text", [
    (FileNotFoundError(os.fsdecode(b"weights-\xff.bin")), r"FileNotFoundError: weights-\udcff.bin"),
    (Mute(), "Mute: its __str__ raised LookupError"),
])
def test_an_error_without_text_is_raised_at_all_ranks(error, text):
    told, worlds = [], []

    def body(world):
        worlds.append(world)
        if world.rank == 1:
            raise error
        with pytest.raises(untax.Aborted) as caught:
            world.barrier()
        told.append(str(caught.value))

    with pytest.raises(type(error)) as caught:
        untax.run_threads(2, body)
    assert caught.value is error
    assert len(told) == 1 and text in told[0]
    assert all(world.closed for world in worlds)


@pytest.mark.parametrize("before", range(3))
def test_a_text_that_was_cut_inside_a_character_is_raised(before):
    def body(world):
        if world.rank == 1:
            return world.fail("." * before + "\N{EURO SIGN}" * 5000)  # three bytes each, and more than the library keeps
        with pytest.raises(untax.Aborted, match="\N{EURO SIGN}{9}"):
            world.barrier()

    untax.run_threads(2, body)


def test_a_rank_that_leaves_is_named_by_the_others():
    def body(world):
        if world.rank == 2:
            return
        with pytest.raises(untax.PeerLost) as caught:
            world.barrier()
        assert caught.value.suspect == 2

    untax.run_threads(3, body)


def test_a_world_that_goes_with_its_last_operator_is_destroyed():
    worlds = untax.World.threads(2, wait_limit=10)

    def leave():
        op = untax.FlashAttention(worlds.pop(), batch=1, heads=1, kv_heads=1, head_dim=8, queries=1, keys=1, dtype="fp32")
        assert op.world.rank == 1

    leave()
    gc.collect()
    with worlds[0] as world, pytest.raises(untax.PeerLost) as caught:  # and no Timeout
        world.barrier()
    assert caught.value.suspect == 1


def test_other_threads_run_while_the_garbage_collector_closes_worlds():
    worlds = [untax.World.threads(1, heap_bytes=1 << 25)[0] for _ in range(20)]
    for world in worlds:
        np.asarray(world.allocate(1 << 20))[:] = 1  # what is then unmapped, which takes a while
    del world
    heard, start, usual = [], threading.Lock(), sys.getswitchinterval()
    start.acquire()
    other = threading.Thread(target=lambda: start.acquire() and heard.append(True))
    other.start()
    sys.setswitchinterval(1000)  # so that it runs only where this thread lets it
    try:
        start.release()
        woken = time.perf_counter() + 0.05
        while time.perf_counter() < woken:
            pass
        assert not heard
        while worlds and not heard:
            worlds.pop()
    finally:
        ran = bool(heard)
        sys.setswitchinterval(usual)
        other.join()
    assert ran


def test_closed_objects_are_refused():
    world = untax.World.threads(1)[0]
    op = untax.AllReduce(world, 2, "fp32")
    world.close()
    assert world.closed and op.closed
    world.close()
    with pytest.raises(untax.InvalidArgument, match="closed"):
        op(np.ones(2, f32))
    with pytest.raises(untax.InvalidArgument, match="closed"):
        world.barrier()


KILLED = """
    import os, signal, sys, untax
    world = untax.World.from_environment()
    world.barrier()
    if world.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        world.barrier()
    except untax.PeerLost as error:
        print("suspect", error.suspect, flush=True)
        sys.exit(7)
"""


def test_a_process_that_is_killed_is_named_and_nobody_hangs(tmp_path):
    ranks = []
    for rank in range(3):
        environment = {**os.environ, "UNTAX_RANK": str(rank), "UNTAX_WORLD_SIZE": "3",
                       "UNTAX_RENDEZVOUS": str(tmp_path / "meet")}
        ranks.append(subprocess.Popen([sys.executable, "-c", textwrap.dedent(KILLED)], env=environment,
                                      stdout=subprocess.PIPE, text=True))
    ends = [(rank.communicate(timeout=60)[0], rank.returncode) for rank in ranks]
    assert ends[1][1] == -signal.SIGKILL
    for text, status in (ends[0], ends[2]):
        assert (text.strip(), status) == ("suspect 1", 7)


@pytest.mark.parametrize("ranks, worlds", [(1, 1000), (3, 300)])
def test_worlds_and_plans_leave_nothing_behind(ranks, worlds):
    def pages():
        return int(open("/proc/self/statm").read().split()[1])

    def body(world):
        for turn in range(10):
            op = untax.AllReduce(world, 64, "fp32")
            if turn % 2 == 0:
                op.close()  # else the garbage collector, or the world, closes it

    for _ in range(40):
        untax.run_threads(ranks, body)
    before, open_before = pages(), len(os.listdir("/proc/self/fd"))
    for _ in range(worlds):  # ten times as many plans of each rank
        untax.run_threads(ranks, body)
    assert pages() - before < 1000
    assert len(os.listdir("/proc/self/fd")) == open_before


PLANS = """
    import os, untax
    def pages():
        return int(open("/proc/self/statm").read().split()[1])
    world = untax.World.from_environment()
    def plans(count):
        for _ in range(count):
            untax.AllReduce(world, 64, "fp32").close()
        world.barrier()
        return pages(), len(os.listdir("/proc/self/fd"))
    before, after = plans(200), plans(10000)
    assert after[0] - before[0] < 1000 and after[1] == before[1], (before, after)
    world.close()
"""


def test_plans_of_processes_leave_nothing_behind(tmp_path):
    ranks = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(PLANS)], stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "UNTAX_RANK": str(rank), "UNTAX_WORLD_SIZE": "2",
                                   "UNTAX_RENDEZVOUS": str(tmp_path / "meet")}) for rank in range(2)]
    for rank in ranks:
        assert (rank.communicate(timeout=60)[1], rank.returncode) == ("", 0)
    assert list(tmp_path.iterdir()) == []
