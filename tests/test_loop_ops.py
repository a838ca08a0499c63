"""akg and hybrid ops as a user meets them: calls, transformations, gradients, messages."""

from __future__ import annotations

import concurrent.futures
import functools
import logging
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from loop_corpus import BY_NAME
from loop_ir import isl as library
from quick_cases import in_turn, one_in

import msops
from msops import Custom, ops
from msops.errors import ArgumentValueError, InferenceValueError, KernelError
from msops.ops import CustomRegOp, DataType

LOWERINGS = ["xla", "native"]
# What distinguishes the text of a stage from others.
STAGES = {
    "ir": "kernel ",
    "marked": "kernel ",
    "raised": "kernel ",
    "steps": "(line ",
    "c": "int64_t",
    "cuda": "__global__",
    "jaxpr": "lambda",
    "stablehlo": "module @",
    "hlo": "HloModule",
}


def row_softmax(a):
    m = allocate((a.shape[0],), a.dtype)
    s = allocate((a.shape[0],), a.dtype)
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        m[i] = a[i, 0]
        for j in range(a.shape[1]):
            m[i] = max(m[i], a[i, j])
        s[i] = 0.0
        for j in range(a.shape[1]):
            b[i, j] = exp(a[i, j] - m[i])
            s[i] = s[i] + b[i, j]
        for j in range(a.shape[1]):
            b[i, j] = b[i, j] / s[i]
    return b


@ops.kernel
def cholesky(a):
    n = a.shape[0]
    c = output_tensor(a.shape, a.dtype)
    for j in range(n):
        for i in range(j, n):
            t = a[i, j]
            for k in range(j):
                t -= c[i, k] * c[j, k]
            if i == j:
                c[i, j] = sqrt(t)
            else:
                c[i, j] = t / c[j, j]
    return c


@ops.kernel
def split_sign(x):
    p = output_tensor(x.shape, x.dtype)
    q = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            p[i] = x[i]
        else:
            q[i] = x[i]
    return p, q


@ops.kernel
def running(x):
    y = output_tensor(x.shape, x.dtype)
    s = 0.0
    for i in range(x.shape[0]):
        s = s * 0.5 + x[i]
        y[i] = s
    return y


def make(kernel, lower=None, **options):
    func_type = "hybrid" if hasattr(kernel, "ms_kernel_flag") else "akg"
    attrs = None if lower is None else {"lower": lower}
    return Custom(kernel, func_type=func_type, compile_attrs=attrs, **options)


def spd(n, seed=0, dtype=np.float32):
    a = np.random.default_rng(seed).normal(size=(n, n))
    return jnp.asarray(a @ a.T + n * np.eye(n), dtype)


@pytest.fixture
def x():
    return jnp.asarray(np.random.default_rng(1).normal(size=(5, 7)), jnp.float32)


@pytest.mark.parametrize("lower", [None, *LOWERINGS])
def test_eager_and_jit_agree_with_jax(x, lower):
    op = make(row_softmax, lower)
    np.testing.assert_allclose(op(x), jax.nn.softmax(x), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(op)(x), jax.nn.softmax(x), rtol=1e-6)
    np.testing.assert_allclose(
        make(cholesky, lower)(spd(6)), np.linalg.cholesky(spd(6)), rtol=1e-5, atol=1e-6
    )


def test_several_outputs_infer_themselves():
    p, q = make(split_sign)(jnp.array([1.0, -2.0, 3.0]))
    np.testing.assert_array_equal(p, [1, 0, 3])
    np.testing.assert_array_equal(q, [0, -2, 0])


def test_array_operations_in_an_order_have_the_gradient_of_the_loops():
    op, a = make(cholesky, "xla"), spd(5)
    gradient = jax.jit(jax.grad(lambda a: op(a).sum()))
    assert "cholesky_gradient" in str(jax.make_jaxpr(gradient)(a))
    assert "custom_call" not in gradient.lower(a).as_text()


def test_vmap_of_array_operations_in_an_order_scatters_nothing():
    batch = jnp.stack([spd(5), spd(5, 1)])
    program = jax.jit(jax.vmap(make(cholesky, "xla"))).lower(batch).as_text()
    assert "scatter" not in program


