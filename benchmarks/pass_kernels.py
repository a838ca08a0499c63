"""All kernels that the passes of the loop compiler are judged by, each with its inputs.

Those of the benchmarks and of the tests are always there. ``MSOPS_TEST_LOOPS`` and
``MSOPS_TEST_AKG`` name folders with more; BUILD_NOTES.md says what they hold.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import msops
from msops._loops.frontends.program import read_kernel
from msops._loops.frontends.spec import Spec
from msops._loops.ir.nodes import Kernel
from msops._loops.pipeline import adjoint, analyse

HERE = Path(__file__).parent
_LENGTH = 96
_OURS = ("loops", "nests", "everyday", "tests")
SOURCES = ("loops", "nests", "everyday", "polybench", "more", "tests", "akg", "gradients")


@dataclass(frozen=True)
class Case:
    """One kernel for one set of shapes.

    Attributes:
      source: of `SOURCES`.
      name: of the kernel, with its size where it has several.
      make: returns the kernel as a front end makes it.
      inputs: returns arrays for its first parameters; random ones do for the others.
      is_ours: whether it is in this repository.
    """

    source: str
    name: str
    make: Callable[[], Kernel]
    inputs: Callable[[], Sequence[np.ndarray]]
    is_ours: bool

    @property
    def label(self) -> str:
        """The source and the name."""
        return f"{self.source}:{self.name}"


def cases() -> Iterator[Case]:
    """Yields every kernel, and after it the kernel of its gradients, if it has any."""
    for collection in (_of_loops, _of_nests, _of_everyday, _of_tests, _of_folder, _of_akg):
        for case in collection():
            yield case
            if case.source not in ("tests", "akg"):
                make = functools.partial(_gradients, case)
                yield Case("gradients", case.name, make, case.inputs, case.is_ours)


def _of_loops() -> Iterator[Case]:
    for case in _modules(HERE, "loop_cases")[0].CASES:
        for size in (0, 1):
            yield _case(
                "loops", f"{case.name}@{size}", case.kernel, lambda c=case, s=size: c.inputs(s)
            )


def _of_nests() -> Iterator[Case]:
    for nest in _modules(HERE, "nest_cases")[0].NESTS:
        for length in nest.lengths:
            inputs = lambda nest=nest, length=length: nest.inputs(length)  # noqa: E731
            yield _case("nests", f"{nest.name}@{length}", nest.kernel, inputs)


def _of_everyday() -> Iterator[Case]:
    for each in _modules(HERE, "everyday_cases")[0].EVERYDAY:
        inputs = lambda each=each: each.inputs(each.length)  # noqa: E731
        yield _case("everyday", each.name, each.kernel, inputs)


def _of_tests() -> Iterator[Case]:
    # Those of the tree whose msops this is: tests import what others may not have.
    tests = Path(msops.__file__).parents[1] / "tests"
    for case in _modules(tests, "loop_corpus")[0].CORPUS:
        inputs = lambda case=case: case.inputs(np.random.default_rng(0), 32)  # noqa: E731
        yield _case("tests", case.name, case.func, inputs, case.attributes)


def _of_folder() -> Iterator[Case]:
    folder = os.environ.get("MSOPS_TEST_LOOPS")
    if not folder:
        return
    sizes, rows = _modules(Path(folder), "perf_cases", "kernels.case")
    for name, row in rows.CASES.items():
        source = row.func.__module__.split(".")[-1]
        # Those that are timed there have a size of their own.
        inputs, _, _, attrs = sizes.PERF.get(name, (lambda row=row: _at_length(row), 0, 0, ()))
        yield _case(source, name, row.func, inputs, attrs or row.attrs)


def _at_length(row: Any) -> Sequence[np.ndarray]:
    return row.inputs(np.random.default_rng(0), _LENGTH, np.dtype(row.dtypes[0]).type)


def _of_akg() -> Iterator[Case]:
    folder = os.environ.get("MSOPS_TEST_AKG")
    if not folder:
        return
    # A program: it runs the operators that its arguments name.
    arguments, sys.argv = sys.argv, ["akg_ops.py", "none of them"]
    try:
        with contextlib.redirect_stdout(None):
            (program,) = _modules(Path(folder), "akg_ops")
    finally:
        sys.argv = arguments
    for module, name, inputs, _, args, options, takes_list, _, tag in program.SPECS:
        try:
            operator = getattr(importlib.import_module(module), name)
        except ImportError:
            continue
        kernel = program.wrapper(operator, args, options, takes_list, len(inputs))
        yield _case("akg", f"{name}[{tag}]" if tag else name, kernel, lambda given=inputs: given)


def _case(
    source: str,
    name: str,
    function: Callable[..., Any],
    inputs: Callable[[], Sequence[Any]],
    attrs: Mapping[str, Any] | Sequence[Any] = (),
) -> Case:
    def arrays() -> list[np.ndarray]:
        return [np.asarray(array) for array in inputs()]

    def make() -> Kernel:
        given, who = arrays(), f"Custom '{name}'"
        specs = [Spec(array.shape, array.dtype.name) for array in given]
        named = attrs
        if not isinstance(named, Mapping):
            names = list(inspect.signature(function).parameters)[len(given) :]
            named = dict(zip(names, named, strict=False))
        return read_kernel(function, "akg", who).specialise(specs, named, who)

    return Case(source, name, make, arrays, source in _OURS)


def _gradients(case: Case) -> Kernel:
    kernel = analyse(case.make()).kernel
    return adjoint(kernel, tuple(each.dtype.startswith("float") for each in kernel.parameters))


def _modules(folder: Path, *names: str) -> list[ModuleType]:
    """Returns modules of a folder, although others may have the names of what they import."""
    kept = {name: module for name, module in sys.modules.items() if not _is_of(module, folder)}
    theirs = {path.stem for path in folder.iterdir()}
    hidden = {name: kept[name] for name in kept if name.partition(".")[0] in theirs}
    for name in hidden:
        del sys.modules[name]
    # A folder without __init__.py yields to a module of its name that comes later in the path.
    paths, sys.path = sys.path, [str(folder), *(path for path in sys.path if path != str(HERE))]
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path = paths
        sys.modules.update(hidden)


def _is_of(module: ModuleType, folder: Path) -> bool:
    return Path(getattr(module, "__file__", None) or "/").is_relative_to(folder)


def kernel_of(case: Case) -> Kernel | None:
    """Returns the kernel of a case; None if it has none, such as one without gradients."""
    try:
        return case.make()
    except Exception:  # Operators of others raise what they like.
        return None
