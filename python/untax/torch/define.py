"""The operators as torch knows them: `torch.ops.untax`, each defined by the function that people call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidArgument, Unsupported
from . import shapes
from .groups import FakeGroup, ranks_of

functions: dict[str, Callable[..., Any]] = {}  #: that people call, by the names of their operators
_library = torch.library.Library("untax", "DEF")
_types = {"Tensor": "Tensor", "int": "int", "bool": "bool", "float": "float", "str": "str", "str | None": "str?"}


def operator(run: Callable[..., Any], *, fake: Callable[..., Any] | None = None, results: tuple[str, ...] = ("out",),
             gradient: Callable[..., Any] | None = None, saved: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Defines the operator that the decorated function calls, with the function's name and arguments: `group` becomes
    `group_name`, and what comes before it has no default. `run` takes the operator's arguments, and `fake` those of tensors
    without elements; where it is None, `run` does, with a group that runs nothing.

    `results` are the names that the overload `out` has for what it writes. `gradient(ctx, *grads)` gives the gradients of
    the tensors; `ctx` has the other arguments by their names, and as `saved_tensors` the arguments and results that `saved`
    names. The gradient is that of the sum of what the ranks make of their results: a rank's backward pass gives the gradient
    of the sum of the losses of all ranks with respect to what that rank passed, as for the collectives of torch. Ranks that
    all have the same loss thus get the gradient of as many times that loss."""

    def defined(function: Callable[..., Any]) -> Callable[..., Any]:
        functions[function.__name__] = function
        arguments = inspect.signature(function).parameters.values()
        define(f"{function.__name__}({', '.join(map(_argument, arguments))})", run, fake, results, gradient, saved)
        return function

    return defined


def _argument(given: inspect.Parameter) -> str:
    if given.name == "group":
        return "str group_name"
    default = f"={given.default}" if given.kind is given.KEYWORD_ONLY else ""
    return f"{_types[given.annotation]} {given.name}{default}"


def define(schema: str, run: Callable[..., Any], fake: Callable[..., Any] | None, results: tuple[str, ...],
           gradient: Callable[..., Any] | None = None, saved: tuple[str, ...] = ()) -> None:
    """Defines `schema`, without what it returns, and its overload `out`. An operator without a gradient gets one that raises,
    so that no gradient is lost silently."""
    name, _, inputs = schema.removesuffix(")").partition("(")
    arguments = [given.split("=")[0].split()[-1] for given in inputs.split(", ")]
    _library.define(f"{schema} -> {'Tensor' if len(results) == 1 else '(Tensor, Tensor)'}")
    for device in ("CPU", "CUDA"):
        _library.impl(name, run, device)

    def run_nothing(*positional: Any, **named: Any) -> Any:
        given = {**dict(zip(arguments, positional, strict=False)), **named}
        return run(**{**given, "group_name": FakeGroup(given["group_name"])})

    fake = fake or run_nothing
    torch.library.register_fake(f"untax::{name}", fake, lib=_library)
    if gradient is None:
        torch.library.register_autograd(f"untax::{name}", _refused(name), lib=_library)
    else:
        _differentiate(name, arguments, results, gradient, saved)
    _define_out(name, inputs, arguments, run, fake, results)


def _refused(name: str) -> Callable[..., Any]:
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise Unsupported(f"torch.ops.untax.{name} has no derivative; call it within torch.no_grad(), or on tensors that are "
                          "detached")

    return backward


def _differentiate(name: str, arguments: list[str], results: tuple[str, ...], gradient: Callable[..., Any],
                   saved: tuple[str, ...]) -> None:
    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        given = dict(zip(arguments, inputs, strict=True))
        for argument, value in given.items():
            if not isinstance(value, Tensor):
                setattr(ctx, argument, value)
        given.update(zip(results, (output,) if len(results) == 1 else output, strict=True))
        ctx.save_for_backward(*(given[tensor] for tensor in saved))

    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        found = gradient(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        return *found, *(None,) * (len(arguments) - len(found))

    torch.library.register_autograd(f"untax::{name}", backward, setup_context=keep, lib=_library)


def _define_out(name: str, inputs: str, arguments: list[str], run: Callable[..., Any], fake: Callable[..., Any],
                results: tuple[str, ...]) -> None:
    """The variant that writes into what is given for `results`, which is not allocated where it lies as the result does.

    It returns nothing: torch.compile takes no operator, but its own, whose result is an argument."""
    given = ", ".join(f"Tensor({letter}!) {result}" for letter, result in zip("ab", results, strict=False))
    _library.define(f"{name}.out({inputs}, *, {given}) -> ()")

    def refuse_gradients(positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not torch.is_grad_enabled():
            return
        for t in (*named.values(), *positional):
            if isinstance(t, Tensor) and t.requires_grad:
                argument = next(key for key, other in (*named.items(), *zip(arguments, positional, strict=False)) if other is t)
                raise InvalidArgument(f"{argument} requires a gradient, and what is written into a given tensor has no "
                                      "derivative; give one that requires none, or call this within torch.no_grad()")

    def write(*positional: Any, **named: Any) -> None:
        refuse_gradients(positional, named)
        run(*positional, **named)
        for result in results:  # torch counts versions, to refuse derivatives that need what was overwritten
            if not named[result].is_inference():  # which has no version
                torch.autograd.graph.increment_version(named[result])

    def write_fake(*positional: Any, **named: Any) -> None:
        refuse_gradients(positional, named)
        made = fake(*positional, **{key: value for key, value in named.items() if key not in results})
        for tensor, result in zip([made] if len(results) == 1 else made, results, strict=True):
            shapes.fits(tensor, tuple(tensor.shape), named[result])

    for device in ("CPU", "CUDA"):
        _library.impl(f"{name}.out", write, device)
    torch.library.register_fake(f"untax::{name}.out", write_fake, lib=_library)


def of_sum(ctx: Any, grad: Tensor, name: str) -> Tensor:
    """The gradient of a sum over ranks, of that of what `ctx.reduce_op` makes of it."""
    if ctx.reduce_op not in ("sum", "avg"):
        raise Unsupported(f"torch.ops.untax.{name} has no derivative for {ctx.reduce_op!r}; it has those of sum and avg")
    return grad / ranks_of(ctx.group_name) if ctx.reduce_op == "avg" else grad