def test_vmap_of_a_loop_over_data_has_no_loop_over_the_batch():
    def count_down(a, n):
        c = output_tensor((1,), a.dtype)
        for k in range(n[0]):
            c[0] = c[0] * 0.5 + a[k]
        return c

    op = make(count_down, "xla")
    a, n = jnp.arange(12.0).reshape(3, 4), jnp.array([[1], [4], [2]])
    expected = [op(*pair) for pair in zip(a, n, strict=True)]
    np.testing.assert_allclose(jax.vmap(op)(a, n), expected, rtol=1e-6)
    assert jax.jit(jax.vmap(op)).lower(a, n).as_text().count("stablehlo.while") == 1


# Raised, Cholesky is loops in loops, whose derivatives XLA compiles for long.
CHOLESKY = [pytest.param("xla", marks=pytest.mark.slow), "native"]


@pytest.mark.parametrize(
    ("kernel", "lower"),
    [
        (row_softmax, "xla"),
        pytest.param(row_softmax, "native", marks=pytest.mark.slow),
        pytest.param(running, "xla", marks=pytest.mark.slow),
        (running, "native"),
        pytest.param(cholesky, "xla", marks=pytest.mark.slow),
        pytest.param(cholesky, "native", marks=pytest.mark.slow),
    ],
)
def test_derivatives_of_every_mode_and_order(kernel, lower):
    with jax.enable_x64(True):
        if kernel is running:
            x = jnp.linspace(-1.0, 1.0, 5)
        else:
            x = spd(4, dtype=np.float64) * (0.1 if kernel is row_softmax else 1.0)
        check_grads(make(kernel, lower), (x,), order=2, modes=["fwd", "rev"])


@pytest.mark.parametrize("lower", CHOLESKY)
def test_gradients_of_cholesky_agree_with_jax(lower):
    op, a, w = make(cholesky, lower), spd(6), spd(6, seed=2)
    ours = jax.jit(jax.grad(lambda a: (op(a) * w).sum()))(a)
    theirs = jax.grad(lambda a: (jnp.linalg.cholesky(a, symmetrize_input=False) * w).sum())(a)
    # Both read one triangle; JAX spreads the gradient over two.
    np.testing.assert_allclose(ours + ours.T, theirs + theirs.T, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("lower", CHOLESKY)
def test_vmap_of_calls_and_gradients(lower):
    op = make(cholesky, lower)
    batch = jnp.stack([spd(5, seed) for seed in range(3)])
    expected = np.linalg.cholesky(batch)
    np.testing.assert_allclose(jax.vmap(op)(batch), expected, rtol=1e-5, atol=1e-6)
    nested = jax.vmap(jax.vmap(op), in_axes=1, out_axes=1)(jnp.stack([batch, batch + 0.0]))
    np.testing.assert_allclose(nested[1], expected, rtol=1e-5, atol=1e-6)
    loss = lambda a: (op(a) ** 2).sum()  # noqa: E731
    one_by_one = jnp.stack([jax.grad(loss)(a) for a in batch])
    np.testing.assert_allclose(jax.vmap(jax.grad(loss))(batch), one_by_one, rtol=1e-5)
    whole = jax.grad(lambda b: jax.vmap(loss)(b).sum())(batch)
    np.testing.assert_allclose(whole, one_by_one, rtol=1e-5)


@ops.kernel
def scale_rows(a, s):
    b = output_tensor(a.shape, a.dtype)
    t = 0.0
    for i in range(a.shape[0]):
        t = t * 0.5 + a[i] * s[i]
        b[i] = t
    return b


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 1))
def test_gradient_of_vmap_with_an_unmapped_input(lower):
    op = make(scale_rows, lower)
    a = jnp.arange(12.0).reshape(3, 4) / 7
    s = jnp.linspace(0.5, 1.5, 4)

    def loss(a, s, run):
        return (run(a, s) ** 2).sum()

    mapped = jax.vmap(op, in_axes=(0, None))
    got = jax.jit(jax.grad(lambda a, s: loss(a, s, mapped), (0, 1)))(a, s)
    each = [jax.grad(lambda r, s: loss(r, s, op), (0, 1))(row, s) for row in a]
    np.testing.assert_allclose(got[0], jnp.stack([e[0] for e in each]), rtol=1e-5)
    np.testing.assert_allclose(got[1], sum(e[1] for e in each), rtol=1e-5)


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 0))
def test_inside_control_flow_checkpoint_and_donation(lower):
    op = make(running, lower)
    x = jnp.linspace(-1.0, 1.0, 6)
    scanned, _ = jax.lax.scan(lambda c, _: (op(c), None), x, length=3)
    np.testing.assert_allclose(scanned, op(op(op(x))), rtol=1e-6)
    looped = jax.lax.fori_loop(0, 3, lambda _, c: op(c), x)
    np.testing.assert_allclose(looped, scanned, rtol=1e-6)
    chosen = jax.lax.cond(x[0] < 0, op, lambda c: c, x)
    np.testing.assert_allclose(chosen, op(x), rtol=1e-6)
    plain = jax.grad(lambda x: op(x).sum())(x)
    np.testing.assert_allclose(jax.grad(lambda x: jax.checkpoint(op)(x).sum())(x), plain, rtol=1e-6)
    expected = np.asarray(op(x))
    np.testing.assert_allclose(jax.jit(op, donate_argnums=0)(x + 0), expected, rtol=1e-6)


