"""Op info left on functions by decorators."""

import inspect
import json
import re

import pytest

from msops import Custom
from msops.errors import OpInfoTypeError, OpInfoValueError
from msops.ops import (
    AiCPURegOp,
    CustomRegOp,
    DataType,
    TBERegOp,
    custom_info_register,
    op_info_register,
)


def make_op(func):
    return Custom(func, lambda x: x, lambda x: x, "pyfunc")


def targets(func):
    """Returns the targets that the op of a function shows in a notebook."""
    return re.findall(r"<tr><td>(.*?)</td>", make_op(func)._repr_html_())


def info_for(target, name="add"):
    builder = CustomRegOp(name).input(0, "x").output(0, "y")
    return (
        builder.dtype_format(DataType.F32_Default, DataType.F32_Default)
        .target(target)
        .get_op_info()
    )


def test_decorated_function_is_called_and_names_its_original():
    def double(x, *, plus=0):
        """Doubles."""
        return 2 * x + plus

    wrapped = custom_info_register(info_for("CPU"))(double)
    assert wrapped(3, plus=1) == 7
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__wrapped__) == (
        "double",
        "Doubles.",
        double,
    )
    assert inspect.signature(wrapped) == inspect.signature(double)
    assert wrapped.reg_info == double.reg_info == (info_for("CPU"),)


def test_info_is_found_on_wrapper_and_on_original():
    @custom_info_register(info_for("CPU"), json.dumps(info_for("GPU")), [info_for("Ascend")])
    def add(x):
        return x

    for func in (add, add.__wrapped__):
        assert targets(func) == ["Ascend", "CPU", "GPU"]


def test_outer_of_two_decorators_counts():
    @custom_info_register(info_for("CPU", "outer"))
    @custom_info_register(info_for("CPU", "inner"), info_for("GPU", "inner"))
    def add(x):
        return x

    for func in (add, add.__wrapped__):
        assert targets(func) == ["CPU"]
        # An op takes no two infos that differ for one target.
        reg_info = [*func.reg_info, info_for("CPU", "outer")]
        Custom(func, lambda x: x, lambda x: x, "pyfunc", reg_info=reg_info)


def test_nothing_is_checked_before_an_op_is_made():
    wrapped = custom_info_register("no JSON")(lambda x: x)
    with pytest.raises(OpInfoValueError):
        make_op(wrapped)


def test_use_without_parentheses_is_refused():
    with pytest.raises(OpInfoTypeError) as info:

        @custom_info_register
        def add(x):
            return x

    assert str(info.value) == (
        "custom_info_register: expected op info; got the callable 'add'.\n"
        "Write @custom_info_register(info), with info from CustomRegOp(...).get_op_info()."
    )


def test_object_that_cannot_hold_op_info_is_refused():
    with pytest.raises(OpInfoTypeError) as info:
        custom_info_register(info_for("CPU"))(len)
    assert str(info.value) == (
        "custom_info_register: expected a function that can hold op info; "
        "got <built-in function len>.\n"
        "Wrap it in a def, or pass the op info to Custom(..., reg_info=...)."
    )


@pytest.mark.parametrize("as_given", [dict, json.dumps])
@pytest.mark.parametrize(
    "builder",
    [TBERegOp("Abs").attr("a", "required", "int", "all"), AiCPURegOp("Abs").attr("a", "int")],
)
def test_op_info_register_binds_info_to_an_empty_function(builder, as_given):
    @op_info_register(as_given(builder.get_op_info()))
    def _abs():
        return

    make_op(_abs)
    other = builder.get_op_info() | {"op_name": "Sub"}
    with pytest.raises(OpInfoValueError, match="one op info for target 'Ascend'; got two that"):
        Custom(_abs, lambda x: x, lambda x: x, "pyfunc", reg_info=[_abs.reg_info, other])
    # A call gives the attribute: the text beside a TBE one does not fix it.
    with pytest.raises(OpInfoValueError, match=r"Ascend: \(a\), given \(a\)\n"):
        Custom(_abs, lambda x: x, None, "pyfunc", reg_info=[_abs.reg_info, {"target": "CPU"}])
    assert _abs() is None


def test_op_info_register_checks_the_info_when_it_decorates():
    register = op_info_register(CustomRegOp("Abs").get_op_info())
    with pytest.raises(OpInfoValueError) as info:
        register(test_use_without_parentheses_is_refused)
    assert str(info.value) == (
        "op_info_register of 'test_use_without_parentheses_is_refused': expected the op info to "
        "name its target, one of CPU, GPU, Ascend; got none, and func_type None implies none.\n"
        "Set it with .target('CPU') of CustomRegOp, and one op info for each target."
    )


def test_op_info_register_takes_a_dict_or_text_only():
    with pytest.raises(OpInfoTypeError) as info:
        op_info_register(3)(lambda: None)
    assert str(info.value) == (
        "op_info_register: expected op_info to be a dict or its JSON text; got 3 (int).\n"
        "Pass what TBERegOp(...).get_op_info() returns."
    )
