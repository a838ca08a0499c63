"""`Custom.cost_analysis` and the counts of the loop compiler, against counts by hand."""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aicpu, aot, first, loops, matmul, multiply, solve_lower, tbe
from loop_ir import count_operations, counts, parse_kernel

from msops import Custom, Tensor, errors

X = jax.ShapeDtypeStruct((3, 5), jnp.float32)


def square(n: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((n, n), dtype)


@pytest.mark.parametrize(
    "op",
    [
        aot("Multiply"),
        Custom(np.multiply, first, first),
        Custom(np.multiply, first, first, compile_attrs={"lower": "callback"}),
        aicpu("Mul"),
    ],
    ids=["aot", "pyfunc", "callback", "aicpu"],
)
def test_of_a_kernel_that_is_one_call_the_bytes_are_known(op: Custom) -> None:
    # Two inputs and an output of 15 floats.
    assert op.cost_analysis(X, X) == {"bytes accessed": 180.0}


@pytest.mark.parametrize("method", ["cost_analysis", "explain"])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        (jax.export.symbolic_shape("n"), jnp.float32),
        ((2**62, 4), jnp.float32),
        ((2**31, 2**31), jnp.float32),
        ((4,), jax.random.key(0).dtype),
    ],
)
def test_what_stands_for_no_array_is_refused(method: str, shape: Any, dtype: Any) -> None:
    struct = jax.ShapeDtypeStruct(shape, dtype)
    with pytest.raises(errors.ArgumentValueError) as caught:
        getattr(loops(multiply), method)(struct, struct)
    assert str(caught.value).startswith("Custom 'multiply': expected a ShapeDtypeStruct of numbers")
    assert "got ShapeDtypeStruct(" in str(caught.value)


def test_lists_outputs_and_wide_types_count() -> None:
    op = Custom(lambda xs: (xs[0], xs[1][:1]), lambda xs: (xs[0], [1]), lambda xs: (xs[0], xs[1]))
    x, y = np.zeros(4, np.float16), np.zeros(6, np.complex64)
    assert op.cost_analysis([x, y]) == {"bytes accessed": 8.0 + 48.0 + 8.0 + 8.0}
    double = Custom(np.square, first, first)
    assert double.cost_analysis(Tensor(np.zeros(4))) == {"bytes accessed": 64.0}


def test_a_matrix_product_is_counted_alike_in_both_lowerings() -> None:
    a, b = jax.ShapeDtypeStruct((30, 40), jnp.float32), jax.ShapeDtypeStruct((40, 20), jnp.float32)
    for lower in ("xla", "native"):
        cost = loops(matmul, lower).cost_analysis(a, b)
        assert cost["flops"] == 2 * 30 * 40 * 20, lower
        assert cost["bytes accessed"] == 4 * (30 * 40 + 40 * 20 + 30 * 20), lower


def test_operations_of_xla_are_counted_by_xla() -> None:
    op = loops(multiply, "xla")
    x = jax.ShapeDtypeStruct((1000,), jnp.float32)
    own = jax.jit(jnp.multiply).lower(x, x).compile().cost_analysis()
    cost = op.cost_analysis(x, x)
    assert (cost["flops"], cost["bytes accessed"]) == (own["flops"], own["bytes accessed"])
    assert (cost["flops"], cost["transcendentals"]) == (1000, 0)
    cost = tbe(lambda te, x, y: te.vmul(te.vexp(x), y)).cost_analysis(X, X)
    assert (cost["flops"], cost["transcendentals"]) == (15, 15)


def cholesky(a):
    c = output_tensor(a.shape, a.dtype)
    for j in range(a.shape[0]):
        for i in range(j, a.shape[0]):
            t = a[i, j]
            for k in range(j):
                t -= c[i, k] * c[j, k]
            if i == j:
                c[i, j] = sqrt(t)
            else:
                c[i, j] = t / c[j, j]
    return c


