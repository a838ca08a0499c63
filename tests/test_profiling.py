"""An op shows under its own name: in XLA's programs, with the caller's line, and in a profile."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from conftest import ROOT
from custom_ops import CASES, Case
from jax.profiler import ProfileData

from msops import Custom

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def hlo_of(function: Any, *inputs: Any) -> str:
    return jax.jit(function).lower(*inputs).compile().as_text()


def primitive_of(case: Case) -> str:
    """Returns the name under which a jaxpr has an op."""
    (name,) = set(
        re.findall(r"= (custom_\w+?)\[", str(jax.make_jaxpr(case.make())(*case.inputs())))
    )
    return name


@each_case
def test_operations_carry_the_name_of_the_op_and_of_the_scope(case: Case) -> None:
    op = case.make()

    def model(*xs: Any) -> Any:
        with jax.named_scope("my_layer"):
            return op(*xs)

    names = set(re.findall(r'op_name="([^"]*)"', hlo_of(model, *case.inputs())))
    wanted = f"jit(model)/my_layer/{primitive_of(case)}"
    assert any(name.startswith(wanted) for name in names), names


@each_case
def test_operations_carry_the_line_that_calls_the_op(case: Case) -> None:
    text = hlo_of(case.make(), *case.inputs())
    files = re.findall(r'^\d+ "(/.*)"$', text, re.MULTILINE)
    assert __file__ in files
    assert not [file for file in files if file.startswith(f"{ROOT / 'msops'}/")]


def events_of(folder: Path) -> set[str]:
    (path,) = folder.rglob("*.xplane.pb")
    planes = ProfileData.from_file(str(path)).planes
    return {event.name for plane in planes for line in plane.lines for event in line.events}


def test_a_profile_shows_the_op_by_name(tmp_path: Path) -> None:
    cases = {case.name: case for case in CASES if case.name in ("aot", "aicpu", "akg_native")}
    x = np.linspace(1, 2, 6, dtype=np.float32)
    square = Custom(np.square, lambda x: x, lambda x: x)
    compiled = {name: jax.jit(case.make()) for name, case in cases.items()}
    for name, run in compiled.items():
        run(*cases[name].inputs())
    jax.jit(square)(x)
    with jax.profiler.trace(str(tmp_path)):
        results = [run(*cases[name].inputs()) for name, run in compiled.items()]
        jax.block_until_ready([*results, square(x), jax.jit(square)(x)])
    events = events_of(tmp_path)
    for name in ("custom_Multiply", "custom_broadcast.cc", "custom_solve_lower", "custom_square"):
        assert [event for event in events if event.startswith(name)], sorted(events)
