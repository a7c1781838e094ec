"""The package itself: memory, worlds of processes, the command, the taxes."""

import subprocess
import sys

import numpy as np
import pytest

import untax


def test_memory_is_shared_by_ranks_and_seen_by_numpy():
    def body(world):
        box = world.allocate((2, 3), np.float32, "box")
        np.asarray(box)[:] = world.rank
        world.barrier()
        assert (np.asarray(box.at(1 - world.rank)) == 1 - world.rank).all()
        world.barrier()
        box.free()
        with pytest.raises(untax.OutOfMemory):
            world.allocate(1 << 40)

    untax.run_threads(2, body)


def test_an_exchange_is_asked_once_and_what_it_raises_is_raised():
    calls = []
    world = untax.World.from_exchange(0, 1, calls.append)
    assert (world.kind, world.size, calls) == ("alone", 1, [])

    def broken(mine):
        raise ConnectionError("the store is gone")

    with pytest.raises(ConnectionError, match="the store is gone"):
        untax.World.from_exchange(0, 2, broken)
    for returned, text in ((lambda mine: [mine, b"short"], "returned 5 bytes of rank 1"),
                           (lambda mine: [mine], "the bytes of 1 ranks; this world has 2"),
                           (lambda mine: [mine] * 3, "the bytes of 3 ranks; this world has 2")):
        with pytest.raises(untax.InvalidArgument, match=text):
            untax.World.from_exchange(0, 2, returned)
    with pytest.raises(untax.InvalidArgument, match="rank 2 of a world of 2 ranks"):
        untax.World.from_exchange(2, 2, lambda mine: [mine] * 2)


def test_gpus_are_refused_where_there_are_none():
    with pytest.raises(untax.Unsupported):
        untax.World.gpus(64)


def test_import_is_quick_and_takes_no_torch_and_no_numpy():
    seen = subprocess.run([sys.executable, "-X", "importtime", "-c",
                           "import sys, untax; print('torch' in sys.modules, 'numpy' in sys.modules)"],
                          capture_output=True, text=True, check=True)
    assert seen.stdout.split() == ["False", "False"]


def test_the_command_is_there():
    done = subprocess.run([sys.executable, "-m", "untax", "--version"], capture_output=True, text=True, check=True)
    assert untax.__version__ in done.stdout
    failed = subprocess.run([sys.executable, "-m", "untax", "run", "no_such_operator"], capture_output=True, text=True)
    assert failed.returncode == 2 and "no_such_operator" in failed.stderr


def test_taxes_are_a_table_a_page_and_data():
    report = untax.taxes(operator="all_gather_gemm", ranks=2, m=32, n=32, k=64, repeat=2, backend="host")
    assert "all_gather_gemm" in str(report)
    assert "<iframe" in report._repr_html_() and isinstance(report.data, dict)
    with pytest.raises(untax.InvalidArgument, match="no_such_model"):
        untax.taxes("no_such_model")
