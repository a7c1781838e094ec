"""The package itself: memory, worlds of processes, the command, the taxes."""

import _ctypes
import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import untax
from untax.types import as_operand


def bits_of(memory):
    """Elements of bf16 in host memory, as numbers of 16 bits."""
    count = int(np.prod(memory.shape))
    return np.frombuffer((ctypes.c_uint16 * count).from_address(memory.address), np.uint16)


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


def test_the_openblas_of_a_package_is_offered_to_hosts(tmp_path):
    """To worlds of hosts and to commands, without an import of the package, and no world loads it. A system's goes before it."""
    package = tmp_path / "scipy_openblas32"
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "lib" / "libscipy_openblas.so").write_bytes(Path(_ctypes.__file__).read_bytes())  # any library
    program = ("import untax; from untax import openblas; offered = []; tell = untax._core.offer_openblas; "
               "untax._core.offer_openblas = lambda path: (offered.append(path), tell(path)); "
               "untax.run_threads(2, lambda world: world.size); "
               "assert 'openblas' not in open('/proc/self/maps').read(); "
               "print(offered); print(openblas.environment()['LD_LIBRARY_PATH'])")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": paths, "LD_LIBRARY_PATH": "/first"},
                          capture_output=True, text=True, check=False)
    library = package / "lib"
    assert done.stdout.split("\n")[:2] == [str([str(library / "libscipy_openblas.so")]), f"/first:{library}"], done.stderr


def test_memory_of_closed_owners_is_refused():
    a = np.ones((4, 8), np.float32)

    def body(world):
        op = untax.GemmAllScatter(world, 4, 8, 8, "fp32")
        with pytest.raises(untax.InvalidArgument, match="gemm_all_scatter's own"):
            op.result.free()
        return op(a, np.ones((8, 8), np.float32)[: 8 if world.rank == 0 else 0]), world.allocate((2, 3))

    for memory in sum(untax.run_threads(2, body), ()):
        for use in (np.asarray, untax.Memory.torch, lambda m: m.at(0), as_operand):
            with pytest.raises(untax.InvalidArgument, match="closed"):
                use(memory)
    with untax.World.threads(1)[0] as world:
        with untax.GemmAllReduce(world, 4, 8, 8, "fp32") as op:
            result = op.result
        with pytest.raises(untax.InvalidArgument, match="gemm_all_reduce, closed"):
            untax.AllReduce(world, 32, "fp32").run(np.ones(32, np.float32), result)


def test_results_of_peers_are_found():
    def body(world):
        op = untax.GemmAllScatter(world, 4, 8, 8, "fp32")
        np.asarray(op.result)[:] = world.rank
        world.barrier()
        assert (np.asarray(op.result.at(1 - world.rank)) == 1 - world.rank).all()
        world.barrier()

    untax.run_threads(2, body)


@pytest.mark.parametrize(("partials", "bits"), [(None, 0x4380), ("bf16", 0x4380), ("fp32", 0x4381)])
def test_partial_results_travel_in_the_type_of_the_problem_unless_fp32_is_asked_for(partials, bits):
    """The peer's is 257, which bf16 has not, and the own one is 1: 256 if it was rounded, else 258."""
    one, sixteen = 0x3F80, 0x4180

    def body(world):
        a, b, c, rows = (world.allocate(shape, "bf16") for shape in ((2, 8), (8, 8), (1, 8), (2, 8)))
        for m in (a, b):
            bits_of(m)[:] = 0
            bits_of(m).reshape(-1, 8)[:, 1] = one
        bits_of(b).reshape(8, 8)[:, 0] = sixteen
        bits_of(a).reshape(2, 8)[1 - world.rank, 0] = sixteen
        untax.GemmReduceScatter(world, 2, 8, 16, "bf16", partials=partials).run(a, b, c)
        assert (bits_of(c) == bits).all()
        untax.GemmAllReduce(world, 2, 8, 16, "bf16", partials=partials).run(a, b, rows)
        assert (bits_of(rows) == bits).all()
        with pytest.raises(untax.InvalidArgument, match="partials are fp16"):
            untax.GemmAllReduce(world, 2, 8, 16, "bf16", partials="fp16")

    untax.run_threads(2, body)


