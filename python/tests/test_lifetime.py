"""How long operators, memory and views of it live, and how programs end that are interrupted."""

import ctypes
import gc
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import untax

f32 = np.float32


class Cycle:
    """Something that only the garbage collector ends."""

    def __init__(self, op):
        self.op, self.own = op, self


@pytest.mark.parametrize("early", [0, 1])
def test_ranks_may_drop_an_operator_at_different_times(early):
    def body(world):
        cycle = Cycle(untax.AllReduce(world, 64, "fp32"))
        assert (cycle.op(np.ones(64, f32)) == 2).all()
        if world.rank == early:
            cycle.own = None
            del cycle
        world.barrier()
        world.agree("that", "nothing differs")
        cycle = None
        world.barrier()
        assert (untax.AllReduce(world, 64, "fp32")(np.ones(64, f32)) == 2).all()

    gc.disable()  # so that no rank ends an operator of another one
    try:
        untax.run_threads(2, body)
    finally:
        gc.enable()


def test_a_rank_may_keep_an_operator_as_long_as_its_world():
    kept = []

    def body(world):
        op = untax.GemmAllScatter(world, 8, 16, 16, "fp32")
        if world.rank == 0:
            kept.append(op)
        del op
        for _ in range(3):
            world.barrier()
        with untax.AllReduce(world, 4, "fp32") as op:
            assert (op(np.ones(4, f32)) == 2).all()

    untax.run_threads(2, body)
    assert kept[0].closed


def test_memory_of_operators_that_all_ranks_have_left_is_used_again():
    def body(world):
        for turn in range(12):  # each takes more than a third of the heap
            op = untax.AllReduce(world, 2_000_000, "fp32")
            if turn % 3 == 0 and world.rank == 0:
                op.close()
            del op

    untax.run_threads(2, body, heap_bytes=1 << 25)


