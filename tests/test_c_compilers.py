"""Generated C against the same C at -O0, by each compiler of this machine: the same bits.

A C compiler is not trusted: gcc 11 and 12 load the wrong neighbours in vectors. The order of each
addition is that of the text, so only functions of libm, which differ in vectors, may round
differently. `MSOPS_TEST_LOOPS` names a folder with more kernels, see BUILD_NOTES.md.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import inspect
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from loop_corpus import CORPUS, specialised
from loop_idioms import idioms
from loop_ir import (
    FLAGS,
    LIBRARY,
    CSource,
    Kernel,
    Spec,
    adjoint,
    analyse,
    as_dtype,
    flags_of_gcc,
    is_float,
    kernel_text,
    read_kernel,
)
from loop_native import call_for_code, shipped, together
from loop_patterns import patterns
from loop_strategies import WIDE_DTYPES, kernels
from test_c_masked_rows import concatenated, rolled
from test_native_loops_run import random_cases

from msops.lang import allocate, output_tensor

ROOT = Path(__file__).parent.parent

COMPILERS = sorted(
    {
        # A link may stand for a compiler, and its name for a language.
        Path(path).resolve(): name
        for name in ("g++", "g++-11", "g++-12", "clang++", "clang++-16", "clang++-19")
        if (path := shutil.which(name))
    }.values()
)
EXACT = {"sqrt", "fabs", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "copysign"}
ROUNDED = re.compile(rf"\b(?:ms_)?({'|'.join(sorted(set(LIBRARY) - EXACT))})f?\(")
PLAIN = ("-O0", "-march=native", "-ffp-contract=off")
SLOW = pytest.mark.slow
TOGETHER = 40
"""Kernels in one translation unit."""


class Program(NamedTuple):
    """A kernel, and what to run it on."""

    name: str
    kernel: Kernel
    inputs: Sequence[np.ndarray]


def built(folder: Path, compiler: str, flags: Sequence[str], sources: Sequence[CSource]):
    """Returns one library with the functions of all sources, by a compiler."""
    name = f"{compiler}_{len(list(folder.iterdir()))}"
    (folder / f"{name}.cc").write_text("\n".join(together(sources)))
    command = [compiler, "-w", "-shared", "-fPIC", f"{name}.cc", "-o", f"{name}.so", "-lm", *flags]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / f"{name}.so"))


def knows_float16(compiler: str) -> bool:
    command = [compiler, "-march=native", "-fsyntax-only", "-xc++", "-"]
    text = "_Float16 half(_Float16 x) { return x; }"
    return not subprocess.run(command, input=text, text=True, capture_output=True).returncode


def check_compiler(folder: Path, compiler: str, programs: Sequence[Program]) -> int:
    """Compares programs with themselves at -O0; returns the number of those that were compared."""
    made = [(p, *shipped(p.kernel, n)) for n, p in enumerate(programs)]
    # Those that ask gcc for a flag together, so that others are compiled without it.
    made.sort(key=lambda each: flags_of_gcc(each[2].text))
    if not knows_float16(compiler):
        made = [each for each in made if "_Float16" not in each[2].text]
    groups = [
        group[start : start + TOGETHER]
        for _, alike in itertools.groupby(made, lambda each: flags_of_gcc(each[2].text))
        for group in [[*alike]]
        for start in range(0, len(group), TOGETHER)
    ]
    for group in groups:
        sources = [source for _, _, source in group]
        own = () if "clang" in compiler else flags_of_gcc(sources[0].text)
        quick = built(folder, compiler, ("-O3", *FLAGS, *own), sources)
        plain = built(folder, compiler, PLAIN, sources)
        for program, kernel, source in group:
            want = call_for_code(plain, kernel, source, program.inputs)
            got = call_for_code(quick, kernel, source, program.inputs)
            try:
                assert got[0] == want[0]
                for one, other in zip(got[1], want[1], strict=True):
                    check_same(one, other, is_rounded=bool(ROUNDED.search(source.text)))
            except AssertionError as error:
                error.add_note(f"{program.name}\n{kernel_text(kernel)}\n{source.text}")
                raise
    return len(made)


def check_same(got: np.ndarray, want: np.ndarray, is_rounded: bool) -> None:
    """Checks that arrays have the same bits, NaN aside; or nearly, where libm has rounded."""
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
        return
    if is_rounded:
        tolerance = 1e-9 if got.dtype == np.float64 else 2e-2 if got.dtype.itemsize == 2 else 1e-3
        wide = want.astype(np.float64)
        largest = np.max(np.abs(wide[np.isfinite(wide)]), initial=1e-30)
        np.testing.assert_allclose(
            got.astype(np.float64), wide, rtol=tolerance, atol=tolerance * largest
        )
        return
    bits = f"uint{8 * got.dtype.itemsize}"
    is_number = ~(np.isnan(got) & np.isnan(want))
    np.testing.assert_array_equal(got.view(bits)[is_number], want.view(bits)[is_number])


def with_gradients(programs: Sequence[Program]) -> Iterator[Program]:
    """Yields programs, and the gradients of those that have one."""
    for program in programs:
        yield program
        parameters = program.kernel.parameters
        wanted = tuple(is_float(p.dtype) for p in parameters)
        if not any(wanted) or not any(is_float(b.dtype) for b in program.kernel.outputs):
            continue
        gradient = adjoint(analyse(program.kernel).kernel, wanted)
        random = np.random.default_rng(1)
        cotangents = [
            random.standard_normal(b.shape).astype(as_dtype(b.dtype).dtype)
            for b in gradient.parameters[len(parameters) :]
        ]
        yield Program(f"gradient of {program.name}", gradient, [*program.inputs, *cotangents])


def of_the_corpus(size: int) -> list[Program]:
    """Returns the kernels of the tests' corpus."""
    programs = []
    for case in CORPUS:
        inputs = case.inputs(np.random.default_rng(size), size)
        programs.append(Program(case.name, specialised(case, inputs), inputs))
    return programs


