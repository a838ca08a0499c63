"""Checks of the arguments of `Custom`: name, func_type, rules and options."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msops._backends import BACKENDS, find_backend
from msops._base.building import Build, SourceText
from msops._op.backend import Backend
from msops._op.identity import ByValue
from msops._op.request import Options
from msops._op_info import OpInfo
from msops.errors import ArgumentTypeError, ArgumentValueError, BackendError, OpInfoValueError

if TYPE_CHECKING:
    from msops._op.sharding_rule import ShardingRule

# MindSpore's func_types that have no backend here.
_ABSENT = ("julia",)


def name_of(func: Any) -> str:
    """Returns the name an op has by its kernel."""
    if isinstance(func, (list, tuple)) and func:
        func = func[0]
    if isinstance(func, SourceText):
        return func.name
    if isinstance(func, os.PathLike):
        func = os.fspath(func)
    if isinstance(func, str):
        # A path is not part of a name: programs would differ by where they were made.
        _, colon, symbol = func.rpartition(":")
        if "\n" in func and not symbol.isidentifier():
            return "source text"  # refused
        return _printable((symbol if colon else PurePath(func).name) or func)
    while isinstance(func, functools.partial):
        func = func.func
    name = getattr(func, "__name__", None)
    return _printable(name if isinstance(name, str) else type(func).__name__)


def _printable(name: str) -> str:
    """Returns a name as a program may have it, whose text is UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode()


def choose_func_type(func: Any, func_type: Any, who: str) -> str:
    """Returns the func_type given, or the one that follows from `func`."""
    if func_type is None:
        if isinstance(func, (str, os.PathLike, SourceText)):
            return "aot"
        func_type = "hybrid" if getattr(func, "ms_kernel_flag", False) is True else "pyfunc"
    if not isinstance(func_type, str):
        raise ArgumentTypeError.explained(
            who,
            f"expected a str for func_type; got {type(func_type).__name__}",
            f"Pass one of {', '.join(map(repr, sorted(BACKENDS)))}, or leave it out.",
        )
    if func_type in _ABSENT:
        raise BackendError.explained(
            who,
            f"func_type {func_type!r} is not in this version of msops",
            f"Write the kernel as one of {', '.join(map(repr, sorted(BACKENDS)))}.",
        )
    if func_type not in BACKENDS:
        raise ArgumentValueError.explained(
            who,
            f"expected func_type to be one of {', '.join(map(repr, sorted(BACKENDS)))}; "
            f"got {func_type!r}",
            "Pass one of these, or leave func_type out: a str func is aot, a function pyfunc.",
        )
    return func_type


def check_rules(bprop: Any, jvp: Any, forward: Any, who: str) -> None:
    """Checks the rules of differentiation."""
    for name, rule, example in (
        ("bprop", bprop, "lambda x, out, dout: (dx,)"),
        ("jvp", jvp, "lambda primals, tangents, out: dout"),
    ):
        if rule is not None and not callable(rule):
            raise ArgumentTypeError.explained(
                who,
                f"expected a function for {name}; got {type(rule).__name__}",
                f"Pass {name}={example}.",
            )
    if forward is True and bprop is None:
        raise ArgumentValueError.explained(
            who,
            "forward=True expected a bprop to derive forward mode from; got none",
            "Give one, or leave forward out: loop kernels have both modes without, and jvp= "
            "is a rule for both.",
        )


_WORDS_OF_JAX = {
    "vmap_method": "vmap=",
    "result_shape_dtypes": "out=",
    "has_side_effect": "stateful=",
    "input_output_aliases": "inplace={output: input}, the other way round,",
    "static_argnames": "attrs={name: default}",
}
"""Options of `jax.ffi.ffi_call`, `jax.pure_callback` and `jax.jit`, as one writes them here."""


def unknown_option(name: str, known: Iterable[str], who: str) -> ArgumentTypeError:
    """Returns the error for a keyword that `Custom` does not take, with the one that was meant."""
    import difflib  # here, as `import msops` must be quick

    near = difflib.get_close_matches(name, known, 1)
    if name in _WORDS_OF_JAX:
        remedy = f"Write {_WORDS_OF_JAX[name]} for JAX's {name}=: see help(msops.Custom)."
    elif near:
        remedy = f"Did you mean {near[0]}=?"
    else:
        remedy = (
            "help(msops.Custom) lists the options. An attribute of the kernel is declared by "
            f"attrs={{{name!r}: value}}, and passed when the op is called."
        )
    return ArgumentTypeError.explained(who, f"it has no option {name!r}", remedy)


_OF_SOME = (
    "stateful",
    "reentrant",
    "inplace",
    "writable",
    "host",
    "cxx11_abi",
    "dynamic_outputs",
    "build",
)
"""The options that not all func_types take: those of `Backend.own_options`."""

_BOOLS = ("reentrant", "forward", "host", "dynamic_outputs")


