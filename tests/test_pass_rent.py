"""Each optional pass to C pays rent: it changes the C of three kernels of two sources.

`benchmarks/passes.py` records them in passes.json, those first that compile quickly.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
RECORD: dict[str, list[str]] = json.loads((BENCHMARKS / "results" / "passes.json").read_text())
# Passes with too few kernels, and the times that kernels take without them. They stay until
# something general does the same.
TOO_FEW = {
    "version ragged rows": "attention with lengths per row 1.5, its gradient 11",
    "alternate arrays": "gray_scott, 1.26 to 1.44",
    "sum over neighbours": "gradients of stencils: harris 2.65; windows: bilateral 62; n_body 6.5",
    "update later elements": "eliminations, 7.6",
    "block triangles": "cholesky, 1.39, its gradient 2.1",
    "split searches": "searches, 6.4",
}


@pytest.fixture(scope="module")
def measuring() -> Iterator[tuple[ModuleType, ModuleType]]:
    """The modules of the benchmark that yield kernels and trace passes."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("pass_kernels"), importlib.import_module("pass_trace")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_each_pass_has_three_kernels_of_two_sources(
    measuring: tuple[ModuleType, ModuleType],
) -> None:
    _, tracing = measuring
    assert tuple(RECORD) == tracing.OPTIONAL, "run `benchmarks/run.py passes --no-times`"
    few = {
        name
        for name, labels in RECORD.items()
        if len(labels) < 3 or len({label.partition(":")[0] for label in labels}) < 2
    }
    assert few == TOO_FEW.keys()


def _check(measuring: tuple[ModuleType, ModuleType], wanted: dict[str, list[str]]) -> None:
    kernels, tracing = measuring
    labels = {label for found in wanted.values() for label in found}
    seen = set()
    for case in kernels.cases():
        if case.label not in labels:
            continue
        seen.add(case.label)
        traced = tracing.trace(case.make())
        for name, found in wanted.items():
            if case.label in found:
                assert tracing.is_needed(traced, name), f"{case.label} is the same without {name}"
    ours = ("loops:", "nests:", "tests:")  # The others are in folders that may not be there.
    assert not {label for label in labels - seen if label.startswith(ours)}


def test_a_pass_changes_the_first_kernel_that_is_recorded(
    measuring: tuple[ModuleType, ModuleType],
) -> None:
    _check(measuring, {name: labels[:1] for name, labels in RECORD.items()})


@pytest.mark.slow
def test_a_pass_changes_all_kernels_that_are_recorded(
    measuring: tuple[ModuleType, ModuleType],
) -> None:
    _check(measuring, RECORD)
