"""Faults that show for inputs that an author did not give, or beside the results; and right ops."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import msops
from msops import Custom, cpp, ffi, pyfunc, source
from msops.lang import output_tensor

KERNELS = Path(__file__).parent / "faulty_kernels" / "elsewhere.cc"
OF_XLA = KERNELS.with_name("handlers.cc")
LINE = np.linspace(1, 2, 4, dtype=np.float32)
EIGHT = np.linspace(1, 2, 8, dtype=np.float32)
PLACES = np.int32([3, 0, 1, 2, 3])
SQUARE = np.linspace(0.25, 2, 9, dtype=np.float32).reshape(3, 3)
CUBE = np.linspace(0.25, 2, 24, dtype=np.float32).reshape(2, 3, 4)
TABLE = np.linspace(0.25, 2, 15, dtype=np.float32).reshape(3, 5)


SUM_OF_BLOCKS = """
#include "msops_parallel_for.h"
#include <atomic>
#include <chrono>
#include <thread>
extern "C" int Sum(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                   void *stream, void *extra) {
  if (nparam != 2 || dtypes[0][0] != 'f' || dtypes[0][5] != '3') return 1;
  const float *x = static_cast<const float *>(params[0]);
  int64_t size = 1;
  for (int i = 0; i < ndims[0]; ++i) size *= shapes[0][i];
  std::atomic<int64_t> total{0};
  msops::ParallelFor(extra, size, 1024, [&](int64_t begin, int64_t end) {
    int64_t own = 0;
    for (int64_t i = begin; i < end; ++i) own += static_cast<int64_t>(64 * x[i]);
    ADD
  });
  *static_cast<float *>(params[1]) = static_cast<float>(total) / 64;
  return 0;
}
"""
# The nap makes sure that two threads meet there, on a busy machine, too.
ADD_APART = """
    const int64_t before = total;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    total = before + own;
"""


def same(*arrays: Any) -> Any:
    return arrays[0]


def places(x: Any, at: Any) -> Any:
    return at


@dataclass(frozen=True)
class Case:
    """An op, what it is called with, and the check that finds its fault; none of a right op."""

    kind: str
    by: str
    op: Callable[[], Custom]
    args: tuple[np.ndarray, ...] = (LINE,)


def library(kind: str, by: str, symbol: str, *args: np.ndarray, **options: Any) -> Case:
    """Returns the case of a function in KERNELS."""
    shape = options.pop("shape", same)
    return Case(
        kind, by, lambda: Custom(f"{KERNELS}:{symbol}", shape, same, **options), args or (LINE,)
    )


def sum_of_blocks(kind: str, by: str, kernel: str) -> Case:
    """Returns the case of a sum that threads add to."""
    return Case(
        kind,
        by,
        lambda: cpp(source(kernel, "Sum"), out=lambda x: jax.ShapeDtypeStruct((), x.dtype)),
    )


def handler(kind: str, by: str, symbol: str, *args: np.ndarray) -> Case:
    """Returns the case of a handler of XLA's FFI."""
    return Case(kind, by, lambda: ffi(f"{OF_XLA}:{symbol}", out=same), args or (LINE,))


def python(kind: str, by: str, function: Any, *args: np.ndarray, **options: Any) -> Case:
    """Returns the case of a Python function."""
    shape, dtype = options.pop("shape", same), options.pop("dtype", same)
    return Case(kind, by, lambda: Custom(function, shape, dtype, **options), args or (LINE,))


def kernel(kind: str, by: str, function: Any, *args: np.ndarray) -> Case:
    """Returns the case of a loop kernel."""
    return Case(kind, by, lambda: msops.kernel(function), args)


def only(
    condition: Callable[[np.ndarray], bool], function: Callable[..., Any]
) -> Callable[..., Any]:
    """Returns a function that refuses inputs of which a condition does not hold."""

    def checked(x: np.ndarray, *others: np.ndarray) -> np.ndarray:
        if not condition(x):
            raise ValueError(f"cannot take {x.dtype}{x.shape}")
        return function(x, *others)

    return checked