def running_sum(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if i == 0 else y[i - 1] + x[i]
    return y


def powers(x, times):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1.0
        for _ in range(times[i]):
            y[i] = y[i] * x[i]
    return y


@pytest.mark.parametrize("n", [1, 2, 5, 64, 257])
def test_triangles_are_counted_to_the_last_operation(n: int) -> None:
    cost = loops(solve_lower, "native").cost_analysis(square(n), jax.ShapeDtypeStruct((n,), "f4"))
    assert cost["flops"] == n * (n - 1)
    assert cost["bytes accessed"] == 4 * (n * n + n + n)
    cost = loops(cholesky, "native").cost_analysis(square(n))
    multiplications = sum(j for j in range(n) for _ in range(j, n))
    divisions = n * (n - 1) // 2
    assert cost["flops"] == 2 * multiplications + divisions
    assert cost["transcendentals"] == n


def test_loops_that_xla_runs_in_an_order_are_counted_whole() -> None:
    # XLA's own analysis takes one iteration of a loop for all of them.
    x = jax.ShapeDtypeStruct((1000,), jnp.float32)
    cost = loops(running_sum, "xla").cost_analysis(x)
    assert cost == {"flops": 999.0, "transcendentals": 0.0, "bytes accessed": 8000.0}


def test_what_depends_on_data_is_absent() -> None:
    x, times = jax.ShapeDtypeStruct((8,), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.int32)
    assert loops(powers, "native").cost_analysis(x, times) == {"bytes accessed": 96.0}


def test_without_inputs_it_is_of_the_latest_call() -> None:
    op = Custom(lambda x: x + 7, first, first)
    with pytest.raises(errors.ArgumentValueError) as caught:
        op.cost_analysis()
    assert "Custom '<lambda>'.cost_analysis: expected inputs, as the op has not been called" in str(
        caught.value
    )
    op(np.zeros(10, np.float32))
    assert op.cost_analysis() == {"bytes accessed": 80.0}


NESTS: dict[str, tuple[str, Callable[[int], int]]] = {
    "box": ("serial i in 0 .. N { serial j in 0 .. 7 { y[] = y[] + x[i] } }", lambda n: 7 * n),
    "tetrahedron": (
        "serial i in 0 .. N { serial j in 0 .. i { serial k in 0 .. j { y[] = y[] + x[k] } } }",
        lambda n: sum(1 for i in range(n) for j in range(i) for k in range(j)),
    ),
    "clamped": (
        "serial i in 0 .. N { serial j in i .. min(i + 32, N) { y[] = y[] + x[j] } }",
        lambda n: sum(min(i + 32, n) - i for i in range(n)),
    ),
    "empty in the beginning": (
        "serial i in 0 .. N { serial j in 5 .. i { y[] = y[] * x[j] } }",
        lambda n: sum(max(0, i - 5) for i in range(n)),
    ),
    "guarded": (
        "serial i in 0 .. N { serial j in 0 .. N { if (j < i) { y[] = y[] + x[j] } } }",
        lambda n: n * (n - 1) // 2,
    ),
    "tiled": (
        "serial t in 0 .. ((N + 15) // 16) { serial i in (t * 16) .. min((t * 16) + 16, N) "
        "{ y[] = y[] + x[i] } }",
        lambda n: n,
    ),
    "strided": (
        "serial i in 0 .. N { serial j in 0 .. (i // 3) { y[] = y[] + x[j] } }",
        lambda n: sum(i // 3 for i in range(n)),
    ),
    "every second": (
        "serial i in 0 .. N { if ((i % 2) == 0) { y[] = y[] + x[i] } }",
        lambda n: (n + 1) // 2,
    ),
    "one element of each row": (
        "serial i in 0 .. N { serial j in 0 .. N { if (i == j) { y[] = y[] + x[j] } } }",
        lambda n: n,
    ),
}


@pytest.mark.parametrize("n", [1, 6, 100, 125])
@pytest.mark.parametrize(("nest", "by_hand"), NESTS.values(), ids=NESTS)
def test_nests_are_counted_as_by_hand(nest: str, by_hand: Callable[[int], int], n: int) -> None:
    text = f"kernel f(x: float32[{n}]) -> (y) {{ buffer y: float32[] {nest.replace('N', str(n))} }}"
    assert count_operations(parse_kernel(text)).get("flops") == by_hand(n)


def test_what_takes_too_long_to_count_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    nest, _ = NESTS["tetrahedron"]
    text = f"kernel f(x: float32[99]) -> (y) {{ buffer y: float32[] {nest.replace('N', '99')} }}"
    monkeypatch.setattr(counts, "_MOST_STEPS", 1000)
    assert counts.count_operations(parse_kernel(text)) == {}


def test_a_condition_on_data_counts_as_its_longer_branch() -> None:
    text = """kernel f(x: float32[9]) -> (y) {
  buffer y: float32[9]
  parallel i in 0 .. 9 {
    if (x[i] > 0.0:float32) { y[i] = exp(x[i]) * 2.0:float32 }
    else { y[i] = x[i] + (x[i] + (x[i] + 1.0:float32)) }
  }
}"""
    assert count_operations(parse_kernel(text)) == {"flops": 27, "transcendentals": 9}
