"""Defines the operators of `torch.ops.untax`, each from the public function that calls it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument, Unsupported
from . import shapes
from .direct import run_directly
from .groups import FakeGroup, ranks_of

functions: dict[str, Callable[..., Any]] = {}  #: the public functions, by the names of their operators
_library = torch.library.Library("untax", "DEF")
_types = {"Tensor": "Tensor", "Tensor | None": "Tensor?", "int": "int", "bool": "bool", "float": "float", "str": "str",
          "str | None": "str?"}


def operator(run: Callable[..., Any], *, fake: Callable[..., Any] | None = None, results: tuple[str, ...] = ("out",),
             gradient: Callable[..., Any] | None = None, saved: tuple[str, ...] = (),
             updated: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Defines the operator that the decorated function calls, with the function's name and arguments: `group` becomes
    `group_name`, and arguments before it have no default, unless it is None. `run` takes the operator's arguments, and `fake`
    takes them with tensors that have no elements. If `fake` is None, `run` takes its place, with a group that runs nothing.

    `results` are the names of the tensors that the overload `out` writes, `updated` those of arguments that every overload
    writes; such an operator has no gradient. `gradient(ctx, *grads)` returns the gradients of
    the tensors; `ctx` has the other arguments by their names, and as `saved_tensors` the arguments and results that `saved`
    names. As for the collectives of torch, a rank's backward pass computes the gradient of the sum of the losses of all ranks
    with respect to the arguments of that rank. If W ranks have the same loss, they get W times its gradient."""

    def defined(function: Callable[..., Any]) -> Callable[..., Any]:
        functions[function.__name__] = function
        arguments = inspect.signature(function).parameters.values()
        declarations = ", ".join(_argument(parameter, updated) for parameter in arguments)
        define(f"{function.__name__}({declarations})", run, fake, results, gradient, saved, updated)
        return function

    return defined


def _argument(parameter: inspect.Parameter, updated: tuple[str, ...]) -> str:
    if parameter.name == "group":
        return "str group_name"
    if parameter.name in updated:
        return f"Tensor({'uvw'[updated.index(parameter.name)]}!) {parameter.name}"
    has_default = parameter.kind is parameter.KEYWORD_ONLY or parameter.annotation.endswith("| None")
    word = f'"{parameter.default}"' if isinstance(parameter.default, str) else parameter.default
    default = f"={word}" if has_default else ""
    return f"{_types[parameter.annotation]} {parameter.name}{default}"


def define(schema: str, run: Callable[..., Any], fake: Callable[..., Any] | None, results: tuple[str, ...],
           gradient: Callable[..., Any] | None = None, saved: tuple[str, ...] = (), updated: tuple[str, ...] = ()) -> None:
    """Defines the operator of `schema`, which does not name the results, and its overload `out`. If `gradient` is None, the
    backward pass raises, so that no gradient is lost silently; if it updates arguments, the call does."""
    name, _, inputs = schema.removesuffix(")").partition("(")
    arguments = [declaration.split("=")[0].split()[-1] for declaration in inputs.split(", ")]
    tensors = ", ".join("Tensor" for _ in results)
    _library.define(f"{schema} -> {tensors if len(results) == 1 else f'({tensors})'}")
    kernel = _writing(name, arguments, run, updated) if updated else run
    for device in ("CPU", "CUDA"):
        _library.impl(name, kernel, device)

    def run_nothing(*positional: Any, **named: Any) -> Any:
        values = {**dict(zip(arguments, positional, strict=False)), **named}
        return run(**{**values, "group_name": FakeGroup(values["group_name"])})

    fake = fake or run_nothing
    torch.library.register_fake(f"untax::{name}", fake, lib=_library)
    if gradient is None and not updated:
        torch.library.register_autograd(f"untax::{name}", _refused(name), lib=_library)
    elif gradient is not None:
        _differentiate(name, arguments, results, gradient, saved)
    _define_out(name, inputs, arguments, run, fake, results, updated)
    run_directly(name, kernel, results)


