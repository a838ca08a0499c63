"""Reading op info: what a dict or a text means, and what is refused."""

import copy
import html
import json
import re

import jax
import numpy as np
import pytest
from conftest import KERNELS
from hypothesis import given
from hypothesis import strategies as st

from msops import Custom
from msops.errors import OpInfoTypeError, OpInfoValueError
from msops.ops import (
    AiCPURegOp,
    AkgAscendRegOp,
    AkgGpuRegOp,
    CpuRegOp,
    CustomRegOp,
    DataType,
    RegOp,
    TBERegOp,
    kernel,
    op_info_register,
)

WHO = "Custom 'add'"
F32 = ("float32", "DefaultFormat")


def add(x):
    return x


FUNCTIONS = {
    "aot": f"{KERNELS}/float_ops.cc:add",
    "aicpu": f"{KERNELS}/float_ops.cc",
    "pyfunc": add,
    "akg": add,
    "hybrid": kernel(add),
    "tbe": add,
}


def build(target="CPU", **changes):
    info = (
        CustomRegOp("add")
        .input(0, "x1")
        .input(1, "x2", "dynamic")
        .output(0, "y")
        .attr("axis", "optional", "int", "0")
        .dtype_format(DataType.F32_Default, DataType.None_None, DataType.F16_5HD)
        .target(target)
        .get_op_info()
    )
    return info | changes


def make_op(reg_info, func=None, func_type="aot"):
    func = FUNCTIONS[func_type] if func is None else func
    return Custom(func, lambda x, *_: x, lambda x, *_: x, func_type, reg_info=reg_info)


def table(op):
    """Returns the rows that an op shows in a notebook: a target and its dtypes each."""
    rows = re.findall(r"<tr><td>(.*?)</td><td><code>(.*?)</code></td></tr>", op._repr_html_())
    return [(target, html.unescape(dtypes)) for target, dtypes in rows]


def mean_the_same(*infos, func_type="aot"):
    """Returns whether infos for one target are equal: an op takes no two that differ."""
    try:
        make_op(list(infos), func_type=func_type)
    except OpInfoValueError as error:
        refusal = str(error)
    else:
        return True
    assert "expected one op info for target" in refusal
    return False


ANY = [("any", "any dtypes")]


def test_every_part_of_the_dict_is_read():
    op = make_op(build())
    assert table(op) == [("CPU", "(float32, [any, ...]) -> float16:NC1HWC0")]
    for part in ("op_name", "inputs", "outputs", "attr", "dtype_format"):
        changes = []
        if part == "op_name":
            changes.append("sub")
        elif part == "dtype_format":
            (row,) = build()[part]
            for index, entry in enumerate(row):
                for changed in (("int8", entry[1]), (entry[0], "NCHW")):
                    changes.append([[*row[:index], changed, *row[index + 1 :]]])
        else:
            for index, entry in enumerate(build()[part]):
                for key in entry.keys() & {"name", "paramType", "type", "defaultValue"}:
                    other = {"name": "other", "type": "float", "defaultValue": "1"}.get(key)
                    if key == "paramType":
                        other = "required" if entry[key] != "required" else "optional"
                    entries = copy.deepcopy(build()[part])
                    entries[index][key] = other
                    changes.append(entries)
        assert changes
        for change in changes:
            assert not mean_the_same(build(), build(**{part: change})), change


def test_no_info_guards_nothing():
    assert table(make_op(None)) == table(make_op([])) == ANY
    assert table(make_op(None, len, "pyfunc")) == ANY


def test_argument_beats_decorator():
    def func(x):
        return x

    func.reg_info = (build("GPU"),)
    assert [target for target, _ in table(make_op(None, func, "pyfunc"))] == ["GPU"]
    assert [target for target, _ in table(make_op(build("CPU"), func, "pyfunc"))] == ["CPU"]
    assert table(make_op((), func, "pyfunc")) == ANY


