"""Ops of equal definition are one primitive and one compilation; different ones never are."""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import FLOAT_OPS, aicpu, aot, first, loops
from quick_cases import one_in
from tbe_ops import kernel_of, op_info

from msops import Custom, Tensor

pytestmark = pytest.mark.usefixtures("quick_collections")

X = jnp.arange(4.0)
SCALE = 2.0


def operator_of(op: Custom, *args: Any) -> Any:
    op(*(args or (X,)))
    return op._resolve()


def test_equal_ops_share_one_operator() -> None:
    make = lambda: aot(  # noqa: E731
        "Multiply",
        lambda x, _: x,
        lambda x, _: x,
        bprop=lambda x, y, out, dout: (dout * y, dout * x),
    )
    assert operator_of(make(), X, X) is operator_of(make(), X, X)


def test_re_creation_compiles_nothing_and_keeps_memory_flat() -> None:
    def make() -> Custom:
        backward = aot("Multiply", lambda x, _: x, lambda x, _: x)
        return aot(
            "Multiply",
            lambda x, _: x,
            lambda x, _: x,
            bprop=lambda x, y, out, dout: (backward(dout, y), backward(dout, x)),
        )

    def use(op: Custom) -> None:
        op(X, X)
        jax.grad(lambda x: op(x, X).sum())(X)

    use(make())
    with jax.log_compiles(True), pytest.MonkeyPatch.context() as patch:
        compiled: list[str] = []
        patch.setattr(
            "jax._src.compiler.compile_or_get_cached",
            lambda *args, **kwargs: compiled.append("compiled") or pytest.fail("compiled"),
        )
        for _ in range(20):
            make()(X, X)
        assert compiled == []
    gc.collect()
    tracemalloc.start()
    for _ in range(100):
        make()(X, X)
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 1e6


