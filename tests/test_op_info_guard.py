"""The dtype guard: against a brute-force matcher, against MindSpore, and what it says."""

import ast
import html
import itertools
import json
import re
from pathlib import Path

import jax
import pytest
from aicpu_harness import PROBE
from conftest import KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st
from random_examples import examples

from msops import Custom
from msops.errors import (
    ArgumentValueError,
    MsopsError,
    OpInfoError,
    OpInfoTypeError,
    OpInfoValueError,
)
from msops.ops import CustomRegOp, DataType

DTYPES = ("float32", "int32")
FORMATS = ("", "DefaultFormat", "NCHW")


def info_of(inputs, outputs, rows, target="CPU"):
    """Returns op info from texts: kinds by port, and dtype[:format] by row."""

    def pair(text):
        dtype, colon, layout = text.partition(":")
        return dtype, layout if colon else "DefaultFormat"

    return {
        "op_name": "add",
        "target": target,
        "inputs": [{"name": f"x{i}", "paramType": kind} for i, kind in enumerate(inputs)],
        "outputs": [{"name": f"y{i}", "paramType": kind} for i, kind in enumerate(outputs)],
        "dtype_format": [[pair(text) for text in row] for row in rows],
    }


def add(*_):
    """Stands for a kernel: programs are only lowered."""


# What guards by the op info for a target, and where.
GUARDED = {
    "CPU": (add, "pyfunc", "cpu"),
    "GPU": (f"{KERNELS}/float_ops.cc:Multiply", "aot", "cuda"),
    "Ascend": (PROBE, "aicpu", "cpu"),
}


def make_op(info, outputs=("float32",)):
    func, func_type, _ = GUARDED[info["target"]]
    shape, dtype = tuple((1,) for _ in outputs), tuple(map(jax.numpy.dtype, outputs))
    if len(outputs) == 1:
        shape, dtype = shape[0], dtype[0]
    return Custom(func, shape, dtype, func_type, reg_info=info)


def lower(info, inputs, outputs):
    """Lowers a call with tensors of these dtypes, and lists of tensors."""

    def struct(dtype):
        return jax.ShapeDtypeStruct((1,), jax.numpy.dtype(dtype))

    args = [struct(x) if isinstance(x, str) else list(map(struct, x)) for x in inputs]
    with jax.enable_x64(True):
        traced = jax.jit(make_op(info, outputs)).trace(*args)
        traced.lower(lowering_platforms=(GUARDED[info["target"]][2],))


def accepts(info, inputs, outputs):
    """Returns whether the guard lets a call pass; what comes behind it may refuse the call."""
    try:
        lower(info, inputs, outputs)
    except (OpInfoError, ArgumentValueError):  # the latter for more inputs than are listed
        return False
    except MsopsError:
        return True
    return True


R, D, O = "required", "dynamic", "optional"  # noqa: E741
ADD = info_of([R, R], [R], [["float32"] * 3, ["float16:", "", "float16:NC1HWC0"]])


def brute_force(info, inputs, outputs):
    """Returns whether some row, of all the calls that it accepts up to a size, accepts this one."""
    return any(
        call_accepted(info, row, inputs, outputs, lengths)
        for row in info["dtype_format"] or [None]
        for lengths in itertools.product((0, 1, 2, 3), repeat=len(outputs) + 1)
    )


def call_accepted(info, row, inputs, outputs, lengths):
    count = len(info["inputs"])
    row_inputs, row_outputs = (row[:count], row[count:]) if row else (None, None)

    def entry_accepts(pair, dtype):
        if pair is None:
            return True
        if info["target"] in ("CPU", "GPU") and pair[1] == "NCHW":
            return False
        return pair[0] in ("", dtype)

    if info["inputs"]:
        if len(inputs) > len(info["inputs"]):
            return False
        for position, port in enumerate(info["inputs"]):
            pair = row_inputs[position] if row else None
            if position >= len(inputs):
                if port["paramType"] != "optional":
                    return False
                continue
            value = inputs[position]
            if isinstance(value, tuple) and port["paramType"] != "dynamic":
                return False
            values = value if isinstance(value, tuple) else (value,)
            # The entry of an empty list still has a format, which must be one of the target.
            if not values and not entry_accepts(pair and ("", pair[1]), ""):
                return False
            if not all(entry_accepts(pair, dtype) for dtype in values):
                return False
    if not info["outputs"] and not info["inputs"]:
        return True
    rest = list(outputs)
    remaining_kinds = [port["paramType"] for port in info["outputs"]]
    for position, port in enumerate(info["outputs"]):
        pair = row_outputs[position] if row else None
        later = remaining_kinds[position:]
        if port["paramType"] == "dynamic":
            taken, rest = rest[: lengths[0]], rest[lengths[0] :]
            if not taken and not entry_accepts(pair and ("", pair[1]), ""):
                return False
        elif not rest and set(later) <= {"optional"} and "dynamic" not in remaining_kinds:
            return True
        elif not rest:
            return False
        else:
            taken, rest = rest[:1], rest[1:]
        if not all(entry_accepts(pair, dtype) for dtype in taken):
            return False
    return not rest


