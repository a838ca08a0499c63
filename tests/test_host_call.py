"""pyfunc on the CPU: the custom call means what jax.pure_callback means, and hands over memory."""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import gc
import inspect
import os
import re
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import first
from quick_cases import in_turn, one_in

from msops import Custom, Tensor, _native, errors

pytestmark = pytest.mark.usefixtures("quick_collections")

X = np.arange(6, dtype=np.float32).reshape(2, 3)
CALLBACK = {"lower": "callback"}


@pytest.fixture(autouse=True)
def less_patient() -> Iterator[None]:
    """Has a kept view reported soon: most of the time of these tests would go to waiting."""
    _native.set_release_patience(0.2)
    yield
    _native.set_release_patience(2)


def target_of(op: Custom, *inputs: Any) -> set[str]:
    text = jax.jit(op).lower(*inputs).as_text()
    return set(re.findall(r"custom_call @(\w+)", text))


def test_the_cpu_has_a_custom_call_of_its_own() -> None:
    assert target_of(Custom(np.sin, first, first), X) == {"msops_pyfunc"}


def test_the_callback_of_jax_runs_on_request() -> None:
    op = Custom(np.sin, first, first, compile_attrs=CALLBACK)
    assert target_of(op, X) == {"xla_ffi_python_cpu_callback"}
    np.testing.assert_array_equal(op(X), np.sin(X))
    with pytest.raises(errors.ArgumentValueError, match="expected compile_attrs\\['lower'\\] to"):
        Custom(np.sin, first, first, compile_attrs={"lower": "native"})


def raises(x: Any) -> Any:
    raise ZeroDivisionError("by hand")


# What a function may do, and whether it is a pair of inputs and outputs.
FUNCTIONS: dict[str, tuple[Callable[..., Any], bool]] = {
    "new array": (lambda x: x * 2, False),
    "its input": (lambda x: x, False),
    "a slice in reverse": (lambda x: x[..., ::-1], False),
    "fortran order": (lambda x: np.asfortranarray(x + 1), False),
    "a number": (lambda x: float(x.sum()), False),
    "jax array": (lambda x: jnp.cos(x), False),
    "a list": (lambda x: x.tolist(), False),
    "two": (lambda x: (x + 1, x - 1), True),
    "two, of one array": (lambda x: [x, x], True),
    "one of two": (lambda x: (x,), True),
    "other dtype": (lambda x: x.astype(np.float64), False),
    "other shape": (lambda x: x[..., :1], False),
    "nothing": (lambda x: None, False),
    "error": (raises, False),
    "writes to its input": (lambda x: x.fill(0), False),
    "out=, returned": (lambda x, out=None: np.negative(x, out=out), False),
    "out=, not returned": (lambda x, *, out: np.copyto(out, x + 3), False),
    "out=, other returned": (lambda x, out=None: x + 4, False),
    "out=, two": (lambda x, out=None: (np.sin(x, out=out[0]), x + 4), True),
    "out=, two, not returned": (lambda x, out: (np.modf(x, out=out), None)[1], True),
    "a ufunc": (np.exp, False),
    "a ufunc, two": (np.modf, True),
    "a partial": (functools.partial(np.multiply, np.float32(3)), False),
}


def outcome(function: Callable[[], Any]) -> Any:
    """Returns what a call gives: arrays, or the kind and text of its error."""
    try:
        return [np.asarray(value) for value in jax.tree.leaves(function())]
    except errors.MsopsError as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    ("name", "vmap"),
    [
        *((name, None) for name in FUNCTIONS),
        *in_turn(FUNCTIONS, ["sequential", "expand_dims", "broadcast_all"]),
    ],
)
def test_results_and_errors_are_those_of_the_callback(name: str, vmap: str | None) -> None:
    function, is_pair = FUNCTIONS[name]
    infer = (lambda x: (x, x)) if is_pair else first
    results = []
    for attrs in (None, CALLBACK):
        op = Custom(function, infer, infer, compile_attrs=attrs, vmap=vmap)
        if vmap is None:
            results.append(outcome(lambda op=op: op(X)))
        else:
            # An error under jax.jit is XLA's; its text is compared in the eager case.
            try:
                results.append(outcome(lambda op=op: jax.jit(jax.vmap(op))(jnp.stack([X, -X]))))
            except jax.errors.JaxRuntimeError:
                results.append("error")
    ours, theirs = results
    assert type(ours) is type(theirs)
    if isinstance(ours, list):
        assert ours
        for got, expected in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype
    elif isinstance(ours, tuple):
        assert ours == theirs


def test_effects_run_as_often_as_with_the_callback() -> None:
    for attrs in (None, CALLBACK):
        seen: list[float] = []
        op = Custom(lambda x, seen=seen: seen.append(float(x)), (), (), compile_attrs=attrs)
        jax.jit(lambda xs, op=op: jax.lax.map(lambda x: (op(x), x)[1], xs))(jnp.arange(4.0))
        jax.vmap(op)(jnp.arange(4.0))
        op(jnp.float32(7))
        jax.effects_barrier()
        assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3, 3, 7]


