"""Builders and constants against what MindSpore 2.7.2 itself made (oracle/dump_op_info.py)."""

import ast
import json
from pathlib import Path

import pytest

from msops import ops
from msops.errors import OpInfoError, OpInfoTypeError, OpInfoValueError
from msops.ops import CustomRegOp, DataType, RegOp, TBERegOp

ORACLE = json.loads((Path(__file__).parent / "oracle" / "op_info_mindspore_2_7_2.json").read_text())
CHAINS = [entry | {"chain": ast.literal_eval(entry["chain"])} for entry in ORACLE["chains"]]


def run_chain(class_name, args, calls):
    builder = getattr(ops, class_name)(*args)
    for method, method_args, keywords in calls:
        assert getattr(builder, method)(*method_args, **keywords) is builder
    return builder.get_op_info()


def chain_ids(chains):
    return [f"{number}-{entry['chain'][0]}" for number, entry in enumerate(chains)]


ACCEPTED = [entry for entry in CHAINS if "info" in entry]
REFUSED = [entry for entry in CHAINS if "error" in entry]


@pytest.mark.parametrize("entry", ACCEPTED, ids=chain_ids(ACCEPTED))
def test_chain_gives_the_dict_of_mindspore(entry):
    # As text, so that tuples, lists, bools and the order of keys count too.
    assert repr(run_chain(*entry["chain"])) == entry["info"]


@pytest.mark.parametrize("entry", REFUSED, ids=chain_ids(REFUSED))
def test_chain_is_refused_with_the_error_type_of_mindspore(entry):
    with pytest.raises({"TypeError": TypeError, "ValueError": ValueError}[entry["error"]]) as info:
        run_chain(*entry["chain"])
    # What Python says itself about missing arguments is no op info error there either.
    assert isinstance(info.value, OpInfoError) != ("positional argument" in entry["text"])


def test_oracle_covers_every_builder_and_both_outcomes():
    for entries in (ACCEPTED, REFUSED):
        assert len(entries) > 200
        assert {entry["chain"][0] for entry in entries} >= {
            name for name in dir(ops) if name.endswith("RegOp")
        } - {"AkgAscendRegOp", "AkgCpuRegOp"}


def test_data_type_has_the_constants_of_mindspore_and_no_others():
    ours = {name: getattr(DataType, name) for name in dir(DataType) if not name.startswith("_")}
    assert len(ours) == 204
    assert ours == {name: tuple(value) for name, value in ORACLE["data_type"].items()}


def test_unknown_data_type_is_an_attribute_error():
    with pytest.raises(AttributeError, match="F32_default"):
        _ = DataType.F32_default


def test_returned_dict_is_not_changed_by_later_setters():
    builder = TBERegOp("Abs").input(0, "x")
    first = builder.get_op_info()
    before = repr(first)
    builder.output(0, "y").unknown_shape_formats(["ND"]).attr("a")
    assert repr(first) == before
    first["inputs"][0]["name"] = "changed"
    first["unknown_shape_formats"].append("changed")
    assert "changed" not in repr(builder.get_op_info())


MESSAGES = [
    (
        lambda: RegOp(""),
        OpInfoValueError,
        "RegOp: expected op_name to be a str that is not blank; got ''.\n"
        "Name the op, e.g. RegOp('Add').",
    ),
    (
        lambda: CustomRegOp().input("0"),
        OpInfoTypeError,
        "CustomRegOp('Custom').input: expected index to be an int; got '0' (str).\nPass an int.",
    ),
    (
        lambda: CustomRegOp("add").attr("a", "required", "int", 1),
        OpInfoTypeError,
        "CustomRegOp('add').attr: expected defaultValue to be a str; got 1 (int).\nPass a str.",
    ),
    (
        lambda: CustomRegOp().input(0, "x").dtype_format(DataType.F32_Default, ("a", "b")),
        OpInfoValueError,
        "CustomRegOp('Custom').dtype_format: expected 1 entry, one per input (1) and output (0); "
        "got 2.\nCall .dtype_format after all of .input and .output, with one entry for each.",
    ),
    (
        lambda: CustomRegOp().input(0, "x").dtype_format(["float32", ""]),
        OpInfoValueError,
        "CustomRegOp('Custom').dtype_format: expected entry 0 to be a tuple of two or three "
        "elements; got ['float32', ''].\nPass a constant such as DataType.F32_Default, or a tuple "
        "such as ('float32', 'DefaultFormat').",
    ),
    (
        lambda: CustomRegOp().input(0, "x").dtype_format(("float32", 1)),
        OpInfoTypeError,
        "CustomRegOp('Custom').dtype_format: expected each element of entry 0 to be a str; "
        "got 1 (int).\nPass a str.",
    ),
    (
        lambda: TBERegOp("Abs").async_flag(1),
        OpInfoTypeError,
        "TBERegOp('Abs').async_flag: expected its argument to be a bool; got 1 (int).\n"
        "Pass a bool.",
    ),
    (
        lambda: TBERegOp("Abs").input(0, "x", value_depend="odd"),
        OpInfoValueError,
        "TBERegOp('Abs').input: expected value_depend to be one of ignored, optional, required; "
        "got 'odd'.\nPass one of these, or leave it out.",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES)
def test_message_says_who_expected_got_and_remedy(call, error, message):
    with pytest.raises(error) as info:
        call()
    assert str(info.value) == message