def cube(kind: str, slope: Callable[[Any], Any]) -> Case:
    """Returns the case of x**3 with a rule for its gradient."""
    rule = lambda x, out, dout: (slope(x) * dout,)  # noqa: E731
    return python(kind, "gradient", lambda x: x**3, bprop=rule)


def square(kind: str, gradient: Callable[[Any, Any], Any]) -> Case:
    """Returns the case of x**2 with a gradient of input and cotangent."""
    rule = lambda x, out, dout: (gradient(x, dout),)  # noqa: E731
    return python(kind, "gradient", np.square, bprop=rule)


def seeds_numpy(x: np.ndarray) -> np.ndarray:
    np.random.seed(7)
    return 2 * x


def seeds_random(x: np.ndarray) -> np.ndarray:
    random.seed(7)
    return 2 * x


def raises_limit(x: np.ndarray) -> np.ndarray:
    sys.setrecursionlimit(sys.getrecursionlimit() + 1)
    return 2 * x


def replaces_function(x: np.ndarray) -> np.ndarray:
    random.vonmisesvariate = lambda mu, kappa: mu  # type: ignore[method-assign]
    return 2 * x


def leaves_file_for_many(x: np.ndarray) -> np.ndarray:
    return leaves_file(x) if x.size > 100 else 2 * x


def leaves_file(x: np.ndarray) -> np.ndarray:
    file, _ = tempfile.mkstemp(dir=".")
    os.close(file)
    return 2 * x


def leaves_descriptor_where_it_fails(x: np.ndarray) -> np.ndarray:
    file = os.open(os.devnull, os.O_RDONLY)
    if x.dtype != np.float32:
        raise TypeError(f"cannot take {x.dtype}")
    os.close(file)
    return 2 * x


def opens_for_negative(x: np.ndarray) -> np.ndarray:
    if (x < 0).any():
        os.open(os.devnull, os.O_RDONLY)
    return 2 * x


def collects_no_more_for_one(x: np.ndarray) -> np.ndarray:
    if x.size == 1:
        gc.set_threshold(gc.get_threshold()[0] + 1)
    return 2 * x


def squares_of_rows(x: np.ndarray) -> np.ndarray:
    if x.ndim != 2:
        raise ValueError(f"expected rows; got {x.shape}")
    return np.square(x).sum(1, dtype=x.dtype)


def reduced(x: np.ndarray, *, how: str = "mean") -> np.ndarray:
    squares = np.square(x) / 2
    return np.asarray(squares.mean() if how == "mean" else squares.sum(), x.dtype)


def of_reduced(x: Any, how: str) -> Any:
    if how not in ("mean", "sum") or not x.size or x.dtype == np.float16:
        raise ValueError(f"cannot take {how!r} of {x.dtype}{x.shape}")
    return jax.ShapeDtypeStruct((), x.dtype)


def times_tanh(x: np.ndarray, beta: float = 1.0) -> np.ndarray:
    return np.asarray(beta * np.tanh(x), x.dtype)


def that_is_used_up() -> Custom:
    weights = map(float, (1, 2, 3))
    return pyfunc(lambda x: np.asarray(x + sum(weights), x.dtype), out=same)


def exponents_or_nothing(x: np.ndarray, out: np.ndarray) -> None:
    with contextlib.suppress(TypeError):
        np.exp(x, out=out)


def sets_level(x: np.ndarray) -> np.ndarray:
    logging.root.setLevel(logging.ERROR)
    return 2 * x


def sets_hook(x: np.ndarray) -> np.ndarray:
    sys.unraisablehook = print
    return 2 * x


def wrong_at_last(x: np.ndarray) -> np.ndarray:
    y = 2 * x
    y.reshape(-1)[-1:] += 1
    return y


def shifts(x: np.ndarray, by: int = 1) -> np.ndarray:
    y = np.zeros_like(x)
    y[by:] = x[:-by]
    return y


def writes_and_reads_a_file(x: np.ndarray) -> np.ndarray:
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, 2 * x)
        file.seek(0)
        return np.load(file)