def test_inputs_and_outputs_are_the_memory_of_the_program() -> None:
    seen = []

    def look(x: Any, out: Any = None) -> None:
        assert x.flags.c_contiguous
        assert x.flags.aligned
        assert out.flags.carray
        assert not x.flags.owndata
        seen.append((x.ctypes.data, out.ctypes.data, x.flags.writeable, out.flags.writeable))
        out[...] = x

    x = jnp.asarray(X)
    got = Custom(look, first, first)(x)
    places = (x.unsafe_buffer_pointer(), got.unsafe_buffer_pointer())
    assert seen == [(*places, False, True)]


def test_tensors_are_private_copies() -> None:
    x = Tensor(X)

    def clear(x: Any) -> Any:
        assert x.flags.writeable
        assert x.flags.owndata
        x[...] = 0
        return x

    assert not Custom(clear, first, first)(x).asnumpy().any()
    np.testing.assert_array_equal(x.asnumpy(), X)


@pytest.mark.parametrize(
    ("function", "count", "expected"),
    [
        (lambda x, out=None: x, 1, True),
        (lambda x, out: x, 1, True),
        (lambda x, *, out: x, 1, True),
        (lambda x, out, dout: x, 3, False),
        (lambda x, out=None: x, 2, False),
        (lambda out=None, *rest: out, 1, False),
        (lambda x, out="sum": x, 1, False),
        (lambda x, **options: x, 1, False),
        (np.add, 2, True),
        (np.add, 1, False),
        (np.sum, 1, True),
        (np.sort, 1, False),
        (functools.partial(np.add, 1), 1, True),
        (functools.partial(np.add, out=None), 2, False),
        (functools.partial(lambda a, out, x: x, 1), 2, False),
        (dict.get, 1, False),
    ],
)
def test_out_is_passed_where_it_is_numpys(
    function: Callable[..., Any], count: int, expected: bool
) -> None:
    gets_out = []

    class Recorded:
        __name__ = "recorded"

        def __init__(self, function: Callable[..., Any]):
            self.__signature__ = inspect.signature(function)

        def __call__(self, *args: Any, **keywords: Any) -> Any:
            gets_out.append("out" in keywords)
            return np.zeros_like(X)

    keywords: dict[str, Any] = {}
    inner = function
    if isinstance(function, functools.partial):
        keywords, inner = {"args": function.args, "keywords": function.keywords}, function.func
    if isinstance(inner, np.ufunc):
        # numpy refuses to cast into such an array; without one, the dtype of the result is wrong.
        op = Custom(function, X.shape, np.int8)
        with pytest.raises(errors.MsopsError) as caught:
            op(*[X] * count)
        gets_out.append("Cannot cast ufunc" in str(caught.value))
    else:
        recorded: Any = Recorded(inner)
        if keywords:
            recorded = functools.partial(recorded, *keywords["args"], **keywords["keywords"])
        jax.block_until_ready(Custom(recorded, X.shape, X.dtype)(*[X] * count))
    assert gets_out == [expected]


def test_an_input_called_out_is_an_input() -> None:
    op = Custom(lambda x, out, dout: x + 10 * out + 100 * dout, first, first)
    np.testing.assert_array_equal(op(X, X, X), 111 * X)


def fill(x: Any, out: Any) -> None:
    out[0][...] = x
    out[1][...] = -x


# Of an input and buffers to fill, that return buffers of other outputs; with what they mean.
SWAPS: dict[str, tuple[Callable[..., Any], Any]] = {
    "swapped": (lambda x, out: (fill(x, out), out[::-1])[1], (-X, X)),
    "one twice": (lambda x, out: (fill(x, out), (out[1], out[1]))[1], (-X, -X)),
    "the first twice": (lambda x, out: (fill(x, out), (out[0], out[0]))[1], (X, X)),
    "in reverse, and as it was": (
        lambda x, out: (fill(x, out), (out[0][::-1], out[0]))[1],
        (X[::-1], X),
    ),
    "columns in reverse": (
        lambda x, out: (fill(x, out), (x + 1, out[0][:, ::-1]))[1],
        (X + 1, X[:, ::-1]),
    ),
    "a memoryview": (lambda x, out: (fill(x, out), (out[1], memoryview(out[0])))[1], (-X, X)),
}


@pytest.mark.parametrize(("name", "attrs"), in_turn(SWAPS, [None, CALLBACK]))
def test_outputs_may_be_returned_in_the_memory_of_others(name: str, attrs: Any) -> None:
    function, expected = SWAPS[name]
    pair = lambda x: (x, x)  # noqa: E731
    op = Custom(function, pair, pair, compile_attrs=attrs)
    for call in (op, jax.jit(op), lambda x: [t.asnumpy() for t in op(Tensor(x))]):
        np.testing.assert_array_equal(call(X), expected)
    got = jax.jit(jax.vmap(op))(jnp.stack([X, X]))
    for batch, one in zip(got, expected, strict=True):
        np.testing.assert_array_equal(batch, np.stack([one, one]))


