"""The pass of torch.compile that fuses collectives with products, for asynchronous tensor parallelism: its switch, the
groups for which it may fuse, and the collectives that it left.

torch has the switch and the pass in private modules, so each is looked up when it is needed.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed._symmetric_memory as symm_mem
from torch.distributed import distributed_c10d as c10d

from ..errors import Unsupported
from .counts import count

_name = "micro_pipeline_tp_pass"
_gather, _scatter, _wait = (f"_c10d_functional.{name}.default" for name in ("all_gather_into_tensor", "reduce_scatter_tensor",
                                                                           "wait_tensor"))
_view = "aten.reshape.default"
_before: dict[Any, Any] = {}  # the pass, by the module that has it
_tag_before: list[str] = []
_switch_before: list[bool] = []


def _modules() -> tuple[Any, Any, Any]:
    """The module with the switch, and those that have the pass."""
    try:
        from torch._inductor import config
        from torch._inductor.fx_passes import micro_pipeline_tp, post_grad

        config._micro_pipeline_tp, micro_pipeline_tp.micro_pipeline_tp_pass, post_grad.micro_pipeline_tp_pass
    except (ImportError, AttributeError) as error:
        raise Unsupported(f"torch {torch.__version__} does not have its pass for asynchronous tensor parallelism where torch 2.15 "
                          f"has it: {error}") from error
    return config, micro_pipeline_tp, post_grad


def follow() -> None:
    """Makes the pass fuse for all groups that untax serves, and the report count the calls that the pass leaves."""
    _, *users = _modules()
    for module in users:
        if module not in _before:
            _before[module] = getattr(module, _name)
            setattr(module, _name, functools.partial(_pass, _before[module]))
    if not _tag_before:  # torch's cache must not return graphs that another pass, or another version of this one, has
                         # made
        _tag_before.append(torch.compiler.config.cache_key_tag)
        own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
        torch.compiler.config.cache_key_tag = f"{_tag_before[0]} untax {own}"


def switch_on() -> None:
    """Switches the pass on for later compilations."""
    config = _modules()[0]
    follow()
    if not _switch_before:
        _switch_before.append(config._micro_pipeline_tp)
    config._micro_pipeline_tp = True


def leave() -> None:
    """Gives torch its pass and switch back."""
    for module, original in _before.items():
        setattr(module, _name, original)
    _before.clear()
    if _tag_before:
        torch.compiler.config.cache_key_tag = _tag_before.pop()
    if _switch_before:
        _modules()[0]._micro_pipeline_tp = _switch_before.pop()


def _pass(original: Callable[[Any], None], graph: Any) -> None:
    torchs = symm_mem.is_symm_mem_enabled_for_group
    symm_mem.is_symm_mem_enabled_for_group = may_fuse = functools.partial(_may_fuse, torchs)
    _merge_waits(graph)
    _flatten(graph)
    _split(graph)
    try:
        original(graph)
    finally:
        symm_mem.is_symm_mem_enabled_for_group = torchs
    for node in graph.nodes:
        kind = str(node.target)
        if kind in _reasons:
            group_name = node.kwargs.get("group_name", node.args[-1])
            why = _reasons[kind](node) if may_fuse(group_name) else f"group {group_name} has no symmetric memory"
            count(kind.removeprefix("_c10d_functional.").removesuffix(".default"), f"left by torch.compile: {why}")


def _merge_waits(graph: Any) -> None:
    """Gives each gather one wait. torch merges equal gathers, as layers with the same input have them, but not their waits, and
    its pass does not know a gather with several."""
    first: dict[Any, Any] = {}
    for node in graph.nodes:
        if str(node.target) == _wait and str(node.args[0].target) == _gather:
            wait = first.setdefault(node.args[0], node)
            if wait is not node:
                node.replace_all_uses_with(wait)
                graph.erase_node(node)


def _flatten(graph: Any) -> None:
    """Gathers rows where one sequence is gathered along its length. torch gathers [1, length, features] as it is and views the
    result, and its pass does not know a view between a gather and a product."""
    for gather in [node for node in graph.nodes if str(node.target) == _gather]:
        part, users = gather.args[0].meta["val"], list(gather.users)
        if len(users) != 1 or part.dim() < 3 or not all(isinstance(extent, int) for extent in part.shape):
            continue
        wait, leading, (length, features) = users[0], part.shape[:-2], part.shape[-2:]
        whole = gather.meta["val"].shape[0] * length, features
        if str(wait.target) != _wait or leading.numel() != 1 or any(
                str(user.target) != _view or tuple(user.args[1]) not in (whole, (*leading, *whole)) for user in wait.users):
            continue
        with graph.inserting_before(gather):
            rows = graph.call_function(torch.ops.aten.reshape.default, (gather.args[0], [length, features]))
        rows.meta["val"] = part.reshape(length, features)
        gather.replace_input_with(gather.args[0], rows)
        for node in (gather, wait):
            node.meta["val"] = node.meta["val"].reshape(whole)
        for view in list(wait.users):
            for twice in [*view.users, view]:
                if str(twice.target) == _view and tuple(twice.args[1]) == whole:
                    twice.replace_all_uses_with(wait)
                    graph.erase_node(twice)


def _split(graph: Any) -> None:
    """Replaces a scatter between two permutations, which move its dimension to the front and back, by a scatter along that
    dimension in the form that torch's pass matches: split and concatenation, as DTensor emits it."""
    aten = torch.ops.aten
    for scatter in [node for node in graph.nodes if str(node.target) == _scatter]:
        copy, (wait, *others) = scatter.args[0], list(scatter.users) or [None]
        moved = copy.args[0] if str(copy.target) == "aten.clone.default" and len(copy.users) == 1 else copy
        if others or wait is None or str(wait.target) != _wait or str(moved.target) != "aten.permute.default" or len(moved.users) != 1:
            continue
        product, order = moved.args
        dim = order[0]
        if order != [dim, *range(1, dim), 0, *range(dim + 1, len(order))] or str(_source(product).target) not in _fusible:
            continue
        whole, ranks = product.meta["val"], scatter.args[2]
        with graph.inserting_before(scatter):
            parts = graph.call_function(aten.split.Tensor, (product, whole.shape[dim] // ranks, dim))
            parts.meta["val"] = whole.split(whole.shape[dim] // ranks, dim)
            each = [graph.call_function(operator.getitem, (parts, part)) for part in range(ranks)]
            for part, value in zip(each, parts.meta["val"], strict=True):
                part.meta["val"] = value
            joined = graph.call_function(aten.cat.default, (each,))
            joined.meta["val"] = torch.cat(parts.meta["val"])
        scatter.replace_input_with(copy, joined)
        with graph.inserting_after(wait):
            back = graph.call_function(aten.permute.default, (wait, order))
        back.meta["val"] = wait.meta["val"]
        wait.replace_all_uses_with(back, delete_user_cb=lambda user, back=back: user is not back)
        for node in (scatter, wait):
            node.meta["val"] = whole.new_empty(parts.meta["val"][0].shape)
        for again in list(back.users):
            if again.target is back.target and again.args[1] == order:
                again.replace_all_uses_with(wait)
                graph.erase_node(again)
        for node in (back, copy, moved):
            if not node.users:
                graph.erase_node(node)


def _may_fuse(torchs: Callable[[str], bool], group_name: str) -> bool:
    """Whether fused operators of a group can run: on GPUs if torch can give the group symmetric memory, since torch carries out
    what untax does not take; on CPUs always, since torch's own way needs none there."""
    if torchs(group_name):
        return True
    try:
        c10d._resolve_process_group(group_name)
    except RuntimeError:
        return False
    if torch.accelerator.current_accelerator(check_available=True) is None:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # newer versions of torch need no such call
        symm_mem.enable_symm_mem_for_group(group_name)
    return torchs(group_name)


_fusible = ("aten.mm.default", "aten._scaled_mm.default")
_products = (*_fusible, "aten.addmm.default", "aten.bmm.default", "aten.baddbmm.default")
_moves = (_wait, "aten.split.Tensor", "aten.split.sizes", "aten.split_with_sizes.default",
          "aten.cat.default", _view, "aten.view.default", "aten.view.dtype", "aten.slice.Tensor",
          "aten.permute.default", "aten.t.default", "aten.transpose.int", "aten.clone.default",
          "prims.convert_element_type.default", "prims.inductor_force_stride_order.default")


def _is_move(node: Any) -> bool:
    return node.target is operator.getitem or str(node.target) in _moves


def _uses(node: Any) -> Iterator[tuple[Any, Any]]:
    """(user, operand) of all nodes that use the result of `node`, through nodes that only move it."""
    reached, waiting = {node}, [node]
    while waiting:
        operand = waiting.pop()
        for user in operand.users:
            yield user, operand
            if _is_move(user) and user not in reached:
                reached.add(user)
                waiting.append(user)


def _names(nodes: Iterable[Any]) -> str:
    return ", ".join(sorted({str(node.target) if node.op == "call_function" else f"the graph's {node.op}" for node in nodes}))


def _of_product(kind: str) -> str:
    return f"its product is {kind}" + (", as that of a layer with a bias" if kind == "aten.addmm.default" else "")


def _why_gathered(node: Any) -> str:
    uses = list(_uses(node))
    products = [(user, operand) for user, operand in uses if str(user.target) in _products]
    if not products:
        users = [user for user, _ in uses if not _is_move(user)]
        return f"no product takes its result, but {_names(users) or 'nothing'}"
    for user, operand in products:
        if str(user.target) not in _fusible:
            return _of_product(str(user.target))
        if user.args[0] is not operand:
            return "it is the second operand of its product, as weights are"
    part = node.args[0].meta["val"]
    gathered = [user.args[1] % part.dim() for user, _ in uses if str(user.target) == "aten.cat.default" and len(user.args) > 1]
    if part.dim() - 1 in gathered and part.shape[-1] < 1024:
        return f"it gathers the last dimension, of which a rank has {part.shape[-1]}, and torch fuses from 1024 on"
    return "torch's pass does not know what lies between it and its product"


def _source(node: Any) -> Any:
    """The node whose result `node` moves."""
    while _is_move(node):
        node = node.args[0][0] if isinstance(node.args[0], (list, tuple)) else node.args[0]
    return node


def _why_scattered(node: Any) -> str:
    source = _source(node.args[0])
    kind = str(source.target)
    if kind not in _products:
        return f"it sums no product, but what {_names([source])} gives"
    if kind not in _fusible:
        return _of_product(kind)
    if len({user for user, _ in _uses(source) if not _is_move(user)}) > 1:
        return "its product has other users, too"
    return "torch's pass does not know what lies between its product and it"


_reasons = {_gather: _why_gathered, _scatter: _why_scattered}