def read_options(given: Mapping[str, Any], backend: Backend[Any, Any], who: str) -> Options:
    """Returns the keyword options of an op.

    Args:
      given: those of `Custom`, by name.
      backend: serves the op's func_type.
      who: the op, for messages.

    Raises:
      ArgumentTypeError, ArgumentValueError: an option has a value it cannot have, or is not for
        the func_type.
    """
    for option in _BOOLS:
        if not isinstance(given[option], bool):
            raise _wrong_option(option, "a bool", given[option], who)
    if given["stateful"] not in (False, True, "ordered"):
        raise _wrong_option("stateful", "a bool or 'ordered'", given["stateful"], who)
    for option in ("writable", "cxx11_abi"):
        if given[option] is not None and not isinstance(given[option], bool):
            raise _wrong_option(option, "a bool or None", given[option], who)
    if given["build"] is not None and not isinstance(given["build"], Build):
        raise _wrong_option("build", "a msops.Build or None", given["build"], who)
    vmap, jvp = given["vmap"], given["jvp"]
    read = {
        "vmap": backend.vmap if vmap is None else _read_vmap(vmap, who),
        "jvp": None if jvp is None else ByValue(jvp),
        "inplace": _read_inplace(given["inplace"], who),
        "sharding": _read_rule(given["sharding"], given["batch_dims"], who),
        "compile_attrs": _read_compile_attrs(given["compile_attrs"], backend, who),
    }
    named = {name: value for name, value in given.items() if name != "batch_dims"}
    options = Options(**{**named, **read})
    for option in _OF_SOME:
        is_given = getattr(options, option) != getattr(Options, option)
        if is_given and option not in backend.own_options:
            func_types = [name for name in BACKENDS if option in find_backend(name).own_options]
            raise ArgumentValueError.explained(
                who,
                f"option {option} is for func_type {' or '.join(map(repr, func_types))}; "
                f"this op is {backend.func_type!r}",
                f"Leave {option} out.",
            )
    if options.sharding is not None and options.dynamic_outputs:
        raise ArgumentValueError.explained(
            who,
            f"dynamic_outputs cannot be combined with {options.sharding}: the results of the "
            "parts have different sizes",
            "Leave the rule out, or call the op inside jax.shard_map.",
        )
    return options


_SIDE_EFFECTS = ("side_effect_mem", "side_effect_io", "side_effect_hidden")
"""MindSpore's attributes of primitives that are neither merged nor dropped."""


def add_side_effects(
    options: Options, prim_attrs: Mapping[str, Any], backend: Backend[Any, Any]
) -> Options:
    """Returns the options with what attributes of ``add_prim_attr`` mean: a stateful op.

    A func_type without the option has no effects but its outputs: the attributes change nothing.
    """
    has_effect = any(prim_attrs.get(name) is True for name in _SIDE_EFFECTS)
    if has_effect and "stateful" in backend.own_options:
        return dataclasses.replace(options, stateful=options.stateful or True)
    return options


def _read_vmap(vmap: Any, who: str) -> str | ByValue:
    # Here, as `import msops` must be quick.
    from msops._primitive.batching import read_vmap

    return read_vmap(vmap, who)


def _read_rule(sharding: Any, batch_dims: Any, who: str) -> ShardingRule | None:
    if sharding is None and type(batch_dims) is int and batch_dims == 0:
        return None
    # Here, as `import msops` must be quick.
    from msops._op.sharding_rule import read_rule

    return read_rule(sharding, batch_dims, who)


def _read_inplace(inplace: Any, who: str) -> tuple[tuple[int, int], ...]:
    if inplace is None:
        return ()
    numbers = [*inplace, *inplace.values()] if isinstance(inplace, Mapping) else [None]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise _wrong_option("inplace", "a dict from output to input numbers", inplace, who)
    if len({*inplace.values()}) < len(inplace):
        raise ArgumentValueError.explained(
            who,
            f"expected inplace to name each input once; got {inplace!r}",
            "Two outputs cannot share a buffer.",
        )
    return tuple(sorted(inplace.items()))


def _read_compile_attrs(
    attrs: Any, backend: Backend[Any, Any], who: str
) -> tuple[tuple[str, Any], ...]:
    if attrs is None:
        return ()
    if not isinstance(attrs, Mapping) or not all(isinstance(key, str) for key in attrs):
        raise _wrong_option("compile_attrs", "a dict with str keys", attrs, who)
    unknown = sorted(set(attrs) - set(backend.compile_attrs))
    if unknown:
        known = ", ".join(map(repr, backend.compile_attrs)) or "none"
        raise ArgumentValueError.explained(
            who,
            f"expected compile_attrs with keys among {known} for func_type "
            f"{backend.func_type!r}; got {', '.join(map(repr, unknown))}",
            "Leave the others out.",
        )
    return tuple(sorted(attrs.items()))


def _wrong_option(option: str, expected: str, value: Any, who: str) -> ArgumentTypeError:
    return ArgumentTypeError.explained(
        who,
        f"expected {expected} for {option}; got {value!r}",
        "See the docstring of Custom for what it does.",
    )


def find_op_info(
    reg_info: Any, holder: Any, backend: Backend[Any, Any], who: str
) -> tuple[OpInfo, ...]:
    """Returns the op info of an op, one per target.

    Args:
      reg_info: as `Custom` takes it; None means what `custom_info_register` left on `holder`.
      holder: the kernel.
      backend: serves the op's func_type.
      who: the op, for messages.

    Raises:
      OpInfoTypeError, OpInfoValueError: it is malformed, or lacks the target that the func_type
        requires.
    """
    if reg_info is None:
        reg_info = getattr(holder, "reg_info", None)
    infos: Mapping[str, OpInfo] = {}
    if reg_info is not None:
        # Here, as `import msops` must be quick.
        from msops._op_info import read_reg_info

        infos = read_reg_info(reg_info, backend.func_type, who, backend.imply_type)
    target = backend.guard or "CPU"
    if backend.requires_op_info and target not in infos:
        raise OpInfoValueError.explained(
            who,
            f"func_type {backend.func_type!r} requires op info for target {target!r}; got "
            f"{', '.join(map(repr, infos)) or 'none'}",
            f"Pass reg_info=CustomRegOp()...target({target!r}).get_op_info(), or decorate the "
            "function with custom_info_register.",
        )
    return tuple(infos[target] for target in sorted(infos))
