"""The op table: MindSpore's operator functions and primitive classes over `msops._face.array_math`.

A row of `FUNCTIONS` is a function form (``ops.add``), a row of `PRIMITIVES` a class whose instances
are called (``ops.Add()(x, y)``, ``ops.ReduceSum(keep_dims=True)(x)``). Both take Tensors and return
Tensors, or take arrays and return arrays.

Source: MindSpore 2.7.2, mindspore/ops/operations and mindspore/ops/function.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from msops._base.dtypes import as_dtype
from msops._custom.custom import Custom
from msops._face import array_math as m
from msops._face.argument_names import ARGUMENTS, named
from msops._face.axes import axis_of
from msops._face.parameter import assign
from msops._face.tensor import Tensor, lift
from msops.errors import ArgumentTypeError

_REQUIRED = object()


class Primitive(abc.ABC):
    """An operator whose settings are fixed when it is made; calling it applies it.

    Corresponds to ``mindspore.ops.Primitive`` as far as scripts use it. The subclasses are the rows
    of `PRIMITIVES`.

    Args:
      settings: by position or by name, those of the operator, e.g. ``keep_dims``.

    Raises:
      ArgumentTypeError: a setting is unknown, missing or given twice.

    Source: MindSpore 2.7.2, mindspore/ops/primitive.py, Primitive.
    """

    _apply: Callable[..., Any]
    _defaults: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, *settings: Any, **named: Any):
        names = list(self._defaults)
        by_position = dict(zip(names, settings, strict=False))
        wrong = sorted(set(named) - set(names) | set(named) & set(by_position))
        self._settings = dict(self._defaults) | by_position | named
        missing = [name for name, value in self._settings.items() if value is _REQUIRED]
        if len(settings) > len(names) or wrong or missing:
            raise ArgumentTypeError.explained(
                f"ops.{type(self).__name__}",
                f"expected settings ({', '.join(names)}); got {len(settings)} by position and "
                f"({', '.join(named)}) by name",
                "Inputs go to the call of the operator, not to its constructor.",
            )
        self.attrs: dict[str, Any] = {}

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return type(self)._apply(*inputs, **named, **self._settings)

    @property
    def name(self) -> str:
        """Name of the operator."""
        return type(self).__name__

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Notes an attribute for MindSpore's compiler in ``attrs``; results do not depend on it."""
        self.attrs[name] = value
        return self

    def del_prim_attr(self, name: str) -> Primitive:
        """Drops an attribute that `add_prim_attr` noted."""
        self.attrs.pop(name, None)
        return self

    def set_device(self, device_target: str) -> Primitive:
        """Notes the device MindSpore would run the operator on; here it runs where its inputs are.

        Args:
          device_target: "CPU", "GPU" or "Ascend".
        """
        return self.add_prim_attr("primitive_target", device_target)

    def __repr__(self) -> str:
        return f"Prim[{self.name}]"


# As in MindSpore, a Custom is a Primitive; it has the methods, and its base is its own.
Primitive.register(Custom)


def _convert_to_dynamic(x: Any, is_dynamic_rank: bool) -> Any:
    # Shapes are static here: the tensor is as dynamic as it gets.
    return x


def _dtype_of(x: Any) -> Any:
    return as_dtype(x.dtype)


