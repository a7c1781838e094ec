"""The ranks of test_adapters.py: the objects that frameworks get from untax, over stand-ins for the classes of frameworks.

Usage: torchrun --nproc-per-node N torch_adapters.py. Ends with status 0 where all is well.
"""

import contextlib
import importlib
import logging
import sys
import types

import torch
import torch.distributed as dist

import untax
import untax.torch
from untax.adapters import communicator, sglang, sums, vllm
from untax.torch import groups

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
cpu = torch.device("cpu")
said = []
log = logging.getLogger("test")
for name in ("test", "sglang.untax", "vllm.untax"):
    logger = logging.getLogger(name)
    logger.setLevel(logging.INFO)
    logger.addHandler(type("Listener", (logging.Handler,), {"emit": lambda self, record: said.append(record.getMessage())})())


class CustomAllreduce:
    """A framework's own, by torch; counts its calls."""

    def __init__(self, group, device, max_size=1 << 20):
        self.group, self.device, self.max_size = group, device, max_size
        self.disabled, self.calls, self.closed = False, 0, False

    def should_custom_ar(self, inp):
        return not self.disabled and inp.numel() * inp.element_size() <= self.max_size

    def custom_all_reduce(self, input):
        if not self.should_custom_ar(input):
            return None
        self.calls += 1
        out = input.clone()
        dist.all_reduce(out, group=self.group)
        return out

    @contextlib.contextmanager
    def capture(self):
        yield

    def close(self):
        self.closed = True


def stand_in(name, **contents):
    """A module that stands in for one of a framework, with its packages."""
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        path = ".".join(parts[:depth])
        module = sys.modules.setdefault(path, types.ModuleType(path))
        module.__path__ = []
        if depth > 1:
            setattr(sys.modules[".".join(parts[:depth - 1])], parts[depth - 1], module)
    vars(sys.modules[name]).update(contents)
    return sys.modules[name]


def expected_sum(x, group=None):
    total = x.double()
    dist.all_reduce(total, group=group)
    return total


