"""The op table: MindSpore's operator functions and primitive classes over `msops._face.array_math`.

A row of `FUNCTIONS` is a function form (``ops.add``), a row of `PRIMITIVES` a class whose instances
are called (``ops.Add()(x, y)``, ``ops.ReduceSum(keep_dims=True)(x)``). Both take Tensors and return
Tensors, or take arrays and return arrays.

Source: MindSpore 2.7.2, mindspore/ops/operations and mindspore/ops/function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from msops._base.dtypes import as_dtype
from msops._face import array_math as m
from msops._face.parameter import assign
from msops._face.tensor import Tensor, lift
from msops.errors import ArgumentTypeError

_REQUIRED = object()


class Primitive:
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

    def __call__(self, *inputs: Any) -> Any:
        return type(self)._apply(*inputs, **self._settings)

    @property
    def name(self) -> str:
        """Name of the operator."""
        return type(self).__name__

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Notes an attribute for MindSpore's compiler in ``attrs``; results do not depend on it."""
        self.attrs[name] = value
        return self

    def set_device(self, device_target: str) -> Primitive:
        """Notes the device MindSpore would run the operator on; here it runs where its inputs are.

        Args:
          device_target: "CPU", "GPU" or "Ascend".
        """
        return self.add_prim_attr("primitive_target", device_target)

    def __repr__(self) -> str:
        return f"Prim[{self.name}]"


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
    return m.split(x, x.shape[axis] // output_num, axis)


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
      dtype: its dtype; None means that of ``Tensor(fill_value)``.

    Source: MindSpore 2.7.2, mindspore/ops/function/array_func.py, full.
    """
    return _filled(size, fill_value, dtype or Tensor(fill_value).dtype)


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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lift(m.abs),
    "add": lift(m.add),
    "all": lift(m.all),
    "amax": lift(m.amax),
    "amin": lift(m.amin),
    "any": lift(m.any),
    "argmax": lift(m.argmax),
    "argmin": lift(m.argmin),
    "bitwise_and": lift(m.bitwise_and),
    "bitwise_or": lift(m.bitwise_or),
    "bitwise_xor": lift(m.bitwise_xor),
    "broadcast_to": lift(m.broadcast_to),
    "cast": lift(m.cast),
    "ceil": lift(m.ceil),
    "clip": lift(m.clip),
    "count_nonzero": lift(m.count_nonzero),
    "concat": lift(m.concat),
    "cos": lift(m.cos),
    "cosh": lift(m.cosh),
    "div": lift(m.div),
    "equal": lift(m.equal),
    "erf": lift(m.erf),
    "exp": lift(m.exp),
    "expand_dims": lift(m.expand_dims),
    "expm1": lift(m.expm1),
    "flatten": lift(m.flatten),
    "floor": lift(m.floor),
    "floor_div": lift(m.floor_div),
    "full_like": lift(m.full_like),
    "gather": lift(m.gather),
    "greater": lift(m.greater),
    "greater_equal": lift(m.greater_equal),
    "isfinite": lift(m.isfinite),
    "isnan": lift(m.isnan),
    "less": lift(m.less),
    "less_equal": lift(m.less_equal),
    "log": lift(m.log),
    "log1p": lift(m.log1p),
    "logical_and": lift(m.logical_and),
    "logical_not": lift(m.logical_not),
    "logical_or": lift(m.logical_or),
    "matmul": lift(m.matmul),
    "maximum": lift(m.maximum),
    "mean": lift(m.mean),
    "minimum": lift(m.minimum),
    "mod": lift(m.mod),
    "mul": lift(m.mul),
    "neg": lift(m.neg),
    "not_equal": lift(m.not_equal),
    "ones_like": lift(m.ones_like),
    "pow": lift(m.pow),
    "prod": lift(m.prod),
    "reciprocal": lift(m.reciprocal),
    "reduce_sum": lift(m.reduce_sum),
    "relu": lift(m.relu),
    "reshape": lift(m.reshape),
    "round": lift(m.round),
    "rsqrt": lift(m.rsqrt),
    "select": lift(m.select),
    "sigmoid": lift(m.sigmoid),
    "sign": lift(m.sign),
    "sin": lift(m.sin),
    "sinh": lift(m.sinh),
    "slice": lift(m.slice),
    "softmax": lift(m.softmax),
    "sort": lift(m.sort),
    "split": lift(m.split),
    "sqrt": lift(m.sqrt),
    "square": lift(m.square),
    "squeeze": lift(m.squeeze),
    "stack": lift(m.stack),
    "stop_gradient": lift(m.stop_gradient),
    "sub": lift(m.sub),
    "sum": lift(m.sum),
    "tan": lift(m.tan),
    "tanh": lift(m.tanh),
    "tile": lift(m.tile),
    "topk": lift(m.topk),
    "transpose": lift(m.transpose),
    "var": lift(m.var),
    "zeros_like": lift(m.zeros_like),
    "arange": arange,
    "assign": assign,
    "depend": depend,
    "dtype": _dtype_of,
    "full": full,
    "ones": ones,
    "rank": _rank_of,
    "shape": _shape_of,
    "size": _size_of,
    "tensor_shape": _shape_tensor,
    "zeros": zeros,
}
FUNCTIONS |= {
    alias: FUNCTIONS[name]
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
        ("tensor_div", "div"),
        ("tensor_mul", "mul"),
        ("tensor_pow", "pow"),
        ("tensor_sub", "sub"),
        ("true_divide", "div"),
        ("where", "select"),
    )
}

_MATMUL = {"transpose_a": False, "transpose_b": False}
_KEEP = {"keep_dims": False}

# Class, the function it applies, the settings of its constructor with their defaults.
_ROWS: tuple[tuple[str, Callable[..., Any], dict[str, Any]], ...] = (
    *(
        (name, FUNCTIONS[function], {})
        for name, function in (
            ("Abs", "abs"),
            ("Add", "add"),
            ("Assign", "assign"),
            ("Cast", "cast"),
            ("Ceil", "ceil"),
            ("Cos", "cos"),
            ("Cosh", "cosh"),
            ("DType", "dtype"),
            ("Depend", "depend"),
            ("Div", "div"),
            ("Equal", "equal"),
            ("Erf", "erf"),
            ("Exp", "exp"),
            ("ExpandDims", "expand_dims"),
            ("Expm1", "expm1"),
            ("Flatten", "flatten"),
            ("Floor", "floor"),
            ("FloorDiv", "floor_div"),
            ("FloorMod", "mod"),
            ("Gather", "gather"),
            ("Greater", "greater"),
            ("GreaterEqual", "greater_equal"),
            ("IsFinite", "isfinite"),
            ("IsNan", "isnan"),
            ("Less", "less"),
            ("LessEqual", "less_equal"),
            ("Log", "log"),
            ("Log1p", "log1p"),
            ("LogicalAnd", "logical_and"),
            ("LogicalNot", "logical_not"),
            ("LogicalOr", "logical_or"),
            ("Maximum", "maximum"),
            ("Minimum", "minimum"),
            ("Mod", "mod"),
            ("Mul", "mul"),
            ("Neg", "neg"),
            ("NotEqual", "not_equal"),
            ("Ones", "ones"),
            ("OnesLike", "ones_like"),
            ("Pow", "pow"),
            ("Rank", "rank"),
            ("ReLU", "relu"),
            ("RealDiv", "div"),
            ("Reciprocal", "reciprocal"),
            ("Reshape", "reshape"),
            ("Round", "round"),
            ("Rsqrt", "rsqrt"),
            ("Select", "select"),
            ("Shape", "shape"),
            ("Sigmoid", "sigmoid"),
            ("Sign", "sign"),
            ("Sin", "sin"),
            ("Sinh", "sinh"),
            ("Size", "size"),
            ("Slice", "slice"),
            ("Sqrt", "sqrt"),
            ("Square", "square"),
            ("Sub", "sub"),
            ("Tan", "tan"),
            ("Tanh", "tanh"),
            ("TensorAdd", "add"),
            ("TensorShape", "tensor_shape"),
            ("Tile", "tile"),
            ("Transpose", "transpose"),
            ("Zeros", "zeros"),
            ("ZerosLike", "zeros_like"),
        )
    ),
    ("BatchMatMul", FUNCTIONS["matmul"], _MATMUL),
    ("BroadcastTo", FUNCTIONS["broadcast_to"], {"shape": _REQUIRED}),
    ("Concat", FUNCTIONS["concat"], {"axis": 0}),
    ("MatMul", FUNCTIONS["matmul"], _MATMUL),
    ("Pad", lift(m.pad), {"paddings": _REQUIRED}),
    ("ReduceAll", FUNCTIONS["all"], _KEEP),
    ("ReduceAny", FUNCTIONS["any"], _KEEP),
    ("ReduceMax", FUNCTIONS["amax"], _KEEP),
    ("ReduceMean", FUNCTIONS["mean"], _KEEP),
    ("ReduceMin", FUNCTIONS["amin"], _KEEP),
    ("ReduceProd", FUNCTIONS["prod"], _KEEP),
    ("ReduceSum", FUNCTIONS["reduce_sum"], _KEEP),
    ("Softmax", FUNCTIONS["softmax"], {"axis": -1}),
    ("Sort", FUNCTIONS["sort"], {"axis": -1, "descending": False}),
    ("Split", lift(_split_evenly), {"axis": 0, "output_num": 1}),
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
