"""What a JAX user writes: shapes as `jax.ShapeDtypeStruct`, trees, keywords, short forms, rules."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import pydoc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops
import msops.lang as ml
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GradientTypeError,
    GradientValueError,
    InferenceTypeError,
    InferenceValueError,
    OpInfoTypeError,
    OpInfoValueError,
)
from msops.ops import CustomRegOp

X = jnp.array([1.0, -2.0, 4.0])
VECTOR = jax.ShapeDtypeStruct((3,), jnp.float32)
SCALAR = jax.ShapeDtypeStruct((), jnp.float32)


class Pair(NamedTuple):
    first: Any
    second: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Moments:
    mean: Any
    rest: dict[str, Any]


def leaves_equal(tree: Any, expected: Any) -> None:
    assert jax.tree.structure(tree) == jax.tree.structure(expected)
    jax.tree.map(np.testing.assert_allclose, tree, expected)


def in_trees(kind: Any) -> Any:
    """Returns an op with results in the structure of `kind(first, second)`."""
    return msops.pyfunc(
        lambda x: kind(2 * x, x.sum()),
        out=lambda x: kind(x, jax.ShapeDtypeStruct((), x.dtype)),
        bprop=lambda x, out, dout: (2 * jax.tree.leaves(dout)[0] + jax.tree.leaves(dout)[1],),
        vmap="sequential",
    )


def scaled(kind: Any, x: Any) -> Any:
    """Returns what such an op returns, in JAX."""
    return kind(2 * x, x.sum())


KINDS = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"a": a, "b": b},
    "named tuple": Pair,
    "dataclass": lambda a, b: Moments(a, {"rest": (b,)}),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_results_come_back_in_the_tree_of_out(kind: Any) -> None:
    op, reference = in_trees(kind), functools.partial(scaled, kind)
    leaves_equal(op(X), reference(X))
    leaves_equal(jax.jit(op)(X), reference(X))
    batch = jnp.stack([X, 3 * X])
    leaves_equal(jax.vmap(op)(batch), jax.vmap(reference)(batch))

    def total(f: Any, x: Any) -> Any:
        return sum(leaf.sum() for leaf in jax.tree.leaves(f(x)))

    gradient = jax.grad(functools.partial(total, op))(X)
    np.testing.assert_allclose(gradient, jax.grad(functools.partial(total, reference))(X))


def test_out_is_a_struct_or_a_function_of_the_inputs() -> None:
    assert msops.Custom(np.sin, out=VECTOR)(X).shape == (3,)
    assert msops.Custom(np.sin, out=lambda x: x)(X[:2]).shape == (2,)
    assert msops.Custom(np.sin, out=(VECTOR,), func_type="pyfunc")
    (only,) = msops.pyfunc(lambda x: (x,), out=(VECTOR,))(X)
    assert only.shape == (3,)
    seen = []
    op = msops.pyfunc(lambda x, n: x, out=lambda x, n: seen.append((x, n)) or x)
    op(X, np.int32(2))
    assert seen == [(VECTOR, jax.ShapeDtypeStruct((), np.int32))]


def test_a_function_without_results_has_an_empty_out() -> None:
    seen = []
    op = msops.pyfunc(lambda x: seen.append(x.copy()), out=())
    assert op(X) == ()
    jax.block_until_ready(jax.jit(op)(X))
    jax.effects_barrier()
    assert len(seen) == 2


def test_the_parameter_out_receives_the_tree() -> None:
    def split(x, out):
        np.multiply(x, 2, out=out["double"])
        out["half"][...] = x / 2

    op = msops.pyfunc(split, out=lambda x: {"double": x, "half": x})
    leaves_equal(op(X), {"double": 2 * X, "half": X / 2})


def test_a_function_that_returns_another_tree_is_refused() -> None:
    op = msops.pyfunc(lambda x: (x, x), out=lambda x: {"a": x, "b": x})
    with pytest.raises(InferenceValueError, match="structure of out") as caught:
        op(X)
    assert "'a': *" in str(caught.value)
    with pytest.raises(InferenceValueError, match="did it forget to return"):
        msops.pyfunc(lambda x: None, out=lambda x: {"a": x})(X)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"out": (3, np.float32)}, InferenceTypeError, "jax.ShapeDtypeStruct"),
        ({"out": VECTOR, "out_shape": [3]}, ArgumentValueError, "leave the others out"),
        ({"out_shape": VECTOR, "out_dtype": jnp.float32}, InferenceValueError, "as out="),
        ({"out": jax.ShapeDtypeStruct((2**60,), jnp.float32)}, InferenceValueError, "2\\*\\*59"),
    ],
)
def test_a_wrong_out_is_refused(arguments: dict[str, Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        msops.Custom(np.sin, **arguments)


def test_a_wrong_answer_of_out_is_refused() -> None:
    with pytest.raises(InferenceTypeError, match="its out function"):
        msops.pyfunc(np.sin, out=lambda x: x.shape)(X)
    with pytest.raises(InferenceValueError, match="at least one output"):
        msops.pyfunc(np.sin, out=lambda x: ())(X)
    with pytest.raises(InferenceTypeError, match="float64"):
        msops.pyfunc(np.sin, out=lambda x: jax.ShapeDtypeStruct(x.shape, float))(X)
    with pytest.raises(ArgumentTypeError, match="cannot take the call's 1"):
        msops.pyfunc(np.sin, out=lambda x, y: x)(X)


def test_out_shape_as_a_jax_user_writes_it() -> None:
    assert msops.Custom(np.sin, lambda x: x.shape, lambda x: x.dtype)(X).shape == (3,)
    op = msops.Custom(np.sin, lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), lambda x: x)
    with pytest.raises(AttributeError, match="pass out=lambda x"):
        op(X)


@msops.kernel(out={"doubled": VECTOR, "halved": VECTOR})
def two_results(x):
    doubled = ml.output_tensor(x.shape, x.dtype)
    halved = ml.output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        doubled[i] = 2.0 * x[i]
        halved[i] = 0.5 * x[i]
    return doubled, halved


def test_the_outputs_of_loops_come_in_a_tree() -> None:
    leaves_equal(two_results(X), {"doubled": 2 * X, "halved": X / 2})
    leaves_equal(jax.vmap(two_results)(X[None]), {"doubled": 2 * X[None], "halved": X[None] / 2})
    gradient = jax.grad(lambda x: (two_results(x)["halved"] * x).sum())(X)
    np.testing.assert_allclose(gradient, X)


def test_a_dict_must_keep_the_order_of_a_kernels_outputs() -> None:
    function = two_results.__wrapped__
    with pytest.raises(InferenceValueError, match="keys sorted, or use a named tuple"):
        msops.kernel(out={"y": VECTOR, "a": VECTOR})(function)
    with pytest.raises(InferenceValueError, match="keys sorted"):
        msops.kernel(out=lambda x: ({"y": x, "a": x},))(function)(X)
    # A Python function returns by name.
    op = msops.pyfunc(lambda x: {"y": x, "a": 2 * x}, out={"y": VECTOR, "a": VECTOR})
    leaves_equal(op(X), {"a": 2 * X, "y": X})


def weigh(parameters, x, *, power=1):
    return parameters["w"] * x**power + parameters["b"].bias


class Bias(NamedTuple):
    kept: Any
    bias: Any


def test_arguments_of_a_pyfunc_may_be_trees() -> None:
    op = msops.pyfunc(
        weigh,
        out=lambda parameters, x: x,
        bprop=lambda p, x, out, dout: (
            {"w": dout * x, "b": Bias(None, dout.sum())},
            dout * p["w"],
        ),
    )
    parameters = {"w": 3 * X, "b": Bias(jnp.float32(7.0), jnp.float32(0.5))}

    def reference(p: Any, x: Any) -> Any:
        return p["w"] * x + p["b"].bias

    leaves_equal(op(parameters, X), reference(parameters, X))
    leaves_equal(jax.jit(op)(parameters, X), reference(parameters, X))
    axes = ({"w": 0, "b": Bias(None, None)}, None)
    stacked = parameters | {"w": jnp.stack([X, 2 * X])}
    leaves_equal(
        jax.vmap(op, in_axes=axes)(stacked, X), jax.vmap(reference, in_axes=axes)(stacked, X)
    )
    found = jax.grad(lambda p: op(p, X).sum())(parameters)
    leaves_equal(found, jax.grad(lambda p: reference(p, X).sum())(parameters))


def test_a_tuple_arrives_as_a_tuple_and_a_list_as_a_list() -> None:
    seen = []
    op = msops.pyfunc(lambda x: (seen.append(type(x)), x[0])[1], out=lambda x: x[0])
    op((X, X))
    op([X, X])
    op(Pair(X, X))
    assert seen == [tuple, list, Pair]


def test_calls_of_different_trees_are_different_calls() -> None:
    op = msops.pyfunc(lambda x: 2 * jax.tree.leaves(x)[0], out=lambda x: jax.tree.leaves(x)[0])
    np.testing.assert_allclose(op({"a": X}), 2 * X)
    np.testing.assert_allclose(op({"b": 3 * X}), 6 * X)
    assert set(jax.jit(lambda t: op(t))({"c": X}).shape) == {3}


def test_wrong_leaves_and_gradients_of_trees_are_named() -> None:
    op = msops.pyfunc(lambda t: t["a"], out=lambda t: t["a"], bprop=lambda t, out, dout: (dout,))
    with pytest.raises(ArgumentTypeError, match=r"input 0\['b'\]"):
        op({"a": X, "b": "text"})
    with pytest.raises(GradientValueError, match="gradients in its structure"):
        jax.grad(lambda t: op(t).sum())({"a": X})


def test_keywords_are_inputs_and_attributes_by_name() -> None:
    op = msops.pyfunc(lambda x, y, *, power=1: x - y**power, out=lambda x, y: x)
    expected = X - (2 * X) ** 3
    np.testing.assert_allclose(op(X, y=2 * X, power=3), expected)
    np.testing.assert_allclose(op(y=2 * X, x=X, power=3), expected)
    np.testing.assert_allclose(jax.jit(lambda x: op(y=2 * x, x=x, power=3))(X), expected)
    np.testing.assert_allclose(op(X, 2 * X), -X)
    for call, text in (
        (lambda: op(X, x=X), "by position and by name"),
        (lambda: op(y=X), "without 'x'"),
        (lambda: op(X, z=X), "parameters x, y, power"),
        (lambda: msops.Custom(np.sin, out=VECTOR)(X, axis=1), "have no names"),
    ):
        with pytest.raises(ArgumentTypeError, match=text):
            call()


def between(x, alpha, y):
    return (np.asarray(x) * alpha + 100 * np.asarray(y)).astype(np.float32)


def behind(x, y=None, alpha=1.0):
    return between(x, alpha, 0.0 if y is None else y)


ALPHA_OF_TWO = (
    CustomRegOp("behind")
    .input(0, "x")
    .input(1, "y", param_type="optional")
    .output(0, "z")
    .attr("alpha", "optional", "float", default_value="1.0")
    .target("CPU")
    .get_op_info()
)


def test_an_attribute_belongs_to_the_parameter_of_its_name() -> None:
    op = msops.Custom(between, out=VECTOR, attrs={"alpha": 2.0}, func_type="pyfunc")
    np.testing.assert_allclose(op(X, y=5 * X), 502 * X)
    np.testing.assert_allclose(op(X, alpha=7.0, y=5 * X), 507 * X)
    np.testing.assert_allclose(jax.jit(lambda x: op(x, 5 * x, 7.0))(X), 507 * X)
    # Positions are the only way to what can only be given by position.
    rest = msops.Custom(
        lambda x, alpha, /, *ys: between(x, alpha, ys[0]),
        out=VECTOR,
        attrs={"alpha": 2.0},
        func_type="pyfunc",
    )
    np.testing.assert_allclose(rest(X, 5 * X, alpha=7.0), 507 * X)


@pytest.mark.parametrize(
    "declared",
    [
        {"attrs": {"alpha": 1.0}},
        {"reg_info": ALPHA_OF_TWO},
        # Op info may call a parameter otherwise than the function does.
        {"reg_info": ALPHA_OF_TWO, "func": lambda x, y=None, a=1.0: behind(x, y, a)},
    ],
)
def test_an_input_left_out_does_not_get_an_attribute(declared: dict[str, Any]) -> None:
    op = msops.Custom(**{"func": behind, "out": VECTOR, "func_type": "pyfunc"} | declared)
    np.testing.assert_allclose(op(X), X)
    np.testing.assert_allclose(op(X, 3.0), 3 * X)
    np.testing.assert_allclose(op(X, 5 * X, 3.0), 503 * X)


def test_a_number_given_by_the_name_of_an_input_is_an_input() -> None:
    for declared in ({"attrs": {"alpha": 1.0}}, {"reg_info": ALPHA_OF_TWO}):
        op = msops.Custom(behind, out=VECTOR, func_type="pyfunc", **declared)
        np.testing.assert_allclose(op(X, y=2.0), X + 200)
        np.testing.assert_allclose(op(X, y=2.0, alpha=3.0), 3 * X + 200)
        np.testing.assert_allclose(jax.jit(lambda x, op=op: op(y=2.0, x=x))(X), X + 200)
        np.testing.assert_allclose(op(msops.Tensor(X), y=2.0).asnumpy(), X + 200)


def test_a_rule_gets_the_attributes_by_its_parameters_names() -> None:
    def function(x, *, s=1.0, u=2.0):
        return np.float32(s * u) * x

    rules = (
        lambda x, u, out, dout: (u * dout, None),
        lambda x, out, dout, u: (u * dout,),
        lambda x, out, dout, *, u: (u * dout,),
        lambda x, first, u, out, dout: (first * u * dout, None, None),
        lambda x, first, second, out, dout: (first * second * dout, None, None),
        lambda x, *rest: (rest[1] * rest[-1], None, None),
    )
    for rule in rules:
        op = msops.pyfunc(function, out=lambda x: x, bprop=rule)
        np.testing.assert_allclose(jax.grad(lambda x, op=op: op(x, u=5.0).sum())(X), [5.0] * 3)


def test_a_default_of_a_rule_that_is_no_attribute_stays() -> None:
    op = msops.pyfunc(lambda x, *, scale=1.0: np.float32(scale) * x, out=lambda x: x)
    op.def_vjp(lambda x, eps=0.5: (op(x), x * 0 + eps), lambda kept, dout: (dout * kept,))
    np.testing.assert_allclose(jax.grad(lambda x: op(x, scale=3.0).sum())(X), [0.5] * 3)
    n = 2
    filled = msops.Custom(
        lambda x, *, scale=1, out: out.fill(scale), lambda s, n=n: [n], lambda d: d
    )
    np.testing.assert_allclose(filled(X, scale=5), [5.0] * 2)


def test_a_rule_with_an_attribute_among_its_inputs_is_refused() -> None:
    op = msops.Custom(
        between,
        out=VECTOR,
        attrs={"alpha": 2.0},
        func_type="pyfunc",
        bprop=lambda x, alpha, y, out, dout: (alpha * dout, None, 100 * dout),
    )
    with pytest.raises(GradientTypeError, match="inputs, then attributes"):
        jax.grad(lambda x: op(x, x).sum())(X)


def test_attributes_are_static_and_reach_every_rule_with_their_default() -> None:
    seen: dict[str, list[Any]] = {"out": [], "bprop": [], "function": []}

    def function(x, *, alpha=0.5):
        seen["function"].append(alpha)
        return np.float32(alpha) * x

    def out(x, *, alpha):
        seen["out"].append(alpha)
        return x

    def bprop(x, alpha, out, dout):
        seen["bprop"].append(alpha)
        return alpha * dout, None

    op = msops.pyfunc(function, out=out, bprop=bprop)
    np.testing.assert_allclose(jax.grad(lambda x: op(x).sum())(X), [0.5] * 3)
    np.testing.assert_allclose(jax.grad(lambda x: op(x, alpha=2.0).sum())(X), [2.0] * 3)
    assert {name: sorted(set(values)) for name, values in seen.items()} == {
        "out": [0.5, 2.0],
        "bprop": [0.5, 2.0],
        "function": [0.5, 2.0],
    }
    with pytest.raises(OpInfoTypeError, match="static_argnums"):
        jax.jit(lambda x, a: op(x, alpha=a))(X, 2.0)
    with pytest.raises(OpInfoTypeError, match="'alpha' to be a float"):
        op(X, alpha="much")


@pytest.mark.parametrize("arguments", [(X,), (X, 0.5)])
def test_one_arity_whether_an_attribute_of_op_info_is_passed_or_not(arguments: Any) -> None:
    info = (
        CustomRegOp("scale")
        .input(0, "x")
        .output(0, "y")
        .attr("alpha", "optional", "float", default_value="0.5")
        .target("CPU")
        .get_op_info()
    )
    shapes = []
    op = msops.Custom(
        lambda x, alpha: np.float32(alpha) * x,
        # It takes the value though it could do without.
        lambda x, alpha=None: shapes.append(alpha) or x,
        # A function without a parameter for it does without, however the op is called.
        lambda x: x,
        bprop=lambda x, alpha, out, dout: (alpha * dout, None),
        reg_info=info,
    )
    np.testing.assert_allclose(jax.grad(lambda *a: op(*a).sum())(*arguments), [0.5] * 3)
    assert set(shapes) == {0.5}


def test_attributes_that_a_call_must_give() -> None:
    op = msops.pyfunc(lambda x, *, n: x + np.float32(n), out=lambda x: x)
    np.testing.assert_allclose(op(X, n=2), X + 2)
    with pytest.raises(OpInfoValueError, match="required attribute 'n'"):
        op(X)
    typed = msops.pyfunc(lambda x, *, n: x + np.float32(n), out=lambda x: x, attrs={"n": int})
    with pytest.raises(OpInfoTypeError, match="an int"):
        typed(X, n=2.5)
    optional = msops.pyfunc(
        lambda x, *, axis=None: np.float32(-1 if axis is None else axis) * x, out=lambda x: x
    )
    np.testing.assert_allclose(optional(X), -X)
    np.testing.assert_allclose(optional(X, axis=3), 3 * X)


@pytest.mark.parametrize(
    ("attrs", "error"),
    [
        ({"alpha": object()}, OpInfoTypeError),
        ({"beta": 1.0}, ArgumentValueError),
        ({"alpha": [[1], ["a"]]}, OpInfoTypeError),
        (["alpha"], ArgumentTypeError),
        ({3: 1.0}, ArgumentValueError),
    ],
)
def test_wrong_attrs_are_refused(attrs: Any, error: type) -> None:
    with pytest.raises(error):
        msops.pyfunc(lambda x, *, alpha=1.0: x, out=VECTOR, attrs=attrs)


def test_none_is_a_default_in_attrs_where_the_function_has_it() -> None:
    op = msops.pyfunc(lambda x, *, y=None: x if y is None else x + y, out=VECTOR, attrs={"y": None})
    assert (op(X) == X).all()
    assert (op(X, y=1.0) == X + 1).all()


def test_attributes_of_a_loop_kernel_are_its_parameters_with_a_default() -> None:
    @msops.kernel
    def scale(x, y, alpha=2.0):
        z = ml.output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            z[i] = alpha * x[i] + y[i]
        return z

    np.testing.assert_allclose(scale(X, X), 3 * X)
    np.testing.assert_allclose(scale(X, y=X, alpha=3.0), 4 * X)
    np.testing.assert_allclose(scale(X, X, 4.0), 5 * X)
    assert str(inspect.signature(scale)) == "(x, y, alpha=2.0)"
    np.testing.assert_allclose(jax.grad(lambda x: scale(x, X, alpha=7.0).sum())(X), [7.0] * 3)


def test_attributes_of_a_loop_kernel_may_be_keyword_only() -> None:
    @msops.kernel
    def scale(x, *, alpha=2.0, steps):
        z = ml.output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            z[i] = alpha * x[i] + steps
        return z

    np.testing.assert_allclose(scale(X, steps=1), 2 * X + 1)
    np.testing.assert_allclose(scale(x=X, steps=2, alpha=3.0), 3 * X + 2)
    np.testing.assert_allclose(jax.grad(lambda x: scale(x, steps=1).sum())(X), [2.0] * 3)
    np.testing.assert_allclose(scale.__wrapped__(np.float32([1.0]), steps=1), [3.0])
    with pytest.raises(OpInfoValueError, match="required attribute 'steps'"):
        scale(X)


def test_attributes_may_be_lists() -> None:
    op = msops.pyfunc(
        lambda x, *, axes=(0, 1), weights=[], names=None: x * np.float32(len(axes) + sum(weights)),
        out=lambda x: x,
    )
    np.testing.assert_allclose(op(X), 2 * X)
    np.testing.assert_allclose(op(X, axes=[1], weights=[0.5, 2.5], names=["a"]), 4 * X)


SCALE = """
#include <cstdint>
#include "custom_aot_extra.h"
class Alpha : public AotKernelData {
 public:
  float value;
};
extern "C" int ScaleInit(int *, int64_t **, const char **, AotExtra *extra) {
  auto *data = new Alpha;
  data->value = extra->Attr<float>("alpha");
  extra->SetKernelData(data);
  return 0;
}
extern "C" int Scale(int, void **params, int *, int64_t **shapes, const char **, void *,
                     void *extra) {
  const float *x = static_cast<const float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  float *n = static_cast<float *>(params[2]);
  float alpha = static_cast<Alpha *>(static_cast<AotExtra *>(extra)->KernelData())->value;
  *n = alpha;
  for (int64_t i = 0; i < shapes[0][0]; ++i) y[i] = alpha * x[i];
  return 0;
}
"""


def test_a_cpp_function_takes_attributes_without_op_info(tmp_path: Path) -> None:
    source = tmp_path / "scale.cc"
    source.write_text(SCALE)
    op = msops.cpp(f"{source}:Scale", out=lambda x: Pair(x, SCALAR), attrs={"alpha": 0.5})
    leaves_equal(op(X), Pair(X / 2, jnp.float32(0.5)))
    leaves_equal(jax.jit(lambda x: op(x, alpha=3.0))(X), Pair(3 * X, jnp.float32(3.0)))
    assert op.func_type == "aot"
    assert str(inspect.signature(op)) == "(*inputs, alpha=0.5)"
    with pytest.raises(OpInfoValueError, match="attrs is given together"):
        msops.Custom(
            f"{source}:Scale",
            out=VECTOR,
            attrs={"alpha": 0.5},
            reg_info=CustomRegOp("s").input(0, "x").output(0, "y").target("CPU").get_op_info(),
        )
    with pytest.raises(ArgumentTypeError, match=r"msops\.kernel"):
        msops.cpp(np.sin)


def test_trees_and_attributes_are_exported(tmp_path: Path) -> None:
    source = tmp_path / "scale.cc"
    source.write_text(SCALE)
    op = msops.cpp(f"{source}:Scale", out=lambda x: {"a": x, "b": SCALAR}, attrs={"alpha": 0.5})

    @msops.kernel(out=lambda x: Pair(x, x))
    def twice(x, alpha=2.0):
        y = ml.output_tensor(x.shape, x.dtype)
        z = ml.output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = alpha * x[i]
            z[i] = y[i] + 1.0
        return y, z

    def program(x):
        return op(x, alpha=4.0), twice(x=x, alpha=3.0)

    exported = jax.export.export(jax.jit(program), disabled_checks=msops.export_checks())(VECTOR)
    leaves_equal(exported.call(X), ({"a": 4 * X, "b": jnp.float32(4)}, Pair(3 * X, 3 * X + 1)))
    (size,) = jax.export.symbolic_shape("n")
    any_size = jax.export.export(
        jax.jit(lambda x: op(x, alpha=4.0)), disabled_checks=msops.export_checks()
    )(jax.ShapeDtypeStruct((size,), jnp.float32))
    leaves_equal(any_size.call(X[:2]), {"a": 4 * X[:2], "b": jnp.float32(4)})


def test_control_flow_and_checkpoints_carry_trees() -> None:
    op = msops.pyfunc(
        lambda state, *, rate=0.5: {"x": np.float32(rate) * state["x"], "n": state["n"] + 1},
        out=lambda state: state,
        bprop=lambda state, rate, out, dout: ({"x": rate * dout["x"], "n": None}, None),
    )
    start = {"x": X, "n": jnp.int32(0)}

    def run(x):
        steps = jax.checkpoint(lambda state, _: (op(state, rate=0.25), state["n"]))
        return jax.lax.scan(steps, start | {"x": x}, length=3)

    last, counts = jax.jit(run)(X)
    leaves_equal(last, {"x": X / 64, "n": jnp.int32(3)})
    assert counts.tolist() == [0, 1, 2]
    np.testing.assert_allclose(jax.grad(lambda x: run(x)[0]["x"].sum())(X), [1 / 64] * 3)


def test_inputs_of_a_cpp_function_have_the_names_of_op_info(tmp_path: Path) -> None:
    source = tmp_path / "subtract.cc"
    source.write_text(
        "#include <cstdint>\n"
        'extern "C" int Subtract(int, void **p, int *, int64_t **shapes, const char **, void *,'
        " void *) {\n"
        "  for (int64_t i = 0; i < shapes[0][0]; ++i)\n"
        "    ((float *)p[2])[i] = ((float *)p[0])[i] - ((float *)p[1])[i];\n"
        "  return 0;\n}\n"
    )
    info = CustomRegOp("s").input(0, "a").input(1, "b").output(0, "y").target("CPU")
    op = msops.cpp(f"{source}:Subtract", out=lambda a, b: a, reg_info=info.get_op_info())
    np.testing.assert_allclose(op(b=X, a=3 * X), 2 * X)
    assert str(inspect.signature(op)) == "(a, b)"


def test_short_forms_are_the_same_custom() -> None:
    def sine(x):
        return np.sin(x)

    short = msops.pyfunc(out=VECTOR)(sine)
    assert type(short) is msops.Custom
    assert short == msops.Custom(sine, out=VECTOR)
    assert short.__wrapped__ is sine
    assert type(two_results) is msops.Custom
    with pytest.raises(ArgumentTypeError, match="got an operator"):
        msops.Custom(two_results)


def test_a_kernel_runs_as_python_on_numpy_arrays() -> None:
    def plain(x):
        y = ml.output_tensor(x.shape, x.dtype)
        for i in ml.parallel(x.shape[0]):
            y[i] = ml.exp(x[i])
        return y

    x = np.float32([0.5, 2.0])
    np.testing.assert_allclose(plain(x), np.exp(x))
    op = msops.kernel(plain)
    np.testing.assert_allclose(op.__wrapped__(x), np.exp(x))
    np.testing.assert_allclose(op(x), np.exp(x), rtol=1e-6)


def test_def_vjp_is_that_of_custom_vjp() -> None:
    runs = []
    op = msops.pyfunc(lambda x, y: (runs.append(1), np.sin(x) * y)[1], out=lambda x, y: x)

    def fwd(x, y):
        return op(x, y), (jnp.cos(x) * y, jnp.sin(x))

    def bwd(residuals, dout):
        dx, dy = residuals
        return dout * dx, dout * dy

    op.def_vjp(fwd, bwd)
    reference = jax.custom_vjp(lambda x, y: jnp.sin(x) * y)
    reference.defvjp(lambda x, y: (reference(x, y), (jnp.cos(x) * y, jnp.sin(x))), bwd)
    for transform in (
        lambda f: jax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1)),
        lambda f: jax.jit(jax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))),
        lambda f: jax.vmap(jax.grad(f, argnums=(0, 1))),
        lambda f: jax.jacrev(jax.grad(lambda x, y: f(x, y).sum(), argnums=1)),
    ):
        leaves_equal(transform(op)(X, 2 * X), transform(reference)(X, 2 * X))
    runs.clear()
    jax.block_until_ready(jax.grad(lambda x: op(x, x).sum())(X))
    assert len(runs) == 1
    with pytest.raises(GradientTypeError, match="forward mode"):
        jax.jvp(lambda x: op(x, x), (X,), (X,))


def test_def_vjp_of_trees_and_attributes() -> None:
    op = msops.pyfunc(
        lambda t, *, k=2.0: {"y": np.float32(k) * t["x"]}, out=lambda t: {"y": t["x"]}
    )
    op.def_vjp(
        lambda t, k: (op(t, k=k), jnp.float32(k)),
        lambda k, dout: ({"x": k * dout["y"], "n": None},),
    )
    found = jax.grad(lambda t: op(t, k=3.0)["y"].sum())({"x": X, "n": jnp.float32(1.0)})
    leaves_equal(found, {"x": jnp.full(3, 3.0), "n": jnp.float32(0.0)})


def test_wrong_rules_are_refused() -> None:
    def make() -> Any:
        return msops.pyfunc(lambda x: 2 * x, out=lambda x: x)

    with pytest.raises(ArgumentTypeError, match="a function for bwd"):
        make().def_vjp(lambda x: x, None)
    with pytest.raises(ArgumentTypeError, match="a function for rule"):
        make().def_jvp(3)
    for bwd, shown in (
        (lambda x, out, dout: (dout,), r"\(x, out, dout\)"),
        (lambda g: g, r"\(g\)"),
    ):
        with pytest.raises(ArgumentTypeError, match=rf"expected bwd\(residuals, dout\).*{shown}"):
            make().def_vjp(lambda x: (x, x), bwd)
    op = make()
    op.def_vjp(lambda x: op(x), lambda x, dout: (dout,))
    with pytest.raises(GradientTypeError, match=r"expected \(out, residuals\)"):
        jax.grad(lambda x: op(x).sum())(X)
    with pytest.raises(ArgumentValueError, match="has a rule of differentiation"):
        op.def_jvp(lambda primals, tangents: (op(*primals), tangents[0]))
    op.def_vjp(lambda x: (op(x), None), lambda x, dout: (dout, dout))
    with pytest.raises(GradientValueError, match=r"bwd of .*expected 1 gradient"):
        jax.grad(lambda x: op(x).sum())(X)
    op = make()
    op.def_jvp(lambda primals, tangents: tangents[0])
    with pytest.raises(GradientTypeError, match="tangent_out"):
        jax.jvp(op, (X,), (X,))


def test_def_jvp_is_that_of_custom_jvp() -> None:
    op = msops.pyfunc(lambda x: np.sin(x), out=lambda x: x)

    @op.def_jvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return op(x), jnp.cos(x) * dx

    assert callable(rule)
    leaves_equal(jax.jvp(op, (X,), (2 * X,)), jax.jvp(jnp.sin, (X,), (2 * X,)))
    np.testing.assert_allclose(
        jax.hessian(lambda x: op(x).sum())(X), jax.hessian(lambda x: jnp.sin(x).sum())(X)
    )


INDEX = jnp.array([2, 0, 1])


# Functions whose rule hands its tangents on to jax.jvp, and uses of them.
DELEGATED: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "an index": (lambda a, i: a[i], lambda f: jax.grad(lambda a: f(a, INDEX).sum())(X)),
    "a mask": (lambda a, m: a * m, lambda f: jax.grad(lambda a: f(a, a > 1).sum())(X)),
    "an index in a tree": (
        lambda d: d["x"][d["i"]],
        lambda f: jax.grad(lambda a: f({"x": a, "i": INDEX}).sum())(X),
    ),
    "a number": (lambda a, i: a * i, lambda f: jax.jvp(lambda a: f(a, 3), (X,), (X,))),
    "an integer result": (
        lambda a, i: (a * 2, i + 1),
        lambda f: jax.jvp(lambda a: f(a, INDEX)[0], (X,), (X,)),
    ),
    "second order": (
        lambda a, i: a[i] ** 3,
        lambda f: jax.hessian(lambda a: f(a, INDEX).sum())(X),
    ),
    "a batch": (
        lambda a, i: a[i],
        lambda f: jax.vmap(jax.grad(lambda a, i: f(a, i).sum()), (None, 0))(X, INDEX[None]),
    ),
}


@pytest.mark.parametrize("name", DELEGATED)
def test_tangents_of_integers_are_those_of_custom_jvp(name: str) -> None:
    function, use = DELEGATED[name]
    ours = msops.pyfunc(
        lambda *args: jax.tree.map(np.asarray, function(*jax.tree.map(jnp.asarray, args))),
        out=lambda *args: jax.eval_shape(function, *args),
    )
    theirs: Any = jax.custom_jvp(function)
    for op in (ours, theirs):
        rule = ours.def_jvp if op is ours else theirs.defjvp
        rule(lambda primals, tangents: jax.jvp(function, primals, tangents))
    leaves_equal(use(ours), use(theirs))


def test_the_tangent_of_an_attribute_is_a_zero_if_it_is_a_number() -> None:
    op = msops.pyfunc(lambda x, *, k, n, word: k * x, out=lambda x, **_: x)
    seen = []

    @op.def_jvp
    def rule(primals, tangents):
        seen.append(tangents[1:])
        x, k, n, word = primals
        return op(x, k=k, n=n, word=word), k * tangents[0]

    assert callable(rule)
    jax.jvp(lambda x: op(x, k=3.0, n=2, word="a"), (X,), (X,))
    ((k, n, word),) = seen
    assert k == 0.0
    assert n.dtype == jax.dtypes.float0
    assert word is None


def test_def_vmap_is_that_of_custom_vmap() -> None:
    op = msops.pyfunc(lambda x: x - x.sum(), out=lambda x: x)
    sizes = []

    @op.def_vmap
    def rule(axis_size, in_batched, x):
        sizes.append((axis_size, in_batched))
        return x - x.sum(axis=1, keepdims=True), True

    assert callable(rule)
    batch = jnp.stack([X, 2 * X])
    np.testing.assert_allclose(jax.vmap(op)(batch), batch - batch.sum(1, keepdims=True))
    assert sizes == [(2, [True])]


def test_equal_ops_as_static_arguments_share_a_trace() -> None:
    traces = []

    @functools.partial(jax.jit, static_argnums=0)
    def apply(op, x):
        traces.append(op)
        return op(x)

    def make(factor):
        return msops.pyfunc(lambda x: np.float32(factor) * x, out=lambda x: x)

    two, other, three = make(2), make(2), make(3)
    # A pyfunc runs again and again, and its closure may change: it is equal to itself only.
    assert two == two
    assert two != three
    assert {two: 1}[two] == 1

    def double():
        def run(x):
            return 2 * x

        return msops.pyfunc(run, out=lambda x: x, bprop=lambda x, out, dout: (2 * dout,))

    first, second = double(), double()
    assert first == second
    assert hash(first) == hash(second)
    apply(first, X)
    apply(second, X)
    assert len(traces) == 1
    apply(three, X)
    assert len(traces) == 2
    second.def_vmap(lambda size, batched, x: (2 * x, True))
    assert first != second
    assert first != "first"
    assert other != three


def test_an_op_of_a_subclass_is_equal_to_itself_only() -> None:
    class Own(msops.Custom):
        pass

    one, two = (Own(np.sin, out=VECTOR) for _ in range(2))
    assert one == one
    assert one != two
    assert one != msops.Custom(np.sin, out=VECTOR)


def test_help_and_inspect_show_the_kernel() -> None:
    @msops.pyfunc(out=lambda x, y: x, stateful=True)
    def lean(x, y=None, *, power: int = 2, out=None):
        """Leans on x."""
        return x

    assert str(inspect.signature(lean)) == "(x, y=None, *, power: 'int' = 2)"
    text = pydoc.render_doc(lean, renderer=pydoc.plaintext)
    for part in ("lean(x, y=None, *, power: 'int' = 2)", "Leans on x.", "stateful=True"):
        assert part in text
    assert "func_type='pyfunc'" in inspect.getdoc(lean)
    assert "A kernel of your own" in inspect.getdoc(msops.Custom)
    assert "out_shape" in inspect.signature(msops.Custom).parameters
    info = (
        CustomRegOp("add")
        .input(0, "a")
        .output(0, "y")
        .dtype_format(msops.ops.DataType.F32_Default, msops.ops.DataType.F32_Default)
    )
    op = msops.Custom(np.sin, out=VECTOR, reg_info=info.target("CPU").get_op_info())
    assert "CPU: (float32) -> float32" in inspect.getdoc(op)


def test_static_names_work_with_jit() -> None:
    op = msops.pyfunc(lambda x, *, k=1.0: np.float32(k) * x, out=lambda x: x)
    np.testing.assert_allclose(jax.jit(op, static_argnames="k")(X, k=3.0), 3 * X)


def test_explain_takes_keywords() -> None:
    text = two_results.explain(x=VECTOR)
    assert text == two_results.explain(VECTOR)
    assert "custom" in two_results.lower_text(x=VECTOR, stage="jaxpr")
    assert two_results.cost_analysis(x=VECTOR) == two_results.cost_analysis(VECTOR)


def test_results_on_mindspores_face_are_tensors_in_the_tree() -> None:
    op = in_trees(Pair)
    result = op(msops.Tensor(np.float32([1.0, 2.0])))
    assert type(result) is Pair
    assert all(isinstance(part, msops.Tensor) for part in result)
    by_name = msops.pyfunc(lambda x, *, k=1.0: np.float32(k) * x, out=lambda x: x)
    scaled_tensor = by_name(x=msops.Tensor(np.float32([1.0])), k=2.0)
    assert isinstance(scaled_tensor, msops.Tensor)
    np.testing.assert_allclose(scaled_tensor.asnumpy(), [2.0])


def test_a_number_by_position_is_refused_where_attributes_go_by_name() -> None:
    op = msops.cpp(
        msops.source(
            'extern "C" int F(int, void **, int *, long **, const char **, void *, void *) '
            "{ return 0; }",
            "F",
        ),
        out=lambda *inputs: inputs[0],
        attrs={"alpha": 0.5},
    )
    with pytest.raises(ArgumentTypeError, match=r"got 3\.0 by position\.\nPass .* as alpha=3\.0"):
        op(jnp.ones(4), 3.0)


def test_gradients_of_complex_arrays_pass_through_operators() -> None:
    z = jnp.array([1 + 2j, 3 - 1j], jnp.complex64)
    op = msops.Custom("aclnnMul", None, None, func_type="aot")

    def loss(multiply):
        return lambda z: jnp.abs(multiply(z, z)).sum()

    np.testing.assert_allclose(jax.grad(loss(op))(z), jax.grad(loss(jnp.multiply))(z), rtol=1e-6)


def test_a_rule_of_vmap_returns_the_structure_of_the_op() -> None:
    pair = jax.ShapeDtypeStruct((3,), jnp.float32)
    op = msops.pyfunc(lambda a: (a, 2 * a), out=(pair, pair))
    op.def_vmap(lambda n, b, a: ({"z": a, "a": 2 * a}, {"z": True, "a": True}))
    with pytest.raises(ArgumentTypeError, match="the structure that the op returns"):
        jax.vmap(op)(jnp.ones((2, 3)))


def test_an_op_made_with_numpys_float_is_another_than_one_with_pythons() -> None:
    def op(s):
        return msops.Custom(
            lambda x: x, lambda x: x, lambda x: x, bprop=lambda x, out, dout: (dout * s,)
        )

    assert op(2.0) == op(2.0)
    assert op(2.0) != op(np.float64(2.0))


def test_a_function_is_called_as_its_call_says_whichever_came_first() -> None:
    op = msops.Custom(
        lambda x, n: np.asarray(x) * np.float32(2 if type(n) is float else 3),
        lambda a, b: a,
        lambda a, b: a,
        func_type="pyfunc",
        vmap="broadcast_all",
    )
    x = msops.Tensor(np.ones(3, np.float32))
    batched = jax.vmap(lambda v: op(msops.Tensor(v), 2.0).value)(jnp.ones((4, 3)))
    assert batched.shape == (4, 3)
    np.testing.assert_array_equal(op(x, 2.0).asnumpy(), 2)
