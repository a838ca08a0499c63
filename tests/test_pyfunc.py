"""pyfunc: what the function gets, what it may return, effects and errors."""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import re
import signal
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import first

import msops
from msops import Custom, Tensor, errors
from msops.nn import Cell

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_function_gets_read_only_numpy_arrays() -> None:
    seen = []

    def look(x: Any) -> Any:
        seen.append((type(x), x.flags.writeable, x.copy()))
        return x

    Custom(look, first, first)(X)
    (kind, writable, value), *_ = seen
    assert kind is np.ndarray
    assert not writable
    np.testing.assert_array_equal(value, X)


def test_writable_copies_leave_the_inputs_alone() -> None:
    def clear(x: Any) -> Any:
        x[...] = 0
        return x

    x = jnp.asarray(X)
    assert not np.any(Custom(clear, first, first, writable=True)(x))
    np.testing.assert_array_equal(x, X)
    with pytest.raises(errors.KernelError, match="read-only"):
        Custom(clear, first, first)(x)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint32", "int32", "float16", "bfloat16", "float32", "complex64"]
)
def test_every_dtype_arrives_and_comes_back(dtype: str) -> None:
    x = jnp.asarray(X).astype(dtype)
    seen = []

    def same(x: Any) -> Any:
        seen.append(x.dtype)
        return x

    got = Custom(same, first, first)(x)
    assert got.dtype == x.dtype == seen[0]
    np.testing.assert_array_equal(np.asarray(got), np.asarray(x))


def test_several_outputs_of_different_shapes_and_dtypes() -> None:
    op = Custom(
        lambda x: (x.sum(1), x > 2, x.astype(np.int32)),
        lambda x: ((x[0],), x, x),
        lambda x: (x, bool, np.int32),
    )
    sums, mask, ints = jax.jit(op)(X)
    np.testing.assert_allclose(sums, X.sum(1))
    np.testing.assert_array_equal(mask, X > 2)
    np.testing.assert_array_equal(ints, X.astype(np.int32))
    assert (mask.dtype, ints.dtype) == (bool, np.int32)


def test_one_output_in_a_tuple_is_a_tuple() -> None:
    op = Custom(lambda x: (x + 1,), lambda x: (x,), lambda x: (x,))
    (got,) = op(X)
    np.testing.assert_array_equal(got, X + 1)


def test_scalar_output_takes_numpy_and_python_scalars() -> None:
    for function in (np.sum, lambda x: float(x.sum()), lambda x: int(x.sum())):
        got = Custom(function, (), np.float32)(X)
        assert got.shape == ()
        assert got.dtype == np.float32
        assert got == X.sum()


def test_values_may_stand_for_infer_functions() -> None:
    op = Custom(lambda x: np.full((2, 2), x.sum()), [2, 2], "float32")
    np.testing.assert_array_equal(op(X), np.full((2, 2), 15.0))


def test_callables_of_every_kind_are_functions() -> None:
    class Scale:
        def __call__(self, x: Any) -> Any:
            return 2 * x

        def method(self, x: Any) -> Any:
            return 3 * x

    kinds = {np.square: X**2, Scale(): 2 * X, Scale().method: 3 * X}
    kinds[functools.partial(np.multiply, np.float32(4))] = 4 * X
    for function, expected in kinds.items():
        np.testing.assert_array_equal(Custom(function, first, first)(X), expected)


def test_function_without_output_runs_each_time() -> None:
    seen: list[float] = []
    op = Custom(lambda x: seen.append(float(x.sum())), (), ())
    assert op(X) is None
    assert op(X) is None
    jax.effects_barrier()
    assert seen == [15.0, 15.0]

    @jax.jit
    def program(x: Any) -> Any:
        op(x)
        op(x)
        return x + 1

    program(X)
    jax.effects_barrier()
    assert seen == [15.0] * 4


