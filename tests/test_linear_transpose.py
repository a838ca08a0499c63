"""Linear ops under `jax.linear_transpose`, against jax.numpy; and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import lineax
import numpy as np
import pytest
from custom_ops import CASES, loops
from quick_cases import case_of, in_turn, one_in

from msops import Custom, Tensor
from msops.errors import GradientTypeError, GradientValueError

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 3)).astype(np.float32) + 4 * np.eye(3, dtype=np.float32)


def bilinear_bprop(a: Any, x: Any, out: Any, dout: Any) -> tuple[Any, ...]:
    return jnp.outer(dout, x), a.T @ dout


def bilinear_jvp(primals: Any, tangents: Any, out: Any) -> Any:
    return primals[0] @ tangents[1] + tangents[0] @ primals[1]


def multiply_into(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    np.einsum("...ij,...j->...i", a, x, out=out)


def matvec(a, x):
    y = output_tensor((a.shape[0],), x.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        y[i] = 0.0
        for j in range(a.shape[1]):
            y[i] = y[i] + a[i, j] * x[j]
    return y


def product(**options: Any) -> Custom:
    """Returns ``a @ x`` as a pyfunc."""
    return Custom(multiply_into, lambda a, x: a[:1], lambda a, x: a, **options)


BY = {
    "bprop": lambda **given: product(bprop=bilinear_bprop, **given),
    "both_modes": lambda **given: product(bprop=bilinear_bprop, forward=True, **given),
    "jvp": lambda **given: product(jvp=bilinear_jvp, **given),
    "raised_loops": lambda **given: loops(matvec, "xla", **given),
    "native_loops": lambda **given: loops(matvec, "native", **given),
}
ROWS = [pytest.param(make, id=name) for name, make in BY.items()]
each_rule = pytest.mark.parametrize("make", ROWS)


def in_a_solver(quick: str) -> Any:
    """Parametrizes: a solver is one more program around the same transpose, one rule is enough."""
    rows = [case_of(row, quick=row.id == quick) for row in ROWS]
    return pytest.mark.parametrize("make", rows)


def assert_same_transpose(ours: Any, theirs: Any, at: Any, cotangent: Any) -> None:
    (expected,) = jax.linear_transpose(theirs, at)(cotangent)
    (got,) = jax.linear_transpose(jax.jit(ours), at)(cotangent)
    np.testing.assert_allclose(got, expected, rtol=1e-4)


# Each op that is linear in the input of this position, and which one.
LINEAR = {
    "aot": 0,
    "aot_attribute_workspace": 0,
    "aot_list_input": 1,
    "aicpu": 1,
    "pyfunc": 0,
    "akg_raised": 1,
    "akg_native": 1,
    "akg_attribute": 0,
    "akg_bprop": 1,
    "tbe": 1,
    "tbe_bprop": 0,
}


@pytest.mark.parametrize("name", one_in(4, LINEAR))
def test_every_kind_of_kernel_is_transposed_as_its_twin_in_jax(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    op, inputs, position = case.make(), case.inputs(), LINEAR[name]

    def of_one(x: Any) -> Any:
        return op(*inputs[:position], x, *inputs[position + 1 :])

    if name == "aot_list_input":  # x + y is linear in both together
        (gradients,) = jax.linear_transpose(lambda xs: op(*xs), inputs)(inputs[0])
        jax.tree.map(lambda g: np.testing.assert_array_equal(g, inputs[0]), gradients)
        return
    # The matrix of the op, column by column, from its kernel alone.
    at = inputs[position]
    columns = [of_one(unit.reshape(at.shape)).ravel() for unit in jnp.eye(at.size)]
    matrix = np.stack(columns, axis=1)
    cotangent = jnp.linspace(-1.0, 2.0, len(matrix))
    shape = of_one(at).shape
    (got,) = jax.linear_transpose(of_one, at)(cotangent.reshape(shape))
    np.testing.assert_allclose(got.ravel(), matrix.T @ cotangent, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "vmap", "axes"),
    in_turn(
        ROWS,
        [
            pytest.param(vmap, axes, id=f"{vmap}-{axes}")
            for vmap in ("sequential", "expand_dims")
            for axes in ((None, 0), (0, None))
        ],
    ),
)
def test_a_transposed_vmap_sums_over_what_was_not_mapped(make: Any, vmap: str, axes: Any) -> None:
    op = make(vmap=vmap)
    a = jnp.stack([A, 2 * A, -A, A.T]) if axes[0] == 0 else jnp.asarray(A)
    x = jnp.asarray(RNG.normal(size=(4, 3)[axes[1] is None :]), jnp.float32)
    cotangent = jnp.asarray(RNG.normal(size=(4, 3)), jnp.float32)
    ours, theirs = jax.vmap(op, axes), jax.vmap(jnp.matmul, axes)
    assert_same_transpose(lambda x: ours(a, x), lambda x: theirs(a, x), x, cotangent)
    assert_same_transpose(lambda a: ours(a, x), lambda a: theirs(a, x), a, cotangent)


@each_rule
def test_an_op_is_solved_for_and_the_solution_differentiated(make: Any) -> None:
    op, b = make(), jnp.array([1.0, -2.0, 0.5])

    def total(b: Any) -> Any:
        x = jax.lax.custom_linear_solve(
            lambda x: op(A, x),
            b,
            lambda _, b: jnp.linalg.solve(A, b),
            transpose_solve=lambda _, b: jnp.linalg.solve(A.T, b),
        )
        return (x * jnp.arange(3.0)).sum()

    np.testing.assert_allclose(jax.grad(total)(b), np.linalg.solve(A.T, np.arange(3.0)), rtol=1e-4)


@in_a_solver("native_loops")
@pytest.mark.slow
def test_gmres_through_an_op_has_a_gradient(make: Any) -> None:
    op, b = make(), jnp.array([1.0, -2.0, 0.5])
    gmres = jax.scipy.sparse.linalg.gmres

    def total(b: Any) -> Any:
        return gmres(lambda x: op(A, x), b, tol=1e-6)[0].sum()

    np.testing.assert_allclose(jax.grad(total)(b), np.linalg.solve(A.T, np.ones(3)), rtol=1e-3)


@in_a_solver("jvp")
def test_an_op_is_an_operator_of_lineax(make: Any) -> None:
    op, b = make(), jnp.arange(3, dtype=jnp.float32)
    matvec = lineax.FunctionLinearOperator(lambda x: op(A, x), jax.ShapeDtypeStruct((3,), b.dtype))
    np.testing.assert_allclose(matvec.T.mv(b), A.T @ b, rtol=1e-4)
    np.testing.assert_allclose(matvec.as_matrix(), A, rtol=1e-4)
    solver = lineax.GMRES(rtol=1e-5, atol=1e-5)

    def solve(a: jax.Array) -> jax.Array:
        operator = lineax.FunctionLinearOperator(lambda x: op(a, x), matvec.in_structure())
        return (lineax.linear_solve(operator, b, solver).value ** 2).sum()

    expected = jax.grad(lambda a: (jnp.linalg.solve(a, b) ** 2).sum())(jnp.asarray(A))
    np.testing.assert_allclose(jax.grad(solve)(jnp.asarray(A)), expected, rtol=1e-3, atol=1e-4)


@each_rule
def test_what_is_not_linear_is_refused(make: Any) -> None:
    op = make()
    with pytest.raises(GradientValueError, match=r"expected it to be linear.*depends on the input"):
        jax.linear_transpose(op, jnp.asarray(A), jnp.ones(3))(jnp.ones(3))


def test_a_gradient_that_depends_on_the_result_is_refused() -> None:
    op = Custom(np.exp, lambda x: x, lambda x: x, bprop=lambda x, out, dout: (dout * out,))
    with pytest.raises(GradientValueError, match="its derivative depends on the result"):
        jax.linear_transpose(op, jnp.ones(3))(jnp.ones(3))


def test_an_op_without_a_rule_says_that_its_bprop_would_be_the_transpose() -> None:
    op = Custom(lambda x: 2 * x, lambda x: x, lambda x: x)
    with pytest.raises(GradientTypeError, match=r"jax.linear_transpose .* it has no bprop"):
        jax.linear_transpose(op, jnp.ones(3))(jnp.ones(3))


def test_a_transpose_is_transposed_and_an_input_may_have_no_gradient() -> None:
    op = Custom(
        lambda n, x: n * x,
        lambda n, x: x,
        lambda n, x: x,
        bprop=lambda n, x, out, dout: (None, n * dout),
    )
    x = jnp.arange(3.0)

    def once(x: Any) -> Any:
        return jax.linear_transpose(lambda x: op(jnp.int32(3), x), x)(x)[0]

    np.testing.assert_array_equal(once(x), 3 * x)
    np.testing.assert_array_equal(jax.linear_transpose(once, x)(x)[0], 3 * x)


def test_a_64_bit_op_of_mindspores_face_is_transposed() -> None:
    op = Custom(lambda x: 2 * x, lambda x: x, lambda x: x, bprop=lambda x, out, dout: (2 * dout,))

    def double(x: Any) -> Any:
        return op(Tensor(x)).value

    with jax.enable_x64(True):
        x = jnp.arange(3.0)
        got = jax.linear_transpose(double, x)(x)[0]
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, 2 * np.arange(3.0))


def test_a_custom_vjp_of_the_users_keeps_jaxs_error() -> None:
    @jax.custom_vjp
    def double(x: Any) -> Any:
        return 2 * x

    double.defvjp(lambda x: (2 * x, None), lambda _, d: (2 * d,))
    with pytest.raises(NotImplementedError, match="'custom_vjp_call' not implemented"):
        jax.linear_transpose(double, jnp.ones(3))(jnp.ones(3))


def test_integer_results_have_no_cotangents() -> None:
    x = jnp.ones(3)
    count = jax.ShapeDtypeStruct((), jnp.int32)
    doubled = jax.ShapeDtypeStruct((3,), jnp.float32)
    op = Custom(
        lambda x: (np.int32(1), x * 2),
        out=(count, doubled),
        bprop=lambda x, out, dout: (2 * dout[1],),
    )
    (found,) = jax.linear_transpose(lambda x: op(x)[1], x)(x)
    np.testing.assert_array_equal(found, 2 * x)


def test_a_custom_vjp_of_the_users_around_an_op_keeps_jaxs_error() -> None:
    """Its gradient may differ from the op's, so the op's transpose is not that of both."""
    doubled = Custom(
        lambda x: 2 * x, lambda x: x, lambda x: x, bprop=lambda x, out, dout: (2 * dout,)
    )
    clipped = jax.custom_vjp(lambda x: doubled(x))
    clipped.defvjp(lambda x: (doubled(x), None), lambda _, d: (jnp.clip(2 * d, -1, 1),))
    x = jnp.full(3, 5.0)
    np.testing.assert_array_equal(jax.vjp(clipped, x)[1](x)[0], [1, 1, 1])
    with pytest.raises(NotImplementedError, match="'custom_vjp_call' not implemented"):
        jax.linear_transpose(clipped, x)(x)
    np.testing.assert_array_equal(jax.linear_transpose(doubled, x)(x)[0], [10, 10, 10])