def scale_and_add(factor: float, lower: str) -> Custom:
    """Returns a loop op made anew, its kernel too."""

    def kernel(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = factor * x[i]
            if i > 0:
                y[i] = y[i] + tanh(y[i - 1])
        return y

    return loops(kernel, lower)


@pytest.mark.slow
@pytest.mark.parametrize("lower", ["xla", "native"])
def test_re_creation_of_loops_compiles_nothing_and_keeps_memory_flat(
    lower: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def use(op: Custom) -> None:
        op(X)
        jax.grad(lambda x: op(x).sum())(X)

    use(scale_and_add(2.0, lower))
    use(scale_and_add(2.0, lower))
    fail = lambda *args, **kwargs: pytest.fail("compiled")  # noqa: E731
    monkeypatch.setattr("jax._src.compiler.compile_or_get_cached", fail)
    with monkeypatch.context() as patch:
        # Else a stage of the loops is printed, and a compiler that is not there is run.
        patch.setenv("MSOPS_DEBUG", "ir")
        patch.setenv("CXX", "no-such-compiler")
        for _ in range(5):
            use(scale_and_add(2.0, lower))
        assert capsys.readouterr().err == ""
    gc.collect()
    tracemalloc.start()
    for _ in range(100):
        scale_and_add(2.0, lower)(X)
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 1e6


def test_loops_that_differ_in_a_constant_or_in_what_they_become_are_different() -> None:
    ops = [
        scale_and_add(2.0, "xla"),
        scale_and_add(2.0, "native"),
        scale_and_add(3.0, "xla"),
        scale_and_add(2, "xla"),
    ]
    assert len({id(operator_of(op)) for op in ops}) == len(ops)


def test_different_ops_are_different() -> None:
    base = operator_of(Custom(np.sin, first, first))
    others = [
        Custom(np.cos, first, first),
        Custom(np.sin, lambda x: [4], first),
        Custom(np.sin, first, first, bprop=lambda x, out, dout: (dout,)),
        Custom(np.sin, first, first, stateful=True),
        Custom(np.sin, first, first, writable=True),
    ]
    operators = [operator_of(op) for op in others]
    assert len({id(operator) for operator in [base, *operators]}) == 6


def test_infer_functions_that_see_other_values_are_different() -> None:
    make = lambda n: Custom(lambda x: np.ones(n, np.float32), lambda x: [n], first)  # noqa: E731
    assert make(2)(X).shape == (2,)
    assert make(3)(X).shape == (3,)
    assert make(2)(X).shape == (2,)


def test_changed_global_of_an_infer_function_is_seen_by_a_new_op() -> None:
    scope: dict[str, Any] = {"Custom": Custom, "np": np, "N": 2}
    source = "op = Custom(lambda x: np.ones(N, np.float32), lambda x: [N], lambda x: x)"
    for size in (2, 5, 2):
        scope["N"] = size
        exec(source, scope)
        assert scope["op"](X).shape == (size,)


def test_rebound_closure_is_not_shared() -> None:
    def make(n: int) -> tuple[Custom, Any]:
        def set_n(value: int) -> None:
            nonlocal n
            n = value

        return Custom(lambda x: np.ones(n, np.float32), lambda x: [n], first), set_n

    op, set_n = make(2)
    assert op(X).shape == (2,)
    set_n(7)
    fresh, _ = make(2)
    assert fresh(X).shape == (2,)


def test_rebound_closure_of_a_vmap_rule_is_not_shared() -> None:
    def make(k: float) -> tuple[Custom, Any]:
        def set_k(value: float) -> None:
            nonlocal k
            k = value

        rule = lambda size, batched, x: (x * k, True)  # noqa: E731
        return Custom(np.negative, first, first, vmap=rule), set_k

    op, set_k = make(2.0)
    op(X)
    set_k(7.0)
    fresh, _ = make(2.0)
    np.testing.assert_array_equal(jax.vmap(fresh)(X), 2 * X)


def test_what_infer_functions_read_is_compared_for_both_faces() -> None:
    settings = Settings()
    make = lambda: aot("Count", lambda x: [settings.n], np.float32)  # noqa: E731
    held = make()
    assert held(Tensor(np.asarray(X))).shape == (2,)
    settings.n = 5
    fresh = make()
    assert fresh(X).shape == (5,)
    assert fresh(Tensor(np.asarray(X))).shape == (5,)


def test_counters_in_closures_stay_apart() -> None:
    def make() -> tuple[Custom, list[int]]:
        count = 0
        seen: list[int] = []

        def kernel(x: Any) -> Any:
            nonlocal count
            count += 1
            seen.append(count)
            return x

        return Custom(kernel, first, first), seen

    (one, ones), (two, twos) = make(), make()
    one(X), one(X), two(X)
    jax.effects_barrier()
    assert ones == [1, 2]
    assert twos == [1]


def test_edited_source_at_the_same_path_is_another_kernel(tmp_path: Any) -> None:
    source = tmp_path / "constant.cc"
    template = (
        'extern "C" int F(int n, void **p, int *, long **, const char **, void *, void *) '
        "{{ static_cast<float *>(p[1])[0] = {}; return 0; }}"
    )
    ops = []
    for value in (1, 2, 1):
        source.write_text(template.format(value))
        op = Custom(f"{source}:F", [1], np.float32)
        assert float(op(X)[0]) == value
        ops.append(op)
    assert [float(op(X)[0]) for op in ops] == [1, 2, 1]
    assert ops[0]._resolve() is ops[2]._resolve()


@pytest.mark.parametrize(
    "use",
    [
        # The fast test of programs is test_what_nobody_holds_is_freed.
        pytest.param(lambda op: op(X), marks=pytest.mark.slow, id="eager"),
        pytest.param(lambda op: jax.jit(lambda x: op(x) + 1)(X), marks=pytest.mark.slow, id="jit"),
        pytest.param(
            lambda op: jax.grad(lambda x: op(x).sum())(X), marks=pytest.mark.slow, id="grad"
        ),
    ],
)
def test_ops_that_nobody_holds_are_freed(use: Any) -> None:
    from jax.interpreters import ad

    def make(k: float) -> None:
        bprop = lambda x, out, dout: (dout * k,)  # noqa: E731
        use(Custom(lambda x: x * np.float32(k), first, first, bprop=bprop))

    before = len(ad.primitive_jvps)
    for k in range(200):
        make(float(k))
    gc.collect()
    gc.collect()
    # The latest 64 are kept for re-run cells, and JAX's bounded caches keep some.
    assert len(ad.primitive_jvps) - before <= 150


class Settings:
    n = 2


def readers() -> dict[str, tuple[Any, Any]]:
    """Things an infer function may read, each with what changes it to 5."""
    settings, array, listed = Settings(), np.array([2]), [2]
    named: dict[str, int] = {"n": 2}
    return {
        "attribute": (lambda: settings.n, lambda: setattr(settings, "n", 5)),
        "array": (lambda: int(array[0]), lambda: array.__setitem__(0, 5)),
        "list": (lambda: listed[0], lambda: listed.__setitem__(0, 5)),
        "dict": (lambda: named["n"], lambda: named.__setitem__("n", 5)),
    }


@pytest.mark.parametrize("kind", ["attribute", "array", "list", "dict"])
def test_new_op_sees_what_its_infer_function_reads_now(kind: str) -> None:
    read, change = readers()[kind]
    make = lambda: aot("Count", lambda x: [read()], np.float32)  # noqa: E731
    assert make()(X).shape == (2,)
    change()
    assert make()(X).shape == (5,)


def test_keyword_only_defaults_do_not_keep_ops_apart() -> None:
    make = lambda: Custom(np.sin, lambda x, *, k=1: x, first)  # noqa: E731
    assert operator_of(make()) is operator_of(make())


def test_changed_defaults_of_one_function_are_not_those_of_another() -> None:
    def make() -> Any:
        def add(x, step=1):
            return x + np.float32(step)

        return add

    one, other = make(), make()
    first_op, other_op = Custom(one, first, first), Custom(other, first, first)
    for op in (first_op, other_op):
        np.testing.assert_array_equal(op(X), X + 1)
    one.__defaults__ = (10,)
    np.testing.assert_array_equal(first_op(X), X + 10)
    for op in (other_op, Custom(other, first, first)):
        np.testing.assert_array_equal(op(X), X + 1)


def test_op_in_a_bprop_may_be_reset_while_others_share() -> None:
    inner = aot("ScaleSum", lambda x: x[:1], first).add_prim_attr("scale", 2.0)

    def make() -> Custom:
        return aot("Multiply", bprop=lambda x, y, out, dout: (inner(dout), None))

    make()(X, X)
    inner.add_prim_attr("scale", 3.0)
    assert make()(X, X).shape == X.shape


def lifetime_cases() -> dict[str, Callable[..., Custom]]:
    """An op of each kind, over an infer function and a bprop of its own."""

    def loop_kernel() -> Callable[..., Any]:
        def kernel(x, y):
            z = output_tensor(x.shape, x.dtype)
            for i in range(x.shape[0]):
                z[i] = x[i] * y[i]
            return z

        return kernel

    return {
        "pyfunc": lambda infer, bprop: Custom(lambda x, y: x * y, infer, infer, bprop=bprop),
        "callback": lambda infer, bprop: Custom(
            lambda x, y: x * y, infer, infer, bprop=bprop, compile_attrs={"lower": "callback"}
        ),
        "aot": lambda infer, bprop: aot("Multiply", infer, infer, bprop=bprop),
        "aicpu": lambda infer, bprop: aicpu("Mul", infer, infer, bprop=bprop),
        "akg as operations": lambda infer, bprop: loops(loop_kernel(), "xla", bprop=bprop),
        "akg as C": lambda infer, bprop: loops(loop_kernel(), "native", bprop=bprop),
        "tbe": lambda infer, bprop: Custom(
            kernel_of(lambda te, x, y: te.vmul(x, y), 2),
            infer,
            infer,
            func_type="tbe",
            reg_info=op_info(2),
            bprop=bprop,
        ),
    }


@pytest.mark.parametrize("kind", one_in(2, lifetime_cases()))
def test_what_nobody_holds_is_freed(kind: str) -> None:
    class Held:
        pass

    def make() -> tuple[Custom, list[weakref.ref[Any]]]:
        held = Held()

        def infer(*inputs: Any) -> Any:
            return inputs[0] if held else None

        def bprop(x: Any, y: Any, out: Any, dout: Any) -> Any:
            return (dout * y, dout * x) if held else None

        op = lifetime_cases()[kind](infer, bprop)
        programs = operator_of(op, X, X)
        return op, [*map(weakref.ref, (held, infer, bprop, programs, programs.operator))]

    op, references = make()
    np.testing.assert_array_equal(op(X, X), X * X)
    np.testing.assert_array_equal(jax.jit(jax.vmap(op))(X[None], X[None]), [X * X])
    np.testing.assert_array_equal(jax.grad(lambda x: op(x, X).sum())(X), X)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: op(x, X).sum()))(X), X)
    del op
    jax.clear_caches()
    deadline = time.monotonic() + 20
    while any(reference() for reference in references) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)  # what other threads gave up is dropped when Python next can
    assert [reference() for reference in references] == [None] * len(references)


