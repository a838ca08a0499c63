"""Short forms of `Custom`, in the words of JAX: `pyfunc`, `kernel`, `cpp` and `ffi`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, Never, ParamSpec, TypedDict, TypeVar, Unpack, overload

import jax

from msops import _jax_seam as seam
from msops._base.building import AnyPath, Build, SourceText
from msops._custom.custom import Custom
from msops._custom.kernel import kernel as runs_as_python
from msops.errors import ArgumentTypeError

Q = ParamSpec("Q")
R = TypeVar("R")


class CustomOptions(TypedDict, total=False):
    """The options of `Custom` that short forms pass on; see there."""

    attrs: Mapping[str, Any] | None
    bprop: Callable[..., Any] | None
    reg_info: Any
    stateful: bool | Literal["ordered"]
    reentrant: bool
    vmap: str | Callable[..., Any] | None
    forward: bool
    jvp: Callable[..., Any] | None
    inplace: Mapping[int, int] | None
    sharding: str | None
    batch_dims: int
    writable: bool | None
    host: bool
    dynamic_outputs: bool
    cxx11_abi: bool | None
    compile_attrs: Mapping[str, Any] | None
    build: Build | None


@overload
def pyfunc(
    func: Callable[Q, R], /, *, out: Any, **options: Unpack[CustomOptions]
) -> Custom[Q, R]: ...


@overload
def pyfunc(
    func: None = None, /, *, out: Any, **options: Unpack[CustomOptions]
) -> Callable[[Callable[Q, R]], Custom[Q, R]]: ...


@seam.with_hidden_frames
def pyfunc(
    func: Any = None, /, *others: Never, out: Any = None, **options: Unpack[CustomOptions]
) -> Any:
    """Makes a Python function over numpy arrays an op: ``Custom(func, func_type="pyfunc")``.

    Args:
      func: the function; None when the decorator is written with arguments.
      out: what the op returns: a `jax.ShapeDtypeStruct`, a pytree of them, or a function of the
        inputs that returns one; see `Custom`.
      **options: of `Custom`.

    Returns:
      The op, or a decorator if `func` is None. Its `__wrapped__` is the function.

    Raises:
      ArgumentTypeError, ArgumentValueError: an argument cannot be used.

    Example:
      >>> import jax, jax.numpy as jnp, numpy as np, msops
      >>> @msops.pyfunc(out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype))
      ... def scaled_sine(x, *, scale=1.0):
      ...     return np.float32(scale) * np.sin(x)
      >>> jax.jit(lambda x: scaled_sine(x, scale=2.0))(jnp.zeros(2))
      Array([0., 0.], dtype=float32)
    """
    _refuse_positions("pyfunc", others)
    if out is None:
        raise ArgumentTypeError.explained(
            "pyfunc",
            "expected out, what the function returns; got none",
            "Write out=lambda x: x for an array like the input x; as a decorator "
            "@msops.pyfunc(out=lambda x: x).",
        )
    if func is None:
        return lambda function: Custom(function, func_type="pyfunc", out=out, **options)
    return Custom(func, func_type="pyfunc", out=out, **options)


@overload
def kernel(
    func: Callable[Q, R], /, *, out: Any = None, **options: Unpack[CustomOptions]
) -> Custom[Q, R]: ...


@overload
def kernel(
    func: None = None, /, *, out: Any = None, **options: Unpack[CustomOptions]
) -> Callable[[Callable[Q, R]], Custom[Q, R]]: ...


@seam.with_hidden_frames
def kernel(
    func: Any = None, /, *others: Never, out: Any = None, **options: Unpack[CustomOptions]
) -> Any:
    """Makes a loop kernel an op: ``Custom(func, func_type="akg")``.

    The loops are compiled, and differentiated. `msops.lang` has the names of their language. Unlike
    `msops.ops.kernel`, MindSpore's decorator, this one returns the op.

    Args:
      func: the function; None when the decorator is written with arguments.
      out: what the op returns, as a tree: see `Custom`. None infers it from the loops.
      **options: of `Custom`.

    Returns:
      The op, or a decorator if `func` is None. Its `__wrapped__` runs the function as Python, on
      numpy arrays.

    Raises:
      ArgumentTypeError, ArgumentValueError: an argument cannot be used.

    Example:
      >>> import jax, jax.numpy as jnp, numpy as np, msops
      >>> from msops.lang import output_tensor
      >>> @msops.kernel
      ... def running_sum(x):
      ...     y = output_tensor(x.shape, x.dtype)
      ...     for i in range(x.shape[0]):
      ...         y[i] = x[i] if i == 0 else y[i - 1] + x[i]
      ...     return y
      >>> running_sum(jnp.array([1.0, 4.0]))
      Array([1., 5.], dtype=float32)
      >>> running_sum.__wrapped__(np.array([1.0, 4.0]))
      array([1., 5.])
    """

    _refuse_positions("kernel", others)

    @seam.with_hidden_frames
    def make(function: Any) -> Custom:
        return Custom(runs_as_python(function), func_type="akg", out=out, **options)

    return make if func is None else make(func)


@seam.with_hidden_frames
def cpp(
    func: AnyPath | SourceText,
    /,
    *others: Never,
    out: Any = None,
    **options: Unpack[CustomOptions],
) -> Custom[..., jax.Array]:
    """Makes a C, C++ or CUDA function an op: ``Custom(func, func_type="aot")``.

    Args:
      func: ``"source.c|cc|cpp|cu:Symbol"``, ``"library.so:Symbol"``, as text or path, or
        ``msops.source(...)``.
      out: what the op returns: a `jax.ShapeDtypeStruct`, a pytree of them, or a function of the
        inputs that returns one; see `Custom`. None asks the function's ``SymbolInferShape`` and
        ``SymbolInferType``.
      **options: of `Custom`; ``build=msops.Build(...)`` says how a source is compiled.

    Returns:
      The op.

    Raises:
      ArgumentTypeError, ArgumentValueError: an argument cannot be used.
    """
    _refuse_positions("cpp", others)
    if not isinstance(func, (str, os.PathLike, SourceText)):
        raise ArgumentTypeError.explained(
            "cpp",
            f"expected 'source.cc:Symbol' or 'library.so:Symbol'; got {type(func).__name__}",
            "A Python function over numpy arrays is msops.pyfunc, one of loops msops.kernel.",
        )
    return Custom(func, func_type="aot", out=out, **options)


@seam.with_hidden_frames
def ffi(
    func: AnyPath | SourceText,
    /,
    *others: Never,
    out: Any = None,
    **options: Unpack[CustomOptions],
) -> Custom:
    """Makes a handler of XLA's FFI an op: what people write for `jax.ffi.ffi_call`.

    It gets what every op has: a gradient by `bprop`, batching, sharding, the cache on disk, export,
    opcheck. The handler is one for the stage "execute", without state of its own, that
    ``XLA_FFI_DEFINE_HANDLER_SYMBOL`` defines.

    Args:
      func: ``"library.so:Symbol"``, ``"source.cc:Symbol"``, as text or path, or
        ``msops.source(...)``. A source finds the FFI's headers.
      out: what the op returns: a `jax.ShapeDtypeStruct`, a pytree of them, or a function of the
        inputs that returns one; see `Custom`.
      **options: of `Custom`. ``attrs`` has for each attribute a default, whose dtype is that of the
        handler's binding: ``np.float32(1e-5)`` for ``Attr<float>``, ``np.array([1], np.int32)`` for
        ``Attr<Span<const int32_t>>``. Python's own are int64, float64, bool and text.

    Returns:
      The op.

    Raises:
      ArgumentTypeError, ArgumentValueError: an argument cannot be used.
    """
    _refuse_positions("ffi", others)
    if not isinstance(func, (str, os.PathLike, SourceText)):
        raise ArgumentTypeError.explained(
            "ffi",
            f"expected 'library.so:Symbol' or 'source.cc:Symbol'; got {type(func).__name__}",
            "A library's file is its __file__; a target that is registered already is called by "
            "jax.ffi.ffi_call.",
        )
    if out is None:
        raise ArgumentTypeError.explained(
            "ffi",
            "expected out, what the handler returns; got none",
            "Pass out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype).",
        )
    return Custom(func, func_type="ffi", out=out, **options)


def _refuse_positions(name: str, others: tuple[object, ...]) -> None:
    if others:
        raise ArgumentTypeError.explained(
            name,
            f"expected the kernel alone by position; got {len(others)} more",
            "Pass what the op returns as out=..., and other options by their names.",
        )