@pytest.mark.parametrize("torch_view", [False, True])
def test_a_view_outlives_its_world(torch_view):
    """In a process of its own, which a signal would end."""
    if torch_view:
        pytest.importorskip("torch")
    script = f"""
        import gc, numpy, untax
        def view(memory):
            return memory.torch() if {torch_view} else numpy.asarray(memory)
        def body(world):
            op = untax.GemmAllScatter(world, 8, 16, 16, "fp32")
            a, w = numpy.ones((8, 16), "f4"), numpy.ones((16 // world.size, 16), "f4")
            own = world.allocate((4, 4))
            view(own)[:] = world.rank + 1
            world.barrier()
            peer = own.at((world.rank + 1) % world.size)
            return view(op(a, w)), view(own), view(peer)
        results = untax.run_threads(2, body)
        gc.collect()
        for rank, (c, own, peer) in enumerate(results):
            assert c.shape == (8, 16) and (c == 16).all(), c
            assert (own == rank + 1).all() and (peer == 2 - rank).all(), (own, peer)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert (ended.stderr, ended.returncode) == ("", 0)


def test_viewed_memory_is_not_handed_out_again():
    def body(world):
        elements = (5 << 20) // 4
        memory = world.allocate(elements)
        view = np.asarray(memory)
        view[:] = 7
        memory.free()
        with pytest.raises(untax.InvalidArgument, match="was freed"):
            np.asarray(memory)
        with pytest.raises(untax.InvalidArgument, match="was freed"):
            memory.free()
        world.barrier()
        with pytest.raises(untax.OutOfMemory):
            world.allocate(elements)
        assert (view == 7).all()
        if world.rank == 0:
            del view
        with pytest.raises(untax.OutOfMemory):  # the other rank still looks at it
            world.allocate(elements)
        view = None
        np.asarray(world.allocate(elements))[:] = 8
        op = untax.GemmAllScatter(world, 64, 64, 64, "fp32")
        result = np.asarray(op(np.ones((64, 64), f32), np.ones((64 // world.size, 64), f32)))
        op.close()
        for _ in range(8):
            with untax.GemmAllScatter(world, 64, 64, 64, "fp32") as other:
                other(np.zeros((64, 64), f32), np.zeros((64 // world.size, 64), f32))
        assert (result == 64).all()

    untax.run_threads(2, body, heap_bytes=1 << 23)


def test_garbage_collection_waits_for_no_rank():
    def body(world):
        ops = [untax.AllReduce(world, 64, "fp32") for _ in range(50)]
        world.barrier()
        if world.rank == 0:
            start = time.perf_counter()
            ops.clear()
            gc.collect()
            assert time.perf_counter() - start < 5
        else:
            time.sleep(0.5)
        world.barrier()

    untax.run_threads(2, body)


def test_an_operator_of_one_rank_alone_ends_without_a_meeting():
    def pages():
        return int(open("/proc/self/statm").read().split()[1])

    def attention(world):
        untax.FlashAttention(world, batch=1, heads=1, kv_heads=1, head_dim=8, queries=1, keys=1, dtype="fp32")

    with untax.World.threads(1)[0] as world:
        for _ in range(200):
            attention(world)
        before = pages()
        for _ in range(5000):
            attention(world)
        assert pages() - before < 500


def interrupted(script, *, times=1, environment=None, after="waits"):
    """Output, status and seconds from the first SIGINT on, which comes a little after the word."""
    process = subprocess.Popen([sys.executable, "-u", "-c", textwrap.dedent(script)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
    try:
        while after not in process.stdout.readline():
            assert process.poll() is None, process.stderr.read()
        time.sleep(0.3)
        start = time.perf_counter()
        for _ in range(times):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        out, err = process.communicate(timeout=50)
        return out, err, process.returncode, time.perf_counter() - start
    finally:
        process.kill()


@pytest.mark.parametrize("times", [1, 3])
def test_run_threads_ends_when_it_is_interrupted(times):
    out, err, status, seconds = interrupted("""
        import numpy, untax
        def body(world):
            op = untax.AllReduce(world, 64, "fp32")
            if world.rank == 0:
                print("waits", flush=True)
            while True:
                op(numpy.ones(64, "f4"))
        try:
            untax.run_threads(3, body, wait_limit=-1)
        finally:
            print("left", flush=True)
    """, times=times)
    assert "KeyboardInterrupt" in err and "terminate" not in err and status != -signal.SIGABRT, err
    assert seconds < 10
    if times == 1:  # later ones may come while the program ends
        assert "left" in out and status in (1, -signal.SIGINT)


def test_a_wait_is_interrupted_and_the_peers_get_the_error(tmp_path):
    environment = {"UNTAX_WORLD_SIZE": "2", "UNTAX_RENDEZVOUS": str(tmp_path / "meet")}
    peer = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
        import time, untax
        world = untax.World.from_environment(wait_limit=-1)
        world.barrier()
        while True:
            try:
                world.check()
            except untax.Aborted as error:
                print(error.suspect, error)
                break
            time.sleep(0.01)
    """)], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment, "UNTAX_RANK": "1"})
    out, err, status, seconds = interrupted("""
        import untax
        world = untax.World.from_environment(wait_limit=-1)
        world.barrier()
        print("waits", flush=True)
        try:
            world.barrier()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            raise
    """, environment={**environment, "UNTAX_RANK": "0"})
    assert "interrupted" in out and "KeyboardInterrupt" in err and seconds < 10
    heard = peer.communicate(timeout=60)[0]
    assert heard.startswith("0 ") and "interrupted by a signal while it waited for rank 1" in heard


def test_a_handler_that_raises_nothing_leaves_the_wait_alone():
    """As that of a scheduler that announces the end of a job."""
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    worlds = untax.World.threads(2, wait_limit=60)

    def late():
        with worlds[1] as world:
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.3)
            told.append(list(heard))
            world.barrier()

    told = []
    other = threading.Thread(target=late)
    other.start()
    try:
        with worlds[0] as world:
            world.barrier()
    finally:
        other.join()
        signal.signal(signal.SIGUSR1, before)
    assert told == [[signal.SIGUSR1]]  # while it waited


def test_a_thread_that_cannot_be_started_ends_the_others(monkeypatch):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == "untax rank 2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    heard, begin = [], time.perf_counter()

    def body(world):
        with pytest.raises(untax.Aborted, match="can't start new thread"):
            world.barrier()
        heard.append(world.rank)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        untax.run_threads(4, body, wait_limit=60)
    assert sorted(heard) == [0, 1] and time.perf_counter() - begin < 20


