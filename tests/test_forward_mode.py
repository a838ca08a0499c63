"""Forward mode by ``forward=True`` and by ``jvp=``, against the same function in jax.numpy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aot, first, loops, multiply, multiply_bprop
from jax.sharding import AxisType, PartitionSpec
from quick_cases import in_turn

from msops import Custom, Tensor, errors, grad

X = jnp.array([0.5, 1.0, 2.0])
Y = jnp.array([1.5, -0.5, 1.0])


def polynomial_bprop(x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, ...]:
    """Of (x * x * y, x + y); reads the output."""
    return 2 * out[0] / x * dout[0] + dout[1], x * x * dout[0] + dout[1]


def polynomial_jvp(primals: Any, tangents: Any, out: Any) -> tuple[Any, ...]:
    x, (dx, dy) = primals[0], tangents
    return 2 * out[0] / x * dx + x * x * dy, dx + dy


def multiply_jvp(primals: Any, tangents: Any, out: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return x * dy + dx * y


def batch_rule(size: int, batched: Any, x: Any, y: Any) -> Any:
    return x * y, True


@dataclasses.dataclass(frozen=True)
class Case:
    """An op of two vectors, made with the rules given, and the same in jax.numpy."""

    name: str
    make: Callable[..., Custom]
    twin: Callable[..., Any]
    bprop: Callable[..., Any]
    jvp: Callable[..., Any]


def polynomial(**rules: Any) -> Custom:
    return Custom(
        lambda x, y: (x * x * y, x + y), lambda x, y: (x, y), lambda x, y: (x, y), **rules
    )


CASES = [
    Case("aot", lambda **r: aot("Multiply", **r), jnp.multiply, multiply_bprop, multiply_jvp),
    Case(
        "pyfunc",
        lambda **r: Custom(np.multiply, first, first, **r),
        jnp.multiply,
        multiply_bprop,
        multiply_jvp,
    ),
    Case("akg", lambda **r: loops(multiply, **r), jnp.multiply, multiply_bprop, multiply_jvp),
    Case(
        "akg_native",
        lambda **r: loops(multiply, "native", **r),
        jnp.multiply,
        multiply_bprop,
        multiply_jvp,
    ),
    Case(
        "two_outputs",
        polynomial,
        lambda x, y: (x * x * y, x + y),
        polynomial_bprop,
        polynomial_jvp,
    ),
]
RULES = {
    "forward": lambda case: {"bprop": case.bprop, "forward": True},
    "jvp": lambda case: {"jvp": case.jvp},
    "both": lambda case: {"bprop": case.bprop, "jvp": case.jvp},
}
# With both rules, reverse mode uses bprop and forward mode jvp, each of which is tested alone.
each_way = pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, marks=pytest.mark.slow) if rule == "both" else rule for rule in RULES],
)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """A scalar whose second derivatives are not all zero."""
    return lambda *xs: sum(
        (leaf**2 @ jnp.linspace(0.5, 1.5, leaf.size)) for leaf in jax.tree.leaves(f(*xs))
    )


def scanned(f: Callable[..., Any]) -> Callable[..., Any]:
    def body(x: Any, y: Any) -> Any:
        out = jax.tree.leaves(f(x, y))[0]
        return out, out.sum()

    return lambda x, y: jax.lax.scan(body, x, jnp.stack([y, y + 1]))


TRANSFORMATIONS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "jvp": lambda f: jax.jvp(f, (X, Y), (Y, X)),
    "jvp_in_one": lambda f: jax.jvp(lambda y: f(X, y), (Y,), (X,)),
    "linearize": lambda f: jax.linearize(f, X, Y)[1](Y, X),
    "vjp": lambda f: jax.vjp(f, X, Y)[1](f(X, Y)),
    "jacfwd": lambda f: jax.jacfwd(f, (0, 1))(X, Y),
    "jacrev": lambda f: jax.jacrev(f, (0, 1))(X, Y),
    "hessian": lambda f: jax.hessian(total(f), (0, 1))(X, Y),
    "reverse_over_reverse": lambda f: jax.jacrev(jax.jacrev(total(f), (0, 1)), (0, 1))(X, Y),
    "forward_over_forward": lambda f: jax.jacfwd(jax.jacfwd(total(f), (0, 1)), (0, 1))(X, Y),
    "reverse_over_forward": lambda f: jax.jacrev(jax.jacfwd(total(f), (0, 1)), (0, 1))(X, Y),
    "third": lambda f: jax.jacfwd(jax.hessian(total(f)))(X, Y),
    "scan": lambda f: jax.jvp(scanned(f), (X, Y), (Y, X)),
    "grad_of_scan": lambda f: jax.grad(lambda x: scanned(f)(x, Y)[1].sum())(X),
    "checkpoint": lambda f: jax.hessian(jax.checkpoint(total(f)))(X, Y),
    "vmap_of_jvp": lambda f: jax.vmap(lambda x: jax.jvp(f, (x, Y[:1]), (x, Y[:1])))(X[:, None]),
    "jvp_of_vmap": lambda f: jax.jvp(
        lambda x: jax.vmap(f, (0, None))(x, Y[:1]), (X[:, None],), (Y[:, None],)
    ),
    "cond": lambda f: jax.jvp(lambda x: jax.lax.cond(x[0] > 0, f, f, x, Y), (X,), (Y,)),
}


def assert_same(got: Any, expected: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for value, wanted in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert value.dtype == wanted.dtype
        np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=1e-5)


# The rules are attached in one way for all func_types; the other cases run with the slow tests.
QUICK = "two_outputs"
EACH = [
    pytest.param(case, id=case.name, marks=() if case.name == QUICK else pytest.mark.slow)
    for case in CASES
]


@pytest.mark.parametrize(("rule", "transformation"), in_turn(RULES, TRANSFORMATIONS))
@pytest.mark.parametrize("case", EACH)
def test_compiled_transformation_gives_what_the_twin_gives(
    case: Case, rule: str, transformation: str
) -> None:
    op, transform = case.make(**RULES[rule](case)), TRANSFORMATIONS[transformation]
    assert_same(jax.jit(lambda: transform(op))(), jax.jit(lambda: transform(case.twin))())


@pytest.mark.slow
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_eager_transformation_gives_what_the_twin_gives(
    case: Case, rule: str, transformation: str
) -> None:
    op, transform = case.make(**RULES[rule](case)), TRANSFORMATIONS[transformation]
    assert_same(transform(op), transform(case.twin))
    assert_same(transform(jax.jit(op)), transform(case.twin))


@pytest.mark.parametrize("transformation", ["jvp", "vjp", "vmap_of_jvp"])
@pytest.mark.parametrize("rule", RULES)
def test_eager_transformation_of_a_pyfunc(rule: str, transformation: str) -> None:
    case, transform = CASES[1], TRANSFORMATIONS[transformation]
    assert_same(transform(case.make(**RULES[rule](case))), transform(case.twin))


WAYS_TO_BATCH = [
    pytest.param(CASES[0], "sequential"),
    pytest.param(CASES[0], "broadcast_all"),
    pytest.param(CASES[0], batch_rule),
    # The kernel has to broadcast, as numpy does.
    pytest.param(CASES[1], "expand_dims"),
    pytest.param(CASES[2], "expand_dims"),
]


@pytest.mark.parametrize(("case", "vmap", "rule"), in_turn(WAYS_TO_BATCH, RULES))
def test_every_way_to_batch_has_both_modes(case: Case, rule: str, vmap: Any) -> None:
    op = case.make(vmap=vmap, **RULES[rule](case))
    batch = jnp.stack([X, Y, X + Y, X - Y])

    def both(f: Callable[..., Any]) -> Any:
        mapped = jax.vmap(f, (0, None))
        return (
            jax.jvp(mapped, (batch, Y), (batch, X)),
            jax.grad(lambda x, y: (mapped(x, y) ** 2).sum(), (0, 1))(batch, Y),
            jax.vmap(jax.grad(total(f), 1), (0, None))(batch, Y),
            jax.vmap(jax.vmap(lambda x, y: jax.jvp(f, (x, y), (y, x)), (0, None)), (None, 0))(
                batch, batch
            ),
            jax.vmap(jax.hessian(total(f)), (0, None))(batch, Y),
        )

    assert_same(jax.jit(lambda: both(op))(), jax.jit(lambda: both(case.twin))())


def test_a_scalar_an_integer_and_an_attribute() -> None:
    info = {
        "op_name": "power",
        "inputs": [{"index": 0, "name": "x"}, {"index": 1, "name": "n"}],
        "outputs": [{"index": 0, "name": "y"}, {"index": 1, "name": "k"}],
        "attr": [{"name": "scale", "param_type": "required", "type": "float"}],
        "target": "CPU",
    }
    shapes = lambda x, n, scale: (x, n)  # noqa: E731
    seen = []

    def jvp(primals: Any, tangents: Any, out: Any) -> Any:
        seen.append((len(primals), tangents[1:], primals[2]))
        x, n, scale = primals
        return scale * n * x ** (n - 1) * tangents[0], None

    def bprop(x: Any, n: Any, scale: Any, out: Any, dout: Any) -> Any:
        return scale * n * x ** (n - 1) * dout[0], None, None

    for rules in ({"jvp": jvp}, {"bprop": bprop, "forward": True}):
        op = Custom(
            lambda x, n, scale: ((scale * x**n).astype(np.float32), n),
            shapes,
            shapes,
            reg_info=info,
            **rules,
        )
        (y, _), (dy, dk) = jax.jvp(
            lambda x, n, op=op: op(x, n, 2.0),
            (jnp.float32(3), jnp.int32(2)),
            (jnp.float32(1), np.zeros((), jax.dtypes.float0)),
        )
        assert (y, dy, dk.dtype) == (18, 12, jax.dtypes.float0)
        slope = jax.grad(lambda x, op=op: op(x, jnp.int32(2), 2.0)[0])
        assert slope(jnp.float32(3)) == 12
    assert seen[0] == (3, (None, None), 2.0)


def test_a_list_of_inputs() -> None:
    def jvp(primals: Any, tangents: Any, out: Any) -> Any:
        return sum(tangents[0])

    for rules in (
        {"jvp": jvp},
        {"bprop": lambda xs, out, dout: ([dout] * len(xs),), "forward": True},
    ):
        op = aot("AddAll", lambda xs: xs[0], lambda xs: xs[0], **rules)
        value, tangent = jax.jvp(lambda x, y, op=op: op([x, y]), (X, Y), (Y, X))
        np.testing.assert_allclose(value, X + Y)
        np.testing.assert_allclose(tangent, X + Y)


def test_rules_may_call_kernels_of_their_own() -> None:
    """Forward by one kernel, reverse by another: neither is differentiated or transposed."""
    scale = aot("Multiply")
    op = aot(
        "Multiply",
        bprop=lambda x, y, out, dout: (scale(dout, y), scale(dout, x)),
        jvp=lambda p, t, out: scale(p[0], t[1]) + scale(t[0], p[1]),
    )
    both = lambda f: (jax.jvp(f, (X, Y), (Y, X)), jax.vjp(f, X, Y)[1](X))  # noqa: E731
    assert_same(jax.jit(lambda: both(op))(), both(jnp.multiply))
    # A bprop whose kernel has a bprop can be transposed.
    linear = aot("Multiply", bprop=multiply_bprop)
    op = aot(
        "Multiply",
        forward=True,
        bprop=lambda x, y, out, dout: (linear(dout, y), linear(dout, x)),
    )
    assert_same(jax.jit(lambda: both(op))(), both(jnp.multiply))


def test_reverse_mode_runs_the_bprop_alone() -> None:
    calls = []

    def bprop(x: Any, y: Any, out: Any, dout: Any) -> Any:
        calls.append("bprop")
        return multiply_bprop(x, y, out, dout)

    def jvp(primals: Any, tangents: Any, out: Any) -> Any:
        calls.append("jvp")
        return multiply_jvp(primals, tangents, out)

    op = aot("Multiply", bprop=bprop, jvp=jvp)
    text = jax.jit(jax.grad(lambda x: (op(x, Y) * 3).sum())).lower(X).as_text()
    assert set(calls) == {"bprop"}
    # One forward call, dropped as its value is not needed, and the product with 3.
    assert text.count("stablehlo.multiply") <= 2
    np.testing.assert_allclose(jax.grad(lambda x: op(x, Y).sum())(X), Y)


def test_tensors_and_64_bits() -> None:
    op = Custom(
        np.square,
        first,
        first,
        bprop=lambda x, out, dout: (2 * x * dout,),
        jvp=lambda p, t, out: 2 * p[0] * t[0],
    )
    x = Tensor(np.array([1.0, 3.0]))
    gradient = grad(op)(x)
    assert isinstance(gradient, Tensor)
    np.testing.assert_array_equal(gradient.asnumpy(), [2.0, 6.0])
    assert gradient.asnumpy().dtype == np.float64
    twice = grad(grad(op))(x)
    np.testing.assert_array_equal(twice.asnumpy(), [2.0, 2.0])
    with jax.enable_x64(True):
        wide = jnp.array([1.0, 3.0], jnp.float64)
        _, tangent = jax.jvp(op, (wide,), (wide,))
        assert tangent.dtype == jnp.float64
        np.testing.assert_array_equal(tangent, [2.0, 18.0])


@each_way
def test_shard_map_with_an_input_that_is_replicated(rule: str) -> None:
    case = CASES[0]
    op = case.make(**RULES[rule](case))
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    spec = PartitionSpec("i")

    def both(f: Callable[..., Any]) -> Any:
        mapped = jax.shard_map(f, mesh=mesh, in_specs=(spec, PartitionSpec()), out_specs=spec)
        return (
            jax.jvp(mapped, (X, Y), (Y, X)),
            jax.grad(lambda x, y: (mapped(x, y) ** 2).sum(), (0, 1))(X, Y),
        )

    assert_same(jax.jit(lambda: both(op))(), both(case.twin))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: jax.jvp(f, (X,), (X,)),
        lambda f: jax.jvp(jax.jit(f), (X,), (X,)),
        lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (x,)))(X),
        lambda f: jax.jacfwd(f)(X),
        lambda f: jax.linearize(f, X)[1](X),
        lambda f: jax.hessian(lambda x: f(x).sum())(X),
        lambda f: jax.jit(jax.hessian(lambda x: f(x).sum()))(X),
    ],
)
def test_without_a_rule_the_error_explains_the_three_ways(transform: Any) -> None:
    op = Custom(np.square, first, first, bprop=lambda x, out, dout: (2 * x * dout,))
    with pytest.raises(errors.GradientTypeError) as caught:
        transform(op)
    assert str(caught.value) == (
        "Custom 'square': forward mode (jax.jvp, jax.jacfwd, jax.hessian) needs a forward rule; "
        "the op has a bprop, a rule for reverse mode.\n"
        "There are three ways to have both: make the op with forward=True, if bprop is JAX code "
        "and linear in dout; with jvp=lambda primals, tangents, out: dout, a rule of its own; or "
        "from a kernel that is differentiated itself: loops (msops.kernel, func_type 'akg' or "
        "'hybrid') or TBE DSL ('tbe'). jax.jacrev(jax.grad(f)) is a Hessian without forward mode."
    )
    np.testing.assert_allclose(jax.jacrev(jax.grad(lambda x: op(x).sum()))(X), 2 * np.eye(3))


def test_the_error_of_another_custom_vjp_is_that_of_jax() -> None:
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g,))
    for transform in (jax.jvp, jax.jit(jax.jvp, static_argnums=0)):
        with pytest.raises(TypeError, match="forward-mode") as caught:
            transform(f, (1.0,), (1.0,))
        assert not isinstance(caught.value, errors.MsopsError)


@pytest.mark.parametrize(
    "bprop",
    [
        lambda x, out, dout: (x * dout * dout,),
        lambda x, out, dout: (jnp.abs(dout),),
        lambda x, out, dout: (jnp.where(dout > 0, dout, 0),),
    ],
)
def test_a_bprop_that_is_not_linear_is_refused(bprop: Any) -> None:
    op = Custom(np.square, first, first, bprop=bprop, forward=True)
    with pytest.raises(errors.GradientValueError) as caught:
        jax.jvp(op, (X,), (X,))
    assert str(caught.value).startswith(
        "bprop of Custom 'square': forward=True expected it to be linear in dout; its derivative "
        "depends on dout.\n"
    )


def test_an_op_without_bprop_in_a_bprop_is_told_from_where_it_was_differentiated() -> None:
    twice = Custom(lambda x, dy: 2 * x * dy, first, first)
    op = Custom(np.square, first, first, bprop=lambda x, out, dout: (twice(x, dout),), forward=True)
    with pytest.raises(errors.GradientTypeError, match="has no bprop") as caught:
        jax.jvp(op, (X,), (X,))
    assert any(
        note.startswith("Custom 'square': raised by differentiating its bprop")
        for note in caught.value.__notes__
    )

    own = Custom(
        lambda x, dy: 2 * x * dy, first, first, bprop=lambda x, dy, out, d: (None, twice(x, d))
    )
    op = Custom(np.square, first, first, bprop=lambda x, out, dout: (own(x, dout),), forward=True)
    np.testing.assert_allclose(jax.jvp(op, (X,), (X,))[1], 2 * X * X, rtol=1e-6)


@pytest.mark.parametrize(
    ("jvp", "family", "problem"),
    [
        (lambda p, t: t, errors.GradientTypeError, "(p, t) cannot take the primals, the tangents"),
        (
            lambda p, t, out: t[0][:2],
            errors.GradientValueError,
            "expected for output 0 a tangent of shape (3,) and dtype float32; got shape (2,)",
        ),
        (
            lambda p, t, out: t[0].astype(jnp.float16),
            errors.GradientValueError,
            "expected for output 0 a tangent of shape (3,) and dtype float32; got shape (3,) and "
            "dtype float16",
        ),
        (
            lambda p, t, out: "x",
            errors.GradientTypeError,
            "expected for output 0 an array of shape (3,) and dtype float32; got str",
        ),
    ],
)
def test_a_wrong_tangent_is_refused(jvp: Any, family: type, problem: str) -> None:
    op = Custom(np.square, first, first, jvp=jvp)
    with pytest.raises(family) as caught:
        jax.jvp(op, (X,), (X,))
    assert str(caught.value).startswith(f"jvp of Custom 'square': {problem}")


def test_a_wrong_number_of_tangents_is_refused() -> None:
    op = polynomial(jvp=lambda p, t, out: (t[0],))
    with pytest.raises(errors.GradientValueError, match=r"a tuple of 2 tangents, one per out.*1"):
        jax.jvp(op, (X, Y), (X, Y))


def test_no_tangent_is_zero() -> None:
    op = polynomial(jvp=lambda p, t, out: (None, t[0]))
    _, (first_tangent, second) = jax.jvp(op, (X, Y), (X, Y))
    np.testing.assert_array_equal(first_tangent, np.zeros(3))
    np.testing.assert_array_equal(second, X)


def test_options_are_checked() -> None:
    with pytest.raises(errors.ArgumentValueError, match="forward=True expected a bprop"):
        aot("Multiply", forward=True)
    with pytest.raises(errors.ArgumentTypeError, match="expected a function for jvp; got int"):
        aot("Multiply", jvp=3)
    with pytest.raises(errors.ArgumentTypeError, match="expected a bool for forward; got 1"):
        aot("Multiply", bprop=multiply_bprop, forward=1)


def test_ops_with_other_rules_are_other_ops() -> None:
    def make(factor: float) -> Custom:
        return aot("Multiply", jvp=lambda p, t, out: factor * t[0])

    one, two, twin = make(1.0), make(2.0), make(1.0)
    assert one._resolve() is twin._resolve()
    tangents = [jax.jvp(lambda x, op=op: op(x, Y), (X,), (X,))[1] for op in (one, two)]
    np.testing.assert_array_equal(tangents[1], 2 * tangents[0])


SCALE = 1.0


def test_a_rule_sees_what_its_globals_are_when_its_op_is_first_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = {"bprop": multiply_bprop, "jvp": lambda p, t, out: SCALE * t[0]}
    early, late = [aot("Multiply", **rules) for _ in range(2)]
    tangent = lambda op: jax.jvp(lambda x: op(x, Y), (X,), (X,))[1]  # noqa: E731
    np.testing.assert_array_equal(tangent(early), X)
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    np.testing.assert_array_equal(tangent(late), 2 * X)


def test_effects_go_with_both_modes() -> None:
    calls = []

    def square(x: Any) -> Any:
        calls.append(x.shape)
        return x * x

    op = Custom(
        square,
        first,
        first,
        bprop=lambda x, out, dout: (2 * x * dout,),
        forward=True,
        stateful=True,
    )
    np.testing.assert_array_equal(jax.jvp(op, (X,), (Y,))[1], 2 * X * Y)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: op(x).sum()))(X), 2 * X)
    assert len(calls) == 2
