"""How an op batches under `jax.vmap`: one function per way, chosen by ``Custom(vmap=)``.

Each gets ``bind`` (a call and flat arrays to flat results), the call, the flat arguments and the
axis each is mapped over (None for none), and returns results with their axes, as a batching rule of
JAX does. "expand_dims" and "broadcast_all" mean what they mean in `jax.pure_callback`, but for an
input that only some of several nested `jax.vmap` map: see `batch_by_expanding`.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from msops import _jax_seam as seam
from msops._base.logging import tell_once
from msops._op.arrays import kind_of
from msops._op.call import Call, fit_arguments
from msops._op.identity import ByValue
from msops._op.outputs import Outputs
from msops._op.traced import Function
from msops.errors import ArgumentTypeError, ArgumentValueError

_log = logging.getLogger("msops.vmap")

Bind = Callable[[Call, Sequence[Any]], Sequence[Any]]
Batched = tuple[Sequence[Any], Sequence[int | None]]


def batch_sequentially(
    bind: Bind, call: Call, args: Sequence[Any], dims: Sequence[int | None]
) -> Batched:
    """Runs the kernel once per element: right for a kernel of which nothing is known."""
    mapped = [
        None if dim is None else jnp.moveaxis(arg, dim, 0)
        for arg, dim in zip(args, dims, strict=True)
    ]

    def one(elements: Sequence[Any]) -> Sequence[Any]:
        flat = [
            arg if element is None else element for arg, element in zip(args, elements, strict=True)
        ]
        return bind(call, flat)

    results = jax.lax.map(one, mapped)
    return results, [0] * len(results)


def batch_by_mapping(
    bind: Bind, call: Call, args: Sequence[Any], dims: Sequence[int | None]
) -> Batched:
    """Runs the kernel once per element, as one call: it can be divided over devices as a whole."""
    arrays = [
        arg if dim is None else jnp.moveaxis(arg, dim, 0)
        for arg, dim in zip(args, dims, strict=True)
    ]
    axis = (_axis_size(args, dims), tuple(dim is not None for dim in dims))
    results = bind(dataclasses.replace(call, mapped=(axis, *call.mapped)), arrays)
    return results, [0] * len(results)


def map_elements(bind: Bind, call: Call, flat: Sequence[Any]) -> Sequence[Any]:
    """Runs a call with mapped axes: one level of it, element by element."""
    (_, has), *inner = call.mapped
    dims = [0 if flag else None for flag in has]
    return batch_sequentially(bind, dataclasses.replace(call, mapped=tuple(inner)), flat, dims)[0]


def batch_by_rewriting(
    bind: Bind, call: Call, args: Sequence[Any], dims: Sequence[int | None]
) -> Batched:
    """Has the compiler add a leading axis to the kernel, of size 1 to inputs not mapped."""
    arrays = [
        jnp.expand_dims(arg, 0) if dim is None else jnp.moveaxis(arg, dim, 0)
        for arg, dim in zip(args, dims, strict=True)
    ]
    return _run_once(bind, call, arrays, _axis_size(args, dims))


def batch_by_expanding(
    bind: Bind, call: Call, args: Sequence[Any], dims: Sequence[int | None]
) -> Batched:
    """Runs the kernel once; each input has the whole leading axis, or 1 where it is not mapped.

    Of nested `jax.vmap` an input has all the axes whole if one of them maps it. With some of size 1
    it would hold neither one element nor all, and a kernel that handles both, by counting elements
    say, would silently combine the wrong ones.
    """
    whole = (_axis_size(args, dims), *call.batch)
    arrays = []
    for arg, dim in zip(args, dims, strict=True):
        array = jnp.expand_dims(arg, 0) if dim is None else jnp.moveaxis(arg, dim, 0)
        axes, element = array.shape[: len(whole)], array.shape[len(whole) :]
        is_mapped = any(size != 1 for size in axes)
        arrays.append(jnp.broadcast_to(array, (*whole, *element)) if is_mapped else array)
    return _run_once(bind, call, arrays, whole[0])


def batch_by_broadcasting(
    bind: Bind, call: Call, args: Sequence[Any], dims: Sequence[int | None]
) -> Batched:
    """Runs the kernel once; each input has the whole leading axis."""
    size = _axis_size(args, dims)
    arrays = [
        jnp.broadcast_to(arg, (size, *arg.shape)) if dim is None else jnp.moveaxis(arg, dim, 0)
        for arg, dim in zip(args, dims, strict=True)
    ]
    return _run_once(bind, call, arrays, size)


def batch_by_rule(
    rule: Callable[..., Any],
    outputs: Callable[[Call, Sequence[Any]], Outputs],
    call: Call,
    args: Sequence[Any],
    dims: Sequence[int | None],
    who: str,
) -> Batched:
    """Asks the author's rule, which has the form of `jax.custom_batching.custom_vmap`'s."""
    size = _axis_size(args, dims)
    arrays = [
        arg if dim is None else jnp.moveaxis(arg, dim, 0)
        for arg, dim in zip(args, dims, strict=True)
    ]
    inputs = call.group(arrays)
    # What a rule cannot take is reported by Python, with the rule in the traceback.
    fitting = fit_arguments(rule, call, inputs, before=2)
    arguments, named = fitting or (call.arguments(arrays), {})
    mapped = call.group(dim is not None for dim in dims)
    batched = call.spread(mapped, [False] * (len(arguments) - len(inputs)))
    answer = rule(size, batched, *arguments, **named)
    elements = [
        jax.ShapeDtypeStruct(array.shape if dim is None else array.shape[1:], array.dtype)
        for array, dim in zip(arrays, dims, strict=True)
    ]
    made = outputs(call, elements)
    structs = made.structs
    results, flags = _read_answer(answer, made, who)
    expected = [
        ((size, *struct.shape) if flag else struct.shape, struct.dtype)
        for struct, flag in zip(structs, flags, strict=False)
    ]
    got = [(result.shape, result.dtype) for result in results]
    if len(results) != len(structs) or got != expected:
        raise ArgumentValueError.explained(
            f"vmap rule of {who}",
            f"expected results of shapes and dtypes {_describe(expected)}; got {_describe(got)}",
            "Return what the op returns for one element, with a leading axis where batched.",
        )
    return results, [0 if flag else None for flag in flags]


def _read_answer(answer: Any, made: Outputs, who: str) -> tuple[list[jax.Array], list[bool]]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise ArgumentTypeError.explained(
            f"vmap rule of {who}",
            f"expected (result, is_batched); got {kind_of(answer)}",
            "Return the result with its batch axis first, and True or False in its structure.",
        )
    results, flags = jax.tree.leaves(answer[0]), jax.tree.leaves(answer[1])
    structures: list[Any] = [jax.tree.structure(part) for part in answer]
    # By its structure, as leaves of a dict come in the order of its keys.
    if structures[0] == structures[1] and made.unpack(answer[0]) is None:
        raise ArgumentTypeError.explained(
            f"vmap rule of {who}",
            f"expected a result of the structure that the op returns; got {structures[0]}",
            "Return what the op returns, with a leading axis where batched.",
        )
    if structures[0] != structures[1] or not all(isinstance(flag, bool) for flag in flags):
        raise ArgumentTypeError.explained(
            f"vmap rule of {who}",
            f"expected is_batched as True or False for each of {len(results)} output(s), in "
            f"the structure of the result; got {answer[1]!r}",
            "Return True for one output, (True, True) for two.",
        )
    return [jnp.asarray(result) for result in results], flags


def _describe(arrays: Sequence[tuple[tuple[int, ...], Any]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in arrays) or "none"


def over_batch(function: Function, sizes: tuple[int, ...]) -> Function:
    """Returns a function of one element as one of arrays with leading axes.

    Args:
      function: flat arrays to flat results, in JAX.
      sizes: of the axes that vmap added, outermost first; an array has them too, or 1 instead.
    """
    if not sizes:
        return function

    def mapped(*flat: Any) -> Sequence[Any]:
        axes = tuple(0 if array.shape[0] == sizes[0] else None for array in flat)
        parts = [array if axis == 0 else array[0] for array, axis in zip(flat, axes, strict=True)]
        size = None if any(axis == 0 for axis in axes) else sizes[0]
        inner = jax.vmap(over_batch(function, sizes[1:]), axes, axis_size=size)
        results: Sequence[Any] = inner(*parts)
        return results

    return mapped


BATCHERS = {
    "sequential": batch_sequentially,
    "expand_dims": batch_by_expanding,
    "broadcast_all": batch_by_broadcasting,
}


def read_vmap(vmap: Any, who: str) -> str | ByValue:
    """Returns the way to batch that ``Custom(vmap=)`` names.

    Raises:
      ArgumentValueError: it is neither a name of `BATCHERS` nor a function.
    """
    if isinstance(vmap, str) and vmap in BATCHERS:
        return vmap
    if callable(vmap):
        return ByValue(vmap)
    raise ArgumentValueError.explained(
        who,
        f"expected vmap to be one of {', '.join(map(repr, BATCHERS))} or a function; got {vmap!r}",
        "Pass one of these, or rule(axis_size, in_batched, *inputs) -> (result, is_batched).",
    )


def batch(
    vmap: str | ByValue,
    bind: Bind,
    outputs: Callable[[Call, Sequence[Any]], Outputs],
    call: Call,
    args: Sequence[Any],
    dims: Sequence[int | None],
    inplace: Sequence[tuple[int, int]],
    is_divisible: bool,
    is_rewritten: bool,
    who: str,
) -> Batched:
    """Batches one call in the way `vmap` says.

    Args:
      bind: binds a call to arrays.
      outputs: infers the outputs of a call.
      call: the call of one element.
      args: its arrays, with the axis where they have one.
      dims: where that is, None for an array that is not mapped.
      inplace: pairs of an output and an input that share a buffer.
      is_divisible: whether the call may be divided over devices.
      is_rewritten: whether "expand_dims" adds the axis to the kernel's own code.
      who: the op, for messages.
    """
    if isinstance(vmap, ByValue):
        return batch_by_rule(vmap.function, outputs, call, args, dims, who)
    if vmap == "expand_dims":
        args, dims = _enlarge(call, args, dims, [argument for _, argument in inplace])
    if vmap == "sequential":
        tell_once(
            _log,
            f"{who}: jax.vmap calls its kernel once for each element. If the kernel takes arrays "
            'with a leading axis, pass vmap="expand_dims": it is called once for the batch.',
        )
    if vmap == "sequential" and is_divisible:
        return batch_by_mapping(bind, call, args, dims)
    if vmap == "expand_dims" and is_rewritten:
        return batch_by_rewriting(bind, call, args, dims)
    with seam.naming_special_values(who):
        return BATCHERS[vmap](bind, call, args, dims)


def _enlarge(
    call: Call, args: Sequence[Any], dims: Sequence[int | None], arguments: Sequence[int]
) -> tuple[Sequence[Any], Sequence[int | None]]:
    """Gives whole batches to inputs whose buffers become those of outputs, which are whole."""
    args, dims = list(args), list(dims)
    size = _axis_size(args, dims)
    for index in map(call.flat_index, arguments):
        if index is not None and dims[index] is None:
            args[index], dims[index] = jnp.broadcast_to(args[index], (size, *args[index].shape)), 0
    return args, dims


def _axis_size(args: Sequence[Any], dims: Sequence[int | None]) -> int:
    pairs = zip(args, dims, strict=True)
    size: int = next(arg.shape[dim] for arg, dim in pairs if dim is not None)  # or symbolic
    return size


def _run_once(bind: Bind, call: Call, arrays: Sequence[Any], size: int) -> Batched:
    whole = dataclasses.replace(call, batch=(size, *call.batch))
    results = bind(whole, arrays)
    return results, [0] * len(results)