@pytest.mark.parametrize("lower", [None, *LOWERINGS])
def test_loops_with_bounds_from_data_are_differentiated(lower):
    def sparse(start, column, value, x):
        y = output_tensor((start.shape[0] - 1,), value.dtype)
        for i in range(y.shape[0]):
            for k in range(start[i], start[i + 1]):
                y[i] += value[k] * x[column[k]]
        return y

    op = make(sparse, lower)
    start, column = jnp.array([0, 2, 2, 3]), jnp.array([0, 2, 1])
    value, x, w = jnp.array([2.0, 3.0, 5.0]), jnp.array([1.0, 4.0, 9.0]), jnp.array([1.0, 6.0, 7.0])
    dense = jnp.array([[2.0, 0.0, 3.0], [0.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    np.testing.assert_allclose(op(start, column, value, x), dense @ x)
    by_value, by_x = jax.jit(
        jax.grad(lambda v, x: (op(start, column, v, x) * w).sum(), argnums=(0, 1))
    )(value, x)
    np.testing.assert_allclose(by_value, [1.0 * 1, 1.0 * 9, 7.0 * 4])
    np.testing.assert_allclose(by_x, w @ dense)
    _, moved = jax.jvp(lambda x: op(start, column, value, x), (x,), (w,))
    np.testing.assert_allclose(moved, dense @ w)


@ops.kernel
def total(a):
    s = output_tensor((1,), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s[0] += a[i, j]
    return s


@ops.kernel
def product(a, b):
    c = output_tensor((), a.dtype)
    c[()] = a[()] * b[()]
    return c


@ops.kernel
def index_of_largest(a):
    out = output_tensor((1,), "int32")
    best = a[0]
    at = 0
    for i in range(a.shape[0]):
        if a[i] > best:
            best = a[i]
            at = i
    out[0] = at
    return out


@ops.kernel
def doubled(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2.0
    return x


@pytest.mark.parametrize("lower", LOWERINGS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_arrays(shape, lower):
    op = make(total, lower)
    np.testing.assert_array_equal(op(jnp.ones(shape)), [0])
    assert jax.grad(lambda a: op(a)[0])(jnp.ones(shape)).shape == shape
    assert jax.vmap(op)(jnp.ones((0, 2, 2))).shape == (0, 1)
    assert jax.grad(lambda a: jax.vmap(op)(a).sum())(jnp.ones((0, 2, 2))).shape == (0, 2, 2)


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 1))
def test_arrays_without_dimensions(lower):
    op = make(product, lower)
    a, b = jnp.float32(3), jnp.float32(4)
    assert op(a, b) == 12
    assert jax.grad(op, argnums=(0, 1))(a, b) == (4, 3)
    np.testing.assert_array_equal(jax.vmap(op, (0, None))(jnp.arange(3.0), b), [0, 4, 8])


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 0))
def test_views_of_numpy_are_read_as_they_look(lower):
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    op = make(total, lower)
    for view in (whole[::2, ::-2], whole.T, np.asfortranarray(whole), whole.astype(">f4")):
        np.testing.assert_array_equal(op(view), [view.sum()])


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 1))
def test_an_input_written_in_place_is_a_copy(lower):
    op = make(doubled, lower)
    x, y = jnp.arange(3.0), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(op(x), [0, 2, 4])
    np.testing.assert_array_equal(op(y), [0, 2, 4])
    np.testing.assert_array_equal(x, [0, 1, 2])
    np.testing.assert_array_equal(y, [0, 1, 2])
    np.testing.assert_array_equal(jax.jit(lambda x: op(x) + x)(x), [0, 3, 6])
    np.testing.assert_array_equal(jax.jit(op, donate_argnums=0)(x + 0), [0, 2, 4])