@pytest.mark.parametrize("attrs", [None, CALLBACK])
@pytest.mark.parametrize(
    ("inplace", "function", "expected"),
    [
        ({0: 0}, lambda a: (a * 2, a), (2 * X, X)),
        ({1: 0}, lambda a: (a, a * 2), (X, 2 * X)),
        ({0: 0}, lambda a: (a[::-1], a), (X[::-1], X)),
    ],
)
def test_an_input_that_holds_an_output_may_be_returned_as_another(
    inplace: dict[int, int], function: Callable[..., Any], expected: Any, attrs: Any
) -> None:
    pair = lambda x: (x, x)  # noqa: E731
    op = Custom(function, pair, pair, inplace=inplace, compile_attrs=attrs)
    np.testing.assert_array_equal(op(X), expected)
    np.testing.assert_array_equal(jax.jit(op)(X), expected)


KEPT: list[Any] = []


@pytest.mark.parametrize(
    ("function", "what"),
    one_in(
        3,
        [
            (lambda x: (KEPT.append(x), x + 1)[1], "input 0"),
            (lambda x: (KEPT.append(x[1:]), x + 1)[1], "input 0"),
            (lambda x: (KEPT.append(x.T[0].reshape(-1)), x + 1)[1], "input 0"),
            (lambda x: (KEPT.append(memoryview(x)), x + 1)[1], "input 0"),
            (lambda x, out=None: KEPT.append(out), "output 0"),
        ],
    ),
)
def test_keeping_a_view_is_an_error(function: Callable[..., Any], what: str) -> None:
    with pytest.raises(errors.KernelError) as caught:
        Custom(function, first, first)(X)
    KEPT.clear()
    assert f"its function kept {what}, whose memory is the program's" in str(caught.value)
    assert "Keep a copy, x.copy(), or make the op with writable=True" in str(caught.value)


def keep_and_raise(x: Any, out: Any = None) -> Any:
    KEPT.append(x)
    raise ValueError("by hand")


def keep_the_error(x: Any, out: Any = None) -> Any:
    try:
        raise ValueError("by hand")
    except ValueError as error:  # its traceback has this frame, and so x and out
        KEPT.append(error)
        raise


def keep_out_and_raise(x: Any, out: Any = None) -> Any:
    KEPT.append(out[1:])
    raise ValueError("by hand")


def keep_and_return_another_shape(x: Any) -> Any:
    KEPT.append(x)
    return x[:1]


def keep_and_raise_surrogates(x: Any) -> Any:
    KEPT.append(x)
    raise ValueError("by hand \ud800")


@pytest.mark.parametrize(
    ("function", "family", "problem", "what"),
    one_in(
        2,
        [
            (keep_and_raise, errors.KernelError, "raised ValueError: by hand", "input 0"),
            (keep_out_and_raise, errors.KernelError, "raised ValueError: by hand", "output 0"),
            (keep_and_raise_surrogates, errors.KernelError, "by hand \\ud800", "input 0"),
            (
                keep_and_return_another_shape,
                errors.InferenceValueError,
                "returned (1, 3)",
                "input 0",
            ),
        ],
    ),
)
def test_keeping_a_view_is_reported_of_a_function_that_fails_too(
    function: Callable[..., Any], family: type[Exception], problem: str, what: str
) -> None:
    with pytest.raises(family) as caught:
        Custom(function, first, first)(X)
    KEPT.clear()
    assert problem in str(caught.value)
    assert f"its function kept {what}, whose memory is the program's" in str(caught.value)


def keep_and_fail(take: Callable[[Any], Any]) -> Callable[..., Any]:
    def keep(x: Any, out: Any = None) -> Any:
        out[...] = 7
        KEPT.append(take(out))
        raise ValueError("by hand")

    return keep


# What a function may keep of its output, and how to come back to an array of it.
HOLDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "the array": (lambda out: out, lambda kept: kept),
    "a slice": (lambda out: out[1:], lambda kept: kept),
    "a slice of a slice": (lambda out: out[1:].T[1:], lambda kept: kept),
    "another dtype": (lambda out: out.view(np.int32), lambda kept: kept),
    "in a tuple": (lambda out: (out[0], 1), lambda kept: kept[0]),
    "in a dict": (lambda out: {"a": {"b": out[0]}}, lambda kept: kept["a"]["b"]),
    "in a closure": (lambda out: (lambda a: lambda: a)(out[1]), lambda kept: kept()),
    "in a generator": (lambda out: iter([out[1]]), next),
    "over a memoryview": (lambda out: np.asarray(memoryview(out)), lambda kept: kept),
    "in an array": (
        lambda out: np.array([out[0], None], dtype=object),
        lambda kept: kept[0],
    ),
}