def scale_by_tvm(x):
    return tvm.compute(x.shape, lambda *i: x(*i) * tvm.const(SCALE, "float32"))


def scaled_by_tbe(cce: Any, data: Any) -> Any:
    return cce.vmuls(data, SCALE)


# Its globals are read once, with its source.
def scaled_in_hybrid(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * SCALE
    return y


def tvm_op() -> Custom:
    return Custom(scale_by_tvm, func_type="akg")


def tbe_op() -> Custom:
    kernel = kernel_of(scaled_by_tbe, 1)
    return Custom(kernel, first, first, func_type="tbe", reg_info=op_info(1, 1))


@pytest.mark.parametrize("make", [tvm_op, tbe_op])
def test_a_kernel_that_ran_under_other_globals_is_not_shared(monkeypatch, make) -> None:
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    old = make()
    old(jnp.ones(3))
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert old(jnp.ones(5)).tolist() == [3.0] * 5  # as a function under jax.jit, traced anew
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    new = make()
    assert new(jnp.ones(5)).tolist() == [2.0] * 5
    assert jax.grad(lambda x: new(x).sum())(jnp.ones(5)).tolist() == [2.0] * 5
    # What was computed stays, and so does its derivative.
    assert old(jnp.ones(5)).tolist() == [3.0] * 5
    assert jax.grad(lambda x: old(x).sum())(jnp.ones(5)).tolist() == [3.0] * 5
    assert operator_of(make(), jnp.ones(3)) is operator_of(new, jnp.ones(3))


def test_adjoint_loops_are_those_of_the_very_kernel(monkeypatch) -> None:
    make = lambda: Custom(  # noqa: E731
        scale_by_tvm, func_type="akg", compile_attrs={"lower": "native"}
    )
    slope = lambda op: jax.grad(lambda x: op(x).sum())(jnp.ones(6)).tolist()  # noqa: E731
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    old = make()
    old(jnp.ones(3))
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert slope(old) == [3.0] * 6
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert slope(make()) == [2.0] * 6


def test_hybrid_kernels_keep_the_globals_they_were_read_with(monkeypatch) -> None:
    make = lambda: Custom(scaled_in_hybrid, func_type="akg")  # noqa: E731
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    old = make()
    old(jnp.ones(3))
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert old(jnp.ones(5)).tolist() == [2.0] * 5
    assert make()(jnp.ones(5)).tolist() == [3.0] * 5
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert operator_of(make(), jnp.ones(5)) is operator_of(old, jnp.ones(5))


def kernel_of_op(function: Any) -> Any:
    """Returns what an op that runs a function is shared by."""
    return operator_of(Custom(function, X.shape, X.dtype))


def rule_of_op(function: Any) -> Any:
    """Returns what an op that is differentiated by a function is shared by."""
    return operator_of(Custom(np.square, X.shape, X.dtype, bprop=function))


def test_functions_compare_by_value_and_end_on_cycles() -> None:
    def outer(n: Any) -> Any:
        def recursive(x: Any, *_: Any) -> Any:
            return recursive(x) if x is n else x

        return recursive

    assert rule_of_op(outer(1)) is rule_of_op(outer(1))
    assert rule_of_op(outer(1)) is not rule_of_op(outer(1.0))
    assert rule_of_op(outer(0.0)) is not rule_of_op(outer(-0.0))
    shared: list[Any] = []
    assert rule_of_op(outer(shared)) is rule_of_op(outer(shared))
    assert rule_of_op(outer([1])) is not rule_of_op(outer([1]))
    # A kernel may change what it holds, a cycle too.
    assert kernel_of_op(outer(1)) is not kernel_of_op(outer(1))
    plain = [(lambda x: x + 1) for _ in range(2)]
    assert kernel_of_op(plain[0]) is kernel_of_op(plain[1])


def test_global_functions_are_read_too() -> None:
    scope: dict[str, Any] = {}
    define = "def helper(x):\n    return x[:{}]\nrule = lambda x, out, dout: (helper(x),)"
    keys = []
    for size in (1, 2, 1):
        exec(define.format(size), scope)
        keys.append(rule_of_op(scope["rule"]))
    assert keys[0] is keys[2]
    assert keys[0] is not keys[1]


def test_scale_of_this_module_is_part_of_the_key() -> None:
    rule = lambda x, out, dout: SCALE  # noqa: E731
    before = rule_of_op(rule)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "SCALE", 3.0)
        assert rule_of_op(rule) is not before
    assert rule_of_op(rule) is before