def test_function_without_output_runs_in_loops_and_under_vmap_and_grad() -> None:
    seen: list[float] = []
    op = Custom(lambda x: seen.append(float(x)), (), ())

    def body(total: Any, x: Any) -> Any:
        op(x)
        return total + x, None

    jax.jit(lambda xs: jax.lax.scan(body, 0.0, xs))(jnp.arange(3.0))
    jax.effects_barrier()
    assert sorted(seen) == [0.0, 1.0, 2.0]
    seen.clear()
    jax.vmap(op)(jnp.arange(3.0))
    jax.effects_barrier()
    assert sorted(seen) == [0.0, 1.0, 2.0]
    seen.clear()
    slope = jax.grad(lambda x: (op(x), x**2)[1])(3.0)
    jax.effects_barrier()
    assert seen == [3.0]
    assert slope == 6.0


def test_function_without_output_is_refused_in_checkpoint() -> None:
    op = Custom(lambda x: None, (), ())
    with pytest.raises(NotImplementedError) as caught:
        jax.grad(jax.checkpoint(lambda x: (op(x), jnp.sin(x))[1]))(1.0)
    assert (
        "Custom '<lambda>' has no output: it runs once per call, so it cannot be recomputed. Move "
        "the call out of jax.checkpoint" in str(caught.value)
    )


def test_only_one_empty_half_is_a_scalar_not_an_effect() -> None:
    assert Custom(np.sum, (), np.float32)(X).shape == ()
    with pytest.raises(errors.InferenceTypeError, match="expected a dtype"):
        Custom(np.sum, [2], ())


def test_stateful_calls_are_neither_merged_nor_dropped() -> None:
    counts: list[int] = []

    def count(x: Any) -> Any:
        counts.append(1)
        return x

    op = Custom(count, first, first, stateful=True)
    jax.jit(lambda x: (op(x), op(x), x)[2])(X)
    jax.effects_barrier()
    assert len(counts) == 2


def test_exception_names_the_op_and_keeps_the_original_traceback() -> None:
    def divide(x: Any) -> Any:
        return x / (1 // 0)

    op = Custom(divide, first, first)
    with pytest.raises(errors.KernelError) as caught:
        op(X)
    text = str(caught.value)
    assert text.startswith("Custom 'divide' on CPU: its function raised ZeroDivisionError: ")
    assert "return x / (1 // 0)" in text
    assert text.rstrip().endswith("Fix the function; it was called with float32[2, 3].")
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Custom 'divide' on CPU: its function"):
        jax.block_until_ready(jax.jit(lambda x: op(x) + 1)(X))


@pytest.mark.parametrize(
    ("returned", "family", "problem"),
    [
        (
            X.astype(np.float64),
            errors.InferenceTypeError,
            "expected dtype float32 for output 0, as out_dtype says; its function returned float64",
        ),
        (
            X[:1],
            errors.InferenceValueError,
            "expected shape (2, 3) for output 0, as out_shape says; its function returned (1, 3)",
        ),
        (
            None,
            errors.InferenceTypeError,
            "expected dtype float32 for output 0, as out_dtype says; its function returned None "
            "(did it forget to return?)",
        ),
        (
            1j,
            errors.InferenceTypeError,
            "expected dtype float32 for output 0, as out_dtype says; its function returned 1j",
        ),
        (
            {},
            errors.InferenceTypeError,
            "its function returned a dict.\nReturn np.asarray(result, np.float32), or fix",
        ),
        (
            (X, X),
            errors.InferenceValueError,
            "expected shape (2, 3) for output 0, as out_shape says; its function returned "
            "(2, 2, 3), of a tuple of 2",
        ),
        (
            (X, X[:1]),
            errors.InferenceTypeError,
            "expected an array for output 0; its function returned a tuple, of which numpy makes "
            "none: ",
        ),
    ],
)
def test_wrong_output_says_which_expected_and_got(
    returned: Any, family: type[Exception], problem: str
) -> None:
    with pytest.raises(family) as caught:
        Custom(lambda x: returned, first, first)(X)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("returned", "got"), [((X,), "1 values"), (X, "float32[2, 3]"), ((X, X, X), "3 values")]
)
def test_wrong_number_of_outputs_is_an_error(returned: Any, got: str) -> None:
    op = Custom(lambda x: returned, lambda x: (x, x), lambda x: (x, x))
    with pytest.raises(errors.InferenceValueError) as caught:
        op(X)
    assert f"expected a tuple of 2 outputs, as out_shape says; its function returned {got}" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("dtype", "number"), [("int8", 300), ("int8", 1.0), ("uint8", -1), ("float32", 1e300)]
)
def test_number_that_does_not_fit_is_an_error(dtype: str, number: float) -> None:
    with pytest.raises(errors.InferenceTypeError, match=re.escape(f"returned {number!r}")):
        Custom(lambda x: number, (), dtype)(X)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("int8", -128), ("uint8", 255), ("float16", 0.1), ("float32", np.inf), ("bfloat16", 0.5)],
)
def test_number_that_fits_takes_the_declared_dtype(dtype: str, number: float) -> None:
    got = Custom(lambda x: number, (), dtype)(X)
    assert got == np.asarray(number).astype(jnp.dtype(dtype))