@pytest.mark.parametrize("lower", LOWERINGS)
@pytest.mark.parametrize(
    "values", [[1, np.nan, 3], [np.nan, 1, 2], [3, 3, 1], [-np.inf] * 3, [1, np.inf, np.inf]]
)
def test_comparisons_treat_nan_and_inf_as_python_does(values, lower):
    expected = index_of_largest(np.float32(values))
    np.testing.assert_array_equal(make(index_of_largest, lower)(jnp.float32(values)), expected)


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 0))
def test_threads_call_a_new_op_at_once(lower):
    op, start = make(running, lower), threading.Barrier(8)

    def call(size):
        start.wait(60)
        x = jnp.ones(size)
        return op(x), jax.grad(lambda x: op(x).sum())(x)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(call, [5, 6, 7, 5, 6, 7, 5, 6], timeout=120))
    for value, gradient in results:
        expected = 2 - 0.5 ** np.arange(len(value))
        np.testing.assert_allclose(value, expected, rtol=1e-6)
        np.testing.assert_allclose(gradient, expected[::-1], rtol=1e-6)


def test_a_bprop_wins_over_the_loops_own_derivative():
    op = make(row_softmax, bprop=lambda a, out, dout: (dout * 0 + 3.0,))
    np.testing.assert_array_equal(jax.grad(lambda a: op(a).sum())(jnp.ones((2, 2))), 3.0)


def test_xla_sees_operations_or_a_call(x):
    raised = jax.jit(make(row_softmax, "xla")).lower(x).as_text()
    assert "custom_call" not in raised
    assert "custom_call @msops_aot" in jax.jit(make(row_softmax, "native")).lower(x).as_text()


def test_the_choice_follows_the_loops(x):
    assert "custom_call" not in jax.jit(make(row_softmax)).lower(x).as_text()
    big = jax.ShapeDtypeStruct((256, 256), np.float32)
    assert "custom_call @msops_aot" in jax.jit(make(cholesky)).lower(big).as_text()


def scaled_info(target="CPU"):
    return (
        CustomRegOp()
        .input(0, "x")
        .output(0, "y")
        .attr("factor", "required", "float")
        .attr("times", "optional", "int", default_value="2")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .target(target)
        .get_op_info()
    )


def scaled(x, factor, times):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
        for _t in range(times):
            y[i] = y[i] * factor
    return y


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 1))
def test_attributes_of_op_info_are_parameters_after_the_tensors(lower):
    op = make(scaled, lower, reg_info=scaled_info())
    x = jnp.array([1.0, 2.0])
    np.testing.assert_allclose(op(x, 3.0), [9, 18])
    np.testing.assert_allclose(jax.jit(lambda x: op(x, 0.5, 3))(x), [0.125, 0.25])
    np.testing.assert_allclose(jax.grad(lambda x: op(x, 3.0).sum())(x), [9, 9])


def test_op_info_guards_the_dtypes():
    op = make(scaled, reg_info=scaled_info())
    with pytest.raises(TypeError, match="match no row of its op info"):
        op(jnp.ones(2, jnp.float16), 3.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "uint8"])
@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 0))
def test_dtypes_on_the_jax_face(lower, dtype):
    @ops.kernel
    def double(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            b[i] = a[i] + a[i]
        return b

    x = jnp.arange(5).astype(dtype)
    got = make(double, lower)(x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, x + x)


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 1))
def test_temporaries_of_64_bits_keep_their_width_with_x64_off(lower):
    def narrow(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            b[i] = int32((int64(a[i]) * int64(a[i])) // int64(65536))
        return b

    x = jnp.array([2**20, 2**19], jnp.int32)
    np.testing.assert_array_equal(make(narrow, lower)(x), [2**24, 2**22])


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 0))
def test_tensors_keep_64_bits(lower):
    out = make(row_softmax, lower)(msops.Tensor(np.eye(3)))
    assert isinstance(out, msops.Tensor)
    assert out.dtype == msops.float64
    np.testing.assert_allclose(out.asnumpy(), jax.nn.softmax(np.eye(3)), rtol=1e-6)