def test_paths_of_one_library_are_one_kernel() -> None:
    absolute = Custom(f"{FLOAT_OPS}:Multiply", first, first)
    again = Custom(f"{FLOAT_OPS.parent}/../kernels/float_ops.cc:Multiply", first, first)
    np.testing.assert_array_equal(absolute(X, X), again(X, X))


def test_two_ops_build_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler of each waits until that of the other has begun."""
    compiler = tmp_path / "compiler"
    compiler.write_text(
        "#!/bin/bash\n"
        'case "$*" in\n'
        f"  *one.cc*) touch {tmp_path}/one; other={tmp_path}/two;;\n"
        f"  *two.cc*) touch {tmp_path}/two; other={tmp_path}/one;;\n"
        "esac\n"
        'for i in $(seq 200); do [ -z "$other" -o -e "$other" ] && exec g++ "$@"; sleep 0.1; done\n'
        "exit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))
    source = (
        'extern "C" int F(int, void **params, int *, long **, const char **, void *, void *) {'
        " static_cast<float *>(params[1])[0] = 2 * static_cast<float *>(params[0])[0]; return 0; }"
    )
    ops = []
    for name in ("one", "two"):
        (tmp_path / f"{name}.cc").write_text(source)
        ops.append(Custom(f"{tmp_path}/{name}.cc:F", first, first))
    x = jnp.ones(1)
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda op: op(x), ops):
            np.testing.assert_array_equal(result, [2.0])


def test_an_attribute_that_is_added_while_another_thread_resolves_the_op_is_not_lost() -> None:
    to_change: list[Custom] = []

    def shape_of(shape: Any) -> Any:
        # Asked whether it answers as it did for the equal op, while the second one is resolved.
        if to_change:
            change = to_change.pop().add_prim_attr
            thread = threading.Thread(target=change, args=("side_effect_io", True))
            thread.start()
            thread.join()
        return shape

    calls: list[int] = []

    def count(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        return x

    Custom(count, shape_of, first)(X)
    op = Custom(count, shape_of, first)
    to_change.append(op)
    op(X)
    assert not to_change
    calls.clear()
    # An op without effects runs equal calls of a program once.
    jax.jit(lambda x: (op(x), op(x)))(X)
    assert len(calls) == 2


def test_an_infer_function_may_wait_for_the_first_call_of_another_op_elsewhere() -> None:
    stuck = []

    def call_elsewhere(shape: Any) -> Any:
        other = Custom(lambda x: x + np.float32(len(stuck)), first, first)
        thread = threading.Thread(target=other, args=(X,), daemon=True)
        thread.start()
        thread.join(10)
        stuck.append(thread.is_alive())
        return shape

    def make() -> Custom:
        return Custom(np.negative, call_elsewhere, first)

    np.testing.assert_array_equal(make()(X), -X)
    # The op made anew asks whether the infer function still answers alike.
    np.testing.assert_array_equal(make()(X), -X)
    assert len(stuck) >= 2
    assert not any(stuck)


def test_a_native_loop_that_forward_mode_ran_eagerly_is_freed() -> None:
    def make() -> weakref.ref[Any]:
        def double(x: Any) -> Any:
            y = output_tensor(x.shape, x.dtype)
            for i in range(x.shape[0]):
                y[i] = 2.0 * x[i]
            return y

        op = Custom(double, func_type="akg", compile_attrs={"lower": "native"})
        np.testing.assert_array_equal(jax.jvp(op, (X,), (X,))[1], 2 * X)
        np.testing.assert_array_equal(jax.jvp(op, (X,), (X,))[1], 2 * X)
        return weakref.ref(op._resolve().operator)

    reference = make()
    jax.clear_caches()
    for _ in range(3):
        gc.collect()
    assert reference() is None