def _refused(name: str) -> Callable[..., Any]:
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise Unsupported(f"torch.ops.untax.{name} has no derivative; call it within torch.no_grad(), or on tensors that are "
                          "detached")

    return backward


def _differentiate(name: str, arguments: list[str], results: tuple[str, ...], gradient: Callable[..., Any],
                   saved: tuple[str, ...]) -> None:
    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        values = dict(zip(arguments, inputs, strict=True))
        for argument, value in values.items():
            if not isinstance(value, Tensor):
                setattr(ctx, argument, value)
        values.update(zip(results, (output,) if len(results) == 1 else output, strict=True))
        ctx.save_for_backward(*(values[tensor] for tensor in saved))

    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        gradients = gradient(ctx, *grads)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        return *gradients, *(None,) * (len(arguments) - len(gradients))

    torch.library.register_autograd(f"untax::{name}", backward, setup_context=keep, lib=_library)


def _refuse_gradients(name: str, arguments: list[str], positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    if not torch.is_grad_enabled():
        return
    for t in (*named.values(), *positional):
        if isinstance(t, Tensor) and t.requires_grad:
            argument = next(key for key, other in (*named.items(), *zip(arguments, positional, strict=False)) if other is t)
            raise InvalidArgument(f"{argument} requires a gradient, and {name}, which writes into a given tensor, has no "
                                  "derivative; pass a detached tensor, or call it within torch.no_grad()")


def _writing(name: str, arguments: list[str], run: Callable[..., Any], written: tuple[str, ...]) -> Callable[..., Any]:
    """`run`, which writes into arguments: it refuses gradients."""

    def write(*positional: Any, **named: Any) -> Any:
        _refuse_gradients(name, arguments, positional, named)
        result = run(*positional, **named)
        values = {**dict(zip(arguments, positional, strict=False)), **named}
        for argument in written:  # torch counts versions, to refuse derivatives that need overwritten values
            if not values[argument].is_inference():  # inference tensors have no version
                torch.autograd.graph.increment_version(values[argument])
        return result

    return write


def _define_out(name: str, inputs: str, arguments: list[str], run: Callable[..., Any], fake: Callable[..., Any],
                results: tuple[str, ...], updated: tuple[str, ...]) -> None:
    """Defines the overload `out`, which writes into the tensors that are passed for `results`. A tensor whose memory is
    ordered like the result is written in place; for another one the result is allocated, and copied.

    The overload returns nothing: torch.compile takes operators of torch alone whose result is an argument."""
    outputs = ", ".join(f"Tensor({letter}!) {result}" for letter, result in zip("abc", results, strict=False))
    _library.define(f"{name}.out({inputs}, *, {outputs}) -> ()")

    write = _writing(f"{name}.out", arguments, run, (*results, *updated))

    def write_into(*positional: Any, **named: Any) -> None:
        write(*positional, **named)

    def write_fake(*positional: Any, **named: Any) -> None:
        _refuse_gradients(f"{name}.out", arguments, positional, named)
        tensors = fake(*positional, **{key: value for key, value in named.items() if key not in results})
        for tensor, result in zip([tensors] if len(results) == 1 else tensors, results, strict=True):
            shapes.require_fit(tensor, tuple(tensor.shape), named[result])

    for device in ("CPU", "CUDA"):
        _library.impl(f"{name}.out", write_into, device)
    torch.library.register_fake(f"untax::{name}.out", write_fake, lib=_library)


def gradient_of_sum(ctx: Any, grad: Tensor, name: str) -> Tensor:
    """The gradient of the sum over ranks, from the gradient of the "sum" or "avg" that `ctx.reduce_op` names."""
    if ctx.reduce_op not in ("sum", "avg"):
        raise Unsupported(f"torch.ops.untax.{name} has no derivative for {ctx.reduce_op!r}; it has those of sum and avg")
    return grad / ranks_of(ctx.group_name) if ctx.reduce_op == "avg" else grad
