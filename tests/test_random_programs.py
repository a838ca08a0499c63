"""A proof that the forms agree: random functions of the loop language, run in four ways.

As XLA operations, as C, by the interpreter of the IR, and by Python itself. Integers and bools are
the same; floats differ by what roundings allow, and have the same NaN and infinities, see
loop_rounding.py. Gradients of both forms agree with each other and with finite differences.

A failure shows the source and its number: `program(1234)` of loop_programs.py makes it again, with
its inputs.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from cuda_emulation import Emulation
from loop_ir import Kernel, Spec, Stages, as_dtype, cuda_source, interpret, is_float, pipeline
from loop_native import build_together, call, shipped
from loop_numbers import Unsure
from loop_programs import Program, program
from loop_rounding import bounds, first_disagreement
from loop_source import define, specialise

from msops.errors import BuildError
from msops.ops import kernel as as_python

pytestmark = pytest.mark.usefixtures("as_users_compile")

OUTSIDE = {"INF": math.inf, "NAN": math.nan}
"""Constants from outside the programs."""
TOGETHER = 25
"""Programs that are compiled together."""
VALUES = [pytest.param(n, marks=pytest.mark.slow if n else ()) for n in range(360)]
GRADIENTS = [pytest.param(n, marks=pytest.mark.slow if n else ()) for n in range(100)]
STEP = 1e-6

Results = Sequence[np.ndarray]


class Read(NamedTuple):
    """A program as Python ran it, and as the front end read it."""

    program: Program
    arrays: list[np.ndarray]
    kernel: Kernel
    stages: Stages

    def by_python(self, arrays: Results) -> list[np.ndarray]:
        """Returns what Python makes of arrays."""
        function = as_python(define(self.program.text, **OUTSIDE))
        with np.errstate(all="ignore"):
            results = function(*(array.copy() for array in arrays))
        return [*results] if isinstance(results, tuple) else [results]


def read(numbers: Sequence[int], is_smooth: bool = False) -> list[Read]:
    """Returns the programs of some numbers; a few have constants that the compiler refuses."""
    made = [program(number, is_smooth) for number in numbers]
    found = [each for each in map(_read, made) if each is not None]
    assert len(found) > 0.9 * len(numbers)
    return found


def _read(made: Program) -> Read | None:
    arrays = made.inputs()
    specs = [Spec(array.shape, array.dtype.name) for array in arrays]
    try:
        kernel = specialise(define(made.text, **OUTSIDE), *specs)
    except BuildError as error:
        if "constant" in str(error):
            return None
        raise
    except Exception as error:
        error.add_note(f"program({made.seed}, {made.is_smooth})\n{made.text}")
        raise
    stages = Stages(kernel, "Custom 'k'")
    if any("as its author promises" in line for line in stages.analysis.explanation):
        # What a promise says of data may not hold.
        text = re.sub(r"in (parallel|vectorize)\(", "in range(", made.text)
        return _read(dataclasses.replace(made, text=text))
    return Read(made, arrays, kernel, stages)


def by_xla(functions: Sequence[Any], arrays: Sequence[Results]) -> list[list[np.ndarray]]:
    """Returns what functions make of arrays, in one program."""
    with jax.enable_x64(True):
        run = jax.jit(lambda given: [[*f(*x)] for f, x in zip(functions, given, strict=True)])
        return jax.tree.map(np.asarray, run([*arrays]))


def by_c(folder: Path, kernels: Sequence[Kernel], arrays: Sequence[Results]) -> list[Results]:
    """Returns what kernels make of arrays, in one library."""
    made = [shipped(kernel, number) for number, kernel in enumerate(kernels)]
    library = build_together(folder, [source for _, source in made])
    return [call(library, *each, x) for each, x in zip(made, arrays, strict=True)]


def have_equal_bits(one: Results, other: Results) -> bool:
    return all(
        a.dtype == b.dtype and bool((bits(a) == bits(b)).all())
        for a, b in zip(one, map(np.asarray, other), strict=True)
    )


def bits(array: np.ndarray) -> np.ndarray:
    """Returns an array's bits, with one NaN."""
    if array.dtype.kind in "iub":
        return array
    one_nan = np.where(array != array, array.dtype.type(math.nan), array)
    return one_nan.view(f"u{array.dtype.itemsize}")


