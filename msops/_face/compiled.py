"""Functions over Tensors compiled as a whole: `jax.jit` with Python arguments static.

What GRAPH_MODE Cells, gradients in GRAPH_MODE and `msops.jit` have in common. Arrays among the
arguments are inputs of the program, whatever else is among them is part of its signature. The
Parameters a function reads are inputs too, never constants, and those it assigns to are outputs
that are written back after each call; so are arguments that C++ changed in place. Which they are is
found while tracing: a Parameter met that was not listed makes one more tracing with it listed.

XLA orders what a program computes by its data alone. So a function that calls ops with effects more
than once is not compiled as a whole: it runs op by op, in the order in which it is written.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import jax
import numpy as np

from msops._base.kernel_errors import call_compiled
from msops._face import context
from msops._face.changed_tensors import collected, find_changed, write_back
from msops._face.parameter import Frame, Parameter, RunsInOrder, is_compiling
from msops._face.tensor import Tensor, wrap
from msops.errors import ArgumentTypeError


class _TraceAgain(Exception):
    """A Parameter was met that is not listed as an input of the program."""


@jax.tree_util.register_static
class _Constant:
    """A result that is no array: it is known when the function is traced."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class _Dynamic:
    """Stands in a signature where an array was."""


_DYNAMIC = _Dynamic()
_log = logging.getLogger("msops.context")


def is_array(leaf: Any) -> bool:
    """Returns whether `leaf` is an array, or a number of numpy's."""
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic))


def _is_input(leaf: Any) -> bool:
    # numpy's float32 and float64 are numbers in MindSpore, in both modes; an op that got them as
    # inputs of the program would see arrays, and Float64 where its kernel reads Float32.
    return is_array(leaf) and not isinstance(leaf, (np.float32, np.float64))


def pack(tree: Any) -> Any:
    """Returns a result with everything that is no array hidden from JAX; `unpack` undoes it."""
    return jax.tree_util.tree_map(_packed, tree, is_leaf=lambda x: isinstance(x, Parameter))


def _packed(leaf: Any) -> Any:
    if isinstance(leaf, Parameter):
        return wrap(leaf.value)
    return leaf if is_array(leaf) else _Constant(leaf)


def unpack(tree: Any) -> Any:
    """Returns a result of `pack` as it was."""
    return jax.tree_util.tree_map(
        lambda leaf: leaf.value if isinstance(leaf, _Constant) else leaf,
        tree,
        is_leaf=lambda x: isinstance(x, _Constant),
    )


class _Program:
    """The compiled function for one signature."""

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Any,
        leaves: tuple[Any, ...],
        parameters: Iterable[Parameter],
    ):
        self._parameters = list(parameters)
        self._runs_in_order = False
        name = getattr(function, "__name__", "msops_function")

        def call(arrays: list[Any]) -> Any:
            entries = iter(arrays)
            filled = [next(entries) if leaf is _DYNAMIC else leaf for leaf in leaves]
            args, kwargs = jax.tree_util.tree_unflatten(structure, filled)
            with collected() as changed:
                result = pack(function(*args, **kwargs))
            return result, find_changed(changed, (args, kwargs))

        def trace(values: list[Any], arrays: list[Any]) -> Any:
            listed = dict(zip(self._parameters, values, strict=True))
            with Frame(listed, compiles=True) as frame:
                result, changed = call(arrays)
            if frame.missed:
                self._parameters.extend(frame.missed)
                raise _TraceAgain
            numbers = {parameter: n for n, parameter in enumerate(self._parameters)}
            # Parameters rebuilt from arguments of the call are local to the function.
            written = {numbers[p]: v for p, v in frame.written.items() if p in numbers}
            return result, written, changed

        trace.__name__ = trace.__qualname__ = self._name = name
        self._call = call
        self._run = jax.jit(trace)

    def __call__(self, arrays: list[Any], arguments: Any) -> Any:
        while not self._runs_in_order:
            values = [parameter.value for parameter in self._parameters]
            try:
                result, written, changed = call_compiled(self._run, values, arrays)
                break
            except _TraceAgain:
                continue
            except RunsInOrder:
                self._runs_in_order = True
                _log.debug("%s runs op by op, as it calls ops with effects in order", self._name)
        else:
            result, changed = self._call(arrays)
            written = {}
        for number, value in written.items():
            self._parameters[number].value = value
        write_back(changed, arguments)
        return unpack(result)


class Compiled:
    """A function over Tensors that is compiled once per signature.

    Like any function that JAX traces, it may run in Python more than once before its first result:
    again for each Parameter that it was not known to read, and once more if it turns out to call
    ops with effects in order, which then run op by op.

    Args:
      function: what to compile.
      parameters: gives the Parameters the function is expected to read; it only saves a tracing.
      state: gives what else the program depends on; another value compiles anew.

    Attributes:
      programs: the compiled functions by signature.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: Callable[[], Iterable[Parameter]] = tuple,
        state: Callable[[], Hashable] = tuple,
    ):
        functools.update_wrapper(self, function)
        self._function = function
        self._expected = parameters
        self._state = state
        self.programs: dict[Hashable, _Program] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return self._function(*args, **kwargs)
        with context.scope():
            # A Parameter among the arguments is known by identity, so that assignments to it last.
            leaves, structure = jax.tree_util.tree_flatten(
                (args, kwargs), is_leaf=lambda x: isinstance(x, Parameter)
            )
            static = tuple(_DYNAMIC if _is_input(leaf) else leaf for leaf in leaves)
            key = (structure, tuple(_signature(leaf) for leaf in static), self._state())
            program = self._find(key, structure, static)
            return program([leaf for leaf in leaves if _is_input(leaf)], (args, kwargs))

    def _find(self, key: Hashable, structure: Any, static: tuple[Any, ...]) -> _Program:
        try:
            program = self.programs.get(key)
        except TypeError:
            unhashable = [type(leaf).__name__ for leaf in static if not _is_hashable(leaf)]
            raise ArgumentTypeError.explained(
                getattr(self, "__name__", "compiled function"),
                "an argument that is no Tensor is part of the signature of a compiled "
                f"function and must be hashable; got {', '.join(unhashable)}",
                "Pass a Tensor, a number, a str, or tuples and dicts of them.",
            ) from None
        if program is None:
            program = _Program(self._function, structure, static, self._expected())
            self.programs[key] = program
        return program

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)


def _signature(leaf: Any) -> Hashable:
    """Returns a key that differs for equal values that compile apart: 1, 1.0, True; 0.0, -0.0."""
    if isinstance(leaf, Tensor):
        return id(leaf)
    if hasattr(leaf, "_compile_state"):
        return leaf, leaf._compile_state()
    return type(leaf), repr(leaf) if isinstance(leaf, (float, complex, np.float32)) else leaf


def _is_hashable(leaf: Any) -> bool:
    try:
        hash(leaf)
    except TypeError:
        return False
    return True
