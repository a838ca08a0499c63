"""Data and indices of Tensors as arrays; the class itself is in tensor.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._base.dtypes import DType, as_dtype
from msops._base.kernel_errors import call_compiled
from msops._face import context
from msops.errors import ArgumentTypeError, ArgumentValueError, KernelError, explain

NUMBERS = (bool, int, float, complex)

# Python data has no width: MindSpore reads floats as Float32 and ints as Int64.
_DTYPE_OF_PYTHON_DATA = {"f": np.float32, "i": np.int64, "u": np.int64}


def placeholder_shape(shape: Any) -> tuple[int | None, ...]:
    """Returns the extents of a placeholder's shape, None for what is unknown.

    Raises:
      ArgumentValueError: an extent is neither int nor None.
    """
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    for extent in extents:
        if extent is not None and (not isinstance(extent, int) or extent < -1):
            raise ArgumentValueError.explained(
                "Tensor",
                f"expected extents that are ints or None; got shape {shape!r}",
                "Pass shape=[4, None], say.",
            )
    return tuple(None if extent == -1 else extent for extent in extents)


def as_array(data: Any, dtype: DType | None) -> Any:
    """Returns a `jax.Array` of `data`, on the device the script selected.

    numpy data is copied: a Tensor does not change when the script goes on to write to its array.
    (Neither `jnp.array` nor `jax.device_put` promises that: both may read it after they returned.)
    """
    # A tracer has the attribute too, and it is None.
    if not isinstance(data, jax.Array) and hasattr(data, "__jax_array__"):
        data = data.__jax_array__()
    if isinstance(data, jax.Array):
        if dtype is None or data.dtype == dtype.dtype:
            return data
        with jax.enable_x64(True):
            return data.astype(dtype.dtype)
    array = None
    # Here only: within the recursion there is no stack left to make an error.
    try:
        if isinstance(data, (list, tuple)) and _holds_arrays(data):
            array = _stacked(data)
    except RecursionError:
        raise endless("Tensor") from None
    return _placed(_as_numpy(data, dtype)) if array is None else as_array(array, dtype)


def _holds_arrays(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_holds_arrays(entry) for entry in data)
    return isinstance(data, jax.Array) or hasattr(data, "__jax_array__")


def _stacked(entry: Any) -> Any:
    """Returns an entry of nested lists that hold arrays as a `jax.Array`."""
    if not isinstance(entry, (list, tuple)) or not _holds_arrays(entry):
        return as_array(entry, None)
    with jax.enable_x64(True):
        return jnp.stack([_stacked(part) for part in entry])


def _as_numpy(data: Any, dtype: DType | None) -> np.ndarray:
    if not isinstance(data, (*NUMBERS, list, tuple, np.ndarray, np.generic)):
        raise ArgumentTypeError.explained(
            "Tensor",
            "expected input_data Tensor, jax.Array, numpy array, number, list or tuple; "
            f"got {type(data).__name__}",
            "Convert it with numpy first.",
        )
    if isinstance(data, np.ma.MaskedArray):
        raise ArgumentTypeError.explained(
            "Tensor",
            "input_data is a masked array, whose mask would be lost",
            "Pass x.filled(value), and the mask as a Tensor of its own.",
        )
    try:
        array = np.array(data)
    except ValueError as error:
        raise ArgumentTypeError.explained(
            "Tensor", f"input_data is no array: {error}", "Give all rows the same length."
        ) from None
    target = dtype.dtype if dtype is not None else as_dtype(array.dtype).dtype
    # numpy's float64 is a float too, but has a width.
    is_python_data = isinstance(data, (*NUMBERS, list, tuple)) and not isinstance(data, np.generic)
    if dtype is None and is_python_data:
        target = np.dtype(_DTYPE_OF_PYTHON_DATA.get(array.dtype.kind, target))
    # Numbers of an unknown dtype (objects, text) must not slip through a conversion.
    as_dtype(array.dtype)
    return array.astype(target, order="C", copy=False)


def _placed(array: np.ndarray) -> Any:
    """`array`, which nobody else may write to, as a `jax.Array` (which may share its memory)."""
    device = context.device()
    with jax.enable_x64(True):
        return jnp.asarray(array) if device is None else jax.device_put(array, device)


def concrete(array: Any, who: str) -> Any:
    """Returns the data of an array that is being differentiated eagerly; others unchanged.

    Args:
      array: what a Tensor holds.
      who: what needs the data, for the message.

    Raises:
      ArgumentTypeError: the array has no data, as the function it is in is being compiled.
    """
    if not isinstance(array, jax.core.Tracer):
        return array
    # MindSpore's PYNATIVE_MODE can read a tensor while its gradient is taken.
    with jax.enable_x64(True):
        data = jax.lax.stop_gradient(array)
    if isinstance(data, jax.core.Tracer):
        raise ArgumentTypeError.explained(
            who,
            f"the value of a Tensor of shape {list(array.shape)}, dtype "
            f"{as_dtype(array.dtype)} is not known while construct is compiled (GRAPH_MODE, "
            "msops.jit) or transformed by JAX",
            "Compute with ops instead (ops.where or ops.select for a choice), or use "
            "PYNATIVE_MODE without msops.jit.",
        )
    return data


def read(array: Any, who: str) -> np.ndarray:
    """Returns the data of an array, which it waits for.

    Args:
      array: what a Tensor holds.
      who: what needs the data, for the message.

    Raises:
      ArgumentTypeError: the array has no data, as the function it is in is being compiled.
      KernelError: the kernel that computes it failed; so for other errors of msops.
    """
    return call_compiled(np.asarray, concrete(array, who))


def readable_index(entries: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns what `array_index` returned, with the data of masks: it decides a result's shape.

    Raises:
      ArgumentTypeError: a mask has no data, see `concrete`.
    """
    return tuple(
        concrete(entry, "Tensor indexed by a mask")
        if isinstance(entry, jax.core.Tracer) and entry.dtype == bool
        else entry
        for entry in entries
    )