def check(each: Read, ways: dict[str, Results]) -> bool:
    """Checks that all ways agree; returns whether roundings decide what happens in a program."""
    if not each.program.is_wild:
        ways = {"Python": each.by_python(each.arrays), **ways}
    first = next(iter(ways.values()))
    others = {name: way for name, way in ways.items() if not have_equal_bits(first, way)}
    if not others:
        return False
    try:
        expected = bounds(each.program.text, each.arrays, **OUTSIDE)
    except Unsure:
        return True
    # Not even if no term is added to it.
    has_sums = bool(re.search(r" [+-]= ", each.program.text))
    for name, results in others.items():
        for number, (want, got) in enumerate(zip(expected, results, strict=True)):
            assert want.dtype == got.dtype, (name, each.program.text)
            at = first_disagreement(want, got, allows_any_zero=has_sums)
            if at is None:
                continue
            values = {way: results[number][at] for way, results in ways.items()}
            pytest.fail(
                f"program({each.program.seed}, {each.program.is_smooth}), result {number} at {at}: "
                f"{name} disagrees\n{values}\n{each.program.text}"
            )
    return False


@pytest.mark.parametrize("part", VALUES)
def test_four_ways_agree(part: int, tmp_path: Path) -> None:
    programs = read(range(TOGETHER * part, TOGETHER * (part + 1)))
    arrays = [each.arrays for each in programs]
    ways = zip(
        by_c(tmp_path, [each.kernel for each in programs], arrays),
        by_xla([each.stages.function for each in programs], arrays),
        strict=True,
    )
    unsure = 0
    for each, (c, xla) in zip(programs, ways, strict=True):
        interpreted = interpret(each.kernel, each.arrays)
        unsure += check(each, {"interpreter": interpreted, "C": c, "XLA": xla})
    assert unsure <= 0.2 * len(programs)  # of 25, which may be unlucky


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_cuda_agrees(part: int) -> None:
    for each in read(range(10 * part, 10 * (part + 1))):
        told = pipeline.analyse(each.kernel)
        loops = pipeline.run(told.kernel, pipeline.PASSES_TO_CUDA)
        cuda = Emulation(loops, cuda_source(loops, told.unproven, told.overwritten))
        interpreted = interpret(each.kernel, each.arrays)
        check(each, {"interpreter": interpreted, "CUDA": cuda.run(each.arrays)})


# Gradients.


class Gradient(NamedTuple):
    """The adjoint loops of a program, and what they are run on."""

    of: Read
    kernel: Kernel
    stages: Stages
    cotangents: list[np.ndarray]

    @property
    def inputs(self) -> list[np.ndarray]:
        return [*self.of.arrays, *self.cotangents]

    def by_jax(self, *flat: Any) -> Any:
        """Returns JAX's own gradient of the operations, as a call in that form has it."""
        floats = [i for i, each in enumerate(self.of.kernel.parameters) if is_float(each.dtype)]
        arrays = [*flat[: len(self.of.arrays)]]

        def run(*chosen: Any) -> list[Any]:
            given = [*arrays]
            for at, value in zip(floats, chosen, strict=True):
                given[at] = value
            return [*self.of.stages.function(*given)]

        _, pull_back = jax.vjp(run, *(arrays[i] for i in floats))
        return pull_back([*flat[len(arrays) :]])

    def along(self, directions: Results) -> tuple[float, float]:
        """Returns the slopes before and after the inputs along directions, by differences."""

        def total(step: float) -> float:
            moved = [x + step * d for x, d in zip(self.of.arrays, directions, strict=True)]
            same = [m.astype(x.dtype) for m, x in zip(moved, self.of.arrays, strict=True)]
            results = self.of.by_python(same)
            return sum(float(np.sum(c * r)) for c, r in zip(self.cotangents, results, strict=True))

        before, here, after = total(-STEP), total(0.0), total(STEP)
        return (here - before) / STEP, (after - here) / STEP


def gradient(each: Read) -> Gradient:
    """Returns the gradient of a program of float64 for all that is a float."""
    kernel = each.stages.adjoint(
        tuple(i for i, p in enumerate(each.kernel.parameters) if is_float(p.dtype))
    )
    numbers = np.random.default_rng(each.program.seed)
    cotangents = [
        numbers.uniform(-1, 1, out.shape).astype(as_dtype(out.dtype).dtype)
        for out in each.kernel.outputs
    ]
    return Gradient(each, kernel, Stages(kernel, "Custom 'k_gradient'"), cotangents)


def assert_close(got: Results, want: Results, what: str) -> None:
    finite = [np.abs(array[np.isfinite(array)]) for array in want]
    largest = max((float(np.max(each, initial=0)) for each in finite), default=0.0)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, 1e-9, 1e-9 * max(1.0, largest), err_msg=what)


