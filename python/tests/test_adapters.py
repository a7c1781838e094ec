"""The plugins for SGLang and vLLM, and the override for torchtitan: what they do between ranks, and that the frameworks call what
they provide.

The sources of the frameworks come from the wheels of the versions that the plugins know. Only the files that are read stay, in
the cache of the user; torchtitan, which is small, is there whole, and what its models import.
"""

import ast
import importlib.metadata
import inspect
import logging
import os
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest
from ranks import HERE, fork
from test_torch import pytestmark  # noqa: F401 (the mark is pytest's)
from test_torch_groups import needs_compiler

OWN_ALL_REDUCE = "distributed/device_communicators/custom_all_reduce.py"
FILES = {"sglang": ["srt/plugins/__init__.py", "srt/plugins/hook_registry.py", f"srt/{OWN_ALL_REDUCE}",
                    "srt/distributed/device_communicators/custom_all_reduce_v2.py", "srt/distributed/parallel_state.py",
                    "srt/layers/flashinfer_comm_fusion.py", "srt/layers/layernorm.py"],
         "vllm": ["plugins/__init__.py", OWN_ALL_REDUCE, "distributed/device_communicators/cuda_communicator.py",
                  "distributed/parallel_state.py", "platforms/interface.py", "platforms/cuda.py", "compilation/backends.py",
                  "compilation/passes/fusion/allreduce_rms_fusion.py"]}


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_sum_through_the_objects_of_frameworks(ranks):
    said = fork(ranks, HERE / "torch_adapters.py")
    for check in ("sums_on_untax", "first_calls_within_a_capture", "ranks_without_untax", "hooks_of_sglang", "hooks_of_vllm",
                  "two_groups"):
        for rank in range(ranks):
            assert f"rank {rank}: {check} is right" in said


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("layers", ["fused", pytest.param("compiled", marks=needs_compiler)])
def test_torchtitan_trains_on_untax(layers, ranks, monkeypatch):
    """A tiny Llama: logits and gradients equal those of one process."""
    for version in versions("torchtitan"):
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(torchtitan(version))]))
        said = fork(ranks, HERE / "torch_titan.py", layers)
        for rank in range(ranks):
            assert f"rank {rank}: {layers} layers are right" in said