@pytest.mark.parametrize("hold", one_in(3, HOLDS))
def test_a_kept_output_is_no_memory_of_the_program(hold: str) -> None:
    take, find = HOLDS[hold]
    places = []

    def place(out: Any) -> Any:
        places.append((out.ctypes.data, out.nbytes))
        return take(out)

    with pytest.raises(errors.KernelError, match="its function kept output 0"):
        Custom(keep_and_fail(place), first, first)(X)
    (kept,) = map(find, KEPT)
    KEPT.clear()
    ((start, size_bytes),) = places
    assert not start <= kept.ctypes.data < start + size_bytes
    np.testing.assert_array_equal(np.ascontiguousarray(kept).view(np.float32), 7)
    with pytest.raises(ValueError, match="read-only"):
        kept[...] = 0


def test_a_kept_memoryview_of_an_output_is_released() -> None:
    with pytest.raises(errors.KernelError, match="its function kept output 0"):
        Custom(keep_and_fail(memoryview), first, first)(X)
    (kept,) = KEPT
    KEPT.clear()
    with pytest.raises(ValueError, match="released"):
        kept[0, 0]


POINTERS: dict[str, Callable[[np.ndarray], Any]] = {
    "typed": lambda out: out.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
    "of a slice": lambda out: out[1].ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
    "untyped": lambda out: out.ctypes.data_as(ctypes.c_void_p),
    "in a tuple": lambda out: (out.ctypes.data_as(ctypes.c_void_p),),
}


@pytest.mark.parametrize("kind", POINTERS)
def test_a_kept_pointer_to_an_output_is_none_to_memory_of_the_program(kind: str) -> None:
    places = []

    def place(out: np.ndarray) -> Any:
        places.append((out.ctypes.data, out.nbytes))
        return POINTERS[kind](out)

    with pytest.raises(errors.KernelError, match="its function kept output 0"):
        Custom(keep_and_fail(place), first, first)(X)
    (kept,) = KEPT
    KEPT.clear()
    pointer = ctypes.cast(kept[0] if kind == "in a tuple" else kept, ctypes.POINTER(ctypes.c_float))
    ((start, size_bytes),) = places
    address = ctypes.addressof(pointer.contents)
    assert not start <= address < start + size_bytes
    assert pointer[0] == 7
    pointer[0] = 8  # the memory lives as long as the pointer


def test_a_kept_pointer_that_points_elsewhere_stays_there() -> None:
    other = ctypes.c_float(3)

    def point(out: np.ndarray) -> Any:
        pointer = out.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        pointer.contents = other
        return pointer

    with pytest.raises(errors.KernelError, match="its function kept output 0"):
        Custom(keep_and_fail(point), first, first)(X)
    (kept,) = KEPT
    KEPT.clear()
    assert ctypes.addressof(kept.contents) == ctypes.addressof(other)


@pytest.mark.parametrize("place", ["its arguments", "a variable"])
def test_an_output_that_a_thread_holds_is_no_memory_of_the_program(place: str) -> None:
    told = threading.Event()
    taken = threading.Event()
    seen: list[Any] = []

    def write_later(parts: list[Any]) -> None:
        part = parts.pop() if place == "a variable" else parts[0]
        taken.set()
        told.wait(30)
        seen.append((part.flags.writeable, part.ctypes.data))

    def start(out: Any) -> None:
        seen.append(out[1].ctypes.data)
        threading.Thread(target=write_later, args=([out[1]],)).start()
        taken.wait(30)

    with pytest.raises(errors.KernelError, match="its function kept output 0"):
        Custom(keep_and_fail(start), first, first)(X)
    KEPT.clear()
    told.set()
    while len(seen) < 2:
        time.sleep(0.01)
    was_at, (is_writable, is_at) = seen
    assert not is_writable
    assert is_at != was_at


def test_an_input_that_was_kept_can_be_read() -> None:
    big = jnp.arange(1 << 22)
    with pytest.raises(errors.KernelError, match="its function kept input 0"):
        Custom(lambda x: (KEPT.append(x[1:]), x)[1], first, first)(big + 1)
    (kept,) = KEPT
    KEPT.clear()
    np.testing.assert_array_equal(kept, np.arange(1 << 22)[1:] + 1)


def test_a_kept_error_has_no_frames_that_keep_views() -> None:
    with pytest.raises(errors.KernelError) as caught:
        Custom(keep_the_error, first, first)(X)
    (kept,) = KEPT
    KEPT.clear()
    assert "its function kept" not in str(caught.value)
    assert kept is caught.value.__cause__
    assert kept.__traceback__ is None


@pytest.mark.parametrize("attrs", [None, CALLBACK])
def test_a_failure_alone_keeps_nothing(attrs: Any) -> None:
    def fail_in_a_cycle(x: Any) -> Any:
        def down(depth: int) -> Any:
            return x[7] if depth == 0 else down(depth - 1)

        try:
            return down(3)
        except IndexError as error:
            raise ValueError("by hand") from error

    for _ in range(5):
        with pytest.raises(errors.KernelError) as caught:
            Custom(fail_in_a_cycle, first, first, compile_attrs=attrs)(X)
        assert "ValueError: by hand" in str(caught.value)
        assert "kept" not in str(caught.value)