@pytest.mark.parametrize(
    "reg_info",
    [
        [build("CPU"), build("GPU")],
        (json.dumps(build("CPU")), [[build("GPU")]]),
        json.dumps([build("CPU"), build("GPU")]),
        [build("CPU"), build("GPU"), json.dumps(build("CPU"))],
    ],
    ids=["list", "nested", "json list", "equal repeat"],
)
def test_infos_are_found_in_any_nesting_and_equal_repeats_are_ignored(reg_info):
    assert table(make_op(reg_info)) == table(make_op(build("CPU"))) + table(make_op(build("GPU")))
    nested = reg_info if isinstance(reg_info, str) else json.dumps(reg_info)
    for target in ("CPU", "GPU"):
        assert mean_the_same(nested, build(target))


names = st.text("abcxyz_", min_size=1, max_size=4)
constants = st.sampled_from([n for n in dir(DataType) if not n.startswith("_")])
defaults = st.sampled_from(
    [None, *[("int", "3"), ("listInt", "1,2"), ("bool", "True"), ("str", "a,b"), ("float", "1")]]
)


@st.composite
def op_infos(draw):
    builder = CustomRegOp(draw(names))
    kinds = st.sampled_from(["required", "dynamic", "optional", None])
    for index, name in enumerate(draw(st.lists(names, max_size=3))):
        builder.input(index, name, draw(kinds))
    ports = len(builder.get_op_info()["inputs"])
    if draw(st.booleans()):
        builder.output(0, "y", draw(kinds))
        ports += 1
    for name in draw(st.lists(names, max_size=2, unique=True)):
        kind, default = draw(defaults) or ("listFloat", None)
        builder.attr(name, draw(st.sampled_from(["required", "optional"])), kind, default)
    for _ in range(draw(st.integers(0, 3))):
        builder.dtype_format(*(getattr(DataType, draw(constants)) for _ in range(ports)))
    return builder.target(draw(st.sampled_from(["CPU", "GPU", "Ascend"]))).get_op_info()


@given(op_infos())
def test_json_text_means_the_same_as_the_dict(info):
    assert mean_the_same(info, json.dumps(info), [json.loads(json.dumps(info))])
    for index, entry in enumerate(info["inputs"]):
        renamed = copy.deepcopy(info)
        renamed["inputs"][index]["name"] = entry["name"] + "0"
        assert not mean_the_same(info, renamed)
    rows = info["dtype_format"]
    shown = table(make_op(info))
    if not rows:
        assert shown == ANY
        return
    assert [target for target, _ in shown] == [info["target"]] * len(rows)
    texts = [
        [entry[0] or "any", *([entry[1]] if entry[1] not in ("", "DefaultFormat") else [])]
        for row in rows
        for entry in row
    ]
    words = " ".join(dtypes for _, dtypes in shown).replace("optional ", "")
    assert re.findall(r"\w+", words) == [word for entry in texts for word in entry]


def target_of(info, func_type):
    """Returns the target of an info: beside one for the CPU the error names it."""
    other = {"target": "CPU", "attr": [{"name": "a", "type": "int", "value": 1}]}
    with pytest.raises(OpInfoValueError) as caught:
        make_op([info, other], func_type=func_type)
    if "expected one op info for target 'CPU'; got two that differ" in str(caught.value):
        return "CPU"
    target, cpu = re.findall(r"  (\w+): \(.*\), given", str(caught.value))
    assert cpu == "CPU"
    return target


@pytest.mark.parametrize(
    ("info", "func_type", "target"),
    [
        (CustomRegOp().target("GPU").get_op_info() | {"processor": "CPU"}, "pyfunc", "GPU"),
        (AkgGpuRegOp("a").get_op_info() | {"imply_type": "CPU"}, "pyfunc", "GPU"),
        (AkgAscendRegOp("a").get_op_info(), "akg", "Ascend"),
        (CpuRegOp("a").get_op_info(), "tbe", "CPU"),
        (TBERegOp("a").get_op_info(), "pyfunc", "Ascend"),
        (AiCPURegOp("a").get_op_info(), "aicpu", "Ascend"),
        (CustomRegOp().get_op_info(), "tbe", "Ascend"),
        (CustomRegOp().target(None).get_op_info(), "pyfunc", "CPU"),
        (RegOp("a").get_op_info(), "pyfunc", "CPU"),
        ({}, "pyfunc", "CPU"),
    ],
)
def test_target_is_deduced_from_target_then_processor_then_imply_type_then_func_type(
    info, func_type, target
):
    assert target_of(info, func_type) == target