@ops.kernel
def picked(x, n):
    y = output_tensor((2, x.shape[0]), x.dtype)
    y[0, 0] = x[n[0]]
    y[1, n[0]] = 9.0
    for _i in range(n[1], n[2]):
        y[0, 1] += 1.0
    return y


@pytest.mark.parametrize("lower", LOWERINGS)
@pytest.mark.parametrize(
    ("dtype", "indices"),
    [
        ("uint32", (2**32 - 1, 2**31, 1)),
        ("int64", (2**32 + 1, -(2**32) + 1, 2**63 - 1, -(2**63), 1)),
        ("uint64", (2**63 + 2, 2**64 - 1, 2)),
    ],
)
def test_wide_scalars_are_indices_and_bounds(lower, dtype, indices):
    op = make(picked, lower)
    x, top = np.arange(1, 5, dtype="float32"), np.iinfo(dtype).max
    for index in indices:
        n = np.array([index, top - 2, top], dtype)
        want = np.zeros((2, 4), "float32")
        want[0, :2] = x[min(max(index, 0), 3)], 2
        if 0 <= index < 4:
            want[1, index] = 9
        with jax.enable_x64(True):
            np.testing.assert_array_equal(op(x, n), want, str(index))


def test_equal_kernels_share_and_changed_constants_do_not():
    def factory(factor):
        def times(a):
            b = output_tensor(a.shape, a.dtype)
            for i in range(a.shape[0]):
                b[i] = a[i] * factor
            return b

        return make(times)

    x = jnp.ones(3)
    two, again, three = factory(2.0), factory(2.0), factory(3.0)
    np.testing.assert_array_equal(two(x), 2)
    np.testing.assert_array_equal(three(x), 3)
    np.testing.assert_array_equal(again(x), 2)
    assert two._resolve() is again._resolve()
    assert two._resolve() is not three._resolve()


def test_what_the_infer_functions_say_must_be_what_the_loops_return():
    op = make(row_softmax, out_shape=lambda a: a[:1], out_dtype=lambda a: a)
    with pytest.raises(InferenceValueError) as caught:
        op(jnp.ones((2, 3)))
    assert str(caught.value) == (
        "Custom 'row_softmax' on CPU: expected the outputs that out_shape and out_dtype describe, "
        "float32[2]; the kernel returns float32[2, 3].\n"
        "Fix the infer functions, or leave both out: the loops then decide."
    )


def test_options_of_other_func_types_are_refused():
    with pytest.raises(ArgumentValueError) as caught:
        make(row_softmax, host=True)
    assert str(caught.value) == (
        "Custom 'row_softmax': option host is for func_type 'aot' or 'ffi'; this op is 'akg'.\n"
        "Leave host out."
    )
    with pytest.raises(ArgumentValueError) as caught:
        Custom(np.square, lambda x: x, lambda x: x, compile_attrs={"lower": "xla"})
    assert str(caught.value) == (
        "Custom 'square': expected compile_attrs['lower'] to be 'callback' for func_type 'pyfunc'; "
        "got 'xla'.\nLeave it out for the fastest call there is on the platform."
    )
    with pytest.raises(ArgumentValueError) as caught:
        make(row_softmax, "fast")
    assert str(caught.value) == (
        "Custom 'row_softmax': expected compile_attrs['lower'] to be 'xla' or 'native'; got "
        "'fast'.\nLeave it out to let the estimate of costs choose."
    )


def square(x):
    y = output_tensor(x.shape, x.dtype)
    for i0 in range(x.shape[0]):
        y[i0] = y[i0] * y[i0]
    return y