kinds = st.sampled_from([R, R, D, O])
entries = st.builds("{}:{}".format, st.sampled_from(["", *DTYPES]), st.sampled_from(FORMATS))
dtypes = st.sampled_from(DTYPES)


@st.composite
def calls(draw):
    """Draws an info and a call that is near to matching it."""
    ins = draw(st.lists(kinds, max_size=3))
    outs = draw(st.lists(kinds, max_size=3).filter(lambda k: k.count(D) <= 1))
    rows = [[draw(entries) for _ in (*ins, *outs)] for _ in range(draw(st.integers(0, 3)))]
    info = info_of(ins, outs, rows, draw(st.sampled_from(sorted(GUARDED))))
    tensors = st.lists(dtypes, max_size=2).map(tuple)
    inputs = [draw(tensors if k == D and draw(st.booleans()) else dtypes) for k in ins]
    change = draw(st.integers(0, 9))
    if change == 0:
        inputs.append(draw(dtypes))
    elif change == 1 and inputs:
        inputs[0] = draw(tensors)
    elif change in (2, 3):
        inputs = inputs[:-1]
    # Only a function of Python may have no outputs.
    least = max(0 if info["target"] == "CPU" else 1, len(outs) - 1)
    outputs = draw(st.lists(dtypes, min_size=least, max_size=max(least, len(outs) + 1)))
    return info, inputs, outputs


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(calls())
def test_the_guard_agrees_with_a_brute_force_matcher(call):
    info, inputs, outputs = call
    assert accepts(info, inputs, outputs) == brute_force(info, inputs, outputs)


ORACLE = json.loads((Path(__file__).parent / "oracle" / "op_info_mindspore_2_7_2.json").read_text())
WIDTHS = {"float16": "float32", "float64": "float32", "int64": "int32"}


def info_of_rows(rows):
    builder = CustomRegOp().target("CPU")
    for index in range(len(rows[0]) - 1):
        builder.input(index, f"x{index}")
    builder.output(0, "y")
    for row in rows:
        builder.dtype_format(*row)
    return builder.get_op_info()


@pytest.mark.parametrize("call", ORACLE["calls"], ids=lambda call: "-".join(call["inputs"]))
def test_mindspore_accepts_what_the_guard_accepts(call):
    rows = ast.literal_eval(call["rows"])
    assert call["accepted"] or not accepts(info_of_rows(rows), call["inputs"], call["inputs"][:1])


@pytest.mark.parametrize("call", ORACLE["calls"], ids=lambda call: "-".join(call["inputs"]))
def test_mindspore_on_cpu_is_looser_only_in_widths_formats_and_outputs(call):
    """Pins an oddity that msops leaves out.

    2.7.2 on CPU takes a float of any width for another and int32 for int64, and looks neither at
    formats nor at outputs: a kernel for float32 then gets the bytes of a float64.
    """
    rows = ast.literal_eval(call["rows"])
    loose = [[(WIDTHS.get(dtype, dtype), "") for dtype, _ in row] for row in rows]
    loose = [(*row[:-1], ("", "")) for row in loose]
    inputs = [WIDTHS.get(dtype, dtype) for dtype in call["inputs"]]
    assert accepts(info_of_rows(loose), inputs, inputs[:1]) == call["accepted"]


@pytest.mark.parametrize(
    ("info", "inputs", "outputs"),
    [
        (ADD, ["float32"] * 2, ["float32"]),
        (ADD | {"target": "Ascend"}, ["float16", "bool"], ["float16"]),
        (info_of([], [], []), ["int8", ("int8",)], ["bool", "bool"]),
        (info_of([], [R], [["float32"]]), ["int8", "bool"], ["float32"]),
        (info_of([R], [R], []), ["int8"], ["bool"]),
        (info_of([D], [R], [["float32", ""]]), [("float32", "float32")], ["int8"]),
        (info_of([D], [R], [["float32", ""]]), ["float32"], ["int8"]),
        (info_of([R, O, O], [R], [["int8"] * 4]), ["int8"], ["int8"]),
        (info_of([R], [R, D], [["int8", "bool", "int8"]]), ["int8"], ["bool", "int8", "int8"]),
        (info_of([R], [], [["int8"]]), ["int8"], []),
        (
            info_of([R, D, D], [R, D], []),
            ["int8", ("bool", "bool"), ("int8", "bool")],
            ["bool", "int8"],
        ),
    ],
)
def test_a_call_passes(info, inputs, outputs):
    assert accepts(info, inputs, outputs)


@pytest.mark.parametrize(
    ("outputs", "fits"),
    [
        (["bool", "float32"], True),
        (["bool", "int8", "float32"], True),
        (["bool", "int8", "int8", "float32"], True),
        (["bool", "int8", "bool", "float32"], False),
        (["bool", "int8", "int8", "bool"], False),
        (["int8", "int8", "int8", "float32"], False),
    ],
)
def test_dynamic_output_takes_what_the_others_leave(outputs, fits):
    info = info_of([R], [R, D, R], [["int8", "bool", "int8", "float32"]])
    if fits:
        lower(info, ["int8"], outputs)
    else:
        with pytest.raises(OpInfoTypeError):
            lower(info, ["int8"], outputs)


