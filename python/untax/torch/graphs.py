"""Steps of decoding as CUDA graphs, in loops of the caller's.

A step of a chain is some 150 kernels, which a GPU carries out in a fifth of the time that Python takes to launch them. The first
step with a static cache runs as it is, and plans all operators; the second is captured, and from then on a step is a copy of its
tokens and a replay. A replay gives to the group the same runs in the same order as the step that it stands for, so it does not
matter to other ranks which of them replay. A graph reads and writes the keys of its cache where they lie.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from . import groups
from .generation import has_foreign_hooks

_log = logging.getLogger("untax.torch")
_most = 4  # captures with one cache, after which its steps are left as they are
_names = frozenset(("input_ids", "attention_mask", "position_ids", "cache_position", "cache", "past_key_values", "use_cache",
                    "logits_to_keep", "return_dict"))


def capture(run: Callable[[], Tensor], device: torch.device) -> Callable[[], Tensor]:
    """Captures the kernels of `run`, without carrying them out. The result replays them, and returns the tensor of `run`, in the
    same memory each time."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(device)
    with torch.cuda.device(device), torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        result = run()

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay


def captures_on(device: torch.device) -> bool:
    """Whether `capture` works for tensors of a device."""
    return device.type == "cuda"


class Call(NamedTuple):
    """A call of a model with one token of each sequence, as far as a graph may stand for it."""

    cache: Any
    tokens: Tensor


def _layers_of(cache: Any, count: int) -> list[Any] | None:
    layers = getattr(cache, "layers", ())[:count]
    return layers if len(layers) == count else None


class Step:
    """A step with one cache: what it reads and writes, and once it is captured, its graph."""

    def __init__(self, chain: Any, call: Call, output: Any) -> None:
        self.cache = weakref.ref(call.cache)
        layers = _layers_of(call.cache, len(chain.layers)) or []
        self.memory = [(layer.keys, layer.values, layer.cumulative_length) for layer in layers]
        self.padding = chain.padding_of(call.cache)
        self.rotations = chain.rotary.untax_rotations
        self.projection = chain.layers[0].self_attn.qkv_proj
        self.weight = self.projection.weight.data_ptr()
        self.engine = groups.live_engine(chain.layout.group_name, call.tokens.device)
        self.thread = threading.get_ident()
        self.is_inference = torch.is_inference_mode_enabled()
        self.tokens = torch.empty_like(call.tokens)
        self.kind = type(output)
        self.cache_name = next((name for name, value in output.items() if value is call.cache), None)
        # Transformers makes no mask beside one of four dimensions. A chain reads neither mask nor position.
        self.mask = torch.zeros(1, 1, 1, 1, dtype=torch.bool, device=call.tokens.device)
        self.position = torch.zeros(1, 1, dtype=torch.int64, device=call.tokens.device)
        self.replay: Callable[[], Tensor] | None = None

    def fits(self, chain: Any, cache: Any, tokens: Tensor) -> bool:
        """Whether a step with this cache finds everything where it was."""
        if (tokens.shape != self.tokens.shape or tokens.dtype != self.tokens.dtype or tokens.device != self.tokens.device
                or chain.padding_of(cache) is not self.padding or self.projection.weight.data_ptr() != self.weight
                or chain.rotary._buffers["untax_rotations"] is not self.rotations
                or torch.is_inference_mode_enabled() != self.is_inference or threading.get_ident() != self.thread
                or groups.live_engine(chain.layout.group_name, tokens.device) is not self.engine
                or self.engine is None or self.engine.world.closed):
            return False
        return all(layer.keys is keys and layer.values is values and layer.cumulative_length is length
                   for layer, (keys, values, length) in zip(cache.layers, self.memory, strict=False))

    def capture(self, chain: Any, forward: Callable[..., Any], names: dict[str, Any]) -> None:
        """`names`: arguments of the call besides its tokens, its cache, mask and positions."""

        def run() -> Tensor:
            chain.is_read, chain.is_counted = True, False
            try:
                return forward(input_ids=self.tokens, attention_mask=self.mask, position_ids=self.position,
                               **{self.cache_name: self.cache()}, **names).logits
            finally:
                chain.is_counted = True

        self.replay = capture(run, self.tokens.device)

    def output(self, cache: Any, logits: Tensor) -> Any:
        return self.kind(**{"logits": logits.clone(), self.cache_name: cache})