@pytest.mark.parametrize(
    ("dtype", "number"), [("int32", np.int64(7)), ("float32", np.float64(0.5)), ("float64", 7)]
)
def test_a_numpy_number_is_cast_where_its_value_is_kept(dtype: str, number: Any) -> None:
    with jax.enable_x64(True):
        for value in (number, np.asarray(number)):
            got = Custom(lambda x, value=value: value, (), dtype)(X)
            assert got.dtype == dtype
            assert got == number


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("int32", np.int64(2**40)), ("float32", np.float64(0.1)), ("int32", np.float32(1))],
)
def test_a_numpy_number_that_would_change_is_an_error(dtype: str, number: Any) -> None:
    with pytest.raises(errors.InferenceTypeError, match=f"expected dtype {dtype} for output 0"):
        Custom(lambda x: number, (), dtype)(X)


AXES_OF_ONE = [
    ((), (1,)),
    ((1,), ()),
    ((1, 1), ()),
    ((2, 3, 1), (2, 3)),
    ((1, 2, 3), (2, 3)),
    ((3,), (1, 3)),
]


def returning(returned: tuple[int, ...], declared: tuple[int, ...], **options: Any) -> Custom:
    value = np.arange(np.prod(returned, dtype=int), dtype=np.float32).reshape(returned)
    return Custom(lambda x: value, declared, jnp.float32, **options)


@pytest.mark.parametrize(("returned", "declared"), AXES_OF_ONE)
def test_axes_of_size_one_may_differ_on_tensors(
    returned: tuple[int, ...], declared: tuple[int, ...]
) -> None:
    got = returning(returned, declared)(Tensor(X)).asnumpy()
    np.testing.assert_array_equal(got.ravel(), np.arange(got.size))
    assert got.size == np.prod(returned, dtype=int)


@pytest.mark.parametrize("attrs", [None, {"lower": "callback"}])
@pytest.mark.parametrize(
    ("returned", "declared"),
    [*AXES_OF_ONE, ((), (3,)), ((1, 3), (2, 3)), ((3, 2), (2, 3)), ((6,), (2, 3))],
)
def test_a_result_of_another_shape_is_refused_as_pure_callback_refuses_it(
    returned: tuple[int, ...], declared: tuple[int, ...], attrs: Any
) -> None:
    op = returning(returned, declared, compile_attrs=attrs)
    struct = jax.ShapeDtypeStruct(declared, jnp.float32)
    value = np.zeros(returned, np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError):
        jax.pure_callback(lambda x: value, struct, X)
    with pytest.raises(errors.InferenceValueError, match="expected shape"):
        op(X)
    with pytest.raises(jax.errors.JaxRuntimeError, match="expected shape"):
        jax.block_until_ready(jax.jit(op)(X))
    with pytest.raises(jax.errors.JaxRuntimeError, match="expected shape"):
        jax.block_until_ready(jax.jit(jax.vmap(op))(jnp.stack([X, X])))