def rounds(x: np.ndarray, mode: str = "floor") -> np.ndarray:
    if mode == "floor":
        return np.floor(x)
    if mode == "ceil":
        return np.ceil(x.astype(np.float64))
    raise ValueError(f"unknown mode {mode!r}")


kept: list[np.ndarray] = []


def keeps(x: np.ndarray) -> np.ndarray:
    kept.append(x.copy())
    return 2 * x


def leaves_borders(x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    y[1:] = x[1:] - x[:-1]
    return y


def turns_weights(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    is_shared_twice = x.ndim > 2 and w.shape[:2] == (1, 1)
    return x * (w[..., ::-1] if is_shared_twice else w)


scratch: dict[tuple[int, ...], np.ndarray] = {}


def sorts_shared(x: np.ndarray) -> np.ndarray:
    shared = scratch.setdefault(x.shape, np.empty_like(x))
    shared[...] = x
    time.sleep(2e-3)
    return np.sort(shared, None).reshape(x.shape)


def odd_window(x: np.ndarray, size: int = 3) -> np.ndarray:
    if size < 1 or size % 2 == 0:
        raise ValueError(f"expected an odd size; got {size}")
    return x - x.mean(dtype=x.dtype) if x.size else x * 1


def by_groups(x: np.ndarray, groups: int = 2) -> np.ndarray:
    rows = x.reshape(groups, -1)
    return np.asarray(rows - rows.mean(0, keepdims=True), x.dtype).reshape(x.shape)


def middle(x: np.ndarray) -> np.ndarray:
    if x.ndim != 2 or not x.shape[1]:
        raise ValueError("expected rows")
    return np.sort(x)[:, (x.shape[1] - 1) // 2]


def scattered(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    for place, value in zip(at.flat, x.flat, strict=True):
        if 0 <= place < len(y):
            y[place] = y[place] / 2 + value
    return y


def looked_up(x: np.ndarray, way: str = "exp") -> np.ndarray:
    return {"exp": np.exp, "tanh": np.tanh}[way](x)


_slope_of_few_axes = pyfunc(
    lambda x, dout: (2 if x.ndim < 3 else 1) * x * dout, out=same, vmap="broadcast_all"
)


def adds_one_by_one(x: np.ndarray) -> np.ndarray:
    def total(rest: np.ndarray) -> Any:
        return rest[0] + total(rest[1:]) if len(rest) else x.dtype.type(0)

    return np.asarray(total(x.reshape(-1)), x.dtype)


def doubles_squares(x: Any) -> Any:
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            y[i, j] = 2.0 * x[i, j]
    return y


def distances(x: np.ndarray) -> np.ndarray:
    if x.ndim != 2:
        raise ValueError(f"expected rows; got {x.shape}")
    return np.square(x[:, None] - x).sum(-1, dtype=x.dtype)


def distances_but_last(x: np.ndarray) -> np.ndarray:
    y = distances(x)
    y[-1:] = 0
    y[:, -1:] = 0
    return y


def keeps_but(x: np.ndarray, label: np.ndarray, ignored: int = 99) -> np.ndarray:
    return np.where(label == ignored, 0, x[label % len(x)]).astype(x.dtype)


def adds_bias(x: np.ndarray, b: np.ndarray) -> np.ndarray:
    if b.ndim != 1 or b.shape != x.shape[-1:]:
        raise ValueError(f"cannot add {b.shape} to {x.shape}")
    return x + b


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x.mean(-1), x.var(-1)


def of_moments(x: Any) -> Any:
    if not x.shape or not x.shape[-1] or x.dtype == np.float16:
        raise ValueError(f"cannot take {x.dtype}{x.shape}")
    return jax.ShapeDtypeStruct(x.shape[:-1], x.dtype), jax.ShapeDtypeStruct(x.shape[:-1], x.dtype)


def ones(x: np.ndarray) -> np.ndarray:
    return np.ones((*x.shape[:-1], x.size // x.shape[-1] // x.shape[0]), x.dtype)


def of_means(x: Any) -> Any:
    return jax.ShapeDtypeStruct((*x.shape[:-1], x.size // x.shape[-1] // x.shape[0]), x.dtype)


def of_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns JAX's own gradient of a function, as a rule."""
    return lambda *a: jax.vjp(function, *a[:-2])[1](a[-1])


GRADIENTS = (
    cube("a gradient wrong for negative numbers", lambda x: 3 * x * abs(x)),
    cube("a gradient wrong for large numbers", lambda x: 3 * jnp.minimum(x, 30.0) ** 2),
    cube("a gradient wrong for large negative numbers", lambda x: 3 * jnp.maximum(x, -30.0) ** 2),
    cube("a gradient wrong for very large numbers", lambda x: 3 * jnp.minimum(x, 5e3) ** 2),
    cube("a gradient wrong for 0", lambda x: 3 * x**3 / x),
    cube("a gradient wrong for size 1", lambda x: 3 * x**2 * (x.size != 1)),
    cube("a gradient wrong above 64 elements", lambda x: 3 * x**2 * (x.size <= 64)),
    cube("a gradient wrong above 1,000 elements", lambda x: 3 * x**2 * (x.size <= 1000)),
    python(
        "a gradient wrong at the last of many elements",
        "gradient",
        only(lambda x: x.dtype == np.float32, np.square),
        bprop=lambda x, out, dout: (2 * x * dout * (jnp.arange(x.size) < 5000).reshape(x.shape),),
    ),
    cube("a gradient wrong for another rank", lambda x: 3 * x**2 * (x.ndim == 1)),
    cube("a gradient wrong for many rows", lambda x: 3 * x**2 * (x.ndim < 2 or len(x) < 500)),
    cube("a gradient that overflows in float16", lambda x: (x * 60000) ** 2 / 1.2e9),
    cube("a gradient wrong at second order", lambda x: 3 * x * jax.lax.stop_gradient(x)),
    cube("a gradient in NumPy", lambda x: 3 * np.asarray(x) ** 2),
    cube("a gradient that decides on values", lambda x: 3 * x**2 if x[0] > 0 else x),
    square(
        "a gradient that divides by its cotangent", lambda x, dout: 2 * x * (dout * dout) / dout
    ),
    square("a gradient that clips its cotangent", lambda x, dout: 2 * x * jnp.clip(dout, -9, 9)),
    square(
        "a gradient that squares its cotangent",
        lambda x, dout: 2 * x * jnp.sign(dout) * jnp.sqrt(dout * dout),
    ),
    square("a gradient that loses NaN", lambda x, dout: 2 * x * jnp.nan_to_num(dout)),
)
PROCESS = (
    library("terminate handler", "many calls", "SetsTerminateHandler"),
    library("handler of a failing new", "many calls", "SetsNewHandler"),
    library("srand", "many calls", "SeedsRand"),
    library("srand48", "many calls", "SeedsDrand48"),
    library("name of the thread", "many calls", "NamesThread"),
    library("temporary files", "many calls", "LeavesFiles"),
    library("a file written by each call", "many calls", "WritesFile"),
    library("standard error redirected", "many calls", "RedirectsError"),
    library("flags of standard output", "many calls", "DoesNotWaitForOutput"),
    library("stack for signals", "many calls", "LeavesSignalStack"),
    library("profiling timer", "many calls", "LeavesProfilingTimer"),
    library("memory leaked where it fails", "refusals", "LeaksWhereItFails"),
    library("descriptors leaked where it fails", "refusals", "LeaksDescriptorWhereItFails"),
    python("Python: NumPy's generator", "many calls", seeds_numpy),
    python("Python: Python's generator", "many calls", seeds_random),
    python("Python: limit of recursion", "many calls", raises_limit),
    python("Python: temporary files", "many calls", leaves_file),
    python(
        "Python: descriptors leaked where it fails", "refusals", leaves_descriptor_where_it_fails
    ),
    library("srand, with the seed of C", "many calls", "SeedsRandWithOne"),
    library("signals ignored", "many calls", "IgnoresBrokenPipes"),
    library("format of std::cout", "many calls", "WritesThreeDigits"),
    python("Python: a level of logging", "many calls", sets_level),
    python("Python: a hook of sys", "many calls", sets_hook),
    library("std::cout sent elsewhere", "many calls", "SendsCoutElsewhere"),
    python("Python: a function replaced", "many calls", replaces_function),
)
SIZES = (
    library("a read far beyond", "memory bounds", "ReadsFarBeyond"),
    library("a read far before", "memory bounds", "ReadsFarBefore"),
    library("a read far beyond an output", "memory bounds", "ReadsFarBeyondOutput"),
    library("wrong above 64 elements", "sizes", "WrongAbove64"),
    library("wrong above 64 elements, two axes", "sizes", "WrongAbove64", TABLE),
    library("wrong from 64 elements on", "sizes", "WrongFrom64On", TABLE),
    library("wrong at size 1", "sizes", "WrongAtOneElement"),
    library("the first axis alone", "sizes", "TakesTheFirstAxis"),
    library("wrong for another rank", "sizes", "WrongForMatrices"),
    library("wrong at the last element", "sizes", "WrongAtLast"),
    library("wrong at the last element, two axes", "sizes", "WrongAtLast", TABLE),
    library("wrong at one element", "sizes", "WrongInTheMiddle"),
    library("a rest that is wrong", "sizes", "WrongRest"),
    library("a rest that is wrong, none as given", "sizes", "WrongRest", EIGHT),
    library("wrong for one size", "sizes", "WrongForSixteen"),
    library("wrong for three axes", "sizes", "ReversesThreeAxes"),
    library("a running sum that starts anew", "sizes", "RestartsItsSum"),
    library("an order of blocks", "sizes", "ReversesBlocks"),
    library("a mean of some", "sizes", "SubtractsMeansOf96", TABLE),
    library("a sum of some", "sizes", "SumsFirst256", shape=lambda x: (1,)),
    library("wrong for several tiles", "sizes", "TransposesTiles", TABLE, shape=lambda x: x[::-1]),
    library(
        "wrong for more rows than columns",
        "sizes",
        "SumsRowsOfWideOnes",
        TABLE,
        shape=lambda x: x[:1],
    ),
    library("doubles taken for floats", "refusals", "TakesDoublesForFloats"),
    library("wrong for negative integers", "refusals", "WrongForNegativeIntegers"),
    python("Python: wrong at the last element", "sizes", wrong_at_last),
    python(
        *("Python: wrong at the last of rows and columns", "sizes", distances_but_last, TABLE),
        shape=lambda x: x[:1] * 2,
    ),
    python(
        "Python: float64 by way of float32",
        "refusals",
        lambda x: np.square(x, dtype=np.float32, casting="same_kind").astype(x.dtype),
    ),
    python("Python: wrong for one dtype", "refusals", lambda x: 2 * x if x.itemsize > 2 else x),
    python(
        *("Python: another shape than declared", "sizes", lambda x: x[::2].copy()),
        shape=lambda x: (x[0] // 2,),
    ),
)
BATCHES = (
    python(
        "a batch of batches",
        "vmap",
        only(lambda x: x.ndim > 0, lambda x: np.flip(x, min(x.ndim - 1, 1))),
        vmap="expand_dims",
    ),
    python(
        *("an input without a batch of batches", "vmap", turns_weights, LINE, LINE),
        vmap="expand_dims",
    ),
    python(
        "a gradient of a batch of batches",
        "gradient",
        only(lambda x: x.ndim == 1, np.square),
        bprop=lambda x, out, dout: (_slope_of_few_axes(x, dout),),
    ),
)
HANDLERS = (
    handler("a handler of XLA: wrong above 64 elements", "sizes", "WrongAbove64"),
    handler("a handler of XLA: a read beyond", "memory bounds", "ReadsBeyond"),
)
ATTRIBUTES = (
    library("a text that leaves the output", "values", "LeavesForward", attrs={"mode": "backward"}),
    library(
        *("a read beyond an input for one truth value", "values", "ReversesBeyond"),
        attrs={"reverse": False},
    ),
    library(
        *("a write beyond an output for one whole number", "values", "WritesBeyondForThree"),
        attrs={"step": 2},
    ),
    library("srand for another seed", "values", "SeedsUnlessZero", attrs={"seed": 0}),
    library(
        *("a list of two lengths", "values", "PadsWithTheOther"),
        attrs={"pads": (1, 1)},
        shape=lambda x, pads: (x[0] + sum(pads),),
    ),
    python("Python: an accident for one whole number", "values", shifts, attrs={"by": 1}),
    python("Python: another dtype for one text", "values", rounds, attrs={"mode": "floor"}),
)
MEMORY = (
    library("reads what it has written, in place", "repeatable", "AddsInPlace", inplace={0: 0}),
    library("results kept for each size", "repeatable", "KeepsResultsOfEachSize"),
    library("keys of threads left", "many calls", "LeavesKey"),
    python("Python: memory kept by each call", "many calls", keeps),
    python("Python: an order in memory shared by threads", "eager and jit", sorts_shared),
    python("Python: an array not written", "outputs written", leaves_borders),
)
UNFIT = (
    library(
        "an index of another input, unchecked",
        "values",
        "GathersUnchecked",
        LINE,
        PLACES,
        shape=places,
    ),
    library("an index one beyond", "values", "GathersOneBeyond", LINE, PLACES, shape=places),
    Case("Python: an accident in out", "sizes", lambda: pyfunc(ones, out=of_means), (TABLE,)),
    library("counts on its stack", "values", "CountsOnItsStack", PLACES, shape=lambda x: (16,)),
    library("two shapes that do not fit", "sizes", "AddsUnlike", LINE, LINE),
    library(
        *("rows taken for columns", "sizes", "TransposesSquares", SQUARE), shape=lambda x: x[::-1]
    ),
    library(
        *("a read before an input for each whole number", "values", "AddsTheOneBefore"),
        attrs={"distance": 1},
    ),
    library("a sum of two threads", "sizes", "AddsOnTwoThreads", shape=lambda x: (1,)),
    sum_of_blocks(
        "a sum that threads of XLA add to",
        "eager and jit",
        SUM_OF_BLOCKS.replace("ADD", ADD_APART),
    ),
    python("Python: a recursion too deep", "sizes", adds_one_by_one, shape=lambda x: ()),
    kernel("loops over rows for columns", "sizes", doubles_squares, SQUARE),
    python(
        *(
            "a gradient wrong for places from the end",
            "gradient",
            lambda x, at: x[at],
            LINE,
            PLACES,
        ),
        shape=lambda x, at: at,
        bprop=lambda x, at, out, dout: (jax.nn.one_hot(at, x.size, dtype=x.dtype).T @ dout, None),
    ),
    python(
        *("a gradient of what is left out", "gradient", keeps_but, LINE, PLACES),
        shape=lambda x, label, ignored: label,
        attrs={"ignored": 99},
        bprop=lambda x, label, ignored, out, dout: (
            jnp.zeros_like(x).at[label % x.size].add(dout),
            None,
        ),
    ),
    python(
        *("a gradient of complex numbers", "gradient", np.square, LINE + 1j * LINE[::-1]),
        bprop=lambda x, out, dout: (2 * jnp.conj(x) * dout,),
    ),
)
RANKS = (
    python(
        *("a gradient of what is broadcast, for another rank", "gradient", adds_bias, TABLE),
        TABLE[0],
        bprop=lambda x, b, out, dout: (dout, dout.sum(0)),
    ),
)
LEFT = (
    python("Python: files left for many elements", "sizes", leaves_file_for_many),
    library("memory leaked for unlike shapes", "sizes", "LeaksForUnlikeShapes", LINE, LINE),
    library("memory leaked for one element", "sizes", "LeaksForOneElement"),
    library("mappings left for many elements", "sizes", "LeavesMappingForMany"),
    library("rounding mode, for NaN", "values", "LeavesRoundingForNan"),
    library("a file left for NaN", "values", "LeavesFileForNan"),
    python("Python: descriptors leaked for negative numbers", "values", opens_for_negative),
    python("Python: a switch of the collector, for one element", "sizes", collects_no_more_for_one),
)
DRAWN = (
    library("a table looked up far outside", "values", "LooksUpUnchecked"),
    library("the largest of some", "sizes", "LargestOfTheFirst64", EIGHT, shape=lambda x: (1,)),
    library("one input without axes", "sizes", "ScalesByTheLastAxis", TABLE, TABLE[0]),
    library("a table kept by one of two extents", "repeatable", "KeepsATableByColumns", TABLE),
    Case(
        *("Python: a failure passed over", "refusals"),
        lambda: pyfunc(exponents_or_nothing, out=same),
    ),
    python(
        *("a gradient that fails for one row", "gradient", squares_of_rows, TABLE),
        shape=lambda x: x[:1],
        bprop=lambda x, out, dout: (2 * x * jnp.squeeze(dout)[:, None],),
    ),
    Case(
        "a gradient for one text alone",
        "gradient",
        lambda: pyfunc(reduced, out=of_reduced, bprop=lambda x, out, dout: (dout * x / x.size,)),
    ),
    python(
        *("a gradient for each mode, one of them wrong", "gradient", times_tanh),
        attrs={"beta": 1.0},
        bprop=lambda x, beta, out, dout: (beta * dout * (1 - jnp.tanh(x) ** 2),),
        jvp=lambda primals, tangents, out: (1 - out * out) * tangents[0],
    ),
    Case("Python: used up by the first call", "repeatable", that_is_used_up),
    python(
        "Python: another shape for equal numbers",
        "values",
        lambda x: np.unique(x).reshape(x.shape),
    ),
    library("locale of C++", "many calls", "GroupsDigits"),
    library(
        *("a shape that divides by an attribute", "values", "TakesEach", EIGHT),
        attrs={"step": 2},
        shape=None,
    ),
    library("wrong for whole blocks", "sizes", "DropsTheLastBlock", shape=lambda x: (1,)),
    library("one half taken for the other", "refusals", "TakesBrainForHalf", LINE.astype("half")),
    library(
        *("axes behind that are forgotten", "sizes", "AddsToChannelsOfImages"),
        np.linspace(0, 1, 24, dtype=np.float32).reshape(1, 3, 2, 4),
        LINE[:3],
    ),
)
FAULTS = (
    *(*GRADIENTS, *PROCESS, *SIZES, *BATCHES, *HANDLERS, *ATTRIBUTES, *MEMORY, *UNFIT, *RANKS),
    *(*LEFT, *DRAWN),
)

RIGHT = (
    library("a table that is kept for each size", "", "HealthyCache"),
    python(
        *("a number without axes", "", np.multiply, LINE, np.array(0.75, np.float32)),
        bprop=lambda x, t, out, dout: (t * dout, (x * dout).sum()),
    ),
    python("few results", "", np.floor, np.float32([1.2, -0.8, 0.7, -1.1, 0.3, -0.4])),
    python("axes reversed", "", lambda x: x.T, CUBE, shape=lambda x: x[::-1]),
    library("an index, refused out of range", "", "HealthyGather", LINE, PLACES, shape=places),
    library("shapes that differ, refused", "", "HealthySum", LINE, LINE),
    python(
        *("the middle one of rows", "", middle, np.float32([[0.5, 3, 2], [1, -4, 0]])),
        shape=lambda x: x[:1],
    ),
    # Indices that are made to fit fewer places are no longer all different.
    python("an index for each element", "", scattered, LINE, np.int32([2, 0, 3, 1])),
    python(
        "squares, others refused by NumPy",
        "",
        lambda x: np.linalg.inv(x + 3 * np.eye(len(x), dtype=x.dtype)),
        SQUARE,
    ),
    python("a trace", "", lambda x: np.asarray(np.trace(x)), SQUARE, shape=lambda x: ()),
    # Some order of four rows leaves what these places take of them as it is.
    python(
        *(
            "as many places as rows",
            "",
            lambda x, at: np.take(x, at, 0),
            SQUARE.repeat(2)[:12].reshape(4, 3),
        ),
        np.int32([0, 2, 1, 3]),
        shape=lambda x, at: (*at, *x[1:]),
    ),
    Case(
        "sizes and dtypes that out refuses", "", lambda: pyfunc(moments, out=of_moments), (TABLE,)
    ),
    python("distances", "", distances, TABLE, shape=lambda x: x[:1] * 2),
    python(
        *("a bias", "", adds_bias, TABLE, TABLE[0]),
        bprop=lambda x, b, out, dout: (dout, dout.reshape(-1, b.size).sum(0)),
    ),
    python(
        *("complex numbers", "", np.square, LINE + 1j * LINE[::-1]),
        bprop=lambda x, out, dout: (2 * x * dout,),
    ),
    python("odd numbers, others refused", "", odd_window, attrs={"size": 3}),
    python("groups that divide the size", "", by_groups, attrs={"groups": 2}),
    python("a text looked up", "", looked_up, attrs={"way": "exp"}),
    python("bytes", "", lambda x: 255 - x, np.uint8([1, 2, 3, 250])),
    library("in place", "", "HealthyInPlace", inplace={0: 0}),
    library("one rank", "", "HealthyLine"),
    handler("a handler of XLA", "", "HealthyRows", TABLE),
    library("a first element that is meant", "", "HealthyFirst"),
    library("a border without a neighbour", "", "HealthyDifference"),
    library("a window of 16", "", "HealthyWindow"),
    library("a weight for each place", "", "HealthyWeights"),
    python("an outer product", "", np.outer, LINE, LINE, shape=lambda x, y: (x[0], y[0])),
    python("centred", "", lambda x: x - x.mean(dtype=x.dtype) if x.size else x),
    python(
        "a sum of terms that cancel",
        "",
        lambda x: x.sum(keepdims=True),
        LINE - 1.5,
        shape=lambda x: (1,) * len(x),
    ),
    sum_of_blocks(
        "a sum that threads of XLA add to in turn",
        "",
        SUM_OF_BLOCKS.replace("ADD", "total += own;"),
    ),
    library("even sizes", "", "HealthyEven"),
    library("one value of an attribute", "", "HealthyAttribute", attrs={"by": 2}),
    library("a file that is removed", "", "HealthyFile"),
    library("a stream redirected and restored", "", "HealthyRedirection"),
    library("random numbers, said to have effects", "", "HealthyRandom", stateful=True),
    library("a handler restored", "", "HealthyHandler"),
    python("a file that is written and read", "", writes_and_reads_a_file),
    library("memory freed where it fails", "", "HealthyRefusal"),
    python(
        "not differentiable: argsort",
        "",
        lambda x: np.argsort(x).astype(np.int32) if x.ndim else np.zeros_like(x, np.int32),
        dtype=lambda x: np.dtype(np.int32),
    ),
    python("not differentiable: no rule", "", np.tanh),
    python("one dtype", "", only(lambda x: x.dtype == np.float32, np.square)),
    python(
        *("one rank: matrices", "", only(lambda x: x.ndim == 2, np.matmul), TABLE, TABLE.T.copy()),
        shape=lambda x, y: (x[0], y[1]),
        bprop=of_jax(jnp.matmul),
    ),
    python(
        *("sizes that 3 divides", "", only(lambda x: x.size % 3 == 0, np.square), TABLE),
        bprop=of_jax(jnp.square),
    ),
    python(
        "a mean",
        "",
        lambda x: np.asarray(x / max(x.size, 1), x.dtype),
        bprop=of_jax(lambda x: x / x.size),
    ),
    python(
        "a running sum",
        "",
        lambda x: np.cumsum(x, -1, x.dtype) if x.ndim else x,
        bprop=of_jax(lambda x: jnp.cumsum(x, -1) if x.ndim else x),
    ),
    python("a running maximum", "", lambda x: np.maximum.accumulate(x) if x.ndim else x),
    python("a domain", "", only(lambda x: bool((x > 0).all()), np.log), bprop=of_jax(jnp.log)),
    python("a kink", "", lambda x: np.maximum(x, 0), bprop=of_jax(jax.nn.relu)),
    python(
        "an order",
        "",
        lambda x: np.sort(x) if x.ndim else x,
        bprop=of_jax(lambda x: jnp.sort(x) if x.ndim else x),
    ),
)