def shown(info):
    """Returns the rows that an op shows in a notebook."""
    rows = re.findall(r"<td><code>(.*?)</code></td></tr>", make_op(info)._repr_html_())
    return tuple(map(html.unescape, rows))


def test_rows_are_printed_readably():
    info = info_of(
        [R, D, O],
        [R, R],
        [["float32", "", "int8:", "bool:", ":NCHW"], ["float16:NC1HWC0", "int8"] + ["bool"] * 3],
    )
    assert shown(info) == (
        "(float32, [any, ...], optional int8) -> (bool, any:NCHW)",
        "(float16:NC1HWC0, [int8, ...], optional bool) -> (bool, bool)",
    )
    assert shown(info_of([R], [], [["int8"]])) == ("(int8) -> ()",)
    assert shown(info_of([], [R], [["int8"]])) == ("(...) -> int8",)
    assert shown(info_of([R], [D], [])) == ("any dtypes",)


# What no tensor has is left out: texts, and dtypes that are not looked at.
DEFAULTS = [
    name
    for name in dir(DataType)
    if name.endswith("_Default") and getattr(DataType, name)[0] not in ("", "string")
]


@pytest.mark.parametrize("name", DEFAULTS)
def test_remedy_names_a_constant_that_exists_and_helps(name):
    dtype = getattr(DataType, name)[0]
    info = info_of([R], [R], [["int8", "int8"]] if dtype != "int8" else [["bool", "bool"]])
    with pytest.raises(OpInfoTypeError) as error:
        lower(info, [dtype], [dtype])
    assert f".dtype_format(DataType.{name}, ...)" in str(error.value)


LINES = (
    "  (float32, float32) -> float32\n"
    "  (float16, any) -> float16:NC1HWC0\n"
)  # fmt: skip
MESSAGES = [
    (
        ADD,
        (["float64", "float64"], ["float64"]),
        OpInfoTypeError,
        f"input dtypes (float64, float64) match no row of its op info:\n{LINES}"
        "Cast the inputs, or register the row with .dtype_format(DataType.F64_Default, ...).",
    ),
    (
        ADD,
        (["float32", "float32"], ["bool"]),
        OpInfoTypeError,
        f"output dtypes (bool) for input dtypes (float32, float32) match no row of its op info:\n"
        f"{LINES}"
        "Correct out_dtype, or register the row with .dtype_format(DataType.F32_Default, ...).",
    ),
    (
        ADD,
        (["float16", "int8"], ["float16"]),
        OpInfoTypeError,
        f"input dtypes (float16, int8) match a row of its op info only in another format:\n{LINES}"
        "CPU has DefaultFormat alone: register the row with "
        ".dtype_format(DataType.F16_Default, ...).",
    ),
    (
        info_of([D], [], [["int8"]]),
        ([("bool", "int8")], []),
        OpInfoTypeError,
        "input dtypes ([bool, int8]) match no row of its op info:\n  ([int8, ...]) -> ()\n"
        "Cast the inputs, or register the row with .dtype_format(DataType.BOOL_Default).",
    ),
    (
        ADD,
        (["float32"], ["float32"]),
        OpInfoValueError,
        "expected 2 inputs (x0, x1), as its op info lists; got 1.\n"
        "Pass as many, or list each input in the op info with .input(index, name).",
    ),
    (
        info_of([R], [R], []),
        ([("int8", "int8")], ["int8"]),
        OpInfoTypeError,
        "expected input 'x0' to be one tensor; got a list of 2 of them.\n"
        "Pass one tensor, or register the input with param_type 'dynamic'.",
    ),
    (
        info_of([R], [], []),
        (["int8"], ["int8"]),
        OpInfoValueError,
        "expected 0 outputs, as its op info lists; got 1.\n"
        "Correct out_shape and out_dtype, or list each output in the op info with "
        ".output(index, name).",
    ),
    (
        info_of([R], [R, D], []),
        (["int8"], []),
        OpInfoValueError,
        "expected at least 1 output (y0, y1), as its op info lists; got 0.\n"
        "Correct out_shape and out_dtype, or list each output in the op info with "
        ".output(index, name).",
    ),
]


@pytest.mark.parametrize(("info", "call", "error", "message"), MESSAGES)
def test_call_that_does_not_match_is_told_what_does(info, call, error, message):
    with pytest.raises(error) as caught:
        lower(info, *call)
    assert str(caught.value) == f"Custom 'add' on CPU: {message}"


def test_more_inputs_than_listed_are_refused_before_a_program_is_made():
    with pytest.raises(ArgumentValueError) as caught:
        lower(info_of([R, O], [R], []), ["int8"] * 3, ["int8"])
    assert str(caught.value) == (
        "Custom 'add': expected 2 input(s) (x0, x1) as its op info lists; got 3.\n"
        "Pass one argument per input, in that order; attributes follow the inputs."
    )
