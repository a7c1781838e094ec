"""untax.torch with ranks that are threads of one process: on hosts, and on GPUs, which several ranks may share."""

import importlib.util
import os
import time
from types import FunctionType

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed; ./test.sh --with-torch installs it", allow_module_level=True)
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # kernels of ranks that share a GPU run side by side

import torch  # noqa: E402
from torch_cases import random_cases  # noqa: E402

import untax  # noqa: E402
import untax.torch as untax_torch  # noqa: E402


def why_no_gpus():
    if not torch.cuda.is_available():
        return "torch sees no GPU"
    try:
        untax.run_gpus(1, lambda world: None)
    except untax.Unsupported as error:
        return str(error)
    return ""


no_gpus = why_no_gpus()
needs_gpus = pytest.mark.skipif(bool(no_gpus), reason=no_gpus or "there are GPUs")
places = [*(("cpu", ranks) for ranks in (1, 2, 3)),
          *(pytest.param("cuda", ranks, marks=needs_gpus) for ranks in (1, 2, 4))]


def run(device, ranks, body):
    """`body(world, name, settle)` for each rank. `settle` returns when all ranks have come and their launches are done:
    no rank loads a kernel of torch, or copies, while a kernel of a peer on the same GPU waits for this rank."""

    def on_rank(world):
        name = untax_torch.name_of(world)
        if device == "cpu":
            return body(world, name, world.barrier)
        with torch.cuda.stream(torch.cuda.Stream(world.device)):

            def settle():
                torch.cuda.current_stream().synchronize()
                world.barrier()

            result = body(world, name, settle)
            settle()
            return result

    try:
        if device == "cpu":
            return untax.run_threads(ranks, on_rank)
        shared = -(-ranks // torch.cuda.device_count())
        return untax.run_gpus(ranks, on_rank, heap_bytes=512 << 20, ranks_per_gpu=shared)
    finally:
        untax_torch.close()


def placed(case, world, device):
    where = f"cuda:{world.device}" if device == "cuda" else "cpu"
    return [t.to(where) for t in case.tensors[world.rank]]


@pytest.mark.parametrize(("device", "ranks"), places)
def test_every_operator_is_right(device, ranks, seed):
    def body(world, name, settle):
        for case in random_cases(seed, ranks, 3):
            tensors = placed(case, world, device)
            settle()
            got = case.call(getattr(torch.ops.untax, case.operator), tensors, name)
            settle()
            case.compare(world.rank, got, "called")

    run(device, ranks, body)


@pytest.mark.parametrize(("device", "ranks"), places)
def test_every_operator_writes_into_out(device, ranks, seed):
    def body(world, name, settle):
        for case in random_cases(seed, ranks, 1):
            tensors = placed(case, world, device)
            operator = getattr(torch.ops.untax, case.operator)
            outs = [a.name for a in operator.out._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
            fp32 = ("lse", "log_sums")
            outputs = {out: torch.full(tuple(right.shape), float("nan"), device=tensors[0].device,
                                     dtype=torch.float32 if out in fp32 else case.dtype)
                     for out, right in zip(outs, case.expected[world.rank], strict=True)}
            settle()
            case.call(operator, tensors, name, **outputs)
            settle()
            case.compare(world.rank, tuple(outputs.values()), "with out")

    run(device, ranks, body)


@pytest.mark.parametrize(("device", "ranks"), places)
def test_every_operator_is_compiled_as_one_graph(device, ranks, seed):
    # Kernels that a compiler loads wait for the whole GPU, so where ranks share one only the tracing is torch's.
    backend = "inductor" if device == "cuda" and ranks == 1 else "aot_eager"

    def body(world, name, settle):
        for case in random_cases(seed, ranks, 1):
            tensors = placed(case, world, device)
            operator = getattr(torch.ops.untax, case.operator)
            case.call(operator, tensors, name)  # planned, which is collective
            settle()

            def call(*values, case=case, operator=operator):
                return case.call(operator, values, name)

            # Code of its own, since torch compiles the same code a few times only.
            own = FunctionType(call.__code__.replace(co_name=case.operator), globals(), closure=call.__closure__)
            own.__kwdefaults__ = call.__kwdefaults__
            compiled = torch.compile(own, fullgraph=True, backend=backend, dynamic=False)
            got = compiled(*tensors)
            settle()
            case.compare(world.rank, got, "compiled")

    torch._dynamo.reset()
    run(device, ranks, body)


@needs_gpus
def test_every_operator_is_captured_in_a_graph(seed):
    def body(world, name, settle):
        for case in random_cases(seed, 1, 1):
            tensors = placed(case, world, "cuda")
            operator = getattr(torch.ops.untax, case.operator)
            case.call(operator, tensors, name)
            settle()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
                got = case.call(operator, tensors, name)
            for poisoned in got if isinstance(got, tuple) else (got,):
                poisoned.fill_(float("nan"))
            for _ in range(3):
                graph.replay()
            settle()
            case.compare(world.rank, got, "in a graph")

    run("cuda", 1, body)


@needs_gpus
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_default_stream_comes_first(ranks, seed):
    """Kernels ahead in it have still to write what is gathered. Where each rank has a GPU the call returns before."""
    generator = torch.Generator().manual_seed(seed)
    values = [torch.randn(64, 512, generator=generator).bfloat16() for _ in range(ranks)]
    weights = torch.randn(512, 256, generator=generator).bfloat16()
    right = {"all_gather_matmul": torch.cat(values).double() @ weights.double(),
             "matmul_all_reduce": sum(x.double() for x in values) @ weights.double(),
             "all_reduce": sum(x.double() for x in values)}

    def on_rank(world):
        name, device = untax_torch.name_of(world), torch.device("cuda", world.device)
        x, b, a = values[world.rank].to(device), weights.to(device), torch.zeros(64, 512, dtype=torch.bfloat16, device=device)
        rest = {"all_gather_matmul": (b, 0, name), "matmul_all_reduce": (b, "sum", name), "all_reduce": ("sum", name)}
        for operator, expected in right.items():
            call = getattr(torch.ops.untax, operator)
            for turn in ("planned", "again", "by what is known"):
                a.zero_()
                torch.cuda.synchronize()
                world.barrier()
                torch.cuda._sleep(100_000_000)  # some 60 ms
                a.copy_(x)
                began = time.perf_counter()
                got = call(a, *rest[operator])
                took = time.perf_counter() - began
                torch.cuda.synchronize()
                world.barrier()
                assert (got.cpu().double() - expected).norm() <= 1e-2 * expected.norm(), f"{operator}, {turn}"
                if turn != "planned" and world.ranks_per_gpu == 1:
                    assert took < 0.02, f"{operator}, {turn}: the call took {took} s"

    try:
        shared = -(-ranks // torch.cuda.device_count())
        untax.run_gpus(ranks, on_rank, heap_bytes=512 << 20, ranks_per_gpu=shared)
    finally:
        untax_torch.close()


@needs_gpus
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_any_number_of_rows_without_planning_again(ranks, seed):
    """All numbers of rows up to a power of two are runs of one plan of each operator."""

    def body(world, name, settle):
        generator = torch.Generator().manual_seed(seed)
        device = torch.device("cuda", world.device)

        def random(*extents):
            """One matrix of each rank."""
            return [torch.randn(*extents, generator=generator).bfloat16() for _ in range(ranks)]

        def expect(got, right, text):
            settle()
            assert (got.cpu().double() - right).norm() <= 1e-2 * right.norm(), text

        b = random(512, 256)
        operand = b[world.rank].to(device)
        weight = torch.ones(256, dtype=torch.bfloat16, device=device)
        for rows in torch.randint(1, 128 // ranks, (30,), generator=generator).tolist():
            a, whole, x = random(rows, 512), random(ranks * rows, 512), random(rows, 256)
            mine, all_rows, part = (each[world.rank].to(device) for each in (a, whole, x))
            zeros = torch.zeros_like(part)
            total = sum(w.double() @ each.double() for w, each in zip(whole, b))
            settle()
            text = f"{rows} rows of each rank"
            got = torch.ops.untax.all_gather_matmul(mine, operand, 0, name)
            expect(got, torch.cat(a).double() @ b[world.rank].double(), text)
            got = torch.ops.untax.matmul_reduce_scatter(all_rows, operand, "sum", 0, name)
            expect(got, total.chunk(ranks)[world.rank], text)
            expect(torch.ops.untax.matmul_all_reduce(all_rows, operand, "sum", name), total, text)
            _, got = torch.ops.untax.all_reduce_rms_norm(part, zeros, weight, 1e-5, name)
            expect(got, sum(each.double() for each in x), text)
            expect(torch.ops.untax.all_reduce(part, "sum", name), sum(each.double() for each in x), text)
            expect(torch.ops.untax.all_gather(part, 0, name), torch.cat(x).double(), text)
            sums = [each[:, ::64].float() * 4 for each in x]
            shares = torch.stack(sums).double().softmax(0).unsqueeze(-1)
            right = (shares * torch.stack(x).double().view(ranks, rows, 4, 64)).sum(0)
            parts = part.view(rows, 4, 64), sums[world.rank].to(device)
            for own_heads in (False, True):
                got, _ = torch.ops.untax.merge_partial_attention(*parts, name, own_heads)
                each = -(-4 // ranks)
                mine = slice(world.rank * each, (world.rank + 1) * each) if own_heads else slice(4)
                expect(got, right[:, mine], text)
        assert len(untax_torch.explain()) <= 28 * ranks, untax_torch.explain()

    run("cuda", ranks, body)


def test_old_plans_make_room_in_the_heap_for_new_ones():
    """Each plan takes a good part of the heap, and all of them together several times as much as there is."""

    def body(world, name, settle):
        for turn in range(12):
            a, b = torch.randn(256, 2048 + turn), torch.randn(2048 + turn, 16)
            whole = torch.ops.untax.all_gather(a, 0, name)
            got = torch.ops.untax.all_gather_matmul(a, b, 0, name)
            assert (got - whole @ b).norm() <= 1e-5 * got.norm(), f"plan {turn}"
        settle()  # what `explain` looks at is of all ranks
        assert len(untax_torch.explain()) < 24 * world.size
        settle()

    run("cpu", 2, body)


def test_rows_get_an_exact_plan_where_the_next_power_of_two_does_not_fit():
    def body(world, name, settle):
        for rows in (270, 280, 270):  # 18 MB in both sets of rooms; the next power of two would take 34 MB
            a, b = torch.randn(rows, 4104), torch.randn(4104, 16)
            got = torch.ops.untax.all_gather_matmul(a, b, 0, name)
            assert (got[world.rank * rows :][:rows] - a @ b).norm() <= 1e-5 * got.norm(), rows

    run("cpu", 2, body)


def test_problems_that_no_heap_has_room_for_are_refused():
    def body(world, name, settle):
        small = torch.ones(4, 8)
        assert (torch.ops.untax.all_reduce(small, "sum", name) == 2).all()
        with pytest.raises(untax.OutOfMemory, match="UNTAX_HEAP_BYTES"):
            torch.ops.untax.all_gather_matmul(torch.ones(8192, 8192), torch.ones(8192, 8), 0, name)
        assert (torch.ops.untax.all_reduce(small, "sum", name) == 2).all()

    run("cpu", 2, body)


def test_a_world_has_one_name_and_the_memory_of_one_device():
    def body(world, name, settle):
        assert untax_torch.name_of(world) == name
        assert untax_torch.groups.ranks_of(name) == world.size
        if not torch.cuda.is_available():
            return
        with pytest.raises(untax.InvalidArgument, match="another device"):
            torch.ops.untax.all_reduce(torch.ones(8, device="cuda"), "sum", name)

    run("cpu", 2, body)


def test_plans_that_graphs_have_captured_are_not_forgotten(monkeypatch):
    """Which plans those are is told here by a test, since graphs are of GPUs."""
    captured = set()
    monkeypatch.setattr(untax.Operator, "captured", property(lambda op: id(op) in captured))
    monkeypatch.setattr(untax.Operator, "release_captured", lambda op: captured.discard(id(op)))

    def body(world, name, settle):
        engine = untax_torch.groups.engine_of(name, "cpu")
        engine.capacity = 4
        assert (torch.ops.untax.all_gather(torch.ones(8), 0, name) == 1).all()
        kept = next(iter(engine._planned.values()))
        captured.add(id(kept))
        for turn in range(20):
            torch.ops.untax.matmul_all_reduce(torch.ones(2, 4), torch.ones(4, turn + 1), "sum", name)
        assert kept in engine._planned.values() and not kept.closed
        assert len(engine._planned) == engine.capacity + 1
        settle()
        untax_torch.release_captured(name)
        torch.ops.untax.matmul_all_reduce(torch.ones(2, 4), torch.ones(4, 21), "sum", name)
        torch.ops.untax.matmul_all_reduce(torch.ones(2, 4), torch.ones(4, 22), "sum", name)
        assert kept.closed and len(engine._planned) == engine.capacity
        settle()

    run("cpu", 2, body)


@needs_gpus
@pytest.mark.parametrize("other_operator", ["all_reduce", "flash_attention"])
def test_a_graph_is_right_after_300_other_problems(other_operator, seed):
    def body(world, name, settle):
        device = torch.device("cuda", world.device)
        generator = torch.Generator(device).manual_seed(seed + world.rank)

        def random(*shape):
            return torch.randn(*shape, generator=generator, device=device).bfloat16()

        x, b, norm = random(64, 512), random(512, 256), torch.ones(256, device=device).bfloat16()
        q = random(1, 32, 4, 64)

        def calls():
            half = x[:, :256].contiguous()
            return (torch.ops.untax.matmul_all_reduce(x, b, "sum", name),
                    torch.ops.untax.all_reduce_rms_norm(half, torch.zeros_like(half), norm, 1e-5, name)[0],
                    torch.ops.untax.flash_attention(q, q, q)[0])

        calls()
        expected = calls()  # by what is known of the first ones
        settle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
            got = calls()
        for turn in range(300):
            if other_operator == "all_reduce":
                torch.ops.untax.matmul_all_reduce(x[:, :64], b[:64, : 8 * (turn % 32 + 1)].contiguous(), "sum", name)
                torch.ops.untax.all_gather(torch.ones(2, turn + 1, device=device), 1, name)
            else:
                torch.ops.untax.flash_attention(q[:, : turn % 32 + 1], q, q, False, 0.1 + turn)
        filler = [torch.full((1 << 16,), float("nan"), device=device) for _ in range(64)]
        for poisoned in got:
            poisoned.fill_(float("nan"))
        graph.replay()
        settle()
        del filler
        for result, right in zip(got, expected, strict=True):
            assert torch.equal(result.view(torch.int16), right.view(torch.int16))

    run("cuda", 1, body)