def test_reading_what_was_never_written_warns_with_the_line(caplog):
    with caplog.at_level(logging.WARNING, "msops"):
        make(square)(jnp.ones(3))
    text = caplog.text
    line = square.__code__.co_firstlineno + 3
    assert "Custom 'square'" in text
    assert f"{__file__}:{line}" in text
    assert "y[i0] = y[i0] * y[i0]" in text


def test_explain_tells_what_each_loop_is(x):
    told = make(row_softmax).explain(x)
    assert "parallel" in told
    assert "XLA" in told
    told = make(cholesky).explain(jax.ShapeDtypeStruct((256, 256), np.float32))
    assert "serial" in told
    assert "native" in told


@pytest.mark.parametrize("lower", [None, *LOWERINGS])
def test_what_isl_cannot_finish_runs_in_order_and_explain_says_so(lower, monkeypatch):
    monkeypatch.setattr(library, "OPERATION_LIMIT", 10)

    def blend(a, b):
        c = output_tensor(a.shape, a.dtype)
        for i in range(1, a.shape[0]):
            t = a[a.shape[0] - 1 - i] * b[a.shape[0] - 1 - i]
            c[a.shape[0] - 1 - i] = c[a.shape[0] - i] + t * t
        return c

    op = make(blend, lower)
    a, b = jnp.linspace(0.0, 1.0, 5), jnp.linspace(1.0, 2.0, 5)
    expected = lambda a: jnp.cumsum((a * b)[::-1].at[0].set(0.0) ** 2)[::-1]  # noqa: E731
    np.testing.assert_allclose(op(a, b), expected(a), rtol=1e-6)
    got = jax.grad(lambda a: op(a, b).sum())(a)
    np.testing.assert_allclose(got, jax.grad(lambda a: expected(a).sum())(a), rtol=1e-6)
    told = op.explain(a, b)
    assert "serial, because its dependences are too complex to analyse" in told
    if lower is None:
        assert "native code, as loop i must run in order" in told


def test_explain_needs_a_call_or_inputs():
    op = make(running, bprop=lambda x, out, dout: (dout,))
    with pytest.raises(ArgumentValueError, match="the op has not been called yet"):
        op.explain()
    op(jnp.ones(3))
    assert op.explain() == op.explain(jnp.ones(3))


def test_texts_of_all_stages(x):
    op = make(row_softmax)
    assert op.lower_text(x, stage="ir").startswith("kernel row_softmax(a: float32[5, 7])")
    assert "parallel" in op.lower_text(x, stage="marked")
    assert "int row_softmax_kernel(" in op.lower_text(x, stage="c")
    assert "__global__" in op.lower_text(x, stage="cuda")
    assert "stablehlo" in op.lower_text(x)
    assert "HloModule" in op.lower_text(x, stage="hlo")
    with pytest.raises(ArgumentValueError) as caught:
        op.lower_text(x, stage="asm")
    assert "'ir', " in str(caught.value)
    assert "'hlo'; got 'asm'" in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["matmul", "max_pool_2", "scatter_add", "cumulative_sum", "lu", "edit_distance", "n_body"],
)
def test_explain_and_every_stage_have_text_for(name):
    case = BY_NAME[name]
    inputs = case.inputs(np.random.default_rng(0), 4)
    op = Custom(case.func, func_type="akg")
    assert "Loops, by their dependences:\n  " in op.explain(*inputs)
    for stage, mark in STAGES.items():
        assert mark in op.lower_text(*inputs, stage=stage)


def through_scratch(a, size):
    scratch = allocate((size,), a.dtype)
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        scratch[i] = a[i]
        for j in range(1, i):
            scratch[i] = scratch[i] * scratch[j]
        b[i] = scratch[i]
    return b


def of_size(lower):
    info = CustomRegOp().attr("size", "required", "int").input(0, "a").output(0, "b")
    info = info.dtype_format(DataType.F32_Default, DataType.F32_Default).target("CPU")
    return make(through_scratch, lower, reg_info=info.get_op_info())


def test_temporaries_beyond_the_memory_are_an_error_of_the_kernel():
    with pytest.raises(KernelError) as caught:
        of_size("native")(jnp.ones(3), 2**40)
    text = str(caught.value)
    assert text.startswith(f"Custom 'through_scratch' on CPU: no memory for workspaces of {2**42} ")
    assert "make the temporaries of the loops smaller" in text


