"""ms::Tensor in C++: what it makes, its methods, its arguments, and LAUNCH_ACLNN."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import DTYPE_NAMES
from extension_modules import extension

import msops as ms
from msops.errors import ArgumentTypeError, ArgumentValueError, BackendError, InferenceTypeError

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture(scope="module")
def ops():
    return extension("tensors", "Ascend")


METHODS = {
    "cast": lambda a: a.astype(np.int32),
    "contiguous": lambda a: a,
    "flatten": lambda a: a.reshape(-1),
    "flatten12": lambda a: a.reshape(2, 12),
    "reshape": lambda a: a.reshape(4, 6),
    "repeat": lambda a: np.tile(a, (2, 1, 1, 3)),
    "repeat_interleave": lambda a: np.repeat(a, 2, 1),
    "repeat_all": lambda a: np.repeat(a, 3),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods(ops, name):
    expected = METHODS[name](A)
    for call in (ops.method, jax.jit(ops.method, static_argnums=0)):
        result = call(name, jnp.asarray(A))
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("size", "chunks"), [(7, 3), (6, 3), (5, 4), (3, 5), (1, 1)])
def test_chunk(ops, size, chunks):
    x = np.arange(2 * size, dtype=np.float32).reshape(2, size)
    # The parts of torch and MindSpore: of equal size but the last, so there may be fewer.
    step = -(-size // chunks)
    expected = np.split(x, range(step, size, step), axis=1)
    for call in (ops.chunk, jax.jit(ops.chunk, static_argnums=(1, 2))):
        parts = call(jnp.asarray(x), chunks, -1)
        assert [part.shape for part in parts] == [part.shape for part in expected]
        for part, wanted in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(part, wanted)


def test_index_select_and_repeats_that_are_tensors(ops):
    index = jnp.array([2, 0, 2])
    np.testing.assert_array_equal(ops.index_select(jnp.asarray(A), 1, index), A[:, [2, 0, 2]])
    repeats = jnp.array([2, 1])
    expected = np.repeat(A, [2, 1], 0)
    np.testing.assert_array_equal(ops.repeat_each(jnp.asarray(A), repeats, None), expected)
    compiled = jax.jit(ops.repeat_each, static_argnums=2)
    np.testing.assert_array_equal(compiled(jnp.asarray(A), repeats, 3), expected)
    with pytest.raises(ArgumentTypeError, match="Pass output_size"):
        compiled(jnp.asarray(A), repeats, None)
    with pytest.raises(ArgumentTypeError, match="expected a tensor of integers; got float32"):
        ops.index_select(jnp.asarray(A), 1, jnp.ones(2))


@pytest.mark.parametrize("bad", [-1, 3])
def test_index_select_is_that_of_aclnn(ops, bad):
    x, index = jnp.asarray(A), jnp.array([2, bad])
    with pytest.raises(ArgumentValueError, match=r"index_select, .*indices below 3"):
        ops.index_select(x, 1, index)
    result = jax.jit(ops.index_select, static_argnums=1)(x, 1, index)
    np.testing.assert_array_equal(result[:, 0], A[:, 2])
    assert np.isnan(result[:, 1]).all()
    with pytest.raises(ArgumentValueError, match="a vector of indices; got rank 2"):
        ops.index_select(x, 1, index[None])


def test_what_a_tensor_says_of_itself(ops):
    numel, strides, type_id = ops.describe(jnp.asarray(A))
    assert (numel, type_id) == (24, 43)
    assert strides.tolist() == [12, 4, 1]


# C++ types, and the dtypes whose entries numpy's like type holds; 16-bit floats have none in C++17.
C_TYPES = {
    "bool": {"bool"},
    "int8_t": {"int8"},
    "int16_t": {"int16"},
    "int": {np.dtype(np.intc).name},
    "long": {np.dtype(np.int_).name},
    "long long": {np.dtype(np.longlong).name},
    "uint8_t": {"uint8"},
    "uint16_t": {"uint16", "float16", "bfloat16"},
    "uint32_t": {"uint32"},
    "uint64_t": {"uint64"},
    "float": {np.dtype(np.single).name},
    "double": {np.dtype(np.double).name},
    "complex<float>": {np.dtype(np.csingle).name},
    "complex<double>": {np.dtype(np.cdouble).name},
    "Half": {"int16", "uint16", "float16", "bfloat16"},
    "void": set(DTYPE_NAMES),
}


@pytest.mark.parametrize("c_type", C_TYPES)
def test_typed_memory_is_of_the_dtype(ops, c_type):
    for name in DTYPE_NAMES:
        x = ms.Tensor(np.ones(3, name))
        if name in C_TYPES[c_type]:
            assert ops.points_to(x, c_type)
        else:
            with pytest.raises(TypeError, match=f"expected a tensor of .*; got {x.dtype}\\. Ask"):
                ops.points_to(x, c_type)


def test_factories_on_both_faces(ops):
    made = ops.factories()
    assert all(isinstance(tensor, ms.Tensor) for tensor in made)
    assert [tensor.dtype for tensor in made] == [
        ms.int64,
        ms.int64,
        ms.float64,
        ms.float64,
        ms.float32,
        ms.int8,
    ]
    assert [tensor.tolist() for tensor in made] == [
        7,
        [1, 2],
        0.5,
        [0.25, 4.0],
        [[1.0] * 3] * 2,
        [0, 0],
    ]
    assert ops.half().dtype == ms.float16


def test_arguments_that_may_be_absent(ops):
    x, y = jnp.ones(2), jnp.zeros(2)
    assert ops.default_or(None, y).tolist() == [0, 0]
    assert ops.default_or(x, y).tolist() == [1, 1]
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ops.default_or(x, None)


def test_assign_takes_over_another_array(ops):
    x = ms.Tensor(np.zeros((2, 2), np.float32))
    assert ops.assign(x, ms.Tensor([1.0, 2.0, 3.0])) == 1
    assert x.tolist() == [1, 2, 3]


def test_launches_by_runner_and_macro(ops):
    x = jnp.asarray(A)
    for compile in (lambda f, **_: f, jax.jit):
        np.testing.assert_allclose(compile(ops.sum, static_argnums=1)(x, 1), A.sum(1))
        np.testing.assert_allclose(compile(ops.mul)(x, x), A * A)
    np.testing.assert_allclose(jax.grad(lambda x: ops.mul(x, x).sum())(x), 2 * A)
    np.testing.assert_allclose(jax.vmap(lambda x: ops.sum(x, 0))(x), A.sum(1))


def test_launches_of_one_runner_wait_for_one_another(ops):
    shapes, done = [(1,), (2,), (3,), (4,)], []

    def work(shape):
        x = jnp.zeros(shape)
        for _ in range(5):
            ops.take_turn(x)
            ops.take_turn(x, jnp.zeros((*shape, 5)))  # launches the same runner in its launch
        done.append(shape)

    threads = [threading.Thread(target=work, args=(shape,), daemon=True) for shape in shapes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == shapes


def test_launches_step_by_step(ops):
    x = jnp.asarray(A) - 11
    for compile in (lambda f: f, jax.jit):
        np.testing.assert_allclose(compile(ops.mul_in_steps)(x, x), x * x)
        np.testing.assert_allclose(compile(ops.abs)(x), abs(x))
    gradient = jax.grad(lambda x: ops.tanh(x).sum())(x)
    np.testing.assert_allclose(gradient, 1 - np.tanh(x) ** 2, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda o: o.no_such_output(), IndexError, "an index below 0, .* got 1"),
        (lambda o: o.abs(None), RuntimeError, "The pointer .x. is null"),
        (
            lambda o: o.unknown_type(),
            ArgumentTypeError,
            "expected a TypeId of .*Float32 .43.*got 0",
        ),
        (lambda o: o.undefined(), RuntimeError, "the tensor is undefined"),
        (lambda o: o.accessor3(jnp.ones(2)), RuntimeError, "of 3 dimensions; got one of 1"),
        (lambda o: o.chunk(jnp.ones(2), 0, 0), ArgumentValueError, "chunks of 1 or more; got 0"),
        (lambda o: o.chunk(jnp.ones(2), 1, 1), ArgumentValueError, "an axis from -1 to 0; got 1"),
        (lambda o: o.method("reshape", jnp.ones(3)), ArgumentValueError, "a shape of 3 entries"),
        (lambda o: o.method("repeat", jnp.ones((1,) * 5)), ArgumentValueError, "5 repeats or more"),
        (lambda o: o.log(True), RuntimeError, "said 2"),
        (lambda o: o.log(False), RuntimeError, "is null"),
        (lambda o: o.mul(jnp.ones(2, jnp.float32), "x"), TypeError, "incompatible function"),
    ],
)
def test_errors(ops, call, kind, text):
    with pytest.raises(kind, match=text):
        call(ops)


def test_arguments_of_the_other_byte_order(ops):
    x = A.astype(A.dtype.newbyteorder())
    np.testing.assert_array_equal(ops.method("repeat_all", x), np.repeat(A, 3))
    np.testing.assert_array_equal(ops.mul(x[:, ::2], A[:, ::2]), A[:, ::2] ** 2)
    assert ops.method("repeat_all", x.reshape(-1)[5]).tolist() == [5, 5, 5]


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array([1, None], object),
        lambda: np.array(["a"]),
        lambda: np.ones(3, "M8[s]"),
        lambda: np.ones(3, np.longdouble),
        lambda: np.zeros(3, [("a", "f4")]),
        lambda: np.ones(3, jnp.float8_e4m3fn),
        lambda: np.str_("a"),
        lambda: jax.random.key(0),
        lambda: jnp.ones(3, jnp.int4),
    ],
)
def test_arguments_of_other_dtypes_are_refused(ops, make):
    x = make()
    with pytest.raises(ArgumentTypeError, match=r"for an argument .*one of bool, .*; got "):
        ops.describe(x)
    if isinstance(x, jax.Array):
        for refuses in (jax.jit(ops.describe), lambda x: ops.describe(ms.Tensor(x))):
            with pytest.raises(ArgumentTypeError, match=r"expected for an argument .*one of"):
                refuses(x)


@pytest.mark.parametrize("maker", ["zeros", "ones", "empty"])
@pytest.mark.parametrize(
    "shape", [[-1], [2, -3], [2**30, 2**30], [0, 2**62], [2**62, 2**62], [1] * 65]
)
def test_shapes_that_cannot_be_are_refused(ops, maker, shape):
    with pytest.raises(ArgumentValueError, match="expected at most 64 extents of 0 or more"):
        getattr(ops, maker)(shape)


@pytest.mark.parametrize("maker", ["zeros", "ones", "empty_memory"])
def test_a_machine_without_the_memory_says_so(ops, maker):
    # 4 PiB: more than the address space of a process.
    with pytest.raises(BackendError, match="no memory for 4,503,599,627,370,496 bytes"):
        getattr(ops, maker)([2**50])


@pytest.mark.parametrize("maker", ["zeros", "ones"])
@pytest.mark.parametrize("shape", [[], [2, 0], [2, 3], [1] * 64])
def test_shapes_that_can_be(ops, maker, shape):
    np.testing.assert_array_equal(getattr(ops, maker)(shape).asnumpy(), getattr(np, maker)(shape))


def test_numbers_that_a_dtype_does_not_hold(ops):
    assert ops.int8(-128).tolist() == -128
    assert ops.int8_of(2.5).tolist() == 2
    for call in (lambda: ops.int8(300), lambda: ops.int8_of(float("nan"))):
        with pytest.raises(ArgumentValueError, match="ms::tensor: expected data that int8 holds"):
            call()


def test_64_bit_tensors_on_the_jax_face_need_the_flag(ops):
    with pytest.raises(InferenceTypeError, match="64-bit types are off"):
        ops.method("repeat_all", np.ones(2))


def test_functions_keep_their_names_and_documents():
    axpy = extension("runners").axpy
    assert axpy.__name__ == "axpy"
    assert "x * factor + y" in axpy.__doc__


@pytest.mark.parametrize(
    "call",
    [
        lambda ops: ops.repeat(A, [1, 1, 2**62]),
        lambda ops: ops.repeat(A[:0], [2**62] * 4),
        lambda ops: ops.repeat(A, [-1] * A.ndim),
        lambda ops: ops.repeat_interleave(A, 2**62, None, None),
        lambda ops: ops.repeat_interleave(A, -1, 0, None),
        lambda ops: ops.repeat_interleave(A, 1, 0, 2**62),
    ],
)
def test_repeats_that_no_memory_holds_are_refused(ops, call):
    with pytest.raises(ArgumentValueError, match=r"ms::Tensor::repeat.*less than 2\*\*59"):
        call(ops)
