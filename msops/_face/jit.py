"""The jit decorator of MindSpore's face."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from msops._face.cell import Cell
from msops._face.compiled import Compiled
from msops.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError

# Keywords of MindSpore's jit, 2.0 to 2.10: how its compiler captures and optimises a function. XLA
# has no counterpart; results do not depend on them.
WITHOUT_EFFECT = (
    "auto_offload",
    "backend",
    "capture_mode",
    "compile_once",
    "disable_format_transform",
    "dynamic",
    "exec_order",
    "fullgraph",
    "hash_args",
    "infer_boost",
    "input_signature",
    "jit_config",
    "jit_level",
    "mode",
    "option",
)

# What MindSpore checks them for. It has "O2" up to 2.7.
_CHOICES: dict[str, tuple[Any, ...]] = {
    "backend": ("", "ms_backend", "GE"),
    "capture_mode": ("ast", "bytecode", "trace"),
    "dynamic": (0, 1),
    "exec_order": ("bfs", "dfs"),
    "infer_boost": ("on", "off"),
    "jit_level": ("O0", "O1", "O2"),
}
_TYPES = {"dynamic": int, "disable_format_transform": bool, "fullgraph": bool}


def _check_options(options: dict[str, Any]) -> None:
    unknown = sorted(set(options).difference(WITHOUT_EFFECT))
    if unknown:
        raise ArgumentTypeError.explained(
            "jit",
            f"unknown option(s) {', '.join(unknown)}",
            f"MindSpore's are: {', '.join(WITHOUT_EFFECT)}.",
        )
    for name, value in options.items():
        kind = _TYPES.get(name)
        if kind is not None and not isinstance(value, kind):
            raise ArgumentTypeError.explained(
                "jit",
                f"expected {name} {kind.__name__}; got {type(value).__name__}",
                "Results do not depend on it: it may be left out.",
            )
        choices = _CHOICES.get(name, (value,))
        if value not in choices:
            family = ArgumentRuntimeError if name == "backend" else ArgumentValueError
            raise family.explained(
                "jit",
                f"expected {name} to be one of {', '.join(map(repr, choices))}; got {value!r}",
                "Results do not depend on it: it may be left out.",
            )


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compiles a function over Tensors as a whole, once per signature.

    Corresponds to ``mindspore.jit``; works bare and with options. Arrays among the arguments are
    inputs of the program; numbers, strings and other hashable values are part of the signature.
    Parameters that the function reads are inputs, those it assigns to are updated by each call.

    Args:
      function: a function, method or Cell. None returns a decorator.
      options: MindSpore's keywords for its compiler, without effect here; ``fn`` is its older name
        of `function`.

    Raises:
      ArgumentTypeError: `function` is not callable, or an option is unknown or of a wrong type.
      ArgumentValueError, ArgumentRuntimeError: an option has a value that MindSpore refuses.

    Example:
      >>> import msops as ms
      >>> @ms.jit
      ... def double(x):
      ...     return x + x
      >>> print(double(ms.Tensor([1.0, 2.0])))
      [2. 4.]

    Source: MindSpore 2.7.2, mindspore/common/jit.py, jit; MindSpore 2.0.0, common/api.py, jit.
    """
    function = options.pop("fn", function)
    _check_options(options)
    if function is None:
        return jit
    if not callable(function):
        raise ArgumentTypeError.explained(
            "jit", f"expected a function; got {type(function).__name__}", "Pass one."
        )
    if isinstance(function, Cell):
        return Compiled(function, function.get_parameters, lambda: function._compile_state())
    if inspect.ismethod(function) and isinstance(function.__self__, Cell):
        owner = function.__self__
        return Compiled(function, owner.get_parameters, lambda: owner._compile_state())
    return Compiled(function)