def test_a_tuple_of_one_output_may_be_a_bare_array() -> None:
    for function in (lambda x: x + 1, lambda x: (x + 1,), lambda x: [x + 1]):
        (got,) = Custom(function, ((2, 3),), (jnp.float32,))(X)
        np.testing.assert_array_equal(got, np.asarray(X) + 1)
    with pytest.raises(errors.InferenceValueError, match=r"a tuple of 1 outputs, .* 2 values"):
        Custom(lambda x: (x, x), ((2, 3),), (jnp.float32,))(X)


def test_on_tensors_a_float64_scalar_does_not_widen(caplog: pytest.LogCaptureFixture) -> None:
    def scale(x: np.ndarray) -> np.ndarray:
        return np.sqrt(2 / np.pi) * x

    op = Custom(scale, first, first)
    with caplog.at_level("DEBUG", "msops.pyfunc"):
        results = [op(Tensor(np.asarray(X))) for _ in range(2)]
    for got in results:
        assert str(got.dtype) == "Float32"
        np.testing.assert_allclose(got.asnumpy(), 0.7978846 * np.asarray(X), rtol=1e-6)
    (record,) = [record for record in caplog.records if record.name == "msops.pyfunc"]
    assert "'scale' on CPU: its function returned float64 for output 0; cast" in record.getMessage()
    # On arrays of JAX it is an error, and so it is where an input is float64.
    with pytest.raises(errors.InferenceTypeError, match="expected dtype float32"):
        op(X)
    with pytest.raises(errors.InferenceTypeError, match="expected dtype float32"):
        Custom(scale, first, jnp.float32)(Tensor(np.ones(2)))


