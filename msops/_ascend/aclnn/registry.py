"""How an operator is found by name, or added."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping
from typing import Any

from msops._ascend.aclnn.kinds import AclnnSignature, UpdatedTensor, read_signature
from msops._ascend.aclnn.operator import AclnnOp
from msops._ascend.aclnn.table import OPERATORS
from msops.errors import ArgumentTypeError, ArgumentValueError

PREFIX = "aclnn"
_INPLACE = "Inplace"

_ABSENT = {
    "MoeDistributeDispatchV3": "it sends tokens among 2 devices or more, for which JAX has "
    "jax.shard_map with jax.lax.ragged_all_to_all; `aclnnMoeInitRoutingV2` orders them on one",
}

_registered: dict[str, Callable[..., Any]] = {}


@functools.cache
def _operators() -> Mapping[str, Callable[..., Any]]:
    """Returns the operators of this package, whose files are imported when one is first needed."""
    from msops._ascend.aclnn import families  # noqa: F401

    return OPERATORS


def register_aclnn(name: str, function: Callable[..., Any]) -> None:
    """Adds an aclnn operator for C++ extensions, e.g. one of your own that has no msops version.

    Args:
      name: its name, e.g. ``"aclnnAddCustom2"``; the prefix may be left out. Registering the name
        again replaces the function, for what is traced from then on.
      function: JAX code. Its positional parameters are aclnn's in their order, without the outputs:
        arrays, numbers, bools, lists of these, None for an absent tensor. It returns an array, or
        several in a tuple, which are cast to the dtypes of the output tensors and must have their
        shapes. A keyword-only parameter `outputs` receives a `jax.ShapeDtypeStruct` of each.

    Raises:
      ArgumentTypeError: `name` is no str, or `function` cannot be called.
      ArgumentValueError: msops has an operator of this name.

    Example:
      >>> import jax.numpy as jnp, msops.extension
      >>> msops.extension.register_aclnn("aclnnHypot2", lambda x, y: jnp.hypot(x, y) ** 2)

    Source: MindSpore 2.7.2, ``CustomLaunchAclnn`` looks names up in the libraries of CANN.
    """
    if not isinstance(name, str) or not callable(function):
        raise ArgumentTypeError.explained(
            "register_aclnn",
            f"expected a name and a function; got {name!r} and {type(function).__name__}",
            "Pass e.g. ('aclnnTwice', lambda x: 2 * x).",
        )
    short = name.removeprefix(PREFIX)
    if not short.isidentifier():
        raise ArgumentValueError.explained(
            "register_aclnn", f"expected an identifier; got {name!r}", "Rename it."
        )
    if short in _operators():
        raise ArgumentValueError.explained(
            "register_aclnn",
            f"msops has {PREFIX}{short}, which other extensions may rely on",
            "Choose another name and launch that one.",
        )
    _registered[short] = function


_REMEDY = "Use one of those it has, or add it with msops.extension.register_aclnn."


def lookup(name: str, who: str, remedy: str = _REMEDY) -> AclnnOp:
    """Returns an operator.

    Args:
      name: as C++ has it; the prefix ``aclnn`` may be left out.
      who: the caller, for messages.
      remedy: what to do if there is none, for messages.

    Raises:
      ArgumentValueError: there is no such operator; the message lists near names.
    """
    short = name.removeprefix(PREFIX)
    function = _operators().get(short) or _registered.get(short) or _in_place(short)
    if function is None:
        why = f": {_ABSENT[short]}" if short in _ABSENT else _near(short)
        raise ArgumentValueError.explained(
            who, f"msops has no aclnn operator {name!r}{why}", remedy
        )
    return AclnnOp(PREFIX + short, function, _signature(function), who)


def names() -> list[str]:
    """Returns the names of all operators, with the prefix, sorted."""
    return sorted(PREFIX + name for name in {*_operators(), *_registered})


def _near(short: str) -> str:
    known = {name.lower(): name for name in (*_operators(), *_registered)}
    near = difflib.get_close_matches(short.lower(), known, n=4)
    # Pow may mean PowTensorScalar, Where SWhere: no small distance, but one holds the other.
    near += [low for low in known if low not in near and len(short) > 2 and short.lower() in low]
    return f"; near names: {', '.join(PREFIX + known[low] for low in near[:6])}" if near else ""


@functools.cache
def _signature(function: Callable[..., Any]) -> AclnnSignature:
    return read_signature(function)


@functools.cache
def _in_place(short: str) -> Callable[..., Any] | None:
    """Returns ``InplaceX`` made from ``X``: it has no output and writes to its first input."""
    base = _operators().get(short.removeprefix(_INPLACE))
    if base is None or not short.startswith(_INPLACE):
        return None
    return in_place(base)


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an operator that stores the result of another in its first input."""

    @functools.wraps(function)
    def update(*arguments: Any) -> Any:
        return function(*arguments)

    first = next(iter(read_signature(function).parameters or ())).name
    update.__annotations__ = {**function.__annotations__, first: UpdatedTensor}
    return update
