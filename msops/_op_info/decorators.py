"""Decorators that attach op info to a function, where `Custom` reads it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msops._op_info.parse import read_reg_info
from msops.errors import OpInfoTypeError

_F = TypeVar("_F", bound=Callable[..., Any])


def custom_info_register(*reg_info: Any) -> Callable[[_F], _F]:
    """Attaches op info to a function, where `Custom` reads it.

    Corresponds to ``mindspore.ops.custom_info_register``. Nothing is checked before an op is made
    of the function. Of two stacked decorators the outer one is used, as in MindSpore, so pass all
    infos to one. The ``reg_info`` argument of `Custom` overrides the decorator.

    Args:
      *reg_info: op infos, one per target: dicts of ``CustomRegOp(...).get_op_info()``, JSON texts,
        or lists of them.

    Returns:
      A decorator; its function calls the decorated one, which is its ``__wrapped__``.

    Raises:
      OpInfoTypeError: it was used without parentheses.

    Example:
      >>> from msops.ops import CustomRegOp, custom_info_register
      >>> @custom_info_register(CustomRegOp("double").target("CPU").get_op_info())
      ... def double(x):
      ...     return 2 * x
      >>> double.reg_info[0]["op_name"], double(3)
      ('double', 6)

    Source: MindSpore 2.7.2, ``mindspore.ops.op_info_register.custom_info_register``.
    """
    for item in reg_info:
        if callable(item):
            raise OpInfoTypeError.explained(
                "custom_info_register",
                f"expected op info; got the callable {getattr(item, '__name__', item)!r}",
                "Write @custom_info_register(info), with info from CustomRegOp(...).get_op_info().",
            )
    return lambda func: _with_reg_info(func, reg_info, "custom_info_register")


def op_info_register(op_info: str | Mapping[str, Any]) -> Callable[[_F], _F]:
    """Checks an op info and attaches it to a function, which may be empty.

    Corresponds to ``mindspore.ops.op_info_register``, which kernel files of MindSpore use; the info
    stays with the function instead of going to a library of the whole process.

    Args:
      op_info: a dict of ``TBERegOp(...).get_op_info()`` or another builder's, or its JSON text.

    Returns:
      A decorator; the function it returns carries the info as `custom_info_register`'s does.

    Raises:
      OpInfoTypeError: `op_info` is neither dict nor str, or holds a value of a wrong type.
      OpInfoValueError: `op_info` is no valid op info.

    Example:
      >>> from msops.ops import AkgCpuRegOp, op_info_register
      >>> @op_info_register(AkgCpuRegOp("Abs").get_op_info())
      ... def _abs_akg():
      ...     return
      >>> _abs_akg.reg_info[0]["processor"]
      'CPU'

    Source: MindSpore 2.7.2, ``mindspore.ops.op_info_register.op_info_register``.
    """

    def decorate(func: _F) -> _F:
        if not isinstance(op_info, (str, Mapping)):
            raise OpInfoTypeError.explained(
                "op_info_register",
                "expected op_info to be a dict or its JSON text; "
                f"got {op_info!r} ({type(op_info).__name__})",
                "Pass what TBERegOp(...).get_op_info() returns.",
            )
        name = getattr(func, "__name__", func)
        read_reg_info(op_info, None, f"op_info_register of {name!r}")
        return _with_reg_info(func, (op_info,), "op_info_register")

    return decorate


def _with_reg_info(func: _F, reg_info: tuple[Any, ...], who: str) -> _F:
    """Returns a wrapper of `func`; both carry `reg_info`, as `Custom` may look at either."""
    try:
        func.reg_info = reg_info  # type: ignore[attr-defined]
    except AttributeError:
        raise OpInfoTypeError.explained(
            who,
            f"expected a function that can hold op info; got {func!r}",
            "Wrap it in a def, or pass the op info to Custom(..., reg_info=...).",
        ) from None

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapper  # type: ignore[return-value]