def test_leaving_from_inside_names_the_op() -> None:
    def leave(x: Any) -> Any:
        raise SystemExit

    with pytest.raises(errors.KernelError, match=r"Custom 'leave' .* raised SystemExit"):
        Custom(leave, first, first)(X)


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Has Python raise KeyboardInterrupt, as it does not in a process of a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("attrs", [None, {"lower": "callback"}])
def test_an_interrupt_inside_reaches_the_caller(attrs: Any) -> None:
    def interrupt(x: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return x

    op = Custom(interrupt, first, first, compile_attrs=attrs)
    for _ in range(3):  # the second call and later ones take another way through JAX
        with pytest.raises(KeyboardInterrupt) as caught:
            op(X)
        assert "Custom 'interrupt' on CPU: its function raised" in str(caught.value.__cause__)


class Halved(Cell):
    def __init__(self, op: Custom):
        super().__init__()
        self.op = op

    def construct(self, x: Tensor) -> Tensor:
        return self.op(x)


CALLS: dict[str, Callable[[Custom], Any]] = {
    "eager": lambda op: op(X),
    "Tensor": lambda op: op(Tensor(X)),
    "Cell": lambda op: Halved(op)(Tensor(X)),
    "ms.jit": lambda op: msops.jit(lambda x: op(x))(Tensor(X)),
}


@pytest.mark.parametrize("attrs", [None, {"lower": "callback"}])
@pytest.mark.parametrize("call", CALLS)
def test_an_error_has_what_the_function_raised_as_its_cause(call: str, attrs: Any) -> None:
    raised = []

    def fail(x: Any) -> Any:
        raised.append(ZeroDivisionError(f"by hand {x.shape}"))
        raise raised[-1]

    op = Custom(fail, first, first, compile_attrs=attrs)
    for _ in range(3):
        with pytest.raises(errors.KernelError, match="raised ZeroDivisionError: by hand") as caught:
            np.asarray(CALLS[call](op))
        assert caught.value.__cause__ is raised[-1]
        assert re.search(r"line \d+, in fail\n", str(caught.value))


def test_a_cause_of_the_function_is_kept() -> None:
    def fail(x: Any) -> Any:
        try:
            return x[7]
        except IndexError as error:
            raise ValueError("by hand") from error

    with pytest.raises(errors.KernelError) as caught:
        Custom(fail, first, first)(X)
    assert isinstance(caught.value.__cause__, ValueError)
    assert isinstance(caught.value.__cause__.__cause__, IndexError)


def test_what_a_function_raised_is_not_kept_after_its_error() -> None:
    class Own(ValueError):
        pass

    def fail(x: Any) -> Any:
        raise Own

    op = Custom(fail, first, first)
    with pytest.raises(errors.KernelError) as caught:
        op(X)
    gone = weakref.ref(caught.value.__cause__)
    del caught
    gc.collect()
    assert gone() is None


def test_error_after_a_success_is_the_same_error() -> None:
    def moody(x: Any) -> Any:
        if x[0] < 0:
            raise ValueError("negative")
        return x

    op = Custom(moody, first, first)
    for wrap in (np.asarray, Tensor):
        good, bad = wrap(np.float32([1])), wrap(np.float32([-1]))
        for _ in range(3):
            op(good)
            with pytest.raises(errors.KernelError, match="its function raised ValueError: neg"):
                op(bad)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_wide_values_cross_whole_whatever_thread_runs_the_function(dtype: str) -> None:
    seen = []

    def look(x: Any) -> Any:
        seen.append(x.dtype)
        return x + x.dtype.type(1)

    op = Custom(look, first, first)
    with jax.enable_x64(True):
        x = (jnp.arange(1 << 20) + 2**40).astype(dtype)
        # The inputs are still being computed when the call is made.
        got = op(op((x + 1) * 2))
        np.testing.assert_array_equal(np.asarray(got), np.asarray((x + 1) * 2 + 2))
        scalar = jax.jit(op)(x[3])
        assert scalar.dtype == dtype
        assert scalar == x[3] + 1
        assert op(x[:0]).shape == (0,)
    assert set(seen) == {np.dtype(dtype)}


def test_wide_tensors_keep_their_width_inside_plain_jit() -> None:
    op = Custom(lambda x: x + 1, first, first)
    assert int(jax.jit(lambda t: op(t))(Tensor([2**40]))) == 2**40 + 1


LENGTH = 4


def shape_of_length(x: Any = None) -> list[int]:
    return [LENGTH]


@pytest.mark.parametrize("kind", ["out_shape", "out", "helper", "closure"])
@pytest.mark.parametrize("is_traced", [False, True], ids=["eager", "jit"])
def test_an_infer_function_sees_variables_that_are_assigned_anew(
    monkeypatch: pytest.MonkeyPatch, kind: str, is_traced: bool
) -> None:
    length = 4
    x = jnp.arange(8.0)

    def head(x: np.ndarray) -> np.ndarray:
        return x[: (length if kind == "closure" else LENGTH)]

    options: dict[str, Any] = {
        "out": {"out": lambda x: jax.ShapeDtypeStruct((LENGTH,), x.dtype)},
        "helper": {"out_shape": lambda x: shape_of_length(), "out_dtype": lambda x: x},
        "closure": {"out_shape": lambda x: [length], "out_dtype": lambda x: x},
    }.get(kind, {"out_shape": lambda x: [LENGTH], "out_dtype": lambda x: x})
    op = Custom(head, **options)
    for length in (4, 6, 4):
        monkeypatch.setitem(globals(), "LENGTH", length)
        for _ in range(2):
            call = jax.jit(lambda x: op(x)) if is_traced else op
            np.testing.assert_array_equal(call(x), x[:length])


SIZES = {"length": [4]}


class Sizes:
    """Holds a length in each way that an object may."""

    shared = 4

    def __init__(self) -> None:
        self.length = 4
        self.inner = types.SimpleNamespace(length=4)

    def out_shape(self, *_: Any) -> list[int]:
        return [self.length]

    __call__ = out_shape


def lengths_in_objects() -> dict[str, tuple[Any, Any]]:
    """Returns infer functions by what they read, and what changes that in place."""
    sizes, one, array, held, queue = Sizes(), [4], np.array([4]), {4}, collections.deque([4])
    module = types.ModuleType("sizes_of_a_test")
    module.length = 4

    def add(shape: Any, sizes: Any = one) -> list[int]:
        return [sizes[0]]

    def replace(value: int) -> None:
        held.clear()
        held.add(value)

    return {
        "dict": (lambda x: SIZES["length"], lambda n: SIZES["length"].__setitem__(0, n)),
        "list": (lambda x: one, lambda n: one.__setitem__(0, n)),
        "default": (add, lambda n: one.__setitem__(0, n)),
        "set": (lambda x: [*held], replace),
        "deque": (lambda x: [*queue], lambda n: queue.__setitem__(0, n)),
        "array": (lambda x: [int(array[0])], lambda n: array.__setitem__(0, n)),
        "attribute": (lambda x: [sizes.length], lambda n: setattr(sizes, "length", n)),
        "inner": (lambda x: [sizes.inner.length], lambda n: setattr(sizes.inner, "length", n)),
        "class": (lambda x: [Sizes.shared], lambda n: setattr(Sizes, "shared", n)),
        "module": (lambda x: [module.length], lambda n: setattr(module, "length", n)),
        "method": (sizes.out_shape, lambda n: setattr(sizes, "length", n)),
        "object": (sizes, lambda n: setattr(sizes, "length", n)),
        "partial": (functools.partial(lambda n, x: n, one), lambda n: one.__setitem__(0, n)),
    }


@pytest.mark.parametrize("kind", lengths_in_objects())
@pytest.mark.parametrize("is_traced", [False, True], ids=["eager", "jit"])
def test_an_infer_function_sees_what_changes_in_place(kind: str, is_traced: bool) -> None:
    out_shape, change = lengths_in_objects()[kind]
    length = 4
    op = Custom(lambda x: x[:length], out_shape, lambda x: x)
    x = jnp.arange(8.0)
    for length in (4, 6, 4):
        change(length)
        for _ in range(2):
            call = jax.jit(lambda x: op(x)) if is_traced else op
            np.testing.assert_array_equal(call(x), x[:length])


def test_an_infer_function_is_asked_once_while_nothing_changes() -> None:
    asked, sizes = itertools.count(), {"length": [4, np.float32(1), float("nan"), None, object()]}

    def out_shape(x: Any) -> list[int]:
        next(asked)
        return sizes["length"][:1]

    op = Custom(lambda x: x[:4], out_shape, lambda x: x)
    for _ in range(3):
        op(jnp.arange(8.0))
    assert next(asked) == 1


def test_out_shape_and_out_dtype_are_required() -> None:
    with pytest.raises(errors.ArgumentValueError) as caught:
        Custom(np.sin)(X)
    assert str(caught.value) == (
        "Custom 'sin': out_shape is required for func_type 'pyfunc'; got None.\n"
        "Pass out_shape as a value or as a function of the inputs', e.g. lambda x: x; or both in "
        "one by out=."
    )


def test_loops_without_func_type_are_told_the_one_that_infers() -> None:
    def doubled(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            y[i] = x[i] + x[i]
        return y

    with pytest.raises(errors.ArgumentValueError, match="infers it: pass func_type='akg'"):
        Custom(doubled)(X)


def test_options_of_aot_are_refused() -> None:
    with pytest.raises(errors.ArgumentValueError, match="host is for func_type 'aot' or 'ffi'"):
        Custom(np.sin, first, first, host=True)


def test_function_may_call_jax_and_start_threads() -> None:
    def with_jax(x: Any) -> Any:
        result: list[Any] = []
        worker = threading.Thread(target=lambda: result.append(np.asarray(jnp.sin(x))))
        worker.start()
        worker.join(timeout=120)
        return result[0]

    np.testing.assert_allclose(Custom(with_jax, first, first)(X), np.sin(X), rtol=1e-6)


def test_big_arrays_do_not_deadlock() -> None:
    x = jnp.ones(1 << 22, jnp.float32)
    op = Custom(lambda x: x + 1, first, first)
    assert float(jax.jit(lambda x: op(op(x)) + op(x))(x)[-1]) == 5.0


def test_lambda_seen_by_grad_of_unused_output_gets_zeros() -> None:
    op = Custom(
        lambda x: (x, 2 * x),
        lambda x: (x, x),
        lambda x: (x, x),
        bprop=lambda x, out, dout: (dout[0] + 2 * dout[1],),
    )
    np.testing.assert_array_equal(jax.grad(lambda x: op(x)[1].sum())(X), np.full_like(X, 2))