class Graphs:
    """The steps of a model, by their caches."""

    every: weakref.WeakSet[Graphs] = weakref.WeakSet()

    def __init__(self, enabled: bool, group_name: str) -> None:
        self.enabled, self.group_name = enabled, group_name
        self.steps: dict[int, Step] = {}  # by the identity of the cache
        self.captures: dict[int, int] = {}
        self.ends: dict[int, Any] = {}
        self.handles, self.is_hooked = -1, False
        self.served = False  # whether all layers of the call attend by untax
        Graphs.every.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Graphs, (self.enabled, self.group_name)  # a copy of a model has no graphs

    def release(self) -> None:
        """Forgets all graphs."""
        self.steps.clear()
        self.captures.clear()
        self.ends.clear()

    def _keep(self, cache: Any, step: Step) -> None:
        key = id(cache)
        self.steps[key] = step
        if key not in self.ends:
            own = weakref.ref(self)

            def end(_: Any) -> None:
                graphs = own()
                if graphs is None:
                    return
                graphs.ends.pop(key, None)
                graphs.captures.pop(key, None)
                graphs.steps.pop(key, None)

            self.ends[key] = weakref.ref(cache, end)

    def may_run(self, device: torch.device) -> bool:
        """Whether steps on a device may be graphs, here and now."""
        if not self.enabled or torch.compiler.is_compiling() or not captures_on(device):
            return False
        if torch.is_grad_enabled() or torch.is_autocast_enabled(device.type):
            return False
        return device.type != "cuda" or not (torch.cuda.is_current_stream_capturing() or self.shares_gpu(device))

    def shares_gpu(self, device: torch.device) -> bool:
        """Whether ranks are on one GPU, where their runs cannot be captured."""
        engine = groups.live_engine(self.group_name, device)
        return engine is not None and engine.world.default_stream == 0

    def serves(self, chain: Any, cache: Any, shape: tuple[int, int], device: torch.device) -> bool:
        """Whether the next step with this cache is a replay, so that nobody reads a mask."""
        step = self.steps.get(id(cache))
        return (step is not None and step.replay is not None and tuple(shape) == tuple(step.tokens.shape) and self.may_run(device)
                and step.fits(chain, cache, step.tokens))

    def _call(self, chain: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        tokens = args[0] if args else kwargs.get("input_ids")
        if len(args) > 1 or tokens is None or tokens.dim() != 2 or tokens.shape[1] != 1 or not self.may_run(tokens.device):
            return None
        cache = kwargs.get("cache")
        if cache is None:
            cache = kwargs.get("past_key_values")
        if cache is None or kwargs.get("use_cache") is False or kwargs.get("return_dict") is False or chain.norm.training:
            return None
        if not chain.is_read and not (kwargs.get("attention_mask") is None and kwargs.get("position_ids") is None):
            return None
        for name, value in kwargs.items():
            if name not in _names and value is not None and value is not False:
                return None
        if isinstance(kwargs.get("logits_to_keep"), Tensor) or not self._is_bare(chain.config):
            return None
        return Call(cache, tokens)

    @staticmethod
    def _is_bare(config: Any) -> bool:
        """Whether a model returns logits alone unless a call asks for more."""
        fields = vars(config)  # attributes of a configuration are looked up in Python
        return not (fields.get("output_hidden_states") or fields.get("_output_attentions") or fields.get("output_attentions"))

    def run(self, chain: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the model: by a graph, or by `forward`."""
        call = self._call(chain, args, kwargs) if self.enabled else None
        if call is None:
            return forward(*args, **kwargs)
        cache = call.cache
        step = self.steps.get(id(cache))
        if step is not None and (self._is_hooked(chain.model) or not step.fits(chain, cache, call.tokens)):
            step.replay = None
            del self.steps[id(cache)]
            step = None
        if step is not None and step.replay is None:
            step = self._capture(chain, forward, step, kwargs)
        if step is not None:
            chain.is_read = False
            chain.count("a chain, as a CUDA graph")
            step.tokens.copy_(call.tokens)
            return step.output(cache, step.replay())
        self.served = False
        output = forward(*args, **kwargs)
        if self.served and self.captures.get(id(cache), 0) < _most and not self._is_hooked(chain.model):
            found = Step(chain, call, output) if hasattr(output, "items") else None
            if found is not None and set(output.keys()) == {"logits", found.cache_name}:
                self._keep(cache, found)
        return output

    def _is_hooked(self, model: nn.Module) -> bool:
        if self.is_hooked or self.handles != RemovableHandle.next_id:  # hooks may have gone, or were registered since
            self.handles, self.is_hooked = RemovableHandle.next_id, has_foreign_hooks(model, within=True)
        return self.is_hooked

    def _capture(self, chain: Any, forward: Callable[..., Any], step: Step, kwargs: dict[str, Any]) -> Step | None:
        cache = step.cache()
        self.captures[id(cache)] = self.captures.get(id(cache), 0) + 1
        named = {name: kwargs[name] for name in ("use_cache", "logits_to_keep", "return_dict") if name in kwargs}
        reads = chain.is_read
        try:
            step.capture(chain, forward, named)
            return step
        except Exception as error:  # the step runs as the one before
            chain.begin(False)
            chain.is_read = reads
            self.enabled = False
            self.release()
            chain.count("a chain, without CUDA graphs", f"the capture failed: {error}")
            _log.debug("capture", exc_info=True)
            return None


def release(group_name: str | None = None) -> None:
    """Forgets the graphs of a group, or all."""
    for graphs in list(Graphs.every):
        if group_name is None or graphs.group_name == group_name:
            graphs.release()


groups.before_release.append(release)
