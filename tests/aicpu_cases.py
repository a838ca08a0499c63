"""The AICPU kernels of tests/aicpu_kernels, each with inputs and its meaning in numpy."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np
import scipy.fft
import scipy.special
from conftest import ROOT

from msops import Build, Custom
from msops.ops import CustomRegOp

EACH_SOURCE = sorted(map(str, (ROOT / "tests" / "aicpu_kernels").glob("*.cc")))
# Nothing that is tested of kernels depends on how fast they are, and the optimiser takes most of
# the time that Eigen's templates take.
TOGETHER = [
    str(ROOT / "tests" / "aicpu_probes" / "kernels.cc"),
    str(ROOT / "tests" / "aicpu_kernels" / "multiply.cc"),
]
# These take almost as long to compile as all others together.
LINEAR_ALGEBRA = [str(ROOT / "tests" / "aicpu_kernels" / "linalg.cc")]
OF_LINEAR_ALGEBRA = {"BatchMatMul", "Cholesky", "MatrixDeterminant", "MatrixSolve"}
UNOPTIMISED = Build(flags=["-O0"])

Array = np.ndarray
_TYPES = {bool: "bool", int: "int", float: "float", str: "str"}


def attribute_type(value: Any) -> str:
    """Returns the type that op info has for a value."""
    if isinstance(value, (list, tuple)):
        inner = attribute_type(value[0])
        return f"list{inner[0].upper()}{inner[1:]}"
    return _TYPES[type(value)]


@dataclasses.dataclass(frozen=True)
class Case:
    """A call of a kernel.

    Attributes:
      kernel: the name it is registered under.
      inputs: makes the inputs.
      numpy: the same in numpy; a tuple for several outputs.
      attributes: values by name.
      label: distinguishes two cases of one kernel.
      takes_list: the inputs are one dynamic input.
      room: the shapes to declare where outputs may be larger; the op returns the true ones.
      tolerance: how far floats may be off, relative to their size.
    """

    kernel: str
    inputs: Callable[[np.random.Generator], Sequence[Array]]
    numpy: Callable[..., Any]
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    label: str = ""
    takes_list: bool = False
    room: tuple[tuple[int, ...], ...] = ()
    tolerance: float = 1e-6

    def __str__(self) -> str:
        return f"{self.kernel}{self.label and '-'}{self.label}"

    def expected(self, inputs: Sequence[Array]) -> list[Array]:
        results = self.numpy(*inputs)
        return [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]

    def op(
        self,
        example: Sequence[Array],
        sources: Sequence[str] = (),
        build: Build | None = UNOPTIMISED,
        **options: Any,
    ) -> Callable[..., Any]:
        """Returns the op for inputs like `example`, as a function of them; it returns a tuple."""
        if not sources:
            sources = LINEAR_ALGEBRA if self.kernel in OF_LINEAR_ALGEBRA else TOGETHER
        outputs = self.expected(example)
        shapes = self.room or tuple(array.shape for array in outputs)
        info = CustomRegOp(self.kernel).target("Ascend")
        if self.takes_list:
            info.input(0, "x", "dynamic")
        else:
            for index in range(len(example)):
                info.input(index, f"x{index}")
        for index in range(len(outputs)):
            info.output(index, f"y{index}")
        for name, value in self.attributes.items():
            info.attr(name, "required", attribute_type(value))
        op = Custom(
            list(sources),
            tuple(map(list, shapes)),
            tuple(array.dtype for array in outputs),
            func_type="aicpu",
            reg_info=info.get_op_info(),
            dynamic_outputs=bool(self.room),
            build=build,
            **options,
        )
        values = tuple(self.attributes.values())
        if self.takes_list:
            return lambda *inputs: op(list(inputs), *values)
        return lambda *inputs: op(*inputs, *values)


def floats(*shape: int, dtype: Any = np.float32) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.normal(size=shape).astype(dtype)


def complexes(*shape: int, dtype: Any = np.complex64) -> Callable[[np.random.Generator], Array]:
    return lambda rng: (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def ints(
    high: int, *shape: int, dtype: Any = np.int32, low: int = 0
) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def some_zeros(*shape: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.round(rng.normal(size=shape)).astype(np.float32)


def like(*makers: Callable[[np.random.Generator], Array]) -> Any:
    return lambda rng: [make(rng) for make in makers]


def with_specials(dtype: Any) -> Callable[[np.random.Generator], Sequence[Array]]:
    return lambda rng: [
        np.where(rng.random(9) < 0.3, rng.choice([np.nan, np.inf, -np.inf], 9), rng.normal(size=9))
        .astype(dtype)
        .reshape(3, 3)
    ]


def positive_definite(rng: np.random.Generator) -> Array:
    x = rng.normal(size=(2, 3, 3))
    return x @ x.transpose(0, 2, 1) + 3 * np.eye(3)


def well_conditioned(n: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: (rng.normal(size=(n, n)) + 2 * n * np.eye(n)).astype(np.float32)


def sorted_rows(*shape: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.sort(rng.normal(size=shape), axis=1).astype(np.float32)


def log_sum_exp(x: Array) -> Array:
    return np.log(np.exp(x.astype(np.float64)).sum(-1)).astype(np.float32)


def cumulative_sum(x: Array) -> Array:
    """Along axis 1, exclusive and from the end."""
    return np.cumsum(x[:, ::-1], 1)[:, ::-1] - x


def top_k(x: Array, k: int) -> tuple[Array, Array]:
    order = np.argsort(-x, axis=-1, kind="stable")[..., :k].astype(np.int32)
    return np.take_along_axis(x, order, -1), order


def unique(x: Array) -> tuple[Array, Array]:
    values, first, inverse = np.unique(x, return_index=True, return_inverse=True)
    by_place = np.argsort(first)
    return values[by_place], np.argsort(by_place)[inverse].astype(np.int32)


def list_diff(index: Any, x: Array, known: Array) -> tuple[Array, Array]:
    places = np.flatnonzero(~np.isin(x, known))
    return x[places], places.astype(index)


def depth_to_space(x: Array, block: int, axis: int) -> Array:
    """Of pictures with their channels on an axis: the last, or the first behind the batch."""
    parts = np.split(x, block * block, axis)
    shape = [n if i in (0, axis % 4) else n * block for i, n in enumerate(parts[0].shape)]
    result = np.empty(shape, x.dtype)
    height = 1 if axis == -1 else 2
    for number, part in enumerate(parts):
        place = [slice(None)] * 4
        place[height] = slice(number // block, None, block)
        place[height + 1] = slice(number % block, None, block)
        result[tuple(place)] = part
    return result


def larger_pictures(*shape: int, size: Sequence[int]) -> Any:
    return lambda rng: [floats(*shape)(rng), np.array(size, np.int32)]


def gather(x: Array, indices: Array) -> Array:
    return x[tuple(np.moveaxis(indices, -1, 0))]


def scatter(indices: Array, updates: Array) -> Array:
    result = np.zeros((5, updates.shape[1]), np.float32)
    np.add.at(result, indices[:, 0], updates)
    return result


def dense_to_csr(x: Array) -> tuple[Array, Array, Array]:
    rows, columns = np.nonzero(x)
    pointers = np.searchsorted(rows, np.arange(len(x) + 1)).astype(np.int32)
    return pointers, columns.astype(np.int32), x[rows, columns]


def sparse_to_dense(shape: tuple[int, ...], indices: Array, values: Array) -> Array:
    dense = np.zeros(shape, np.float32)
    dense[tuple(indices.T)] = values
    return dense


def different_places(*shape: int, dtype: Any = np.int32) -> Any:
    """Returns places of a few entries of a matrix, sorted, and their values."""

    def make(rng: np.random.Generator) -> list[Array]:
        flat = np.sort(rng.choice(shape[0] * shape[1], 6, replace=False))
        places = np.stack(np.unravel_index(flat, shape), axis=1).astype(dtype)
        return [places, rng.normal(size=6).astype(np.float32)]

    return make


def sparse_softmax(indices: Array, values: Array, shape: Array) -> Array:
    dense = np.full(shape, -np.inf)
    dense[tuple(indices.T)] = values
    rows = indices[:, 0]
    return scipy.special.softmax(dense[rows], 1)[range(len(rows)), indices[:, 1]].astype(np.float32)


def sparse_and_dense(rng: np.random.Generator) -> list[Array]:
    return [*different_places(4, 3)(rng), floats(3, 2)(rng)]


def elementwise(kernel: str, function: Any, dtypes: Sequence[Any], **options: Any) -> list[Case]:
    """Returns a case for each dtype."""

    def make(dtype: Any, rng: np.random.Generator) -> list[Array]:
        if np.dtype(dtype).kind == "c":
            return [complexes(3, 4, dtype=dtype)(rng)]
        return [(rng.normal(size=(3, 4)) * 4).astype(dtype)]

    return [
        Case(
            kernel,
            functools.partial(make, dtype),
            function,
            label=np.dtype(dtype).name,
            tolerance={2: 1e-3, 1: 0}.get(np.dtype(dtype).itemsize, 1e-6),
            **options,
        )
        for dtype in dtypes
    ]


BF16 = ml_dtypes.bfloat16

CASES = [
    *elementwise(
        "Abs", np.abs, [np.float16, np.float32, np.float64, np.int8, np.int64, np.complex64]
    ),
    *elementwise("Abs", np.abs, [np.complex128]),
    *elementwise("Conj", np.conj, [np.complex64, np.complex128]),
    Case("ExpBfloat16", like(floats(3, 4, dtype=BF16)), np.exp, tolerance=2**-7),
    *(
        Case(
            "NanToNum",
            with_specials(dtype),
            lambda x: np.nan_to_num(x, nan=0.5, posinf=7.0, neginf=-3.0),
            {"nan": 0.5, "posinf": 7.0, "neginf": -3.0},
            label=np.dtype(dtype).name,
        )
        for dtype in (np.float16, np.float32)
    ),
    Case("NanToNum", with_specials(np.float32), np.nan_to_num, label="without_attributes"),
    Case(
        "Polar",
        like(floats(40, 200), floats(40, 200)),
        lambda r, a: (r * np.exp(1j * a)).astype(np.complex64),
        tolerance=1e-5,
    ),
    *elementwise("Sign", np.sign, [np.float16, np.float32, np.int32]),
    *(
        Case(
            "Add",
            like(floats(2, 1, 3, dtype=dtype), floats(4, 1, dtype=dtype)),
            lambda x, y: x + y,
            label=np.dtype(dtype).name,
            tolerance=0,
        )
        for dtype in (np.float16, BF16, np.float32)
    ),
    Case("Add", like(complexes(2, 3), complexes(3)), lambda x, y: x + y, label="complex64"),
    Case("Add", like(ints(9, 3, 1, 2, 1), ints(9, 1, 4, 1, 5)), np.add, label="four_axes"),
    Case("Gcd", like(ints(60, 4, 1, low=-60), ints(60, 5)), np.gcd),
    Case(
        "LogicalXor",
        like(ints(2, 3, 1, dtype=bool), ints(2, 1, 4, dtype=bool)),
        np.logical_xor,
    ),
    Case("Mul", like(floats(2, 1, 5), floats(3, 1)), np.multiply),
    Case(
        "ArgMaxWithValue",
        like(floats(3, 4, 2)),
        lambda x: (x.argmax(1).astype(np.int32), x.max(1)),
        {"axis": -2},
    ),
    Case(
        "ArgMaxWithValue",
        like(floats(3, 4, dtype=np.float16)),
        lambda x: (x.argmax(0).astype(np.int32), x.max(0)),
        {"axis": 0},
        label="float16",
    ),
    Case(
        "Bincount",
        like(ints(8, 500, low=-1), floats(500)),
        lambda v, w: np.bincount(v[(v >= 0) & (v < 6)], w[(v >= 0) & (v < 6)], 6).astype("f"),
        tolerance=1e-4,
    ),
    Case(
        "CumSum",
        like(floats(3, 5, dtype=np.float64)),
        cumulative_sum,
        {"axis": 1, "exclusive": True, "reverse": True},
    ),
    Case(
        "CumSum",
        like(floats(3, 5, dtype=np.float64)),
        lambda x: np.cumsum(x, 0),
        {"axis": 0, "exclusive": False, "reverse": False},
        label="plain",
    ),
    Case("LogSumExp", like(floats(2, 3, 7)), log_sum_exp),
    Case("Trace", like(ints(100, 3, 5, dtype=np.int64, low=-100)), np.trace),
    Case(
        "Bucketize",
        like(floats(3, 4)),
        lambda x: np.digitize(x, [-1.0, 0.0, 0.5]).astype(np.int32),
        {"boundaries": (-1.0, 0.0, 0.5)},
    ),
    Case(
        "LowerBound",
        like(sorted_rows(3, 6), floats(3, 4)),
        lambda s, v: np.stack(list(map(np.searchsorted, s, v))).astype(np.int32),
    ),
    Case(
        "NonZero",
        like(some_zeros(3, 4)),
        lambda x: np.argwhere(x).astype(np.int32),
        room=((12, 2),),
    ),
    Case("TopK", like(ints(6, 3, 8, dtype=np.float32)), lambda x: top_k(x, 3), {"k": 3}),
    Case("Unique", like(ints(6, 10)), unique, room=((10,), (10,))),
    *(
        Case(
            "ListDiff",
            like(ints(9, 12, dtype=np.float32), ints(9, 3, dtype=np.float32)),
            functools.partial(list_diff, index),
            {"out_idx": number},
            label=index,
            room=((12,), (12,)),
        )
        for index, number in (("int32", 3), ("int64", 9))
    ),
    *(
        Case(
            "DepthToSpace",
            like(floats(*shape) if dtype == "float32" else ints(99, *shape, dtype=dtype)),
            lambda x, axis=axis: depth_to_space(x, 2, axis),
            {"block_size": 2, "data_format": data_format},
            label=f"{data_format}-{dtype}",
        )
        for dtype in ("float32", "int64")
        for data_format, axis, shape in (("NHWC", -1, (2, 3, 4, 12)), ("NCHW", 1, (2, 12, 3, 4)))
    ),
    Case(
        "ResizeNearestNeighborV2",
        larger_pictures(2, 3, 4, 5, size=(8, 15)),
        lambda x, size: x.repeat(2, 2).repeat(3, 3),
    ),
    Case(
        "ResizeNearestNeighborV2",
        larger_pictures(2, 4, 5, 3, size=(8, 15)),
        lambda x, size: x.repeat(2, 1).repeat(3, 2),
        {"align_corners": False, "half_pixel_centers": False, "data_format": "NHWC"},
        label="NHWC",
    ),
    Case(
        "ResizeNearestNeighborV2",
        larger_pictures(2, 3, 4, 5, size=(7, 3)),
        lambda x, size: np.asarray(jax.image.resize(x, (2, 3, 7, 3), "nearest")),
        {"align_corners": False, "half_pixel_centers": True, "data_format": "NCHW"},
        label="half_pixel_centers",
    ),
    Case(
        "ResizeNearestNeighborV2",
        larger_pictures(2, 3, 4, 5, size=(7, 3)),
        lambda x, size: x[:, :, [0, 1, 1, 2, 2, 3, 3]][..., [0, 2, 4]],
        {"align_corners": True, "half_pixel_centers": False, "data_format": "NCHW"},
        label="align_corners",
    ),
    Case("AddN", like(floats(5), floats(5), floats(5)), lambda *x: sum(x), takes_list=True),
    Case(
        "Concat",
        like(floats(2, 3, dtype=np.float16), floats(2, 1, dtype=np.float16)),
        lambda *x: np.concatenate(x, 1),
        {"axis": 1},
        takes_list=True,
    ),
    Case("DiagPart", like(complexes(3, 3)), np.diag),
    Case("GatherNd", like(floats(3, 4, 2), lambda rng: rng.integers(0, 3, (5, 2), "i4")), gather),
    Case("ScatterNd", like(ints(5, 7, 1), floats(7, 3)), scatter),
    Case("BatchMatMul", like(floats(3, 4, 5), floats(3, 5, 2)), np.matmul, tolerance=1e-5),
    Case("Cholesky", like(positive_definite), np.linalg.cholesky, tolerance=1e-12),
    Case("MatrixDeterminant", like(well_conditioned(4)), np.linalg.det, tolerance=1e-4),
    Case("MatrixDeterminant", like(complexes(3, 3)), np.linalg.det, label="complex64"),
    Case("MatrixSolve", like(well_conditioned(4), floats(4, 2)), np.linalg.solve, tolerance=1e-5),
    Case(
        "MatrixSolve",
        like(well_conditioned(4), floats(4, 2)),
        lambda a, b: np.linalg.solve(a.T, b),
        {"adjoint": True},
        label="adjoint",
        tolerance=1e-5,
    ),
    Case("DenseToCsr", like(some_zeros(3, 4)), dense_to_csr, room=((4,), (12,), (12,))),
    Case(
        "SparseDenseMatMul",
        sparse_and_dense,
        lambda i, v, d: sparse_to_dense((4, 3), i, v) @ d,
        {"shape": (4, 3)},
    ),
    Case(
        "SparseRowSum",
        different_places(4, 9, dtype=np.int64),
        lambda i, v: sparse_to_dense((4, 9), i, v).sum(1),
    ),
    Case(
        "SparseSoftmax",
        lambda rng: [*different_places(4, 9, dtype=np.int64)(rng), np.array([4, 9])],
        sparse_softmax,
    ),
    Case(
        "SparseToDense",
        different_places(4, 5),
        lambda i, v: sparse_to_dense((4, 5), i, v),
    ),
    Case(
        "SparseToDense",
        different_places(4, 5, dtype=np.int64),
        lambda i, v: sparse_to_dense((4, 5), i, v),
        label="int64",
    ),
    *(
        Case(
            f"{inverse and 'I'}Fourier",
            like(complexes(3, 8, 5)),
            lambda x, inverse=inverse, norm=norm: getattr(np.fft, f"{inverse}fftn")(
                x, (9, 4), (0, 1), ("backward", "forward", "ortho")[norm]
            ).astype(np.complex64),
            {"dim": [0, 1], "norm": norm},
            label=f"norm{norm}",
            tolerance=1e-6,
        )
        for inverse in ("", "i")
        for norm in (0, 1, 2)
    ),
    *(
        Case(
            "Fourier",
            like(floats(4, size, 3, dtype=np.float64)),
            lambda x: np.fft.rfftn(x, axes=(0, 2, 1)),
            {"dim": [0, 2, 1], "norm": 0},
            label=f"real{size}",
            tolerance=1e-13,
        )
        for size in (1, 6, 7)
    ),
    *(
        Case(
            "IFourier",
            like(complexes(4, size // 2 + 1, 3)),
            lambda x, size=size: np.fft.irfftn(x, (4, size), (0, 1)).astype(np.float32),
            {"dim": [0, 1], "norm": 0},
            label=f"real{size}",
            tolerance=1e-6,
        )
        for size in (6, 7)
    ),
    *(
        Case(
            "Cosine",
            like(floats(5, 6, dtype=np.float64)),
            lambda x, type=type, ortho=ortho: scipy.fft.dctn(
                x, type, axes=(0, 1), norm="ortho" if ortho else None
            ),
            {"type": type, "dim": [0, 1], "ortho": ortho},
            label=f"{type}{'ortho' if ortho else ''}",
            tolerance=1e-13,
        )
        for type in (1, 2, 3, 4)
        for ortho in (False, True)
    ),
]