@pytest.mark.parametrize("func_type", ["aot", "akg", "hybrid", "aicpu", None])
def test_target_must_be_named_where_the_func_type_implies_none(func_type):
    info = CustomRegOp().get_op_info()
    with pytest.raises(OpInfoValueError) as error:
        make_op(info, func_type=func_type) if func_type else op_info_register(info)(add)
    who = str(error.value).partition(": ")[0]
    assert who in ("Custom 'add'", "Custom 'float_ops.cc'", "op_info_register of 'add'")
    assert str(error.value) == (
        f"{who}: expected the op info to name its target, one of CPU, GPU, Ascend; got none, "
        f"and func_type {func_type!r} implies none.\n"
        "Set it with .target('CPU') of CustomRegOp, and one op info for each target."
    )


def test_rows_may_be_columns_of_the_ports_as_in_hand_written_op_info():
    def port(*columns):
        dtypes, formats = zip(*columns, strict=True)
        return {"name": "p", "dtype": list(dtypes), "format": list(formats)}

    f16 = ("float16", "NC1HWC0")
    columns = {"target": "CPU", "inputs": [port(F32, f16)], "outputs": [port(F32, F32)]}
    rows = CustomRegOp().input(0, "p").output(0, "p").dtype_format(F32, F32)
    rows = rows.dtype_format(f16, F32).target("CPU").get_op_info()
    assert mean_the_same(columns, rows)
    assert table(make_op(columns)) == [
        ("CPU", "(float32) -> float32"),
        ("CPU", "(float16:NC1HWC0) -> float32"),
    ]


def test_a_tuple_or_list_entry_makes_its_port_dynamic():
    info = CustomRegOp().input(0, "x").input(1, "z").output(0, "y").target("CPU")
    info.dtype_format(DataType.F32_Default_List, DataType.F32_Default, DataType.F32_Default)
    assert table(make_op(info.get_op_info())) == [("CPU", "([float32, ...], float32) -> float32")]


def test_dtypes_may_be_spelled_as_mindspore_prints_them():
    rows = [[["Float32", ""], ["BFloat16", ""], ["", ""]]]
    op = make_op(build(dtype_format=rows))
    assert table(op) == [("CPU", "(float32, [bfloat16, ...]) -> any")]


def test_missing_names_and_param_types_have_defaults():
    info = {"inputs": {"index": 0}, "outputs": [{}], "attr": [{"name": "a", "type": "int"}]}
    whole = {
        "op_name": "Custom",
        "target": "CPU",
        "inputs": [{"name": "x0", "paramType": "required"}],
        "outputs": [{"name": "y0", "paramType": "required"}],
        "attr": [{"name": "a", "paramType": "required", "type": "int"}],
    }
    assert mean_the_same(info, whole, func_type="pyfunc")
    for part, change in (("op_name", "Add"), ("inputs", [{"name": "x1"}]), ("outputs", [{}, {}])):
        assert not mean_the_same(info, whole | {part: change}, func_type="pyfunc")


@pytest.mark.parametrize(
    ("type_name", "value", "decoded"),
    [
        ("int", "3", 3),
        ("int", 3, 3),
        ("listFloat", [1, 2.5], (1.0, 2.5)),
        ("bool", "false", False),
        ("listListInt", "[[1], []]", ((1,), ())),
        ("str", "all", "all"),
    ],
)
def test_fixed_value_is_decoded_by_type(type_name, value, decoded):
    calls = []

    def keep(x, *attributes):
        calls.append(attributes)
        return x

    attr = [{"name": "a", "type": type_name, "value": value}]
    op = make_op({"inputs": {}, "outputs": {}, "attr": attr}, keep, "pyfunc")
    jax.block_until_ready(op(np.zeros(1, np.float32)))
    assert repr(calls) == repr([(decoded,)])


def test_value_of_a_tbe_attribute_does_not_fix_it():
    attr = [{"name": "a", "type": "bool", "value": "true,false"}]
    for infos, func_type in (
        ([TBERegOp("a").get_op_info() | {"attr": attr}, {"target": "CPU"}], "aot"),
        ([{"target": "Ascend", "attr": attr}, {"target": "CPU"}], "tbe"),
    ):
        with pytest.raises(OpInfoValueError, match=r"Ascend: \(a\), given \(a\)\n"):
            make_op(infos, func_type=func_type)


