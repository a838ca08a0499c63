"""An op shows under its own name: in XLA's programs, with the caller's line, and in a profile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from conftest import ROOT
from custom_ops import CASES, Case
from jax.profiler import ProfileData
from quick_cases import one_in
from test_custom_transformations import weighted_sum

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(autouse=True)
def keep_lines() -> Iterator[None]:
    """Programs that differ in their lines alone are one for JAX's cache, which `make test` has."""
    found = jax.config.jax_compilation_cache_include_metadata_in_key
    jax.config.update("jax_compilation_cache_include_metadata_in_key", True)
    yield
    jax.config.update("jax_compilation_cache_include_metadata_in_key", found)


def hlo_of(function: Any, *inputs: Any) -> str:
    return jax.jit(function).lower(*inputs).compile().as_text()


def primitive_of(case: Case) -> str:
    """Returns the name under which a jaxpr has an op."""
    text = str(jax.make_jaxpr(case.make())(*case.inputs()))
    (name,) = set(re.findall(r"custom_(?!vjp_call)[\w.<>]+(?=\[)", text))
    return name


@pytest.mark.parametrize("case", one_in(2, CASES), ids=lambda case: case.name)
def test_operations_carry_the_name_of_the_op_and_of_the_scope(case: Case) -> None:
    op = case.make()

    def model(*xs: Any) -> Any:
        with jax.named_scope("my_layer"):
            return op(*xs)

    names = set(re.findall(r'op_name="([^"]*)"', hlo_of(model, *case.inputs())))
    wanted = f"jit(model)/my_layer/{primitive_of(case)}"
    assert any(name.startswith(wanted) for name in names), names


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.has_bprop], ids=lambda case: case.name
)
def test_operations_of_a_gradient_carry_the_name(case: Case) -> None:
    op = case.make()
    text = hlo_of(jax.grad(lambda *xs: weighted_sum(op(*xs))), *case.inputs())
    names = set(re.findall(r'op_name="([^"]*)"', text))
    assert any(f"({primitive_of(case)})" in name for name in names), names


@each_case
def test_operations_carry_the_line_that_calls_the_op(case: Case) -> None:
    text = hlo_of(case.make(), *case.inputs())
    files = re.findall(r'^\d+ "(/.*)"$', text, re.MULTILINE)
    assert __file__ in files
    assert not [file for file in files if file.startswith(f"{ROOT / 'msops'}/")]


def events_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns what a profile has by name, with what it says of each."""
    (path,) = folder.rglob("*.xplane.pb")
    planes = ProfileData.from_file(str(path)).planes
    events = (event for plane in planes for line in plane.lines for event in line.events)
    return {event.name: dict(event.stats) for event in events}


# jaxlib 0.12 makes the type of an event's statistics at the first use, and Python 3.13 warns of it.
@pytest.mark.filterwarnings("ignore:builtin type event_stats has no __module__:DeprecationWarning")
def test_a_profile_shows_the_op_by_name(tmp_path: Path) -> None:
    shown = {
        "aot": "custom_Multiply",
        "aicpu": "custom_multiply_cc",
        "pyfunc": "custom__lambda_",
        "akg_native": "custom_solve_lower",
    }
    cases = {case.name: case for case in CASES}
    ops = {name: (cases[name].make(), cases[name].inputs()) for name in shown}
    raised, inputs = cases["hybrid_two_outputs"].make(), cases["hybrid_two_outputs"].inputs()
    program = jax.jit(raised).lower(*inputs).compile()
    for op, xs in ops.values():
        op(*xs)
    with jax.profiler.trace(str(tmp_path)):
        results = [op(*xs) for op, xs in ops.values()]
        jax.block_until_ready([*results, program(*inputs)])
    events = events_of(tmp_path)
    for name in shown.values():
        assert re.search(rf"^{name}\.\d+$", "\n".join(events), re.MULTILINE), name
    # What XLA fuses it names itself; the program has the op's name for it.
    fused = {e["hlo_op"] for e in events.values() if e.get("hlo_module") == "jit_sum_and_max"}
    lines = program.as_text().splitlines()
    named = [line for line in lines if any(f"%{name} = " in line for name in fused)]
    assert len(named) == len(fused) > 0
    assert all("/custom_sum_and_max/" in line for line in named), named