def test_memory_in_bf16_is_an_operand():
    one = 0x3F80  # as bf16 has it; numpy has no bf16

    def body(world):
        a, b, c, flat = (world.allocate(shape, "bf16") for shape in ((4, 8), (8, 8), (4, 8), 32))
        for m in (a, b):
            bits_of(m)[:] = one
        untax.GemmAllReduce(world, 4, 8, 8 * world.size, "bf16").run(a, b, c)
        assert (bits_of(c) == 0x4180).all()  # 16
        untax.AllReduce(world, 32, "bf16").run(a, flat)
        assert (bits_of(flat) == 0x4000).all()  # 2
        with pytest.raises(untax.InvalidArgument, match="c is 1 x 32"):
            untax.GemmAllReduce(world, 4, 8, 8 * world.size, "bf16").run(a, b, flat)

    untax.run_threads(2, body)


class OnGpu:
    """The attributes of a world that symmetric memory reads."""

    closed, device = False, 3


def test_memory_of_a_gpu_is_not_read_by_the_host():
    memory = untax.Memory(OnGpu(), 1 << 40, (2, 3), "fp32")
    for read in (np.asarray, untax.Memory.torch):
        with pytest.raises(untax.InvalidArgument, match="GPU 3"):
            read(memory)
    assert as_operand(memory) == (1 << 40, 2, 3, 0, 0)


def test_an_exchange_is_called_once_and_its_exception_is_raised():
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


def test_a_build_without_cuda_says_how_to_build_one_for_tensors_of_cuda():
    """As the first call with such a tensor asks for a world."""
    try:
        untax.World.from_exchange(0, 1, lambda mine: [mine], memory="cuda", device=0).close()
    except untax.Unsupported as refused:
        if "built without CUDA" in str(refused):
            assert "pip install . -C cmake.define.UNTAX_CUDA=ON" in str(refused)
            return
    pytest.skip("this build has CUDA")


def test_import_is_quick_and_takes_no_torch_and_no_numpy():
    seen = subprocess.run([sys.executable, "-X", "importtime", "-c",
                           "import sys, untax; print('torch' in sys.modules, 'numpy' in sys.modules)"],
                          capture_output=True, text=True, check=True)
    assert seen.stdout.split() == ["False", "False"]


def test_packages_that_the_readme_installs_are_those_of_the_build():
    root = Path(__file__).resolve().parents[2]
    listed = re.search(r"untax_build_packages=\((.*?)\)", (root / "cmake/dependencies.sh").read_text(), re.S)[1].split()
    installed = re.search(r"apt-get install (.*)", (root / "README.md").read_text())[1].split()
    # pip brings CMake and Ninja where they are missing, and tests are not built.
    assert set(installed) - {"python3-dev"} == set(listed) - {"cmake", "ninja-build", "python3", "libgtest-dev"}


def test_variables_on_the_page_on_python_have_their_defaults():
    root = Path(__file__).resolve().parents[2]
    listed = re.findall(r"^\| `(UNTAX_\w+)` \| (\S*) ?\|", (root / "docs/python.md").read_text(), re.M)
    text = (root / "include/untax/core/environment.hpp").read_text()
    defaults = {name: re.findall(r'"([^"]*)"', rest)[-1] for name, rest in re.findall(r'\{\s*"(UNTAX_\w+)",(.*?)\};', text, re.S)}
    assert len(listed) >= 8 and all(defaults[name] == default for name, default in listed)


def test_the_command_is_installed():
    done = subprocess.run([sys.executable, "-m", "untax", "--version"], capture_output=True, text=True, check=True)
    assert untax.__version__ in done.stdout
    failed = subprocess.run([sys.executable, "-m", "untax", "run", "no_such_operator"], capture_output=True, text=True)
    assert failed.returncode == 2 and "no_such_operator" in failed.stderr


def test_taxes_give_a_table_a_page_and_data():
    report = untax.taxes(operator="all_gather_gemm", ranks=2, m=32, n=32, k=64, repeat=2, backend="host")
    assert "all_gather_gemm" in str(report)
    assert "JSON:" not in str(report) and "HTML:" not in str(report)  # files that are gone
    assert "<iframe" in report._repr_html_() and isinstance(report.data, dict)
    with pytest.raises(untax.InvalidArgument, match="no_such_model"):
        untax.taxes("no_such_model")