def _shape_of(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _shape_tensor(x: Any) -> Tensor:
    return Tensor(np.array(x.shape, np.int64))


def _rank_of(x: Any) -> int:
    return len(x.shape)


def _size_of(x: Any) -> int:
    return x.size


def _split_evenly(x: Any, axis: int, output_num: int) -> tuple[Any, ...]:
    return m.split(x, x.shape[axis_of(x, axis, "ops.Split")] // output_num, axis)


def _filled(size: Any, value: Any, dtype: Any) -> Tensor:
    return Tensor(np.full(size, value, as_dtype(dtype or np.float32).dtype))


def zeros(size: Any, dtype: Any = None) -> Tensor:
    """Returns a Tensor of zeros.

    Args:
      size: extents, an int or a tuple of int.
      dtype: its dtype; None means Float32.

    Source: MindSpore 2.7.2, mindspore/ops/function/array_func.py, zeros.
    """
    return _filled(size, 0, dtype)


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Returns a Tensor of ones.

    Args:
      shape: extents, an int or a tuple of int.
      dtype: its dtype; None means Float32.

    Source: MindSpore 2.7.2, mindspore/ops/function/array_func.py, ones.
    """
    return _filled(shape, 1, dtype)


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Returns a Tensor of one value.

    Args:
      size: extents, an int or a tuple of int.
      fill_value: the value.
      dtype: its dtype; None means Int64, or that of a float, which MindSpore would truncate.

    Source: MindSpore 2.10.0, mindspore/ops/function/array_func.py, full.
    """
    if dtype is None:
        # Numbers of numpy are Python's.
        value = fill_value.item() if isinstance(fill_value, np.number) else fill_value
        own = Tensor(value).dtype
        dtype = np.int64 if own.dtype.kind in "biu" else own
    if isinstance(fill_value, Tensor):
        entry = FUNCTIONS["cast"](fill_value.reshape(()), dtype)  # type: ignore[attr-defined]
        return FUNCTIONS["broadcast_to"](entry, (size,) if isinstance(size, int) else size)
    return _filled(size, fill_value, dtype)


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """Returns a Tensor of numbers at equal distances, `end` left out.

    Args:
      start: the first number; with `end` None it is the end, and 0 the first.
      end: where to stop.
      step: the distance.
      dtype: its dtype; None means Int64, or Float32 if one of the three is a float.

    Source: MindSpore 2.7.2, mindspore/ops/function/array_func.py, arange.
    """
    if end is None:
        start, end = 0, start
    # Numbers of numpy and Tensors are floats, too.
    is_float = any(np.asarray(value).dtype.kind == "f" for value in (start, end, step))
    chosen = as_dtype(dtype or (np.float32 if is_float else np.int64)).dtype
    return Tensor(np.arange(start, end, step).astype(chosen))


def depend(value: Any, expr: Any) -> Any:
    """Returns `value`; order between operators is data flow here."""
    return value


def zeros_like_tree(x: Any) -> Any:
    """Returns zeros for every array of a tuple, list or dict."""
    return jax.tree.map(FUNCTIONS["zeros_like"], x, is_leaf=lambda leaf: isinstance(leaf, Tensor))


# Functions that are those of `array_math` with the same name.
_OF_ARRAYS = """
    abs add addn all amax amin any argmax argmin bitwise_and bitwise_or bitwise_xor broadcast_to
    cast ceil clip clip_by_value count_nonzero concat cos cosh div equal erf exp expand_dims expm1
    flatten floor floor_div full_like gather greater greater_equal isfinite isnan less
    less_equal log log1p logical_and logical_not logical_or matmul maximum mean minimum mod mul
    neg not_equal ones_like pow prod reciprocal reduce_sum relu reshape round rsqrt select
    sigmoid sign sin sinh slice softmax sort split sqrt square squeeze stack stop_gradient sub
    sum tan tanh tile topk transpose var zeros_like
"""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: lift(named(getattr(m, name), ARGUMENTS[name])) for name in _OF_ARRAYS.split()},
    "arange": arange,
    "assign": named(assign, ARGUMENTS["assign"]),
    "depend": depend,
    "dtype": named(_dtype_of, ARGUMENTS["dtype"]),
    "full": full,
    "ones": ones,
    "rank": named(_rank_of, ARGUMENTS["rank"]),
    "shape": named(_shape_of, ARGUMENTS["shape"]),
    "size": named(_size_of, ARGUMENTS["size"]),
    "tensor_shape": named(_shape_tensor, ARGUMENTS["tensor_shape"]),
    "zeros": zeros,
}
FUNCTIONS |= {
    alias: lift(named(getattr(m, name), ARGUMENTS[alias]))
    for alias, name in (
        ("cat", "concat"),
        ("clamp", "clip"),
        ("eq", "equal"),
        ("floor_mod", "mod"),
        ("ge", "greater_equal"),
        ("gt", "greater"),
        ("le", "less_equal"),
        ("lt", "less"),
        ("ne", "not_equal"),
        ("permute", "transpose"),
        ("tensor_add", "add"),
        ("tensor_div", "real_div"),
        ("tensor_mul", "mul"),
        ("tensor_pow", "pow"),
        ("tensor_sub", "sub"),
        ("true_divide", "div"),
        ("where", "select"),
    )
}