def test_an_exception_that_ends_a_program_reaches_its_peers(tmp_path):
    script = """
        import untax
        world = untax.World.from_environment()
        world.barrier()
        if world.rank == 1:
            raise RuntimeError("my bug")
        try:
            world.barrier()
        except untax.Error as error:
            print(error.suspect, error)
    """
    ranks = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True,
                              env={**os.environ, "UNTAX_RANK": str(rank), "UNTAX_WORLD_SIZE": "2",
                                   "UNTAX_RENDEZVOUS": str(tmp_path / "meet")}) for rank in range(2)]
    heard = [rank.communicate(timeout=60)[0] for rank in ranks]
    assert heard[0].startswith("1 ") and "RuntimeError: my bug" in heard[0]


def test_a_world_with_open_operators_is_closed():
    world = untax.World.threads(1)[0]
    ops = [untax.AllReduce(world, 4, "fp32") for _ in range(3)]
    ops[1].close()
    world.close()
    assert world.closed and all(op.closed for op in ops)


def test_sources_without_the_extension_say_what_is_missing(tmp_path):
    shutil.copytree(Path(untax.__file__).parent, tmp_path / "untax",
                    ignore=shutil.ignore_patterns("*.so*", "bin", "__pycache__"))
    ended = subprocess.run([sys.executable, "-c", "import untax"], cwd=tmp_path, capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": ""})
    assert "without its compiled extension" in ended.stderr and "circular" not in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_join_is_interrupted(tmp_path, rank):
    out, err, status, seconds = interrupted("""
        import untax
        print("waits", flush=True)
        untax.World.from_environment(join_limit=-1)
    """, environment={"UNTAX_WORLD_SIZE": "2", "UNTAX_RENDEZVOUS": str(tmp_path / "meet"), "UNTAX_RANK": str(rank)})
    assert "KeyboardInterrupt" in err and seconds < 10


def test_a_second_thread_in_a_call_of_a_world_is_refused_at_once():
    worlds = untax.World.threads(2, wait_limit=60)
    waits = threading.Thread(target=worlds[0].barrier)
    waits.start()
    time.sleep(0.3)
    begin = time.perf_counter()
    with pytest.raises(untax.InvalidArgument, match="another thread is in a call of this world"):
        untax.AllReduce(worlds[0], 4, "fp32")
    assert time.perf_counter() - begin < 5
    worlds[1].barrier()
    waits.join()
    for world in worlds:
        world.close()


def test_a_tensor_of_dlpack_that_has_no_deleter_is_written():
    """Which DLPack allows; this is one by its C functions."""
    class Tensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("device", ctypes.c_int32), ("ndim", ctypes.c_int32),
                    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]

    class Managed(ctypes.Structure):
        _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                    ("delete", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor)]

    out = np.zeros(4, f32)
    extent, stride = ctypes.c_int64(4), ctypes.c_int64(1)
    tensor = Tensor(out.ctypes.data, 1, 0, 1, 2, 32, 1, ctypes.addressof(extent), ctypes.addressof(stride), 0)
    managed = Managed(1, 3, None, None, 0, tensor)

    def tell(_, to):
        ctypes.memmove(to, ctypes.addressof(tensor), ctypes.sizeof(tensor))
        return 0

    def give(_, to):
        to[0] = ctypes.addressof(managed)
        return 0

    tells = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(tell)
    gives = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))(give)
    functions = (ctypes.c_void_p * 7)(0x3_0000_0001, None, None, ctypes.cast(gives, ctypes.c_void_p), None,
                                      ctypes.cast(tells, ctypes.c_void_p), None)
    ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
    name = b"dlpack_exchange_api"
    capsule = ctypes.pythonapi.PyCapsule_New(ctypes.c_void_p(ctypes.addressof(functions)), ctypes.c_char_p(name), None)
    result = type("Result", (), {"__dlpack_c_exchange_api__": capsule})()
    with untax.World.threads(1)[0] as world:
        untax.AllReduce(world, 4, "fp32")(np.ones(4, f32), result)
    assert (out == 1).all()