@pytest.mark.parametrize("part", GRADIENTS)
def test_gradients_agree(part: int, tmp_path: Path) -> None:
    size = TOGETHER * 2 // 5
    programs = read(range(size * part, size * (part + 1)), is_smooth=True)
    gradients = [gradient(each) for each in programs]
    inputs = [each.inputs for each in gradients]
    parallel = [each for each in gradients if not each.of.stages.is_order_bound]
    own = by_xla([each.by_jax for each in parallel], [each.inputs for each in parallel])
    by_operations = dict(zip(map(id, parallel), own, strict=True))
    ways = zip(
        gradients,
        by_c(tmp_path, [each.kernel for each in gradients], inputs),
        by_xla([each.stages.function for each in gradients], inputs),
        strict=True,
    )
    compared = 0
    for each, c, xla in ways:
        what = f"program({each.of.program.seed}, True)\n{each.of.program.text}"
        expected = interpret(each.kernel, each.inputs)
        assert_close(c, expected, f"C: {what}")
        assert_close(xla, expected, f"adjoint loops as XLA operations: {what}")
        if id(each) in by_operations:
            assert_close(by_operations[id(each)], expected, f"XLA's gradient: {what}")
        compared += not each.of.program.is_wild and is_slope(each, expected, what)
    assert compared >= 0.3 * len(gradients)


def is_slope(each: Gradient, found: Results, what: str) -> bool:
    """Checks gradients against differences; returns False where a step crosses a kink."""
    numbers = np.random.default_rng(each.of.program.seed)
    floats = [array.dtype.kind == "f" for array in each.of.arrays]
    directions = [
        numbers.uniform(-1, 1, x.shape) if is_one else np.zeros(x.shape)
        for x, is_one in zip(each.of.arrays, floats, strict=True)
    ]
    given = [d for d, is_one in zip(directions, floats, strict=True) if is_one]
    products = [g * d for g, d in zip(found, given, strict=True)]
    slope = sum(float(np.sum(product)) for product in products)
    scale = 1 + sum(float(np.sum(np.abs(product))) for product in products)
    before, after = each.along(directions)
    if not abs(after - before) <= 1e-3 * scale:
        return False
    assert abs((before + after) / 2 - slope) <= 1e-4 * scale, what
    return True


# The bounds themselves.


def allowed(value: str, dtype: str, **arrays: list[float]) -> Iterator[Any]:
    """Yields what executions may make of an expression, as numbers with their bounds."""
    text = f'def k({", ".join(arrays)}):\n    y = output_tensor((1,), "{dtype}")\n    {value}\n'
    inputs = [np.array(array, as_dtype(dtype).dtype) for array in arrays.values()]
    yield from bounds(f"{text}    return y\n", inputs, **OUTSIDE)[0].numbers


@pytest.mark.parametrize(
    ("value", "right", "wrong"),
    [
        ("y[0] = a[0] + a[1]", [0.30000001, 0.3], [0.301, math.nan, math.inf]),
        ("y[0] = a[0] + INF", [math.inf], [3e38, math.nan]),
        ("y[0] = (a[0] + INF) - INF", [math.nan], [math.inf, 0.0]),
        ("y[0] = max(a[0], a[1])", [np.float32(0.2)], [0.1, 0.20001, math.nan]),
        ("y[0] = a[2] + a[2]", [math.inf, 1e38, math.nan], []),  # finite numbers overflow
        ("y[0] = 1.0 / a[3]", [math.inf], [-math.inf, math.nan]),
        ("y[0] = a[4] * 0.5", [0.0, 5e-46], [1e-30]),
    ],
)
def test_what_roundings_allow(value: str, right: list[float], wrong: list[float]) -> None:
    (number,) = allowed(value, "float32", a=[0.1, 0.2, 3e38, 0.0, 1e-45])
    assert all(number.allows(np.float32(got)) for got in right)
    assert not any(number.allows(np.float32(got)) for got in wrong)


def test_decisions_that_depend_on_roundings_are_reported() -> None:
    sums = "(a[0] + a[1]) + a[2] {} a[0] + (a[1] + a[2])"
    for sign in ("<", "==", ">="):
        with pytest.raises(Unsure):
            [*allowed(f"y[0] = 1.0 if {sums.format(sign)} else 0.0", "float32", a=[0.1, 0.2, 0.3])]
    (number,) = allowed("y[0] = 1.0 if a[0] + a[1] < 0.5 else 0.0", "float32", a=[0.1, 0.2])
    assert number.allows(1.0)
    assert not number.allows(0.0)