def expected_norm(x, residual, weight, eps, group=None):
    total = expected_sum(x, group) + residual.double()
    return total * (total.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.double(), total


def close(got, expected, dtype):
    error = (got.double() - expected).norm() / expected.norm()
    assert got.dtype == dtype and got.shape == expected.shape
    assert error < {torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 1e-2}[dtype], f"rank {rank}: error {error}"


def rows(tokens, hidden, dtype=torch.bfloat16):
    """x, this rank's own; residual and weight, the same at all ranks."""
    same = torch.Generator().manual_seed(tokens)
    return (torch.randn(tokens, hidden).to(dtype), torch.randn(tokens, hidden, generator=same).to(dtype),
            torch.rand(hidden, generator=same).to(dtype))


def sums_on_untax():
    own = CustomAllreduce(dist.group.WORLD, cpu)
    ours = communicator.adopt(own, dist.group.WORLD, cpu, log)
    assert ours is own and isinstance(ours, CustomAllreduce) and type(ours).__name__ == "UntaxAllReduce"
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for shape in ((1, 8), (5, 333), (64, 1024), (3, 4, 10)):
            x = torch.randn(*shape).to(dtype)
            x = x.transpose(0, 1) if shape[0] == 5 else x
            before = x.clone()
            with torch.inference_mode(), ours.capture():
                assert ours.should_custom_ar(x)
                y = ours.custom_all_reduce(x)
            close(y, expected_sum(x), dtype)
            assert torch.equal(x, before) and y.data_ptr() != x.data_ptr()
    assert ours.calls == 0
    x = torch.arange(8)  # for which untax has no sum; the framework's own goes on
    assert ours.should_custom_ar(x) and torch.equal(ours.custom_all_reduce(x), ranks * x) and ours.calls == 1
    large = torch.zeros((64 << 20) + 2, dtype=torch.uint8).view(torch.bfloat16)
    for _ in range(2):
        assert not ours.should_custom_ar(large) and ours.custom_all_reduce(large) is None
    assert ours.custom_all_reduce(torch.zeros(0, 8)).shape == (0, 8) and ours.calls == 2
    if rank == 0:
        most = 64 if ranks == 2 else 2
        assert said.count(f"untax leaves calls of all_reduce: more than {most} MiB, between {ranks} ranks") == 1, said
        assert f"untax takes over all-reduces between {ranks} ranks, in place of CustomAllreduce" in said
        assert "untax leaves calls of all_reduce: untax has no torch.int64" in said
    ours.disabled = True
    assert not ours.should_custom_ar(torch.zeros(8)) and ours.custom_all_reduce(torch.zeros(8)) is None
    assert communicator.sums_of(ours) is None
    ours.close()
    assert ours.closed and not groups._engines


def first_calls_within_a_capture():
    ours = communicator.adopt(CustomAllreduce(dist.group.WORLD, cpu), dist.group.WORLD, cpu, log)
    known, unknown = torch.ones(4, 64), torch.ones(40, 64)
    ours.custom_all_reduce(known)
    assert ours.untax.takes_sum(known) and ours.untax.takes_sum(known)
    captured, groups._is_captured = groups._is_captured, lambda device: True
    assert (ours.custom_all_reduce(known) == ranks).all() and ours.calls == 0
    assert (ours.custom_all_reduce(unknown) == ranks).all() and ours.calls == 1
    assert not ours.untax.takes_norm(unknown, unknown, unknown[0], 1e-6)
    groups._is_captured = captured
    assert (ours.custom_all_reduce(unknown) == ranks).all() and ours.calls == 1
    untax.torch.close()  # by the program; the next call makes a world anew
    assert (ours.custom_all_reduce(known) == ranks).all() and ours.calls == 1
    ours.close()


def ranks_without_untax():
    """One rank alone has its own disabled, or cannot make a world: no rank takes over, and none waits."""
    own = CustomAllreduce(dist.group.WORLD, cpu)
    own.disabled = rank == 1
    assert type(communicator.adopt(own, dist.group.WORLD, cpu, log)) is CustomAllreduce
    original = sums.engine_of

    def refuse(*arguments):
        world = original(*arguments)
        if rank == 1:
            groups.close(dist.group.WORLD)
            raise untax.Unsupported("this build has no CUDA")
        return world

    sums.engine_of = refuse
    own = communicator.adopt(CustomAllreduce(dist.group.WORLD, cpu), dist.group.WORLD, cpu, log)
    sums.engine_of = original
    assert type(own) is CustomAllreduce and (own.custom_all_reduce(torch.ones(4)) == ranks).all() and not groups._engines
    assert rank != 1 or {"untax leaves the sums of this group: CustomAllreduce is disabled",
                         "untax leaves the sums of this group: this build has no CUDA"} <= set(said)


def two_groups():
    """Tensor parallelism within pairs of ranks, each with a communicator, beside one of all ranks."""
    pairs = [dist.new_group([first, first + 1]) for first in range(0, ranks, 2)]
    pair = pairs[rank // 2]
    whole = communicator.adopt(CustomAllreduce(dist.group.WORLD, cpu), dist.group.WORLD, cpu, log)
    part = communicator.adopt(CustomAllreduce(pair, cpu), pair, cpu, log)
    for turn in range(8):
        x = torch.randn(7 + turn, 64)
        for ours, group in ((part, pair), (whole, None)):
            close(ours.custom_all_reduce(x), expected_sum(x, group), torch.float32)
            residual, weight = torch.ones(7 + turn, 64), torch.full((64,), 0.5)
            normed, total = ours.untax.all_reduce_rms_norm(x, residual, weight, 1e-6)
            close(normed, expected_norm(x, residual, weight, 1e-6, group)[0], torch.float32)
    assert whole.calls == part.calls == 0
    part.close()
    close(whole.custom_all_reduce(x), expected_sum(x), torch.float32)
    whole.close()


def hooks_of_sglang():
    """The plugin within SGLang: a registry, the functions that it names, and a coordinator that makes a communicator."""
    hooks = {}
    kinds = types.SimpleNamespace(AFTER="after", AROUND="around")
    registry = types.SimpleNamespace(register=lambda target, hook, kind: hooks.update({target.rsplit(".", 1)[1]: (hook, kind)}))
    stand_in("sglang.srt.plugins.hook_registry", HookRegistry=registry, HookType=kinds)
    fusion = stand_in("sglang.srt.layers.flashinfer_comm_fusion")
    sglang.is_on = lambda *arguments: True
    sglang.register()
    assert {name: kind for name, (_, kind) in hooks.items()} == {
        "dispatch_custom_allreduce": "after", "flashinfer_allreduce_residual_rmsnorm": "around",
        "ensure_workspace_initialized": "around"}
    coordinator = types.SimpleNamespace(ca_comm=None)
    fusion.resolve_fusion_group = lambda *, use_attn_tp_group: (ranks, rank, coordinator)

    def flashinfer(*arguments):
        return "flashinfer", len(arguments)

    norm, workspace = hooks["flashinfer_allreduce_residual_rmsnorm"][0], hooks["ensure_workspace_initialized"][0]
    x, residual, weight = rows(6, 256)
    assert norm(flashinfer, input_tensor=x, residual=residual, weight=weight, eps=1e-6, max_token_num=2048,
                use_attn_tp_group=False) == ("flashinfer", 9)  # no communicator of untax
    assert workspace(flashinfer, max_token_num=2048, hidden_dim=256, dtype=x.dtype, use_attn_tp_group=True) == ("flashinfer", 7)
    chosen = hooks["dispatch_custom_allreduce"][0](CustomAllreduce, group=dist.group.WORLD, device=cpu)
    coordinator.ca_comm = chosen(group=dist.group.WORLD, device=cpu)
    assert workspace(flashinfer, use_attn_tp_group=True) is False
    for tokens, dtype in ((1, torch.bfloat16), (33, torch.float16), (33, torch.float16), (200, torch.float32)):
        x, residual, weight = rows(tokens, 256, dtype)
        before = residual.clone()
        with torch.inference_mode():
            got = norm(flashinfer, input_tensor=x, residual=residual, weight=weight.float(), eps=1e-6, max_token_num=2048,
                       use_attn_tp_group=True)
        for result, expected in zip(got, expected_norm(x, residual, weight, 1e-6), strict=True):
            close(result, expected, dtype)
        assert torch.equal(residual, before)
    assert norm(flashinfer, x, residual, weight.double()) == (None, None)
    assert norm(flashinfer, x.double(), residual.double(), weight.double()) == (None, None)
    assert norm(flashinfer, x, residual[:, :128], weight) == (None, None)
    assert norm(flashinfer, torch.zeros(4, 32768), torch.zeros(4, 32768), torch.zeros(32768)) == (None, None)
    compiling, torch.compiler.is_compiling = torch.compiler.is_compiling, lambda: True
    assert norm(flashinfer, x, residual, weight) == (None, None)
    torch.compiler.is_compiling = compiling
    assert coordinator.ca_comm.calls == 0
    coordinator.ca_comm.close()


def call_trtllm_fused_allreduce_norm(
        allreduce_in: torch.Tensor, residual: torch.Tensor, rms_gamma: torch.Tensor, rms_eps: float, world_size: int,
        launch_with_pdl: bool, fp32_acc: bool, max_token_num: int, pattern_code: int, norm_out: torch.Tensor | None = None,
        quant_out: torch.Tensor | None = None, scale_out: torch.Tensor | None = None, scale_factor: torch.Tensor | None = None,
        weight_bias: float = 0.0) -> None:
    """vLLM's, which only shows that it was called."""
    allreduce_in.fill_(7)


def hooks_of_vllm():
    class CudaCommunicator:
        def __init__(self, cpu_group, device=None, device_group=None, unique_name=""):
            self.cpu_group, self.device = cpu_group, device
            self.ca_comm = CustomAllreduce(cpu_group, device) if unique_name.startswith("tp") else None

        def all_reduce(self, input_):
            return "another way"

    class Platform:
        dispatch_key = "CPU"
        is_cuda = staticmethod(lambda: True)
        get_device_communicator_cls = classmethod(lambda cls: "vllm...CudaCommunicator")
        get_pass_manager_cls = classmethod(lambda cls: "vllm...PostGradPassManager")

    stand_in("vllm.platforms", current_platform=Platform())
    stand_in("vllm.distributed.device_communicators.cuda_communicator", CudaCommunicator=CudaCommunicator)
    tp = types.SimpleNamespace(device_communicator=None)
    stand_in("vllm.distributed", get_tp_group=lambda: tp)
    vllm.is_on = lambda *arguments: True
    vllm.register()
    vllm.register()  # as vLLM may
    assert Platform.get_pass_manager_cls() == "vllm...PostGradPassManager"
    assert any(text.startswith("untax leaves the sums with norm of vLLM: No module named 'vllm.compilation'") for text in said)
    patterns = types.SimpleNamespace(kARResidualRMSNorm=1, kARResidualRMSNormFP8Quant=2)
    stand_in("vllm.compilation.passes.fusion.allreduce_rms_fusion", flashinfer_comm=types.SimpleNamespace(
        AllReduceFusionPattern=patterns), call_trtllm_fused_allreduce_norm=call_trtllm_fused_allreduce_norm)
    library = torch.library.Library("vllm", "FRAGMENT")
    schema = torch.library.infer_schema(call_trtllm_fused_allreduce_norm,
                                        mutates_args=["allreduce_in", "residual", "norm_out", "quant_out", "scale_out"])
    library.define("flashinfer_trtllm_fused_allreduce_norm" + schema)
    library.impl("flashinfer_trtllm_fused_allreduce_norm", call_trtllm_fused_allreduce_norm, "CPU")

    path, name = Platform.get_device_communicator_cls().rsplit(".", 1)
    communicator_class = getattr(importlib.import_module(path), name)
    pipeline = communicator_class(cpu_group=dist.group.WORLD, device=cpu, unique_name="pp:0")
    assert pipeline.ca_comm is None and pipeline.all_reduce(torch.ones(4)) == "another way"
    tp.device_communicator = communicator_class(cpu_group=dist.group.WORLD, device=cpu, unique_name="tp:0")
    ours = tp.device_communicator.ca_comm
    x = torch.randn(9, 128)
    close(ours.custom_all_reduce(x), expected_sum(x), torch.float32)
    close(tp.device_communicator.all_reduce(x), expected_sum(x), torch.float32)
    assert tp.device_communicator.all_reduce(x.long()) == "another way"
    for _ in range(2):
        assert Platform.get_pass_manager_cls() == "vllm...PostGradPassManager"

    def call(x, residual, weight, **more):
        torch.ops.vllm.flashinfer_trtllm_fused_allreduce_norm(x, residual, weight, 1e-5, ranks, True, True, 1024,
                                                              **{"pattern_code": 1, **more})

    for tokens in (1, 40, 40):
        for separate in (False, True):
            x, residual, weight = rows(tokens, 256)
            normed, total = expected_norm(x, residual, weight, 1e-5)
            into = torch.empty_like(x)
            call(x, residual, weight, **({"norm_out": into} if separate else {}))
            for result, expected in zip((into, x) if separate else (x, residual), (normed, total), strict=True):
                close(result, expected, torch.bfloat16)
    for more, reason in (({"pattern_code": 2}, "quantized results"), ({"weight_bias": 1.0}, "a weight_bias, as Gemma has it")):
        for _ in range(2):
            x, residual, weight = rows(3, 64)
            call(x, residual, weight, **more)
            assert (x == 7).all()
        assert said.count(f"untax leaves calls of flashinfer_trtllm_fused_allreduce_norm: {reason}") == (rank == 0)
    ours.disabled = True
    x, residual, weight = rows(3, 64)
    call(x, residual, weight)
    assert (x == 7).all()
    assert said.count("untax takes over vllm::flashinfer_trtllm_fused_allreduce_norm") == 1
    ours.close()


checks = [sums_on_untax, first_calls_within_a_capture, ranks_without_untax, hooks_of_sglang, hooks_of_vllm]
checks += [two_groups] if ranks % 2 == 0 else []
for check in checks:
    check()
    dist.barrier()
    print(f"rank {rank}: {check.__name__} is right\n", end="")
dist.destroy_process_group()
