"""AICPU kernels: what they see and say, how they fail, and outputs smaller than declared."""

from __future__ import annotations

import logging
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aicpu_cases import UNOPTIMISED
from aicpu_harness import PROBE, X, info, probe
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from msops import Custom, errors

# What kernels see.


def test_kernel_sees_shapes_dtypes_and_sizes() -> None:
    x = jnp.zeros((2, 3), jnp.float16)
    for shape in ((4,), (0, 3)):
        assert probe("Tensors", shape, np.float32, x, jnp.float32(1)).shape == shape


@pytest.mark.parametrize(
    ("value", "read_as", "text"),
    [
        (-(2**40), "int", str(-(2**40))),
        (2, "float", "2"),
        (0.25, "float", "0.25"),
        (True, "bool", "1"),
        ("größer ok", "str", "größer ok"),
        ("", "str", ""),
        (27, "dtype", "DT_BFLOAT16"),
        ((2, 0, 3), "shape", "2;0;3;"),
        ((1, 2, 3), "listInt", "3:1;2;3;"),
        ((0.5, 2.0), "listFloat", "2:0.5;2;"),
        ((1, 2), "listFloat", "2:1;2;"),
        ((True, False, True), "listBool", "3:1;0;1;"),
        (tuple("abcdefghijkl"), "listStr", "12:a;b;c;d;e;f;g;h;i;j;k;l;"),
        (((1, 2), (), (3,)), "listListInt", "[1;2;][][3;]"),
    ],
    ids=str,
)
def test_kernel_reads_attributes_of_every_type(value: Any, read_as: str, text: str) -> None:
    got = probe("Attributes", (40,), np.int32, X, attributes={"as": read_as, "value": value})
    assert bytes(np.asarray(got, np.uint8)).rstrip(b"\0").decode() == text


def test_reading_an_attribute_as_another_type_is_an_error() -> None:
    with pytest.raises(
        errors.KernelError, match="'value' was asked for as an integer, but is a fl"
    ):
        probe("Attributes", (40,), np.int32, X, attributes={"as": "int", "value": 0.5})


def test_absent_attribute_is_null() -> None:
    got = probe("Attributes", (4,), np.int32, X, attributes={"as": "int"})
    assert bytes(np.asarray(got, np.uint8)) == b"none"


def test_parallel_for_visits_every_entry_once_on_xlas_threads() -> None:
    visits, facts = probe("Cores", ((1000,), (3,)), (np.int32, np.int32), X, outputs=2)
    assert (np.asarray(visits) == 1).all()
    cores, threads, sum_of_nested = np.asarray(facts)
    assert cores >= 4
    assert threads == min(cores - 2, len(os.sched_getaffinity(0)))
    assert sum_of_nested == 10


def test_log_macros_reach_pythons_logging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "msops.aicpu"):
        in_thread = int(probe("Log", (), np.int32, X))
    got = [(r.levelname, r.getMessage()) for r in caplog.records if r.name == "msops.aicpu"]
    expected = [
        ("DEBUG", "old debug 1"),
        ("INFO", "old info"),
        ("INFO", "old event"),
        ("WARNING", "old warning"),
        ("ERROR", "old error"),
        ("DEBUG", "new debug"),
        ("INFO", "new info \ufffd"),
        ("WARNING", "new warning"),
    ]
    assert got == expected + [("WARNING", "from another thread")] * bool(in_thread)
    place = caplog.records[0]
    assert (place.filename, place.funcName) == ("probe.cc", "Compute")
    line = (ROOT / "tests/aicpu_probes/probe.cc").read_text().splitlines()[place.lineno - 1]
    assert "old debug" in line


def test_lines_below_the_loggers_level_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "msops.aicpu"):
        jax.block_until_ready(probe("Log", (), np.int32, X))
    assert {r.levelname for r in caplog.records} == {"WARNING", "ERROR"}


# Kernels that fail.


@pytest.mark.parametrize(
    "transform", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"]
)
def test_last_error_lines_are_part_of_the_exception(transform: Any) -> None:
    op = Custom(
        PROBE, (), np.float32, func_type="aicpu", reg_info=info("Fail", code=1), build=UNOPTIMISED
    )
    with pytest.raises(
        (errors.KernelError, jax.errors.JaxRuntimeError, ValueError),
        match=r"(?s)Custom 'probe.cc' on CPU: Compute returned 1 \(KERNEL_STATUS_PARAM_INVALID\), "
        r"expected 0:\n  the first line\n  the last line, 100% of 7\n"
        r"  kernel Fail of library probe.cc \([0-9a-f]+\)\n"
        r"  inputs: float32\[6?\]; outputs: float32\[\]\n",
    ):
        jax.block_until_ready(transform(lambda x: op(x, 1))(X))