def kept(a, b):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > b[i, j]:
                y[i, j] = a[i, j]
    return y


PIECEWISE = (concatenated, rolled, kept)


def piecewise(rows: int, columns: int, dtype: str) -> Iterator[Program]:
    """Yields rows of two arrays that conditions choose from."""
    random = np.random.default_rng(rows * columns)
    inputs = [random.integers(-9, 9, (rows, columns)).astype(as_dtype(dtype).dtype) for _ in "ab"]
    for function in PIECEWISE:
        yield read(function, inputs)


def exchanged(x):
    for turn in range(6):
        for i in range(turn % 2, x.shape[0] - 1, 2):
            low = min(x[i], x[i + 1])
            high = max(x[i], x[i + 1])
            x[i] = low
            x[i + 1] = high
    return x


def passed_on(x):
    row = allocate((8,), x.dtype)
    for start in range(x.shape[0] - 12):
        for i in range(8):
            row[i] = x[start + i] - x[start + i + 1]
        for i in range(8):
            x[start + i + 4] = row[i]
    return x


def added_up(x):
    for start in range(x.shape[0] - 9):
        for i in range(8):
            x[start + i] = x[start + i] + x[start + i + 1]
    return x


def in_blocks(x):
    for _ in range(4):
        for block in range(3):
            for i in range(16):
                x[3 * block + i] = min(x[3 * block + i + 1], x[3 * block + i] + x[i])
    return x


def read(function: Any, inputs: Sequence[np.ndarray], **attributes: Any) -> Program:
    """Returns a function as a kernel for some inputs."""
    who = f"Custom '{function.__name__}'"
    specs = [Spec(array.shape, array.dtype.name) for array in inputs]
    kernel = read_kernel(function, "akg", who).specialise(specs, attributes, who)
    return Program(f"{function.__name__} {specs}", kernel, inputs)


