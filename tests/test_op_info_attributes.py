"""Attributes: decoding text, and binding the values of one call."""

import functools
import itertools
import json
import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_examples import examples

from msops import Custom, Tensor
from msops.errors import ArgumentValueError, OpInfoTypeError, OpInfoValueError
from msops.ops import CustomRegOp

X = np.zeros(1, np.float32)
SIZES = itertools.count(2)


def make_op(*attributes):
    """Returns an op with one input, and a list that gets the attributes of each call of it."""
    builder = CustomRegOp().target("CPU").input(0, "x").output(0, "y")
    for name, param_type, value_type, *default in attributes:
        builder.attr(name, param_type, value_type, *default)
    return op_of(builder)


def op_of(builder):
    calls = []

    def add(x, *attributes):
        calls.append(attributes)
        return x

    info = builder.get_op_info()
    return Custom(add, lambda x, *_: x, lambda x, *_: x, "pyfunc", reg_info=info), calls


def attributes_of(op, calls, *values):
    """Returns what the kernel gets when the op is called with these attributes."""
    jax.block_until_ready(op(X, *values))
    return calls.pop()


@functools.cache
def op_with_one(value_type):
    seen = []

    def add(x, _):
        return x

    def shape(x, value):
        seen.append(value)
        return x

    info = CustomRegOp().target("CPU").input(0, "x").output(0, "y")
    info = info.attr("a", "required", value_type).get_op_info()
    return Custom(add, shape, lambda x, _: x, "pyfunc", reg_info=info), seen


def bind_one(value_type, value):
    """Returns the attribute as the op's out_shape gets it."""
    op, seen = op_with_one(value_type)
    seen.clear()
    # Of a new shape, as out_shape is asked once for equal calls.
    jax.eval_shape(lambda x: op(x, value), jax.ShapeDtypeStruct((next(SIZES),), np.float32))
    (bound,) = seen
    return bound


def defaults_of(*types_and_texts):
    """Returns what a kernel gets for attributes with these defaults."""
    attributes = [
        (f"a{index}", "optional", value_type, text)
        for index, (value_type, text) in enumerate(types_and_texts)
    ]
    return attributes_of(*make_op(*attributes))


int64s = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False)
# Commas and brackets mean something in lists of texts, and blanks around items are dropped.
words = st.text(st.characters(exclude_characters=",[]", exclude_categories=("C", "Z")), min_size=1)
SCALARS = {"Int": int64s, "Float": floats, "Str": words, "Bool": st.booleans()}


@settings(max_examples=examples(100))
@given(int64s, floats, st.booleans(), st.text())
def test_scalar_default_means_what_its_text_means(number, real, flag, text):
    texts = (
        ("int", str(number)),
        ("float", repr(real)),
        ("bool", str(flag)),
        ("bool", json.dumps(flag)),
        ("str", text),
    )
    assert repr(defaults_of(*texts)) == repr((number, real, flag, flag, text))


# An op is made and run for each example, so an example has four lists.
@settings(max_examples=examples(30))
@pytest.mark.parametrize("element", SCALARS)
@given(data=st.data())
def test_list_default_is_read_from_commas_and_from_json(element, data):
    lists = data.draw(st.lists(st.lists(SCALARS[element], max_size=5), min_size=4, max_size=4))
    texts = [
        text
        for values in lists
        for text in (",".join(map(str, values)), ", ".join(map(str, values)), json.dumps(values))
    ]
    expected = tuple(tuple(values) for values in lists for _ in range(3))
    found = defaults_of(*((f"list{element}", text) for text in texts))
    assert repr(found) == repr(expected)


@settings(max_examples=examples(30))
@pytest.mark.parametrize("element", ["Int", "Float"])
@given(data=st.data())
def test_list_of_lists_default_is_read_from_json(element, data):
    lists = st.lists(st.lists(SCALARS[element], max_size=3), max_size=3)
    drawn = data.draw(st.lists(lists, min_size=4, max_size=4))
    expected = tuple(tuple(map(tuple, values)) for values in drawn)
    found = defaults_of(*((f"listList{element}", json.dumps(values)) for values in drawn))
    assert repr(found) == repr(expected)


