"""Reading op info: from dict or text to frozen values, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msops._op_info import (
    AiCPURegOp,
    AkgAscendRegOp,
    AkgGpuRegOp,
    Attribute,
    CpuRegOp,
    CustomRegOp,
    DataType,
    OpInfo,
    Port,
    RegOp,
    Row,
    TBERegOp,
    read_reg_info,
)
from msops.errors import OpInfoTypeError, OpInfoValueError

WHO = "Custom 'add'"
F32 = ("float32", "DefaultFormat")


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


def read(reg_info, func=None, func_type="aot"):
    return read_reg_info(reg_info, func, func_type, WHO)


def test_every_part_of_the_dict_reaches_the_frozen_value():
    expected = OpInfo(
        op_name="add",
        target="CPU",
        inputs=(Port("x1", "required"), Port("x2", "dynamic")),
        outputs=(Port("y", "required"),),
        attributes=(Attribute("axis", False, "int", "0", None),),
        rows=(Row((F32, ("", "")), (("float16", "NC1HWC0"),)),),
    )
    (info,) = read(build()).values()
    assert info == expected
    assert hash(info) == hash(expected)


def test_no_info_is_an_empty_mapping():
    assert read(None) == {} == read([]) == read(None, func=len)


def test_argument_beats_decorator():
    def func(x):
        return x

    func.reg_info = (build("GPU"),)
    assert list(read(None, func)) == ["GPU"]
    assert list(read(build("CPU"), func)) == ["CPU"]
    assert read((), func) == {}


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
    assert read(reg_info) == read(build("CPU")) | read(build("GPU"))


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
    found = read(info)
    assert read(json.dumps(info)) == found == read([json.loads(json.dumps(info))])
    (value,) = found.values()
    assert [port.name for port in value.inputs] == [entry["name"] for entry in info["inputs"]]
    assert len(value.rows) == len(info["dtype_format"])
    pairs = [[*row.inputs, *row.outputs] for row in value.rows]
    assert pairs == [[entry[:2] for entry in row] for row in info["dtype_format"]]


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
    assert list(read(info, func_type=func_type)) == [target]


@pytest.mark.parametrize("func_type", ["aot", "akg", "hybrid", "aicpu", None])
def test_target_must_be_named_where_the_func_type_implies_none(func_type):
    with pytest.raises(OpInfoValueError) as error:
        read(CustomRegOp().get_op_info(), func_type=func_type)
    assert str(error.value) == (
        "Custom 'add': expected the op info to name its target, one of CPU, GPU, Ascend; got none, "
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
    assert read(columns) == read(rows)


def test_a_tuple_or_list_entry_makes_its_port_dynamic():
    info = CustomRegOp().input(0, "x").input(1, "z").output(0, "y").target("CPU")
    info.dtype_format(DataType.F32_Default_List, DataType.F32_Default, DataType.F32_Default)
    (value,) = read(info.get_op_info()).values()
    assert [port.kind for port in value.inputs] == ["dynamic", "required"]
    assert value.rows[0].inputs == (F32, F32)


def test_dtypes_may_be_spelled_as_mindspore_prints_them():
    rows = [[["Float32", ""], ["BFloat16", ""], ["", ""]]]
    (value,) = read(build(dtype_format=rows)).values()
    assert [dtype for dtype, _ in value.rows[0].inputs] == ["float32", "bfloat16"]


def test_missing_names_and_param_types_have_defaults():
    info = {"inputs": {"index": 0}, "outputs": [{}], "attr": [{"name": "a", "type": "int"}]}
    (value,) = read(info, func_type="pyfunc").values()
    assert value.op_name == "Custom"
    assert (value.inputs, value.outputs) == ((Port("x0"),), (Port("y0"),))
    assert value.attributes == (Attribute("a", True, "int"),)


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
    info = build(attr=[{"name": "a", "type": type_name, "value": value}])
    (attribute,) = read(info)["CPU"].attributes
    assert repr(attribute.value) == repr(decoded)


def test_value_of_a_tbe_attribute_does_not_fix_it():
    attr = [{"name": "a", "type": "bool", "value": "true,false"}]
    assert read(TBERegOp("a").get_op_info() | {"attr": attr})["Ascend"].attributes[0].value is None
    assert read(build(attr=attr), func_type="tbe")["CPU"].attributes[0].value is None


def attr(**changes):
    return [{"name": "a", "paramType": "required", "type": "int"} | changes]


TYPES = "int, float, str, bool, listInt, listFloat, listStr, listBool, listListInt, listListFloat"
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
        "complex128; got 'float'.\nUse a constant such as DataType.F32_Default.",
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
        read(reg_info)
    assert str(info.value) == f"{WHO}: {message}"


@pytest.mark.parametrize(
    ("key", "meant"), [("inputz", "inputs"), ("attrs", "attr"), ("dtype_formats", "dtype_format")]
)
def test_misspelt_key_is_an_error(key: str, meant: str) -> None:
    with pytest.raises(OpInfoValueError, match=f"to have '{meant}'; got '{key}'"):
        read_reg_info({"op_name": "add", "target": "CPU", key: []}, None, "aot", "Custom 'add'")