@pytest.mark.parametrize("lower", [None, *LOWERINGS])
@pytest.mark.parametrize("size", [2**46, 2**62])
def test_temporaries_beyond_any_memory_are_refused(lower, size):
    with pytest.raises(ArgumentValueError) as caught:
        of_size(lower)(jnp.ones(3), size)
    text = str(caught.value)
    assert "Custom 'through_scratch'" in text
    assert f"got {4 * size} bytes for scratch, float32[{size}]" in text
    assert "Make it smaller" in text


def test_loops_with_more_iterations_than_an_array_has_elements_are_lowered():
    def add_all(a):
        b = output_tensor((1,), a.dtype)
        for i in range(2**30):
            for j in range(2**30):
                for k in range(2**30):
                    b[0] += a[0] * float32(i) * float32(j) * float32(k)
        return b

    # XLA ends the process if the size of a shape overflows.
    assert "while" in jax.jit(make(add_all, "xla")).lower(jnp.ones(1)).compile().as_text()


def rows_in_order(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s = s * 0.5 + x[i, j] * w[j]
            y[i, j] = s
    return y


def sums_up_to_a_limit(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 1.0:
                break
            y[i, 0] += x[i, j] * w[j]
    return y


def tanh_in_order(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = w[j] if j == 0 else tanh(y[i, j - 1] * w[j] + x[i, 0])
    return y


def triangle(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 0.0
            for k in range(j + 1):
                y[i, j] += x[i, k] * w[k]
    return y


def magnitudes(a, t):
    picked = output_tensor(t.shape, a.dtype)
    facts = output_tensor((3, t.shape[0]), t.dtype)
    for i in range(t.shape[0]):
        picked[i] = a[abs(t[i])]
        facts[0, i] = abs(t[i])
        facts[1, i] = 1 if abs(t[i]) < 0 else 2
        facts[2, i] = abs(t[i]) // 4
    return picked, facts


@pytest.mark.parametrize("lower", LOWERINGS)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_the_magnitude_of_the_least_integer_wraps(dtype, lower):
    least = np.iinfo(dtype).min
    t = np.array([least, least + 1, -29, -1, 0, 3, np.iinfo(dtype).max], dtype)
    a = np.arange(1, 31, dtype="float32")
    wrapped = np.where(t == least, t, np.abs(t))
    with jax.enable_x64(True):
        picked, facts = jax.jit(make(magnitudes, lower))(a, t)
    np.testing.assert_array_equal(picked, a[np.clip(wrapped, 0, 29)])
    np.testing.assert_array_equal(facts, [wrapped, np.where(wrapped < 0, 1, 2), wrapped // 4])


@pytest.mark.parametrize("lower", one_in(2, LOWERINGS, 1))
def test_a_gradient_computes_what_a_choice_guards_inside_of_it_alone(lower):
    """Both factors need the hyperbolic tangent, which reads y[i, -1] where j is 0."""
    op = Custom(tanh_in_order, func_type="akg", compile_attrs={"lower": lower})
    x, w = jnp.ones((2, 4)) * 0.3, jnp.arange(1.0, 5.0) / 4
    check_grads(lambda x, w: op(x, w), (x, w), order=1, modes=["rev"], rtol=1e-2)


@pytest.mark.parametrize(
    ("kernel", "lower"),
    in_turn([rows_in_order, sums_up_to_a_limit, tanh_in_order, triangle], LOWERINGS),
)
def test_a_kernel_in_shard_map_has_its_values_and_derivatives(kernel, lower):
    op = Custom(kernel, func_type="akg", compile_attrs={"lower": lower})
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, whole = jax.sharding.PartitionSpec("d"), jax.sharding.PartitionSpec()
    # The first input varies over the mesh, the second one does not, nor do zeros.
    divided = jax.shard_map(op, mesh=mesh, in_specs=(rows, whole), out_specs=rows)
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(3, 5)).astype("float32"), rng.normal(size=5).astype("float32")

    def all_of(f, x, w):
        slopes = jax.grad(lambda x, w: (f(x, w) ** 2).sum(), (0, 1))(x, w)
        return f(x, w), slopes, jax.jvp(f, (x, w), (w * x, 2 * w))

    got, want = (jax.jit(functools.partial(all_of, f))(*inputs) for f in (divided, op))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)