_MATMUL = {"transpose_a": False, "transpose_b": False}
_KEEP = {"keep_dims": False}

# Classes with the name of the function that they apply, but for case and underscores.
_WITHOUT_SETTINGS = """
    Abs Add AddN Assign Cast Ceil Cos Cosh DType Depend Div Equal Erf Exp ExpandDims Expm1 Flatten
    Floor FloorDiv FloorMod Greater GreaterEqual IsFinite IsNan Less LessEqual Log Log1p
    LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul Neg NotEqual Ones OnesLike Pow Rank
    ReLU Reciprocal Reshape Round Rsqrt Select Shape Sigmoid Sign Sin Sinh Size Slice Sqrt
    Square Sub Tan Tanh TensorAdd TensorShape Tile Transpose Zeros ZerosLike
"""
_BY_LETTERS = {name.replace("_", ""): function for name, function in FUNCTIONS.items()}

# Class, the function it applies, the settings of its constructor with their defaults.
_ROWS: tuple[tuple[str, Callable[..., Any], dict[str, Any]], ...] = (
    *((name, _BY_LETTERS[name.lower()], {}) for name in _WITHOUT_SETTINGS.split()),
    ("BatchMatMul", FUNCTIONS["matmul"], _MATMUL),
    ("BroadcastTo", FUNCTIONS["broadcast_to"], {"shape": _REQUIRED}),
    ("Concat", FUNCTIONS["concat"], {"axis": 0}),
    ("MatMul", FUNCTIONS["matmul"], _MATMUL),
    ("Gather", FUNCTIONS["gather"], {"batch_dims": 0}),
    ("Mod", lift(named(m.truncated_mod, ARGUMENTS["mod"])), {}),
    ("Pad", lift(named(m.pad, "input_x")), {"paddings": _REQUIRED}),
    ("RealDiv", lift(named(m.real_div, ARGUMENTS["mod"])), {}),
    ("ReduceAll", FUNCTIONS["all"], _KEEP),
    ("ReduceAny", FUNCTIONS["any"], _KEEP),
    ("ReduceMax", FUNCTIONS["amax"], _KEEP),
    ("ReduceMean", FUNCTIONS["mean"], _KEEP),
    ("ReduceMin", FUNCTIONS["amin"], _KEEP),
    ("ReduceProd", lift(named(m.reduce_prod, ARGUMENTS["reduce_sum"])), _KEEP),
    ("ReduceSum", FUNCTIONS["reduce_sum"], _KEEP),
    ("Softmax", FUNCTIONS["softmax"], {"axis": -1}),
    ("Sort", FUNCTIONS["sort"], {"axis": -1, "descending": False}),
    ("Split", lift(named(_split_evenly, "input_x")), {"axis": 0, "output_num": 1}),
    ("Squeeze", FUNCTIONS["squeeze"], {"axis": ()}),
    ("Stack", FUNCTIONS["stack"], {"axis": 0}),
    ("TopK", FUNCTIONS["topk"], {"sorted": True}),
)


def primitive_class(
    name: str, function: Callable[..., Any], defaults: dict[str, Any]
) -> type[Primitive]:
    """Returns the class of a primitive: what its call applies, and its settings with defaults."""
    namespace = {
        "_apply": staticmethod(function),
        "_defaults": defaults,
        "__doc__": f"MindSpore's ``ops.{name}``; settings: {', '.join(defaults) or 'none'}.",
        "__module__": "msops.ops",
    }
    return type(name, (Primitive,), namespace)


PRIMITIVES = {name: primitive_class(name, function, row) for name, function, row in _ROWS}

# Internal to MindSpore, reached through ops.operations._inner_ops.
INNER_PRIMITIVES = {
    "ConvertToDynamic": primitive_class(
        "ConvertToDynamic", _convert_to_dynamic, {"is_dynamic_rank": False}
    )
}