def test_what_is_kept_of_a_writable_op_stays_valid() -> None:
    op = Custom(lambda x: (KEPT.append(x), x + 1)[1], first, first, writable=True)
    for i in range(20):
        op(jnp.asarray(X + i))
    for i, kept in enumerate(KEPT):
        np.testing.assert_array_equal(kept, X + i)
    KEPT.clear()


def in_a_cycle(x: Any) -> Any:
    def down(depth: int) -> Any:
        return x + 1 if depth == 0 else down(depth - 1)

    return down(3)


def in_a_future(x: Any) -> Any:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(np.add, [x] * 4, [1] * 4))[-1]


def in_jax(x: Any) -> Any:
    return jax.jit(lambda x: x + 1)(x)


@pytest.mark.parametrize("function", [in_a_cycle, in_a_future, in_jax])
def test_what_lets_go_late_keeps_nothing(function: Callable[..., Any]) -> None:
    op = Custom(function, first, first)
    for _ in range(20):
        np.testing.assert_array_equal(op(X), X + 1)


def test_functions_of_equal_code_are_told_apart() -> None:
    def make(step: float) -> Custom:
        return Custom(lambda x: x + np.float32(step), first, first)

    ops = [make(step) for step in range(5)]
    program = jax.jit(lambda x: [op(x) for op in ops])
    for step, got in enumerate(program(X)):
        np.testing.assert_array_equal(got, X + step)
    names = set(re.findall(r'function = "([^"]+)"', program.lower(X).as_text()))
    assert len(names) == 5
    assert len({name.rpartition("-")[0] for name in names}) == 1


def test_a_program_holds_its_function_and_nothing_else_does() -> None:
    class Scale:
        def __call__(self, x: Any) -> Any:
            return 2 * x

    scale = Scale()
    gone = weakref.ref(scale)
    program = jax.jit(Custom(scale, first, first)).lower(X).compile()
    del scale
    gc.collect()
    np.testing.assert_array_equal(program(X), 2 * X)
    assert gone() is not None
    del program
    jax.clear_caches()
    deadline = time.monotonic() + 20
    while gone() is not None and time.monotonic() < deadline:
        gc.collect()  # Python drops what other threads gave up when it next can
        time.sleep(0.01)
    assert gone() is None


LOWER = """
import re
import jax, numpy as np
from msops import Custom
names = frozenset(["b", "a", "c"])
def scale(x, by={"a", "b", "c"}):
    return 2 * x if "a" in {"a", "b", "c"} else x
op = Custom(scale, lambda x: x, lambda x: x)
other = Custom(np.tanh, lambda x: x, lambda x: x)
x = np.ones(3, np.float32)
print(jax.jit(lambda x: (op(x), other(x))).lower(x).as_text())
"""

RUN = """
import sys
import jax
import msops
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir

msops.register_ffi_targets()
devices = xla_client.DeviceList(tuple(jax.devices()))
with mlir.make_ir_context():
    module = ir.Module.parse(sys.stdin.read())
    options = compiler.get_compile_options(1, 1)
    compiler.backend_compile_and_load(devices[0].client, module, devices, options, [])
"""