def random_programs(count: int, start: int) -> Iterator[Program]:
    """Yields random kernels: half of anything, half of what people write."""
    strategies = (kernels(dtypes=WIDE_DTYPES), patterns(), idioms())
    for number, strategy in enumerate(strategies):
        for case in random_cases(count // len(strategies), start + number, strategy):
            yield Program("random", case.kernel, case.inputs)


def of_the_benchmarks() -> Iterator[Program]:
    """Yields the kernels of the benchmarks at their smallest size."""
    with modules_of(ROOT / "benchmarks", "loop_kernels"):
        loops = importlib.import_module("loop_cases").CASES
        nests = importlib.import_module("nest_cases").NESTS
    for case in loops:
        yield read(case.kernel, case.inputs(0))
    for nest in nests:
        yield read(nest.kernel, nest.inputs(nest.lengths[0]))


@contextlib.contextmanager
def modules_of(folder: Path, *hidden: str) -> Iterator[None]:
    """Lets modules of a folder be imported, also those with the names of ours."""
    ours = {name: m for name, m in sys.modules.items() if name.split(".")[0] in hidden}
    for name in ours:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] in hidden]:
            del sys.modules[name]
        sys.modules.update(ours)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("size", [40, pytest.param(133, marks=SLOW)])
def test_the_corpus_has_the_bits_of_plain_code(compiler: str, size: int, tmp_path: Path) -> None:
    programs = of_the_corpus(size)
    if size > 40:
        programs = [*with_gradients(programs)]
    check_compiler(tmp_path, compiler, programs)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_sums_beside_stores_keep_their_order(compiler: str, tmp_path: Path) -> None:
    chosen = [p for p in of_the_corpus(40) if p.name == "pairwise_distance"]
    check_compiler(tmp_path, compiler, [*with_gradients(chosen)])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_vectors_that_overlap_those_of_the_next_iteration(compiler: str, tmp_path: Path) -> None:
    """gcc's passes over nests of loops take such vectors for apart."""
    programs = [
        read(function, [np.random.default_rng(size).integers(0, 99, size).astype(dtype)])
        for function in (exchanged, passed_on, added_up, in_blocks)
        for size in (33, 49, 65)
        for dtype in ("int64", "float32", "uint32")
    ]
    check_compiler(tmp_path, compiler, programs)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("rows", [7, *(pytest.param(n, marks=SLOW) for n in (16, 20, 64, 133))])
def test_rows_that_conditions_choose(compiler: str, rows: int, tmp_path: Path) -> None:
    programs = [
        program
        for columns in (1, 2, 3, 4, 5, 7)
        for dtype in ("int8", "float16", "bfloat16", "int32", "float32", "float64")
        for program in piecewise(rows, columns, dtype)
    ]
    check_compiler(tmp_path, compiler, programs)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=SLOW) for n in range(1, 34))])
def test_random_kernels_have_the_bits_of_plain_code(
    compiler: str, part: int, tmp_path: Path
) -> None:
    """3,060 of them for each compiler, in 34 parts, and the gradients of all but the first."""
    programs = [*random_programs(90, 11 + 3 * part)]
    check_compiler(tmp_path, compiler, [*with_gradients(programs)] if part else programs)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_benchmarks_have_the_bits_of_plain_code(compiler: str, tmp_path: Path) -> None:
    check_compiler(tmp_path, compiler, [*with_gradients([*of_the_benchmarks()])])


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_other_loops_have_the_bits_of_plain_code(compiler: str, tmp_path: Path) -> None:
    folder = os.environ.get("MSOPS_TEST_LOOPS")
    if not folder:
        pytest.skip("MSOPS_TEST_LOOPS names no folder of kernels")
    with modules_of(Path(folder), "kernels", "perf_cases"):
        timed = importlib.import_module("perf_cases").PERF
        cases = importlib.import_module("kernels.case").CASES
    programs = []
    for name, (inputs, _, _, attributes) in timed.items():
        case = cases[name]
        values = attributes or case.attrs
        made = [np.asarray(array) for array in inputs()]
        names = [*inspect.signature(case.func).parameters][len(made) :]
        programs.append(read(case.func, made, **dict(zip(names, values, strict=True))))
    check_compiler(tmp_path, compiler, [*with_gradients(programs)])