@settings(max_examples=examples(100))
@pytest.mark.parametrize("element", SCALARS)
@given(data=st.data())
def test_given_values_come_out_as_plain_hashable_python(element, data):
    values = data.draw(st.lists(SCALARS[element], max_size=5))
    for given_as in (list, tuple):
        bound = bind_one(f"list{element}", given_as(values))
        assert repr(bound) == repr(tuple(values))
        assert isinstance(hash(bound), int)
    for value in values:
        assert repr(bind_one(element.lower(), value)) == repr(value)


@pytest.mark.parametrize(
    ("value_type", "value", "expected"),
    [
        ("int", np.int8(3), 3),
        ("int", np.array(3), 3),
        ("int", jnp.asarray([3]), 3),
        ("float", np.float64(0.5), 0.5),
        ("float", np.float32(0.5), 0.5),
        ("float", ml_dtypes.bfloat16(0.5), 0.5),
        ("float", 2, 2.0),
        ("float", np.int64(2), 2.0),
        ("bool", np.bool_(True), True),
        ("str", np.str_("a"), "a"),
        ("listInt", np.arange(3), (0, 1, 2)),
        ("listInt", [np.int32(1), jnp.asarray(2)], (1, 2)),
        ("listFloat", jnp.ones(2), (1.0, 1.0)),
        ("listListInt", np.eye(2, dtype=int), ((1, 0), (0, 1))),
        ("listListFloat", [[1], (2.5,)], ((1.0,), (2.5,))),
        ("double", 2, 2.0),
        ("number", 2, 2),
        ("number", 0.5, 0.5),
    ],
)
def test_numpy_and_jax_values_are_taken_where_they_fit(value_type, value, expected):
    assert repr(bind_one(value_type, value)) == repr(expected)


@pytest.mark.parametrize(
    ("value_type", "value"),
    [
        ("int", 1.0),
        ("int", True),
        ("int", "1"),
        ("int", 2**63),
        ("int", np.uint64(2**63)),
        ("int", np.arange(2)),
        ("float", True),
        ("float", "1.0"),
        ("float", 10**400),
        ("float", 1j),
        ("bool", 1),
        ("bool", np.int8(1)),
        ("str", 1),
        ("str", b"a"),
        ("listInt", 1),
        ("listInt", [1.5]),
        ("listInt", [True]),
        ("listInt", np.eye(2, dtype=int)),
        ("listInt", {1: 2}),
        ("listStr", "abc"),
        ("listListInt", [1]),
        ("listListFloat", [[["a"]]]),
        ("number", "2"),
        ("tensor", 2),
    ],
)
def test_value_of_another_type_is_refused(value_type, value):
    with pytest.raises(OpInfoTypeError):
        bind_one(value_type, value)


@pytest.mark.parametrize(
    ("value_type", "text"),
    [
        ("int", ""),
        ("int", str(2**63)),
        ("float", "one"),
        ("bool", "1"),
        ("listInt", "1,,2"),
        ("listInt", "[1, true]"),
        ("listInt", "[[1]]"),
        ("listFloat", "[1"),
        ("listBool", "yes"),
        ("listStr", "[1]"),
        ("listListInt", "1,2"),
        ("listListInt", "[1]"),
        ("listListInt", "[" * 100_000),
    ],
)
def test_default_text_that_is_no_such_value_is_refused(value_type, text):
    with pytest.raises(OpInfoValueError, match="default_value of attribute 'a'"):
        make_op(("a", "optional", value_type, text))


def test_values_defaults_fixed_and_absent_attributes_stand_in_declared_order():
    builder = CustomRegOp().target("CPU").input(0, "x").output(0, "y")
    builder.attr("a", "required", "int")
    builder.attr("fixed", "required", "listInt", value="1,2").attr("b", "optional", "str")
    builder.attr("c", "required", "bool", "true").attr("d", "optional", "float", "0.5")
    op, calls = op_of(builder)
    assert attributes_of(op, calls, 7) == (7, (1, 2), True, 0.5)
    assert attributes_of(op, calls, 7, "x", False, 2) == (7, (1, 2), "x", False, 2.0)
    assert attributes_of(op, calls, 7, None, None, 2) == (7, (1, 2), True, 2.0)