def attr(**changes):
    return [{"name": "a", "paramType": "required", "type": "int"} | changes]


TYPES = (
    "int, float, str, bool, listInt, listFloat, listStr, listBool, listListInt, listListFloat, "
    "double, number, tensor"
)
ATTR_REMEDY = "Write .attr(name, 'required' or 'optional', value_type, default_value)."
REFUSED = [
    (
        build("cpu"),
        OpInfoValueError,
        "expected the target of the op info to be one of CPU, GPU, Ascend; got 'cpu'.\n"
        "Set it with .target('CPU') of CustomRegOp, and one op info for each target.",
    ),
    (
        build(inputs=[{"name": "x1", "paramType": "odd"}, {}]),
        OpInfoValueError,
        "expected the param_type of input 'x1' to be one of required, dynamic, optional; "
        "got 'odd'.\nCorrect it in .input(0, 'x1', ...).",
    ),
    (
        build(outputs=[{"paramType": "odd"}]),
        OpInfoValueError,
        "expected the param_type of output 'y0' to be one of required, dynamic, optional; "
        "got 'odd'.\nCorrect it in .output(0, 'y0', ...).",
    ),
    (
        build(attr=attr(paramType="dynamic")),
        OpInfoValueError,
        "expected the param_type of attribute 'a' to be one of required, optional; "
        f"got 'dynamic'.\n{ATTR_REMEDY}",
    ),
    (
        build(attr=attr(type="integer")),
        OpInfoValueError,
        f"expected the value_type of attribute 'a' to be one of {TYPES}; got 'integer'.\n"
        f"{ATTR_REMEDY}",
    ),
    (
        build(attr=[{"name": "a"}]),
        OpInfoValueError,
        f"expected the value_type of attribute 'a' to be one of {TYPES}; got ''.\n{ATTR_REMEDY}",
    ),
    (
        build(attr=[{"type": "int"}]),
        OpInfoValueError,
        f"expected every attribute to have a name; got one without.\n{ATTR_REMEDY}",
    ),
    (
        build(attr=attr() + attr()),
        OpInfoValueError,
        "expected attributes of different names; got a, a.\n"
        "Rename one with .attr(...) of CustomRegOp.",
    ),
    (
        build(attr=attr(defaultValue="1.5")),
        OpInfoValueError,
        "expected the default_value of attribute 'a' to be the text of an int of 64 bits; "
        "got '1.5'.\nWrite numbers as '1' or '1.0', bools as 'true' or 'false', "
        "lists as '1,2,3' and lists of lists as '[[1, 2], [3]]'.",
    ),
    (
        build(attr=attr(defaultValue=1)),
        OpInfoTypeError,
        "expected 'defaultValue' of attribute 'a' to be a str; got 1 (int).\n"
        "Pass text; numbers too are written as text, e.g. '1.0'.",
    ),
    (
        build(attr=attr(value="all")),
        OpInfoValueError,
        "expected the value of attribute 'a' to be the text of an int of 64 bits; got 'all'.\n"
        "Write numbers as '1' or '1.0', bools as 'true' or 'false', "
        "lists as '1,2,3' and lists of lists as '[[1, 2], [3]]'.",
    ),
    (
        build(attr=attr(value=1.5)),
        OpInfoTypeError,
        "expected attribute 'a' to be an int of 64 bits; got 1.5 (float).\n"
        "Pass an int of 64 bits, or change the attribute's value_type in the op info.",
    ),
    (
        build(dtype_format=[[F32, F32]]),
        OpInfoValueError,
        "expected every dtype_format row to have 3 entries, one per input and output; "
        f"got {[F32, F32]!r}.\nGive each row one entry per input and then one per output.",
    ),
    (
        build(dtype_format="rows"),
        OpInfoTypeError,
        "expected 'dtype_format' of the op info to be a list of rows; got 'rows'.\n"
        "Build the op info with CustomRegOp.",
    ),
    (
        build(dtype_format=[[F32, F32, ("float32",)]]),
        OpInfoTypeError,
        "expected a dtype_format entry to be two or three texts; got ('float32',).\n"
        "Use a constant such as DataType.F32_Default.",
    ),
    (
        build(dtype_format=[[F32, F32, ("float", "")]]),
        OpInfoValueError,
        "expected the dtype of a dtype_format entry to be one of bool, int8, int16, int32, int64, "
        "uint8, uint16, uint32, uint64, float16, float32, float64, bfloat16, complex64, "
        "complex128, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, "
        "float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn, int4, "
        "uint4, int2, uint2; got 'float'.\nUse a constant such as DataType.F32_Default.",
    ),
    (
        build(dtype_format=[[F32, F32, (*F32, "set")]]),
        OpInfoValueError,
        "expected the third text of a dtype_format entry to be one of tuple, list; got 'set'.\n"
        "Use a constant such as DataType.F32_Default.",
    ),
    (
        {"target": "CPU", "inputs": [{"dtype": ["float32"], "format": []}]},
        OpInfoValueError,
        "expected every input and output to list 'dtype' and 'format', all of one length; "
        "got lists that are missing or differ.\n"
        "Complete the lists, or write rows with .dtype_format(...) of CustomRegOp.",
    ),
    (
        build(outputs=[{"paramType": "dynamic"}] * 2, dtype_format=[]),
        OpInfoValueError,
        "expected at most one dynamic output; got y0, y1.\n"
        "Make the number of outputs of all but one fixed, with param_type 'required'.",
    ),
    (
        build(inputs=["x1", "x2"]),
        OpInfoTypeError,
        "expected 'inputs' of the op info to be a list of dicts; got ['x1', 'x2'].\n"
        "Build the op info with CustomRegOp.",
    ),
    (
        build(op_name=3),
        OpInfoTypeError,
        "expected 'op_name' of the op info to be a str; got 3 (int).\n"
        "Pass text; numbers too are written as text, e.g. '1.0'.",
    ),
    (
        "{",
        OpInfoValueError,
        "expected op info as JSON text; got text that is not JSON (Expecting property name "
        "enclosed in double quotes: line 1 column 2 (char 1)).\n"
        "Pass the dict of CustomRegOp(...).get_op_info(), or json.dumps of it.",
    ),
    (
        [build(), 3],
        OpInfoTypeError,
        "expected op info as a dict, its JSON text, or a list of them; got 3 (int).\n"
        "Pass what CustomRegOp(...).get_op_info() returns.",
    ),
    (
        [None],
        OpInfoTypeError,
        "expected op info as a dict, its JSON text, or a list of them; got None (NoneType).\n"
        "Pass what CustomRegOp(...).get_op_info() returns.",
    ),
    (
        "3",
        OpInfoTypeError,
        "expected op info as a dict, its JSON text, or a list of them; got 3 (int).\n"
        "Pass what CustomRegOp(...).get_op_info() returns.",
    ),
    (
        [build(), build(op_name="sub")],
        OpInfoValueError,
        "expected one op info for target 'CPU'; got two that differ.\n"
        "Keep one of them, or give them different targets with .target(...).",
    ),
    (
        [build("CPU", attr=attr()), build("GPU", attr=attr(value=3))],
        OpInfoValueError,
        "expected the same attributes, and the same ones given by a call, on every target; "
        "got attributes that differ:\n  CPU: (a), given (a)\n  GPU: (a), given ()\n"
        "List them in one order, and fix a value on every target or on none.",
    ),
    (
        [build("CPU"), build("GPU", attr=attr())],
        OpInfoValueError,
        "expected the same attributes, and the same ones given by a call, on every target; "
        "got attributes that differ:\n  CPU: (axis), given (axis)\n  GPU: (a), given (a)\n"
        "List them in one order, and fix a value on every target or on none.",
    ),
]


@pytest.mark.parametrize(("reg_info", "error", "message"), REFUSED)
def test_malformed_op_info_is_refused_with_the_reason(reg_info, error, message):
    with pytest.raises(error) as info:
        make_op(reg_info)
    assert str(info.value) == f"{WHO}: {message}"


@pytest.mark.parametrize(
    ("key", "meant"), [("inputz", "inputs"), ("attrs", "attr"), ("dtype_formats", "dtype_format")]
)
def test_misspelt_key_is_an_error(key: str, meant: str) -> None:
    with pytest.raises(OpInfoValueError, match=f"to have '{meant}'; got '{key}'"):
        make_op({"op_name": "add", "target": "CPU", key: []})