def run_python(script: str, text: str = "", **environment: str) -> subprocess.CompletedProcess:
    paths = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, "-c", script],
        input=text,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_programs_are_equal_in_every_process_and_refused_where_the_function_is_not() -> None:
    one, two = (run_python(LOWER, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert one.returncode == 0, one.stderr
    assert one.stdout == two.stdout
    assert one.stdout.count("msops_pyfunc") == 2
    refused = run_python(RUN, one.stdout)
    assert refused.returncode != 0
    assert re.search(
        r"Custom '(scale|tanh)' on CPU: the program calls a Python function that this process does "
        r"not have:\n  function \1-[0-9a-f]{16}-0\n",
        refused.stderr,
    ), refused.stderr
    assert "Make the same op here and compile a call of it" in refused.stderr


def test_process_ends_after_a_call_that_nobody_waited_for() -> None:
    done = run_python(
        "import time, jax, jax.numpy as jnp\n"
        "from msops import Custom\n"
        "op = Custom(lambda x: (time.sleep(0.3), x + 1)[1], lambda x: x, lambda x: x)\n"
        "x = jnp.ones((300, 300))\n"
        "y = jax.jit(lambda x: op(x @ x) @ x)(x)\n"
        "z = jax.jit(lambda x: op(x @ x) @ x)(y @ y)\n"
    )
    assert (done.returncode, done.stdout) == (0, "")


WAITS = """
import faulthandler, sys, threading
import jax, jax.numpy as jnp, numpy as np
import msops._native
from msops import Custom
faulthandler.dump_traceback_later(100, exit=True)
msops._native.set_patience(2)
first = lambda x: x
work = jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x) + jnp.exp(x).sum())
attrs = {"lower": "callback"} if CALLBACK else None
op = Custom(lambda x: np.asarray(work(x)), first, first, compile_attrs=attrs)
x = jnp.ones((300, 300))

def in_threads(program):
    expected, problems = np.asarray(program(x)), []
    def check():
        try:
            for _ in range(4):
                pending = 0 * work(0 * work(x)) + x
                np.testing.assert_array_equal(program(pending), expected)
        except Exception as error:
            problems.append(str(error))
    threads = [threading.Thread(target=check) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems
"""


@pytest.mark.parametrize("callback", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_eager_functions_wait_for_jax_in_many_threads(callback: bool) -> None:
    done = run_python(f"CALLBACK = {callback}\n{WAITS}\nprint(in_threads(op))")
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr[-4000:]


def test_functions_of_one_program_wait_for_jax_side_by_side() -> None:
    """XLA calls some of them on the threads that compute."""
    program = "lambda x: sum(op(x @ x + i) @ x for i in range(8))"
    done = run_python(
        f"CALLBACK = False\n{WAITS}\nwork(x).block_until_ready()\n"
        f"jax.block_until_ready([jax.jit({program})(x) for _ in range(2)])\nprint('done')"
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]


def test_functions_that_wait_on_all_of_xlas_threads_end_in_an_error() -> None:
    done = run_python(
        # Less patient: most of the time goes to waiting.
        f"CALLBACK = False\n{WAITS}\nmsops._native.set_patience(0.5)\n"
        "print(*in_threads(jax.jit(lambda x: op(x @ x))) or ['finished'], sep='\\n')"
    )
    # Whether all of them ever wait at once depends on the machine's load.
    assert done.returncode == 0, done.stderr[-4000:]
    for line in done.stdout.splitlines():
        assert re.search(
            "^(finished|.*its function waits on one of XLA's threads, .* for (0.5|0.025) s.|"
            "Have JAX compute in the calling thread.*)$",
            line,
        )


@pytest.mark.slow
def test_functions_of_a_program_over_several_devices_that_wait_end_in_an_error() -> None:
    done = run_python(
        f"CALLBACK = False\n{WAITS}\n"
        "import time\n"
        "waiting = Custom(lambda x: (time.sleep(0.3), np.asarray(work(x)))[1], first, first)\n"
        "spec = jax.P('d')\n"
        "mesh = jax.make_mesh((jax.device_count(),), ('d',))\n"
        "many = jax.shard_map(waiting, mesh=mesh, in_specs=spec, out_specs=spec)\n"
        "x = jax.device_put(\n"
        "    jnp.ones((jax.device_count() * 300, 300)), jax.NamedSharding(mesh, spec))\n"
        "np.asarray(jax.jit(many)(x))\n",
        XLA_FLAGS=f"--xla_force_host_platform_device_count={max(4, len(os.sched_getaffinity(0)))}",
    )
    assert done.returncode == 1, done.stderr[-4000:]
    assert "Custom '<lambda>' on CPU: its function waits on one of XLA's threads" in done.stderr
    assert "jax_cpu_enable_async_dispatch" in done.stderr


@pytest.mark.parametrize("seconds", [0.5, 30])
def test_the_end_of_python_waits_for_a_function(seconds: float) -> None:
    done = run_python(
        "import threading, time, numpy as np\n"
        "import msops._calls.python_call as calls\n"
        "from msops import Custom\n"
        "calls._WAIT_AT_EXIT_S = 1\n"
        "begun = threading.Event()\n"
        "def slow(x):\n"
        "    begun.set()\n"
        f"    end = time.monotonic() + {seconds}\n"
        "    while time.monotonic() < end: sum(range(100))\n"
        "    print('returns', flush=True)\n"
        "    return x\n"
        "op = Custom(slow, lambda x: x, lambda x: x)\n"
        "threading.Thread(target=op, args=(np.ones(3, np.float32),), daemon=True).start()\n"
        "begun.wait()\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("returns\n" if seconds < 1 else "")


MANY = """
import faulthandler, threading, time
import jax, jax.numpy as jnp, numpy as np
from msops import Custom
faulthandler.dump_traceback_later(100, exit=True)
first = lambda x: x
work = jax.jit(lambda x: jnp.sin(x) + 1)
calls = []

def function(x):
    calls.append(1)
    return np.asarray(work(x))

op = Custom(function, first, first, **OPTIONS)
program = jax.jit(op if RESULTS else lambda x: (op(x), None)[1])
BEFORE
wait = jax.jit(Custom(lambda x: (time.sleep(0.5), x)[1], first, first))
long = jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda i, x: x @ x, x)[:200, :200])
jax.block_until_ready(program(wait(long(jnp.eye(1000)))))
del calls[:]

def check():
    # The function runs on a thread of XLA, and all calls behind it wait.
    x = wait(long(jnp.eye(1000)))
    each = [program(x) for _ in range(CALLS)]
    if not RESULTS:
        return jax.effects_barrier()
    for _ in range(CALLS):
        x = program(x)
    for result in (*each, x):
        assert result.shape == (200, 200)
    np.testing.assert_allclose(each[-1], np.sin(np.eye(200)) + 1, rtol=1e-6)

threads = [threading.Thread(target=check) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(calls) == THREADS * CALLS * (1 + RESULTS), len(calls)
print("done")
"""
AHEAD = "program = program.lower(jnp.eye(200)).compile()"
FAILS_FIRST = """
work, right = lambda x: 1 / 0, work
try:
    program(jnp.eye(200)).block_until_ready()
except Exception:
    work = right
"""
LATER = """
work, right = first, work
program(jnp.eye(200))
program(jnp.eye(200))
work = right
"""
ELSEWHERE = """
from concurrent.futures import ThreadPoolExecutor

pool, own = ThreadPoolExecutor(2), work
work = lambda x: pool.submit(lambda: np.asarray(own(x))).result()
"""
ORDERED = {"stateful": "ordered"}


@pytest.mark.parametrize(
    ("threads", "options", "before", "results"),
    [
        pytest.param(1, {}, "", True, marks=pytest.mark.slow),
        (5, {}, "", True),
        pytest.param(40, {}, "", True, marks=pytest.mark.slow),
        (1, {}, AHEAD, True),
        pytest.param(5, {}, AHEAD, True, marks=pytest.mark.slow),
        (1, {}, FAILS_FIRST, True),
        (1, {}, LATER, True),
        (1, {}, ELSEWHERE, True),
        pytest.param(5, {}, ELSEWHERE, True, marks=pytest.mark.slow),
        (1, {"stateful": True}, "", True),
        pytest.param(5, {"stateful": True}, "", True, marks=pytest.mark.slow),
        (5, ORDERED, "", True),
        pytest.param(40, {"stateful": True}, "", True, marks=pytest.mark.slow),
        (1, ORDERED, "", False),
        (1, {"stateful": True}, LATER, False),
        (5, {"stateful": True}, "", False),
        pytest.param(40, ORDERED, "", False, marks=pytest.mark.slow),
    ],
)
def test_many_calls_of_programs_whose_functions_call_jax_need_no_waiting(
    threads: int, options: dict[str, Any], before: str, results: bool
) -> None:
    """JAX takes 32 programs, and 33 calls that wait for a function would leave it no place.

    It has as many threads as cores for them, which may all wait for functions.
    """
    script = MANY.replace("THREADS", str(threads)).replace("BEFORE", before)
    calls = 50 if threads < 32 else 5
    done = run_python(f"OPTIONS, RESULTS, CALLS = {options}, {results}, {calls}\n{script}")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]


def test_functions_inside_functions_take_turns() -> None:
    """Each of them holds a place of JAX's, and so does what it calls."""
    done = run_python(
        "import faulthandler, threading\n"
        "import jax, jax.numpy as jnp, numpy as np\n"
        "from msops import Custom\n"
        "faulthandler.dump_traceback_later(100, exit=True)\n"
        "first = lambda x: x\n"
        "program = jax.jit(lambda x: jnp.sin(x) + 1)\n"
        "def around(program):\n"
        "    return jax.jit(Custom(lambda x: np.asarray(program(x)), first, first))\n"
        "for _ in range(4):\n"
        "    program = around(program)\n"
        "def check():\n"
        "    for _ in range(3):\n"
        "        np.testing.assert_allclose(program(jnp.ones(3)), np.sin(1) + 1, rtol=1e-6)\n"
        "threads = [threading.Thread(target=check) for _ in range(40)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print('done')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_functions_that_all_call_jax_for_the_first_time_at_once_end_in_an_error() -> None:
    """They hold all of JAX's places: nobody knew before that they call it."""
    done = run_python(
        "import faulthandler, threading\n"
        "import jax, jax.numpy as jnp, numpy as np\n"
        "import msops._native\n"
        "from msops import Custom\n"
        "faulthandler.dump_traceback_later(100, exit=True)\n"
        "msops._native.set_patience(1)\n"
        "work = jax.jit(lambda x: jnp.sin(x) + 1)\n"
        "inside, are_many, problems = threading.Semaphore(0), None, []\n"
        "def function(x):\n"
        "    if are_many is None: return x\n"
        "    inside.release()\n"
        "    are_many.wait()\n"
        "    return np.asarray(work(x))\n"
        "program = jax.jit(Custom(function, lambda x: x, lambda x: x))\n"
        "x = jnp.ones(3)\n"
        "program(x)\n"
        "are_many = threading.Event()\n"
        "def check():\n"
        "    try:\n"
        "        np.testing.assert_allclose(program(x), np.sin(1) + 1, rtol=1e-6)\n"
        "    except Exception as error:\n"
        "        problems.append(str(error))\n"
        "threads = [threading.Thread(target=check) for _ in range(36)]\n"
        "for thread in threads: thread.start()\n"
        "for _ in range(31): inside.acquire()\n"
        "are_many.set()\n"
        "for thread in threads: thread.join()\n"
        "print(*problems, sep='\\n')\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    problem, advice, *_ = done.stdout.splitlines()
    assert problem.endswith(
        "Custom 'function' on CPU: its program has the last of XLA's 32 places for programs, as "
        "functions hold the others, and none of these computed or ended for 1 s."
    )
    assert advice == "Call programs whose functions wait for JAX from fewer threads at once."
    assert len(done.stdout.splitlines()) <= 10


@pytest.mark.parametrize("stateful", [False, True])
def test_calls_that_wait_for_room_leave_errors_to_those_who_use_results(stateful: bool) -> None:
    def fail(x: np.ndarray) -> np.ndarray:
        raise ValueError("by hand")

    long = jax.jit(lambda x: jax.lax.fori_loop(0, 30, lambda i, x: x @ x, x))
    program = jax.jit(Custom(fail, lambda x: x, lambda x: x, stateful=stateful))
    with pytest.raises((ValueError, RuntimeError), match="by hand"):
        program(jnp.eye(1000)).block_until_ready()
    pending = long(jnp.eye(1000))
    results = []
    while not pending.is_ready():  # JAX raises at once if its inputs are ready
        results.append(program(pending))
    assert len(results) <= 16  # the last call waited for room
    for result in results:
        with pytest.raises((ValueError, RuntimeError), match="by hand"):
            result.block_until_ready()


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["ready", "pending"])
def test_functions_that_call_jax_do_not_wait_for_one_another(inputs: str) -> None:
    script = Path(__file__).with_name("functions_that_call_jax.py").read_text()
    done = run_python(f"PENDING = {inputs == 'pending'}\n{script}")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]


def test_errors_with_equal_texts_on_several_threads_have_their_causes() -> None:
    raised: list[ZeroDivisionError] = []

    def fail(x: np.ndarray) -> np.ndarray:
        raised.append(ZeroDivisionError("by hand"))
        raise raised[-1]

    def work(_: int) -> list[BaseException | None]:
        causes = []
        for _ in range(40):
            with pytest.raises(errors.KernelError) as caught:
                Custom(fail, lambda x: x, lambda x: x)(jnp.ones(3))
            causes.append(caught.value.__cause__)
        return causes

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        causes = [cause for part in pool.map(work, range(8)) for cause in part]
    # Which thread raised which is unknown: each exception is the cause of one error.
    assert set(map(id, causes)) == set(map(id, raised))
    assert work(0) == raised[-40:]


class WithoutText(Exception):
    def __str__(self) -> str:
        raise LookupError

    __repr__ = __str__


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (WithoutText(), "its function raised WithoutText, whose __str__ raised LookupError:"),
        (ValueError("before\0behind"), "its function raised ValueError: before\\x00behind:"),
        (ValueError("a \ud800 b"), "its function raised ValueError: a \\ud800 b:"),
    ],
    ids=["no text", "NUL", "surrogate"],
)
def test_an_exception_arrives_whatever_its_text(error: Exception, shown: str) -> None:
    def fails(x: Any) -> Any:
        raise error

    op = Custom(fails, first, first)
    with pytest.raises(errors.KernelError) as caught:
        op(X)
    assert caught.value.__cause__ is error
    with pytest.raises(jax.errors.JaxRuntimeError) as compiled:
        jax.jit(op)(X).block_until_ready()
    for text in (str(caught.value), str(compiled.value)):
        assert f"Custom 'fails' on CPU: {shown}" in text
        assert text.endswith(f"Fix the function; it was called with float32{list(X.shape)}.")


def test_an_op_that_is_called_inside_its_own_call_says_so() -> None:
    def countdown(x: Any) -> Any:
        return x if x[0] <= 0 else np.asarray(op(x - 1))

    op = Custom(countdown, first, first)
    with pytest.raises(errors.KernelError) as caught:
        op(np.ones(3, np.float32))
    head, *_, advice = str(caught.value).splitlines()
    assert head == "Custom 'countdown' on CPU: its function raised RecursionError:"
    assert advice.startswith("An op cannot be called inside its own call: if the function calls")
    assert isinstance(caught.value.__cause__, RecursionError)


def test_a_function_that_reads_a_traced_array_is_told_to_take_it_as_an_input() -> None:
    def outer(x: jax.Array, w: jax.Array) -> jax.Array:
        return Custom(lambda x: x * np.asarray(w), lambda x: x, lambda x: x)(x)

    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(outer)(jnp.ones(3), jnp.ones(3)).block_until_ready()
    text = str(caught.value)
    assert "its function raised TracerArrayConversionError:\n" in text
    assert "x * np.asarray(w)" in text
    assert "make it an input, as w in msops.pyfunc" in text
    assert len(text.splitlines()) < 7