@pytest.mark.parametrize(
    ("value_type", "value", "expected"),
    [
        ("all", [1, 1], (1, 1)),
        ("all", True, True),
        ("all", 3, 3),
        ("all", 0.5, 0.5),
        ("all", "same", "same"),
        ("any", [0.5, 1], (0.5, 1.0)),
        ("all", ["a", "b"], ("a", "b")),
        ("int", True, True),
        ("float", 3, 3.0),
    ],
)
def test_a_fixed_value_tells_its_type(value_type, value, expected):
    builder = CustomRegOp().target("CPU").input(0, "x").output(0, "y")
    op, calls = op_of(builder.attr("a", "required", value_type, value=value))
    (got,) = attributes_of(op, calls)
    assert (type(got), got) == (type(expected), expected)


@pytest.mark.parametrize("value", [None, {}, [[1], "a"]])
def test_a_type_that_nothing_tells_is_refused(value):
    builder = CustomRegOp().target("CPU").input(0, "x").output(0, "y")
    with pytest.raises(OpInfoValueError, match="value_type of attribute 'a' to be one of int,"):
        op_of(builder.attr("a", "required", "all", value=value))


def test_an_op_without_attributes_gets_and_takes_none():
    op, calls = make_op()
    assert attributes_of(op, calls) == ()
    with pytest.raises(ArgumentValueError, match=r"expected 1 input\(s\) \(x\) .*; got 2"):
        op(X, 1)


def test_nan_finds_the_compiled_op_again():
    # No list: an infer function whose list changes is asked again.
    asked = itertools.count()

    def shape(x, value):
        assert math.isnan(value)
        next(asked)
        return x

    info = CustomRegOp().target("CPU").input(0, "x").output(0, "y")
    info = info.attr("a", "required", "float").get_op_info()
    op = Custom(lambda x, _: x, shape, lambda x, _: x, "pyfunc", reg_info=info)
    for _ in range(2):
        jax.block_until_ready(op(X, float("nan")))
    assert next(asked) == 1


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap])
@pytest.mark.parametrize("value_type", ["float", "listFloat"])
def test_tracer_is_refused_under_every_transform(transform, value_type):
    def call(x):
        bind_one(value_type, x)
        return x

    argument = jnp.ones(2) if transform is jax.vmap else 1.0
    with pytest.raises(OpInfoTypeError) as info:
        transform(call)(argument)
    start, _, rest = str(info.value).partition("got the tracer ")
    assert (
        start == "Custom 'add': expected attribute 'a' to be a value known when the op is traced; "
    )
    assert rest.endswith(
        ".\nPass a Python value, or mark the argument it comes from as static "
        "(static_argnums of jax.jit), or make it a tensor input of the op."
    )


def test_tensor_is_taken_and_tensor_of_a_tracer_refused():
    assert bind_one("float", Tensor(1.0)) == 1.0
    with pytest.raises(OpInfoTypeError, match="known when the op is traced"):
        jax.grad(lambda x: bind_one("float", Tensor(x)))(1.0)


MESSAGES = [
    (
        (("a", "required", "int"), ("b", "optional", "int")),
        (1, 2, 3),
        OpInfoValueError,
        "expected at most 2 attributes (a, b) after the tensors; got 3.\n"
        "Pass no more, or register the attribute with .attr(name, 'required', value_type) of "
        "CustomRegOp.",
    ),
    (
        (("a", "required", "listInt"),),
        (),
        OpInfoValueError,
        "expected a value for the required attribute 'a' (listInt); got none.\n"
        "Pass it by name, a=..., or give it a default in attrs=, or with "
        ".attr(..., default_value=...).",
    ),
    (
        (("a", "required", "float"),),
        ("1.0",),
        OpInfoTypeError,
        "expected attribute 'a' to be a float; got '1.0' (str).\n"
        "Pass a float, or change the attribute's value_type in the op info.",
    ),
    (
        (("a", "required", "listListInt"),),
        ([1],),
        OpInfoTypeError,
        "expected attribute 'a' to be a list of lists of ints of 64 bits; got [1] (list).\n"
        "Pass a list of lists of ints of 64 bits, or change the attribute's value_type in the op "
        "info.",
    ),
]


@pytest.mark.parametrize(("attributes", "values", "error", "message"), MESSAGES)
def test_call_that_does_not_fit_says_which_attribute_and_why(attributes, values, error, message):
    with pytest.raises(error) as info:
        make_op(*attributes)[0](X, *values)
    assert str(info.value) == f"Custom 'add': {message}"