def test_failure_without_a_line_names_code_and_kernel() -> None:
    with pytest.raises(
        errors.KernelError, match=r"returned 5 .*SHARDER_ERROR\), expected 0:\n  ker"
    ):
        probe("Fail", (), np.float32, X, attributes={"code": 5})


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("error", "std::runtime_error: on purpose"),
        ("number", "int"),
        ("nothing", "aicpu::Silent: "),
        ("loop", "std::out_of_range: from a loop"),
    ],
)
def test_exception_of_a_kernel_becomes_an_error(how: str, text: str) -> None:
    with pytest.raises(errors.KernelError, match=f"Compute threw an exception.*:\n  {text}\n"):
        probe("Throw", (), np.float32, X, attributes={"how": how})


# Outputs smaller than declared.


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=4).map(
        lambda pairs: ([small for small, _ in pairs], [small + more for small, more in pairs])
    )
)
@settings(max_examples=40, deadline=None)
def test_true_shapes_come_back_and_results_lie_in_the_corner(
    shapes: tuple[list[int], list[int]],
) -> None:
    dims, room = shapes
    x = np.arange(1, np.prod(room) + 1, dtype=np.int16).reshape(room)
    got, sizes = probe(
        "Crop", room, np.int16, jnp.asarray(x), attributes={"dims": dims}, dynamic_outputs=True
    )
    expected = np.zeros_like(x)
    corner = tuple(map(slice, dims))
    expected[corner] = x[corner]
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(sizes, [dims])
    assert sizes.dtype == np.int32


@pytest.mark.parametrize(
    ("dims", "dynamic", "text"),
    [
        (
            (2,),
            False,
            r"gave output 0 the shape \[2\], out_shape declares \[6\]:(?s:.*)dynamic_outp",
        ),
        (
            (7,),
            True,
            r"SetDimSizes: expected at most the 6 entries that out_shape declares, got .*7",
        ),
        ((7,), False, "SetDimSizes: expected at most"),
        ((-1,), True, "SetDimSizes: expected at most"),
        ((2**62, 2**62), True, "SetDimSizes: expected at most"),
        ((2, 3), True, r"gave output 0 the shape \[2, 3\], out_shape declares \[6\]"),
        ((1,) * 40, True, "the largest shape the output can have, with as many axes"),
    ],
)
def test_shape_that_an_output_cannot_have_is_an_error(
    dims: tuple[int, ...], dynamic: bool, text: str
) -> None:
    with pytest.raises(errors.KernelError, match=text):
        probe("Reshape", (6,), np.float32, X, attributes={"dims": dims}, dynamic_outputs=dynamic)


def test_bprop_gets_the_true_shapes_with_the_outputs() -> None:
    attributes = {"dims": (2,)}
    op = Custom(
        PROBE,
        (4,),
        np.float32,
        func_type="aicpu",
        reg_info=info("Reshape", **attributes),
        dynamic_outputs=True,
        build=UNOPTIMISED,
        bprop=lambda x, dims, out, dout: (jnp.where(jnp.arange(6) < out[1][0, 0], 7.0, x), None),
    )
    got = jax.jit(jax.grad(lambda x: op(x, (2,))[0].sum()))(X)
    np.testing.assert_array_equal(got, [7, 7, 2, 3, 4, 5])


def test_dynamic_outputs_of_a_whole_batch_are_refused() -> None:
    for vmap in ("expand_dims", "broadcast_all"):
        with pytest.raises(
            errors.ArgumentValueError, match="dynamic_outputs does not go with vmap="
        ):
            probe("Reshape", (6,), np.float32, X, dynamic_outputs=True, vmap=vmap)


@pytest.mark.parametrize("func", ["./a.so:F", np.sin])
def test_dynamic_outputs_are_refused_elsewhere(func: Any) -> None:
    with pytest.raises(errors.ArgumentValueError, match="dynamic_outputs is for func_type 'aicpu'"):
        Custom(func, (1,), np.float32, dynamic_outputs=True)