def test_a_variable_or_another_version_switches_a_plugin_off(monkeypatch, caplog):
    from untax.adapters.switch import is_on

    installed = {"sglang": "0.5.23+cu129"}

    def version(name):
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    log = logging.getLogger("test")
    assert is_on("sglang", "UNTAX_SGLANG", ("0.5.22", "0.5.23"), log) and not caplog.records
    assert not is_on("sglang", "UNTAX_SGLANG", ("0.5.22",), log)
    assert not is_on("vllm", "UNTAX_VLLM", ("0.33.0",), log)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "untax leaves sglang 0.5.23+cu129 as it is: it knows 0.5.22. UNTAX_SGLANG=0 switches" in caplog.text
    monkeypatch.setenv("UNTAX_SGLANG", "0")
    caplog.clear()
    assert not is_on("sglang", "UNTAX_SGLANG", ("0.5.23",), log)
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def versions(framework):
    """Those that an adapter knows, of which the last is the extra's. The adapter of torchtitan imports it, so it is read."""
    tree = ast.parse((HERE.parent / f"untax/adapters/{framework}.py").read_text())
    return next(ast.literal_eval(node.value) for node in tree.body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VERSIONS")


def test_frameworks_find_the_plugins():
    from untax.adapters import sglang, vllm

    project = (HERE.parents[1] / "pyproject.toml").read_text()
    for group, plugin in (("sglang.srt.plugins", sglang), ("vllm.general_plugins", vllm)):
        framework = group.split(".")[0]
        assert f'[project.entry-points."{group}"]\nuntax = "{plugin.__name__}:{plugin.register.__name__}"\n' in project
        assert plugin.VERSIONS == versions(framework)
    for framework in ("sglang", "torchtitan", "vllm"):
        assert f'{framework} = ["{framework}=={versions(framework)[-1]}"]\n' in project


def cache_of(framework, version):
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "untax/frameworks" / f"{framework}-{version}"


def pip(*arguments):
    """Skips the test if pip cannot do it."""
    wanted = " ".join(str(argument) for argument in arguments if "==" in str(argument))
    try:
        done = subprocess.run([sys.executable, "-m", "pip", *map(str, arguments)], capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip did not load {wanted} within 240 s")
    if done.returncode != 0:
        pytest.skip(f"pip cannot load {wanted}: {done.stderr.strip().splitlines()[-1:]}")


def sources(framework, version, scratch):
    """The folder with FILES of a framework; skips the test if its wheel cannot be had."""
    cache = cache_of(framework, version)
    if not all((cache / framework / name).is_file() for name in FILES[framework]):
        pip("download", "-q", "--no-deps", "--dest", scratch, f"{framework}=={version}")
        wheel, = scratch.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in FILES[framework]:
                archive.extract(f"{framework}/{name}", cache)
        wheel.unlink()
    return cache / framework


def torchtitan(version):
    """The folder to import torchtitan from, with what its models import; skips the test if pip cannot load them."""
    folder = cache_of("torchtitan", version)
    if not (folder / "complete").is_file():
        pip("install", "-q", "--no-deps", "--upgrade", "--target", folder, f"torchtitan=={version}", "spmd_types==0.2.3",
            "tyro==1.0.17", "typeguard==4.6.1", "docstring_parser==0.18.0")
        (folder / "complete").touch()
    return folder


class Source:
    """A file of a framework, parsed."""

    def __init__(self, folder, name):
        self.name, self.tree = name, ast.parse((folder / name).read_text())

    def find(self, path, tree=None):
        """The function or class that is called `path` here, also within conditions."""
        name, _, rest = path.partition(".")
        nodes = [node for node in ast.walk(tree or self.tree)
                 if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
        assert nodes, f"{self.name} has no {path} any more"
        return self.find(rest, nodes[0]) if rest else nodes[0]

    def parameters(self, path):
        """[(name, kind, default)] of a function."""
        arguments = self.find(path).args
        assert arguments.vararg is None and arguments.kwarg is None
        positional = arguments.posonlyargs + arguments.args
        defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
        return ([(a.arg, "positional", d and ast.unparse(d)) for a, d in zip(positional, defaults, strict=True)]
                + [(a.arg, "named", d and ast.unparse(d)) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)])

    def calls(self, name):
        """[(number of positional arguments, names of the others)] of all calls of `name`, the text before the parenthesis."""
        return [(len(node.args), [k.arg for k in node.keywords]) for node in ast.walk(self.tree)
                if isinstance(node, ast.Call) and ast.unparse(node.func) == name]


def own_parameters(function, skipped=0):
    """[(name, kind, default)] of a function of untax."""
    empty = inspect.Parameter.empty
    return [(p.name, "named" if p.kind is p.KEYWORD_ONLY else "positional", None if p.default is empty else repr(p.default))
            for p in list(inspect.signature(function).parameters.values())[skipped:]]


def same(ours, source, path, skipped=0):
    assert own_parameters(ours, skipped) == source.parameters(path), f"{source.name}: {path} has other parameters"


def test_sglang_calls_what_the_plugin_provides(tmp_path):
    from untax.adapters import communicator, sglang

    for version in sglang.VERSIONS:
        folder = sources("sglang", version, tmp_path)
        own = Source(folder, f"srt/{OWN_ALL_REDUCE}")
        newer = Source(folder, "srt/distributed/device_communicators/custom_all_reduce_v2.py")
        state = Source(folder, "srt/distributed/parallel_state.py")
        fusion = Source(folder, "srt/layers/flashinfer_comm_fusion.py")
        registry = Source(folder, "srt/plugins/hook_registry.py")
        plugins = (folder / "srt/plugins/__init__.py").read_text()
        assert 'GENERAL_PLUGINS_GROUP = "sglang.srt.plugins"' in plugins and "HookRegistry.apply_hooks()" in plugins
        assert [name for name, _, _ in registry.parameters("HookRegistry.register")][:4] == ["cls", "target", "hook", "hook_type"]
        assert "hook(original_fn, *args, **kwargs)" in ast.unparse(registry.find("_wrap_fn"))

        same(sglang.dispatched, own, "dispatch_custom_allreduce", 1)
        same(sglang.norm, fusion, "flashinfer_allreduce_residual_rmsnorm", 1)
        same(sglang.workspace, fusion, "ensure_workspace_initialized", 1)
        assert fusion.parameters("resolve_fusion_group") == [("use_attn_tp_group", "named", None)]
        assert "fused_result[0] is not None" in ast.unparse(
            Source(folder, "srt/layers/layernorm.py").find("_forward_with_allreduce_fusion"))

        ours = communicator.summing(object)
        for source, name in ((own, "CustomAllreduce"), (newer, "CustomAllReduceV2")):
            for method in ("should_custom_ar", "custom_all_reduce", "close"):
                same(getattr(ours, method), source, f"{name}.{method}")
            assert source.parameters(f"{name}.capture") == [("self", "positional", None)]
            assert "self.disabled" in ast.unparse(source.find(f"{name}.__init__"))
        assert state.calls("dispatch_custom_allreduce") == state.calls("CAClass") == [(0, ["group", "device"])]
        for name in ("self.ca_comm.should_custom_ar", "ca_comm.custom_all_reduce"):
            assert state.calls(name) and all(call == (1, []) for call in state.calls(name)), f"{state.name}: {name}"


def test_the_registry_of_sglang_applies_the_plugin(tmp_path, monkeypatch):
    """With SGLang's own registry, which imports nothing else of it, and modules that stand in for those with its targets."""
    from untax.adapters import sglang

    def dispatch_custom_allreduce(group, device):
        return dict

    def flashinfer_allreduce_residual_rmsnorm(*arguments, **named):
        return "its own"

    def ensure_workspace_initialized(*arguments, **named):
        return len(arguments)

    def resolve_fusion_group(*, use_attn_tp_group):
        return 2, 0, None

    monkeypatch.setattr(sglang, "is_on", lambda *arguments: True)
    for version in sglang.VERSIONS:
        registry = types.ModuleType("sglang.srt.plugins.hook_registry")
        exec((sources("sglang", version, tmp_path) / "srt/plugins/hook_registry.py").read_text(), vars(registry))
        communicators = types.ModuleType("sglang.srt.distributed.device_communicators.custom_all_reduce")
        communicators.dispatch_custom_allreduce = dispatch_custom_allreduce
        fusion = types.ModuleType("sglang.srt.layers.flashinfer_comm_fusion")
        for function in (flashinfer_allreduce_residual_rmsnorm, ensure_workspace_initialized, resolve_fusion_group):
            setattr(fusion, function.__name__, function)
        for module in (registry, communicators, fusion):
            parts = module.__name__.split(".")
            for end in range(1, len(parts)):
                package = ".".join(parts[:end])
                monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
                sys.modules[package].__path__ = []
        for module in (registry, communicators, fusion):
            monkeypatch.setitem(sys.modules, module.__name__, module)
            parent, _, name = module.__name__.rpartition(".")
            setattr(sys.modules[parent], name, module)
        sglang.register()
        registry.HookRegistry.apply_hooks()
        assert len(registry.HookRegistry._patched) == 3
        chosen = communicators.dispatch_custom_allreduce(group=None, device=None)
        assert chosen.func is sglang._adopted and chosen.args == (dict,)
        assert fusion.flashinfer_allreduce_residual_rmsnorm(input_tensor=0, residual=0, weight=0) == "its own"
        assert fusion.ensure_workspace_initialized(max_token_num=1, use_attn_tp_group=False) == 7


def test_vllm_calls_what_the_plugin_provides(tmp_path):
    from untax.adapters import communicator, vllm

    for version in vllm.VERSIONS:
        folder = sources("vllm", version, tmp_path)
        own = Source(folder, OWN_ALL_REDUCE)
        cuda = Source(folder, "distributed/device_communicators/cuda_communicator.py")
        fusion = Source(folder, "compilation/passes/fusion/allreduce_rms_fusion.py")
        assert 'DEFAULT_PLUGINS_GROUP = "vllm.general_plugins"' in (folder / "plugins/__init__.py").read_text()
        for name in ("get_device_communicator_cls", "get_pass_manager_cls"):
            assert Source(folder, "platforms/interface.py").parameters(f"Platform.{name}") == [("cls", "positional", None)]
        assert "current_platform.get_pass_manager_cls()" in (folder / "compilation/backends.py").read_text()
        state = Source(folder, "distributed/parallel_state.py")
        assert state.calls("current_platform.get_device_communicator_cls") == [(0, [])]
        assert {"cpu_group", "device"} <= set(state.calls("device_comm_cls")[0][1])

        ours = communicator.summing(object)
        for method in ("should_custom_ar", "custom_all_reduce", "close"):
            same(getattr(ours, method), own, f"CustomAllreduce.{method}")
        assert own.parameters("CustomAllreduce.capture") == [("self", "positional", None)]
        assert cuda.calls("ca_comm.should_custom_ar") == cuda.calls("ca_comm.custom_all_reduce") == [(1, [])]
        assert "self.ca_comm" in ast.unparse(cuda.find("CudaCommunicator.__init__"))
        adapters = HERE.parent / "untax/adapters"
        ours = Source(adapters, "vllm_communicator.py")
        assert ours.parameters("Communicator.all_reduce") == cuda.parameters("CudaCommunicator.all_reduce")

        ours = Source(adapters, "vllm_norm.py")
        name = "call_trtllm_fused_allreduce_norm"
        assert ours.parameters("fused_norm") == fusion.parameters(name), f"{fusion.name}: {name} has other parameters"
        registered, = (node for node in ast.walk(fusion.tree) if isinstance(node, ast.Call)
                       and ast.unparse(node.func) == "direct_register_custom_op" and "trtllm" in ast.unparse(node))
        said = {k.arg: ast.literal_eval(k.value) for k in registered.keywords if k.arg in ("op_name", "mutates_args")}
        assert said == {"op_name": "flashinfer_trtllm_fused_allreduce_norm",
                        "mutates_args": ["allreduce_in", "residual", "norm_out", "quant_out", "scale_out"]}
        text = ast.unparse(fusion.find(name))
        assert "norm_out = allreduce_in\n        residual_out = residual" in text and "residual_out = allreduce_in" in text


def test_torchtitan_has_what_the_override_relies_on():
    for version in versions("torchtitan"):
        folder = torchtitan(version) / "torchtitan"
        ours = Source(HERE.parent / "untax/adapters", "torchtitan.py")
        config = Source(folder, "config/override.py")
        assert [name for name, _, _ in config.parameters("override")] == ["target", "fqns", "description", "exact"]
        assert config.parameters("apply_overrides") == [("override_config", "positional", None), ("config_root", "positional", None)]
        assert "c.ov.factory(c.cfg, **c.kwargs)" in ast.unparse(config.find("apply_overrides"))
        assert ours.parameters("async_tp")[0] == ("config", "positional", None)
        assert "override" in (folder / "config/__init__.py").read_text()
        # The node that the override takes, once for each model, and when.
        decoder = Source(folder, "models/common/decoder.py")
        fields = {ast.unparse(node.target): ast.unparse(node.annotation) for node in ast.walk(decoder.find("Decoder.Config"))
                  if isinstance(node, ast.AnnAssign)}
        assert fields["tok_embeddings"] == "Embedding.Config", f"{decoder.name}: Decoder.Config has other fields: {fields}"
        assert Source(folder, "models/common/embedding.py").find("Embedding.Config")
        trainer = (folder / "trainer.py").read_text()
        assert trainer.index("apply_overrides(config.override, config)") < trainer.index("model_config.build()") < (
            trainer.index("model_spec.parallelize_fn("))
        # What it does with the switch, and the calls that untax carries out.
        compiled = Source(folder, "distributed/compile.py")
        assert "enable_async_tensor_parallel" in ast.unparse(compiled.find("_maybe_enable_async_tp"))
        assert "torch._inductor.config._micro_pipeline_tp = True" in ast.unparse(compiled.find("_maybe_enable_async_tp"))
        assert compiled.calls("_maybe_enable_async_tp"), f"{compiled.name}: nothing calls _maybe_enable_async_tp"
        linear = Source(folder, "distributed/linear.py")
        assert linear.calls("torch.ops.symm_mem.fused_all_gather_matmul") == [(4, [])] * 5, linear.name
        assert linear.calls("torch.ops.symm_mem.fused_matmul_reduce_scatter") == [(5, [])] * 3, linear.name