def array_index(index: Any, shape: tuple[int, ...]) -> Any:
    """Returns `index` for an array of `shape`, in the form JAX takes.

    Indices that are not known yet are checked when the program that is being compiled runs.

    Raises:
      IndexError: an index is out of range (JAX would clamp it), or an entry is no index.
    """
    entries = index if isinstance(index, tuple) else (index,)
    return _checked([_index_entry(entry) for entry in entries], shape)


def _index_entry(entry: Any) -> Any:
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, int, np.integer, jax.Array)):
        return entry
    if isinstance(entry, slice):
        return slice(*(_bound(bound) for bound in (entry.start, entry.stop, entry.step)))
    if hasattr(entry, "__jax_array__"):
        return entry.__jax_array__()
    if isinstance(entry, (list, np.ndarray, range)):
        return np.asarray([_bound(x) for x in entry] if isinstance(entry, list) else entry)
    raise IndexError(
        explain(
            "Tensor index",
            f"expected int, slice, ..., None, bool, Tensor, array or list; got {entry!r}",
            "Cast it.",
        )
    )


def _bound(bound: Any) -> Any:
    return bound.__index__() if hasattr(bound, "__jax_array__") else bound


def first_outside(indices: Any, extent: int) -> int | None:
    """Returns an index that an axis of this extent does not have, if there is one.

    In a function that is being compiled the indices are not known: None.
    """
    if isinstance(indices, int):
        return None if -extent <= indices < extent else indices
    indices = _known(indices)
    data = np.asarray(() if indices is None else indices)
    if not data.size:
        return None
    lowest, highest = int(data.min()), int(data.max())
    if lowest < -extent:
        return lowest
    return highest if highest >= extent else None


def inside(indices: Any, extent: int, who: str, place: str) -> Any:
    """Returns indices without one that `first_outside` finds, with a check of unknown ones.

    Args:
      indices: of an axis of this extent.
      extent: of the axis.
      who: what takes them, for the error of a program that is compiled.
      place: says which axis, for the same.

    Raises:
      KernelError: no index can be inside.
    """
    if extent == 0 and not isinstance(indices, int) and indices.size:
        raise KernelError.explained(
            who,
            f"expected no indices{place}, whose extent is 0; got {indices.size}",
            "Take a larger array.",
        )
    if not isinstance(indices, int) and indices.dtype.kind == "i" and indices.dtype.itemsize < 4:
        # JAX adds the extent to negative ones, in their own dtype.
        indices = indices.astype(np.int32)
    if _known(indices) is not None:
        return indices
    from msops._calls.index_check import check_indices

    return check_indices(indices, extent, who, place)


def _known(indices: Any) -> Any:
    """Returns the indices without tracing; None in a function that is being compiled."""
    if isinstance(indices, jax.core.Tracer):
        with jax.enable_x64(True):
            indices = jax.lax.stop_gradient(indices)
    return None if isinstance(indices, jax.core.Tracer) else indices


def _axes_used(entry: Any) -> int:
    if entry is None or isinstance(entry, bool):
        return 0
    return entry.ndim if str(getattr(entry, "dtype", "")) == "bool" else 1


def _is_position(entry: Any) -> bool:
    if isinstance(entry, int):
        return not isinstance(entry, bool)
    return getattr(getattr(entry, "dtype", None), "kind", "") in ("i", "u")


def _checked(entries: list[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
    rest = len(shape) - sum(_axes_used(entry) for entry in entries if entry is not Ellipsis)
    axis = 0
    for n, entry in enumerate(entries):
        if entry is Ellipsis:
            axis += max(rest, 0)
            continue
        if axis < len(shape) and _is_position(entry):
            outside = first_outside(entry, shape[axis])
            if outside is not None:
                raise IndexError(
                    explain(
                        "Tensor index",
                        f"{outside} is out of range for axis {axis} of extent {shape[axis]}",
                        "Indices go from -extent to extent - 1.",
                    )
                )
            entries[n] = inside(entry, shape[axis], "Tensor index", f" along axis {axis}")
        axis += _axes_used(entry)
    return tuple(entries)


def endless(who: str) -> ArgumentValueError:
    """Returns the error for arguments whose reading came to no end; `who` got them."""
    return ArgumentValueError.explained(
        who,
        "expected arrays, or lists and dicts of them; got a list or dict that holds itself, "
        "or is nested too deep",
        "Pass each array by itself, or in one flat list.",
    )


def rebuild(function: Callable[[Any], Any], tree: Any) -> Any:
    """Returns a tuple, list or dict with `function` applied to its entries; others unchanged."""
    if isinstance(tree, (tuple, list)):
        entries = [function(entry) for entry in tree]
        return type(tree)(*entries) if hasattr(tree, "_fields") else type(tree)(entries)
    if isinstance(tree, dict):
        return {key: function(entry) for key, entry in tree.items()}
    return tree
