"""Tensor: MindSpore's handle on a `jax.Array`, and the conversions between both.

A Tensor holds its array in `.value`, is a pytree node, and unwraps at every msops entry. All its
operations run under 64-bit types (`jax.enable_x64`), whatever JAX's global flag says.

The file is long because the methods are one class, with docstrings that users read, and because the
conversions make Tensors and look into them. Operators, hooks and views are in files of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops import _jax_seam as seam
from msops._base.dtypes import DType, as_dtype
from msops._face import context
from msops._face.tensor_data import (
    array_index,
    as_array,
    concrete,
    endless,
    placeholder_shape,
    read,
    readable_index,
    rebuild,
)
from msops._face.tensor_escapes import explain_escapes
from msops._face.tensor_hooks import HookHandle, hooked
from msops._face.tensor_operators import attach_operators, raise_of_arguments
from msops._face.tensor_views import view_of
from msops.errors import ArgumentTypeError, ArgumentValueError, GradientRuntimeError


class Tensor:
    """An n-dimensional array with MindSpore's interface.

    Corresponds to ``mindspore.Tensor``. `value` is the `jax.Array` inside (a tracer under a JAX
    transformation); item assignment gives the handle another array and touches no other handle.

    Args:
      input_data: Tensor, `jax.Array`, numpy array (copied), number, or nested list or tuple of
        numbers. Python ints give Int64, Python floats Float32.
      dtype: the dtype to convert to; None keeps that of `input_data`.
      shape: with `dtype` and without `input_data`, makes a placeholder for `Cell.set_inputs`;
        extents may be None.
      init: MindSpore's delayed initializers; only None.
      const_arg: accepted for MindSpore, without effect.

    Raises:
      ArgumentTypeError: `input_data` is none of these, or holds a dtype msops does not know.
      ArgumentValueError: `init` was given, or a placeholder's extents are no ints.

    Example:
      >>> import msops as ms
      >>> ms.Tensor(6.0)
      Tensor(shape=[], dtype=Float32, value= 6)

    Source: MindSpore 2.7.2, mindspore/common/tensor.py, Tensor.
    """

    __slots__ = ("__weakref__", "_hooks", "_view", "value")

    # numpy's operators leave the work to ours when a Tensor stands on the right.
    __array_priority__ = 1000

    def __new__(
        cls, input_data: Any = None, dtype: Any = None, shape: Any = None, *_: Any, **__: Any
    ) -> Tensor:
        is_placeholder = cls is Tensor and input_data is None and shape is not None
        return object.__new__(_Placeholder if is_placeholder else cls)

    def __init__(
        self,
        input_data: Any = None,
        dtype: Any = None,
        shape: Any = None,
        init: Any = None,
        const_arg: bool = False,
    ):
        _refuse_init(init)
        self.value = as_array(input_data, None if dtype is None else as_dtype(dtype))

    @staticmethod
    def from_numpy(array: np.ndarray) -> Tensor:
        """Returns a Tensor of a numpy array's data."""
        return Tensor(array)

    # What it is.

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.value.shape

    @property
    def dtype(self) -> DType:
        """Dtype, a row of the dtype table."""
        return as_dtype(self.value.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.value.size

    @property
    def itemsize(self) -> int:
        """Bytes of one entry."""
        return self.value.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all entries."""
        return self.value.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one entry to the next along each axis, in row-major order."""
        counts = np.cumprod((1, *self.shape[:0:-1]))[::-1] if self.ndim else ()
        return tuple(int(count) * self.itemsize for count in counts)

    @property
    def device(self) -> str:
        """Where the data is: "CPU", "GPU:0", "TPU:0"; of traced data, the device of the context."""
        if isinstance(self.value, jax.core.Tracer):
            return str(context.get_context("device_target"))
        device: Any = min(self.value.devices(), key=lambda device: device.id)
        return "CPU" if device.platform == "cpu" else f"{device.platform.upper()}:{device.id}"

    @property
    def is_meta(self) -> bool:
        """Whether it has no data: False, a Tensor has."""
        return False

    def is_contiguous(self) -> bool:
        """Returns True: what a slice or a transposition gives is a dense copy here."""
        return True

    def stride(self, dim: int | None = None) -> Any:
        """Returns the entries from one to the next along each axis, or along axis `dim`."""
        strides = [step // self.itemsize for step in self.strides]
        return strides if dim is None else strides[dim]

    @property
    def T(self) -> Tensor:
        """The tensor with its axes reversed."""
        return self.transpose()  # type: ignore[attr-defined]

    # What it holds.

    def asnumpy(self) -> np.ndarray:
        """Returns a writable numpy copy of the data.

        Raises:
          ArgumentTypeError: there is no data yet, because a function is being compiled; `item`,
            `tolist`, `bool`, `int`, `float` and all else that reads data raise the same.
        """
        return np.array(read(self.value, "Tensor.asnumpy"))

    numpy = asnumpy

    def item(self) -> Any:
        """Returns the one entry as a Python number.

        Raises:
          ArgumentValueError: there is not exactly one entry.
        """
        return self._entry("Tensor.item").item()

    def tolist(self) -> Any:
        """Returns the data as a Python number or nested lists of them."""
        return read(self.value, "Tensor.tolist").tolist()

    def copy(self) -> Tensor:
        """Returns another handle on the same (immutable) data."""
        return wrap(self.value)

    def __jax_array__(self) -> Any:
        return self.value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = read(self.value, "numpy array of a Tensor")
        return array if dtype is None else array.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """Returns the data as a DLPack capsule; see ``jax.Array.__dlpack__``."""
        return concrete(self.value, "DLPack of a Tensor").__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        """Returns where the data is, as DLPack's type and number of a device."""
        return concrete(self.value, "DLPack of a Tensor").__dlpack_device__()

    def __str__(self) -> str:
        # Here, as `import msops` must be quick.
        from msops._face.tensor_text import tensor_str

        return self._text(tensor_str)

    def __repr__(self) -> str:
        # Here, as `import msops` must be quick.
        from msops._face.tensor_text import tensor_repr

        return self._text(lambda array: tensor_repr(array, self.dtype.title))

    def _text(self, of: Callable[[np.ndarray], str]) -> str:
        if isinstance(self.value, jax.core.Tracer):
            return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value= <traced>)"
        return of(read(self.value, "text of a Tensor"))

    def __format__(self, spec: str) -> str:
        return format(self._entry("format(Tensor)").item(), spec) if spec else str(self)

    # A number, if it has one entry.

    def _entry(self, who: str) -> np.ndarray:
        if self.size != 1:
            raise ArgumentValueError.explained(
                who,
                f"expected one entry; got {self.size}, whose meaning is ambiguous",
                "Index the Tensor, or reduce it (all, any, sum).",
            )
        return read(self.value, who).reshape(())

    def __bool__(self) -> bool:
        return bool(self._entry("bool(Tensor)"))

    def __int__(self) -> int:
        return int(self._entry("int(Tensor)"))

    def __float__(self) -> float:
        return float(self._entry("float(Tensor)"))

    def __complex__(self) -> complex:
        return complex(self._entry("complex(Tensor)"))

    def __index__(self) -> int:
        who = "index of a list or range"
        if self.size != 1 or self.value.dtype.kind not in "iu":
            raise ArgumentTypeError.explained(
                who,
                f"expected an integer Tensor of one entry; got {self!r}",
                "Cast it, or take one entry of it.",
            )
        return int(self._entry(who))

    # A sequence.

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ArgumentTypeError.explained(
                "len(Tensor)", "a 0-D Tensor has no length", "Use .size."
            )
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise ArgumentTypeError.explained(
                "iter(Tensor)", "a 0-D Tensor cannot be iterated over", "Use .item()."
            )
        return (self[row] for row in range(self.shape[0]))

    def __getitem__(self, index: Any) -> Tensor:
        source = self.value
        with jax.enable_x64(True):
            result = wrap(source[readable_index(array_index(index, self.shape))])
        result._view = view_of(source, getattr(self, "_view", None), index, result.value)
        return result

    def __setitem__(self, index: Any, entries: Any) -> None:
        with jax.enable_x64(True):
            entries = jnp.asarray(unwrap(entries)).astype(self.value.dtype)
            self.value = self.value.at[array_index(index, self.shape)].set(entries)

    def set_(self, source: Tensor) -> Tensor:
        """Takes over the data of another Tensor, with its shape and dtype; returns itself."""
        self.value = unwrap(source)
        return self

    # A step of a gradient.

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Lets the gradient of this Tensor pass through `hook`, from here on.

        Corresponds to ``mindspore.Tensor.register_hook``. Inside a function that is differentiated
        the hook receives the gradient of what is computed from the Tensor after this call. On a
        Tensor or Parameter outside, it receives the gradient that `grad` or `value_and_grad`
        computes; in GRAPH_MODE, as in MindSpore, only on a Parameter. Several hooks run in order.

        Unlike in MindSpore, uses of the Tensor before this call do not pass their gradients
        through the hook.

        Args:
          hook: receives the gradient, a Tensor, and returns its replacement; None keeps it.

        Returns:
          A handle; its ``remove()`` removes the hook.

        Raises:
          ArgumentTypeError: `hook` is not callable, or the Tensor's dtype has no gradient.
          GradientRuntimeError: it is a Parameter that requires no gradient.

        Example:
          >>> import msops as ms
          >>> def twice(x):
          ...     y = x * x
          ...     handle = y.register_hook(lambda dy: dy * 2)
          ...     return y
          >>> print(ms.grad(twice)(ms.Tensor(3.0)))
          12.0

        Source: MindSpore 2.7.2, mindspore/common/tensor.py, Tensor.register_hook.
        """
        if not callable(hook):
            raise ArgumentTypeError.explained(
                "Tensor.register_hook",
                f"expected a callable hook; got {type(hook).__name__}",
                "Pass a function of the gradient.",
            )
        value = self.value
        if not jnp.issubdtype(value.dtype, jnp.inexact):
            raise ArgumentTypeError.explained(
                "Tensor.register_hook",
                f"expected a Tensor of floats; got {self.dtype}",
                "Only floats have gradients.",
            )
        if not getattr(self, "requires_grad", True):
            raise GradientRuntimeError.explained(
                "Tensor.register_hook",
                "this Parameter requires no gradient",
                "Set requires_grad = True, or hook what is computed from it.",
            )
        handle = HookHandle(hook)
        known: tuple[Any, list[HookHandle]] = getattr(self, "_hooks", (None, []))
        at, handles = known
        if at is not None and at is value:
            handles.append(handle)
        elif isinstance(value, jax.core.Tracer):
            self.value = hooked(value, handles := [handle], wrap, unwrap)
            self._hooks = (self.value, handles)
        else:
            self._hooks = (None, [*handles, handle])
        return handle

    def hooks(self) -> list[Callable[[Tensor], Tensor | None]]:
        """Returns the hooks that the gradient of this Tensor passes through."""
        at, handles = getattr(self, "_hooks", (None, []))
        is_here = at is None or at is self.value
        return [handle.hook for handle in handles if is_here and handle.hook is not None]

    # A key and a value among others.

    def __hash__(self) -> int:
        return id(self)

    def __copy__(self) -> Tensor:
        return wrap(self.value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return wrap(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (self.asnumpy(),)


def tensor(
    input_data: Any = None,
    dtype: Any = None,
    shape: Any = None,
    init: Any = None,
    const_arg: bool = False,
) -> Tensor:
    """Returns a Tensor; MindSpore's name for making one inside a compiled function.

    Corresponds to ``mindspore.tensor``. Arguments and errors are those of `Tensor`.
    """
    return Tensor(input_data, dtype, shape, init, const_arg)


def _refuse_init(init: Any) -> None:
    if init is not None:
        raise ArgumentValueError.explained(
            "Tensor", f"expected no init; got {init!r}", "Pass input_data."
        )


class _Placeholder(Tensor):
    """A shape and dtype without data, for `Cell.set_inputs`: ``Tensor(shape=..., dtype=...)``."""

    __slots__ = ("_dtype", "_shape")

    def __init__(
        self,
        input_data: None = None,
        dtype: Any = None,
        shape: Any = None,
        init: Any = None,
        const_arg: bool = False,
    ):
        _refuse_init(init)
        self._dtype = as_dtype(dtype)
        self._shape = placeholder_shape(shape)

    @property
    def value(self) -> Any:  # type: ignore[override]
        raise ArgumentValueError.explained(
            "Tensor",
            f"expected data; got the placeholder of shape {list(self._shape)}",
            "A Tensor made of a shape alone serves Cell.set_inputs only; pass input_data.",
        )

    @property
    def shape(self) -> tuple[Any, ...]:
        return self._shape

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self._shape)

    def __repr__(self) -> str:
        return f"Tensor(shape={list(self._shape)}, dtype={self._dtype}, value= )"

    __str__ = __repr__


def _of_leaf(leaf: Any) -> Tensor:
    """A Tensor of anything: JAX puts placeholders of its own where arrays were."""
    tensor = object.__new__(Tensor)
    tensor.value = leaf
    return tensor


def wrap(tree: Any) -> Any:
    """Returns `tree` with a Tensor for every `jax.Array` in it.

    Args:
      tree: an array, or tuples, lists and dicts of arrays; other leaves are kept.
    """
    if isinstance(tree, jax.Array):
        return _of_leaf(tree)
    return rebuild(wrap, tree)


def unwrap(tree: Any) -> Any:
    """Returns `tree` with the `jax.Array` of every Tensor in it.

    Args:
      tree: a Tensor, or tuples, lists and dicts of Tensors; other leaves are kept.
    """
    if isinstance(tree, Tensor):
        return tree.value
    return rebuild(unwrap, tree)


def read_arguments(args: Sequence[Any], who: str) -> tuple[Sequence[Any], bool]:
    """Returns arguments with arrays for Tensors, and whether `who` is called on MindSpore's face.

    Raises:
      ArgumentValueError: a list or dict holds itself.
    """
    try:
        if _holds(Tensor, args):
            return unwrap(args), True
        return args, not _holds(_ARRAYS, args) and context.runs_script()
    except RecursionError:
        raise endless(who) from None


_ARRAYS = (jax.Array, np.ndarray)


def _holds(kind: type | tuple[type, ...], tree: Any) -> bool:
    """Returns whether an instance of `kind` is in a tree of tuples, lists and dicts."""
    if isinstance(tree, (tuple, list)):
        return any(_holds(kind, entry) for entry in tree)
    if isinstance(tree, dict):
        return any(_holds(kind, entry) for entry in tree.values())
    return isinstance(tree, kind)


def strided_memory(tensor: Tensor) -> np.ndarray | None:
    """Returns the data of a basic slice as it lies in the array it was cut from, if it is there."""
    view = getattr(tensor, "_view", None)
    return None if view is None else view.memory(tensor.value)


def with_hooks(tensor: Tensor, value: Any) -> Any:
    """Returns the value of a Tensor inside a differentiated function, behind its hooks."""
    at, handles = getattr(tensor, "_hooks", (None, []))
    return hooked(value, handles, wrap, unwrap) if handles and at is None else value


def is_jax_face(arguments: Any) -> bool:
    """Returns whether there are arrays and no Tensors among the arguments."""
    try:
        return not _holds(Tensor, arguments) and _holds(_ARRAYS, arguments)
    except RecursionError:
        raise endless("msops") from None


def lift(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of arrays as a function on both faces.

    Given a Tensor, or no array at all, it runs under 64-bit types and returns Tensors; given
    arrays alone it runs under JAX's own settings and returns arrays.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # The usual call has Tensors by position: its first argument decides.
        if not (args and isinstance(args[0], Tensor)) and is_jax_face((args, kwargs)):
            return function(*args, **kwargs)
        with jax.enable_x64(True):
            inputs = [arg.value if isinstance(arg, Tensor) else unwrap(arg) for arg in args]
            try:
                return wrap(function(*inputs, **unwrap(kwargs)) if kwargs else function(*inputs))
            except (TypeError, AttributeError) as error:
                raise_of_arguments(error)

    return call


attach_operators(Tensor, wrap, unwrap)
jax.tree_util.register_pytree_node(
    Tensor, lambda tensor: ((tensor.value,), None), lambda _, leaves: _of_leaf(leaves[0])
)


def _refusal() -> ArgumentValueError:
    return ArgumentValueError.explained(
        "Tensor",
        "expected an array of JAX, as an index of one, in jax.lax, and as what a function "
        "returns to jax.grad; got a Tensor",
        "Pass its array: x[t.value], jax.lax.sin(t.value), jax.grad(lambda x: f(x).value).",
    )


seam.refuse_as_array(Tensor, _refusal)
explain_escapes(Tensor)
