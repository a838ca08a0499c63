"""What test_sharding.py runs in a process that has eight CPU devices.

Every check prints one line: its name and whether it held. They are in one file as a process starts
but once for all.
"""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

import gc
import json
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from conftest import KERNELS, ROOT
from custom_ops import aot, first, loops, tbe
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import msops
from msops import Custom, errors, ops
from msops.ops import CustomRegOp
from msops.testing import opcheck, transformations

P = PartitionSpec
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 8)).astype(np.float32)
W = RNG.normal(size=8).astype(np.float32)
RULE = "i j, j -> i j"
ROWS = KERNELS / "row_ops.cc"

AUTO = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
MESHES = {"auto": AUTO, "explicit": EXPLICIT}


def bprop(x: Any, w: Any, out: Any, dout: Any) -> tuple[Any, ...]:
    return dout * w, (dout * x).sum(0)


def scale_rows(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * w[j]
    return y


def scaling(kind: str, **options: Any) -> Custom:
    """Returns an op that multiplies rows by a vector."""
    if kind == "aot":
        return Custom(f"{ROWS}:ScaleRows", first, first, bprop=bprop, **options)
    if kind == "pyfunc":
        return Custom(np.multiply, first, first, bprop=bprop, **options)
    if kind == "aicpu":
        info = CustomRegOp("ScaleRows").input(0, "x").input(1, "w").output(0, "z").target("Ascend")
        source = str(ROOT / "tests" / "aicpu_kernels" / "rows.cc")
        return Custom(
            source,
            first,
            first,
            func_type="aicpu",
            bprop=bprop,
            reg_info=info.get_op_info(),
            **options,
        )
    if kind == "akg_native":
        return loops(scale_rows, "native", **options)
    if kind == "akg_raised":
        return loops(scale_rows, "xla", **options)
    if kind == "hybrid_native":
        return loops(ops.kernel(scale_rows), "native", **options)
    return tbe(lambda te, x, w: te.vmul(x, te.broadcast(w, x.shape)), **options)


OPAQUE = ("aot", "pyfunc", "aicpu", "akg_native", "hybrid_native")
KINDS = (*OPAQUE, "akg_raised", "tbe")

CHECKS: dict[str, Callable[[], None]] = {}


def check(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def add(function: Callable[..., None]) -> Callable[..., None]:
        CHECKS[name] = function
        return function

    return add


def put(array: Any, mesh: Any, *spec: Any) -> jax.Array:
    return jax.device_put(jnp.asarray(array), NamedSharding(mesh, P(*spec)))


def hlo(function: Callable[..., Any], *args: Any) -> str:
    """Returns what XLA makes of a program: of what each device runs."""
    return jax.jit(function).lower(*args).compile().as_text()


def kernel_calls(text: str) -> list[str]:
    """Returns the shapes of the arrays that each kernel is given on a device."""
    lines = [line for line in text.splitlines() if 'custom_call_target="msops_' in line]
    return [" ".join(re.findall(r"\w+\[[\d,]*\]", line.split("metadata")[0])) for line in lines]


def gathers(text: str) -> bool:
    return "all-gather" in text or "all-to-all" in text


def spec_of(array: Any) -> tuple[Any, ...]:
    spec = tuple(array.sharding.spec)
    return spec + (None,) * (array.ndim - len(spec))


def agree(got: Any, expected: Any) -> None:
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def forward(kind: str, mesh: Any) -> None:
    op = scaling(kind, sharding=RULE)
    x, w = put(X, mesh, "a", "b"), put(W, mesh, "b")
    result = op(x, w)
    agree(result, X * W)
    assert spec_of(result) == ("a", "b"), result.sharding
    text = hlo(lambda x, w: op(x + 1, w), x, w)
    assert not gathers(text), text
    if kind in OPAQUE:
        (call,) = kernel_calls(text)
        assert call.startswith("f32[2,4]"), call
        assert "[8" not in call, call
    # A program says where its results go; an op follows.
    asked = jax.jit(op, out_shardings=NamedSharding(mesh, P("a", None)))(x, w)
    agree(asked, X * W)
    assert spec_of(asked) == ("a", None)


def gradient(kind: str, mesh: Any) -> None:
    op = scaling(kind, sharding=RULE)
    x, w = put(X, mesh, "a", "b"), put(W, mesh, "b")

    def loss(op: Any) -> Callable[..., Any]:
        return lambda x, w: (op(x, w) ** 2).sum()

    expected = jax.grad(loss(jnp.multiply), (0, 1))(X, W)
    slope = jax.jit(jax.grad(loss(op), (0, 1)))
    got = slope(x, w)
    agree(got, expected)
    assert spec_of(got[0]) == ("a", "b")
    # The gradient of w is summed over "a", where w is not divided.
    text = slope.lower(x, w).compile().as_text()
    assert not gathers(text), text
    assert "all-reduce" in text
    agree(jax.jit(jax.grad(loss(op)))(x, w), expected[0])


def batched(kind: str, mesh: Any) -> None:
    op = scaling(kind, sharding=RULE)
    stack = RNG.normal(size=(8, 8, 8)).astype(np.float32)
    x, w = put(stack, mesh, "a", None, "b"), put(W, mesh, "b")
    mapped = jax.vmap(op, (0, None))
    result = mapped(x, w)
    agree(result, stack * W)
    assert spec_of(result) == ("a", None, "b")
    text = hlo(mapped, x, w)
    assert not gathers(text), text
    both = jax.vmap(jax.vmap(op, (None, 0)), (0, None))
    ws = RNG.normal(size=(2, 8)).astype(np.float32)
    agree(both(x, put(ws, mesh, None, "b")), stack[:, None] * ws[None, :, None])
    slopes = jax.jit(jax.vmap(jax.grad(lambda x, w: (op(x, w) ** 2).sum()), (0, None)))
    agree(slopes(x, w), 2 * stack * W * W)
    # Only w has the axis: each of its elements meets the whole of x.
    second = jax.vmap(op, (None, 0), 1)
    agree(second(put(X, mesh, None, "b"), put(ws, mesh, None, "b")), X[:, None] * ws)


def mapped_by_hand(kind: str, mesh: Any) -> None:
    op = scaling(kind)
    x, w = put(X, mesh, "a", "b"), put(W, mesh, "b")
    specs = {"in_specs": (P("a", "b"), P("b")), "out_specs": P("a", "b")}
    local, plain = (
        jax.shard_map(f, mesh=mesh, check_vma=True, **specs) for f in (op, jnp.multiply)
    )
    agree(jax.jit(local)(x, w), X * W)
    # w varies over "b" alone: its gradient is summed over "a".
    slopes = [
        jax.jit(jax.grad(lambda x, w, f=f: (f(x, w) ** 2).sum(), (0, 1)))(x, w)
        for f in (local, plain)
    ]
    agree(*slopes)
    text = hlo(local, x, w)
    assert not gathers(text), text

    def inside(f: Callable[..., Any]) -> Callable[..., Any]:
        def slope(x: Any, w: Any) -> Any:
            return jax.grad(lambda w: (f(x, w) ** 2).sum())(w)

        return jax.shard_map(slope, mesh=mesh, in_specs=(P("a", "b"), P("b")), out_specs=P("b"))

    agree(jax.jit(inside(op))(x, w), jax.jit(inside(jnp.multiply))(x, w))


for _kind in KINDS:
    for _mesh in MESHES:
        for _check in (forward, gradient, batched, mapped_by_hand):
            CHECKS[f"{_check.__name__} {_kind} {_mesh}"] = (
                lambda check=_check, kind=_kind, mesh=_mesh: check(kind, MESHES[mesh])
            )


def warned(function: Callable[..., Any], *args: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.block_until_ready(function(*args))
    for one in caught:
        assert one.filename == __file__, one
        line = linecache.getline(one.filename, one.lineno)
        # An equal call may have been lowered before, elsewhere in this file.
        assert "op" in line or "(*args)" in line, line
    return [str(one.message) for one in caught]


def raised(family: type[BaseException], function: Callable[..., Any], *args: Any) -> str:
    try:
        function(*args)
    except family as error:
        return str(error)
    raise AssertionError(f"expected {family.__name__}")


def _unruled(kind: str, mesh: Any, places: tuple[str, str]) -> None:
    """An op without rule reports what it gathers, once, or refuses."""
    x, w = put(X, mesh, "a", "b"), put(W, mesh)
    # Equal ops are one, and it has told in the other mesh.
    like = {} if mesh is AUTO else {"vmap": "expand_dims"}
    told = [
        f"input 0, dimension 0, is divided over {places[0]}",
        f"dimension 1, is divided over {places[1]}",
    ]
    op = scaling(kind, **like)
    first_time, again = warned(op, x, w), warned(jax.jit(lambda x, w: op(x * 2, w)), x, w)
    assert len(first_time) == 1, first_time
    assert all(part in first_time[0] for part in told), first_time
    assert "it has no sharding rule" in first_time[0]
    assert "msops.set_context(implicit_gather='allow')" in first_time[0]
    assert again == []
    msops.set_context(implicit_gather="raise")
    try:
        error = raised(errors.BackendError, lambda: scaling(kind, vmap="broadcast_all")(x, w))
        assert all(part in error for part in told), error
        assert error.startswith("Custom '"), error
        assert error.endswith("(implicit_gather='allow')."), error
        compiled = jax.jit(lambda x, w: scaling(kind, vmap="expand_dims")(x - 1, w))
        assert told[0] in raised(RuntimeError, compiled, x, w)
        # What is whole on each device is no case for it.
        agree(scaling(kind)(put(X, mesh), w), X * W)
        msops.set_context(implicit_gather="allow")
        assert warned(scaling(kind, vmap="broadcast_all"), x, w) == []
        agree(scaling(kind)(x, w), X * W)
    finally:
        msops.set_context(implicit_gather="warn")


for _kind in ("aot", "pyfunc", "aicpu"):
    CHECKS[f"unruled {_kind} auto"] = lambda kind=_kind: _unruled(
        kind, AUTO, ("4 devices", "2 devices")
    )
    CHECKS[f"unruled {_kind} explicit"] = lambda kind=_kind: _unruled(
        kind, EXPLICIT, ("'a'", "'b'")
    )


@check("operations of XLA's need no rule in an auto mesh")
def _operations() -> None:
    for kind in ("akg_raised", "tbe"):
        op = scaling(kind)
        x, w = put(X, AUTO, "a", "b"), put(W, AUTO, "b")
        assert warned(op, x, w) == []
        assert not gathers(hlo(op, x, w))


@check("extremes along divided axes")
def _extremes() -> None:
    x = RNG.normal(size=(8, 6, 4)).astype(np.float32)
    x[5, 2, 3] = np.nan
    for dtype, spec in (
        ("float32", ("a",)),
        ("bfloat16", ("a", "b")),
        ("float32", ("b", None, "a")),
    ):
        part = jnp.asarray(x, dtype)
        for axis in (0, 1, (0, 1), (1, 2), None):
            got = jax.jit(lambda part, axis=axis: ops.amax(part, axis))(put(part, AUTO, *spec))
            np.testing.assert_array_equal(np.float32(got), np.float32(part).max(axis))


@check("a contracted dimension is gathered and told")
def _contracted() -> None:
    op = Custom(
        np.matmul,
        lambda a, b: [a[0], b[1]],
        first,
        sharding="i k, k j -> i j",
        bprop=lambda a, b, out, dout: (dout @ b.T, a.T @ dout),
    )
    a, b = put(X, AUTO, "a", "b"), put(X, AUTO)
    told = warned(op, a, b)
    assert len(told) == 1
    assert "input 0, dimension 1, is divided over 2 devices" in told[0]
    assert "dimension 0" not in told[0]
    assert 'its rule is sharding="i k, k j -> i j"' in told[0]
    result = op(a, b)
    agree(result, X @ X)
    assert spec_of(result)[0] == "a"
    (call,) = kernel_calls(hlo(op, a, b))
    assert call == "f32[2,8] f32[2,8] f32[8,8]", call
    # Rows of one and columns of the other: nothing is gathered.
    b = put(X, AUTO, None, "b")
    text = hlo(op, put(X, AUTO, "a"), b)
    assert not gathers(text)
    assert kernel_calls(text) == ["f32[2,4] f32[2,8] f32[8,4]"]
    agree(op(put(X, AUTO, "a"), b), X @ X)


@check("batch_dims")
def _batch_dims() -> None:
    op = Custom(
        lambda x: np.cumsum(x, 1), first, first, batch_dims=1, bprop=lambda x, out, dout: (dout,)
    )
    x = put(X, AUTO, ("a", "b"))
    text = hlo(op, x)
    assert not gathers(text)
    assert kernel_calls(text) == ["f32[1,8] f32[1,8]"]
    agree(op(x), np.cumsum(X, 1))
    assert "input 0, dimension 1" in warned(op, put(X, AUTO, "a", "b"))[0]


@check("outputs in another order, and several")
def _orders() -> None:
    turn = Custom(np.transpose, lambda x: x[::-1], first, sharding="i j -> j i")
    x = put(X, AUTO, "a", "b")
    rows = put(X, AUTO, "a")
    result = turn(x)
    agree(result, X.T)
    assert spec_of(result) == ("b", "a")
    assert not gathers(hlo(turn, x))
    pair = aot(
        "SumAndMax",
        lambda x, y: (x, y),
        lambda x, y: (x, y),
        sharding="i j, i j -> i j, i j",
    )
    text = hlo(pair, x, put(X.T, AUTO, "a", "b"))
    assert not gathers(text)
    agree(pair(x, put(X.T, AUTO, "a", "b")), (X + X.T, np.maximum(X, X.T)))
    total = Custom(
        lambda x: (x * 2, x.sum(1)),
        lambda x: (x, x[:1]),
        lambda x: (x, x),
        sharding="i j -> i j, i",
    )
    agree(total(rows), (X * 2, X.sum(1)))
    assert kernel_calls(hlo(total, rows)) == ["f32[2,8] f32[2] f32[2,8]"]


@check("devices in any order")
def _device_order() -> None:
    devices = np.array(jax.devices())[[3, 0, 6, 1, 7, 2, 5, 4]].reshape(2, 2, 2)
    mesh = jax.sharding.Mesh(devices, ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)
    op = scaling("aot", sharding=RULE)
    for spec, other in ((("c", "a"), ("a",)), ((("b", "c"), None), ()), ((None, ("c", "b")), ())):
        x, w = put(X, mesh, *spec), put(W, mesh, *other)
        agree(op(x, w), X * W)
        assert spec_of(op(x, w)) == spec
    # An input that is divided otherwise is brought into the form of the one in more parts.
    agree(op(put(X, mesh, "c", ("a", "b")), put(W, mesh, "b")), X * W)


@check("sizes that do not divide evenly are gathered")
def _uneven() -> None:
    op = scaling("pyfunc", sharding=RULE)

    def program(x: Any, w: Any) -> Any:
        return op(jax.lax.with_sharding_constraint(x, NamedSharding(AUTO, P("a", "b"))), w)

    uneven = np.arange(6 * 8, dtype=np.float32).reshape(6, 8)
    told = warned(jax.jit(program), put(uneven, AUTO), put(W, AUTO))
    assert any("dimension 0, is divided over 4 devices" in line for line in told), told
    agree(jax.jit(program)(put(uneven, AUTO), put(W, AUTO)), uneven * W)


@check("no elements")
def _empty() -> None:
    op = scaling("pyfunc", sharding=RULE)
    assert op(put(X[:0], AUTO, "a"), put(W, AUTO)).shape == (0, 8)
    assert op(put(X[:, :0], AUTO, "a"), put(W[:0], AUTO)).shape == (8, 0)


@check("explicit inputs that disagree")
def _disagree() -> None:
    op = scaling("pyfunc", sharding=RULE)
    error = raised(ValueError, op, put(X, EXPLICIT, "a", "b"), put(W, EXPLICIT, "a"))
    assert "divided alike along 'j'" in error
    assert "jax.sharding.reshard" in error

    def outer_shape(x: Any, y: Any) -> list[int]:
        return [*x, *y]

    outer = Custom(np.multiply.outer, outer_shape, first, sharding="i, j -> i j")
    error = raised(ValueError, outer, put(W, EXPLICIT, "a"), put(W, EXPLICIT, "a"))
    assert "expected an axis of the mesh for one dimension of output 0" in error
    agree(outer(put(W, EXPLICIT, "a"), put(W, EXPLICIT, "b")), np.multiply.outer(W, W))
    # Without types XLA brings one into the form of the other, and that is reported.
    for other, over in (("a", 4), ("b", 2)):
        x, y = put(W, AUTO, ("a", "b")), put(W, AUTO, other)
        op = Custom(
            np.multiply.outer, outer_shape, first, sharding="i, j -> i j", writable=other == "a"
        )
        (told,) = warned(op, x, y)
        assert "input 1, dimension 0, is divided over" in told
        assert f"over {over} devices, unlike the array in the most parts" in told
        assert "input 0" not in told
        agree(op(x, y), np.multiply.outer(W, W))
    assert warned(outer, put(W, AUTO, "a"), put(W, AUTO, "b")) == []


@check("a rule that out_shape contradicts")
def _contradiction() -> None:
    op = Custom(lambda x: x, (8, 8), jnp.float32, sharding="i j -> i j")
    agree(op(X), X)
    error = raised(errors.InferenceValueError, op, put(X, AUTO, "a"))
    assert "expected outputs of shape (2, 8) for parts of shape (2, 8)" in error
    assert "Make out_shape a function" in error


@check("effects")
def _effects() -> None:
    count = aot("Count", lambda x: [x[0]], np.float32, stateful=True, sharding="i j -> i")
    x = put(X, AUTO, ("a", "b"))
    counts = np.sort(np.asarray(jax.jit(count)(x)))
    assert list(np.diff(counts)) == [1] * 7, counts
    unruled = aot("Count", [8], np.float32, stateful=True)
    refused = raised(errors.BackendError, unruled, x)
    assert "Custom 'Count' on CPU: it is stateful: one call must be one run" in refused
    assert "8 devices would each run it for the same arrays" in refused
    assert "Call it inside jax.shard_map" in refused
    # The rule leaves some devices, or all, the same part.
    for spec, copies in (((), 8), (("a",), 2), (("b",), 4)):
        assert f"{copies} devices would" in raised(errors.BackendError, count, put(X, AUTO, *spec))
    asked = jax.jit(count, out_shardings=NamedSharding(AUTO, P(("a", "b"))))
    assert list(np.diff(np.sort(asked(put(X, AUTO))))) == [1] * 7
    # Which devices run which part by hand is its author's word; of the rest it holds as well.
    by_hand = jax.shard_map(count, mesh=AUTO, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
    x = put(X, AUTO, ("a", "b"))
    assert list(np.diff(np.sort(jax.jit(by_hand)(x)))) == [1] * 7
    error = raised(RuntimeError, jax.jit(by_hand), put(X, AUTO, "a"))
    assert "2 devices would each run it" in error


@check("a Python function with a rule and effects")
def _stateful_function() -> None:
    seen = []

    def note(x: np.ndarray) -> np.ndarray:
        seen.append(x.shape)
        return x

    op = Custom(note, first, first, stateful=True, sharding="i j -> i j")
    assert "8 devices would" in raised(errors.BackendError, op, put(X, AUTO))
    assert seen == []
    agree(op(put(X, AUTO, "a", "b")), X)
    assert seen == [(2, 4)] * 8


def decay(x):
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = x[i, j - 1] * 0.5 + x[i, j]
    return x


@check("loops in the buffers of donated parts")
def _loops_in_place() -> None:
    step = jax.jit(loops(decay, "native", inplace={0: 0}, batch_dims=1), donate_argnums=0)
    x = put(X, AUTO, ("a", "b"))
    text = step.lower(x).compile().as_text()
    assert not gathers(text)
    assert " copy(" not in text
    parts = [part.data.unsafe_buffer_pointer() for part in x.addressable_shards]
    result = step(x)
    assert [part.data.unsafe_buffer_pointer() for part in result.addressable_shards] == parts
    expected = X.copy()
    for j in range(1, X.shape[1]):
        expected[:, j] += expected[:, j - 1] / 2
    agree(result, expected)


@check("inplace, lists and attributes")
def _options() -> None:
    add = aot("AddInto", first, first, inplace={0: 0}, sharding="i j, j -> i j")
    x, w = put(X, AUTO, "a"), put(W, AUTO)
    agree(add(x, w), X + W)
    donated = jax.jit(lambda x, w: add(x, w), donate_argnums=0)
    text = donated.lower(x, w).compile().as_text()
    assert not gathers(text)
    agree(donated(x, w), X + W)
    many = aot("AddAll", lambda xs: xs[0], lambda xs: xs[0], sharding="i j, i j, i j -> i j")
    parts = [put(X * k, AUTO, "a", "b") for k in (1, 2, 3)]
    assert not gathers(hlo(lambda *xs: many(list(xs)), *parts))
    agree(many(parts), 6 * X)
    info = CustomRegOp("scaled").input(0, "x").output(0, "y").attr("by", "required", "float")
    scaled = Custom(
        lambda x, by: x * np.float32(by),
        lambda x, by: x,
        lambda x, by: x,
        reg_info=info.target("CPU").get_op_info(),
        sharding="i j -> i j",
    )
    x = put(X, AUTO, "a", "b")
    agree([scaled(x, 2.0), scaled(x, 3.0)], [2 * X, 3 * X])


@check("jvp, linearize and hessian")
def _forward_mode() -> None:
    op = scaling("pyfunc", sharding=RULE, forward=True)
    for mesh in MESHES.values():
        x, w = put(X, mesh, "a", "b"), put(W, mesh, "b")
        tangent = jax.jit(lambda x, w: jax.jvp(op, (x, w), (x, w))[1])
        agree(tangent(x, w), 2 * X * W)
        assert not gathers(tangent.lower(x, w).compile().as_text())
    for kind in ("akg_native", "akg_raised", "tbe"):
        op = scaling(kind, sharding=RULE)
        for mesh in MESHES.values():
            x, w = put(X, mesh, "a", "b"), put(W, mesh, "b")
            agree(jax.jit(lambda x, w, op=op: jax.jvp(op, (x, w), (x, w))[1])(x, w), 2 * X * W)


def recurrence(x, w):
    """Each column waits for the one before it; tables and rows are independent."""
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            y[b, i, 0] = x[b, i, 0]
            for j in range(1, x.shape[2]):
                y[b, i, j] = y[b, i, j - 1] * w[j] + x[b, i, j]
    return y


def recurrence_in_jax(x: Any, w: Any) -> Any:
    columns = [x[..., 0]]
    for j in range(1, x.shape[2]):
        columns.append(columns[-1] * w[j] + x[..., j])
    return jnp.stack(columns, 2)


def recurring() -> Custom:
    return loops(recurrence, "native", sharding="b i j, k -> b i m")


TABLES = X.reshape(4, 2, 8)


@check("the gradient of native loops is summed over parts")
def _native_gradient() -> None:
    def loss(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, w: (f(x, w) ** 2).sum()

    op = recurring()
    expected = jax.grad(loss(recurrence_in_jax), (0, 1))(TABLES, W)
    for mesh, spec, part in ((AUTO, ("a", "b"), "[1,1,8]"), (EXPLICIT, (None, "b"), "[4,1,8]")):
        x, w = put(TABLES, mesh, *spec), put(W, mesh)
        slope = jax.jit(jax.grad(loss(op), (0, 1)))
        text = slope.lower(x, w).compile().as_text()
        assert len(kernel_calls(text)) == 2, text
        assert all(part in call for call in kernel_calls(text)), text
        assert not gathers(text), text
        assert "all-reduce" in text
        agree(slope(x, w), expected)
    stack = np.stack([TABLES, 2 * TABLES])
    slopes = jax.vmap(jax.grad(loss(op), (0, 1)), (0, None))
    agree(
        jax.jit(slopes)(put(stack, AUTO, "b", "a"), put(W, AUTO)),
        jax.vmap(jax.grad(loss(recurrence_in_jax), (0, 1)), (0, None))(stack, W),
    )


def last_of_row(x):
    """The last of a row's steps: it waits for all of the row."""
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0.0
        for k in range(x.shape[1]):
            y[i] = y[i] * x[i, k] + 0.5
    return y


def last_of_row_in_jax(x: Any) -> Any:
    y = x[:, 0] * 0
    for k in range(x.shape[1]):
        y = y * x[:, k] + 0.5
    return y


@check("what a kernel needs whole, its gradient gets whole")
def _contracted_gradient() -> None:
    def slope(f: Callable[..., Any]) -> Callable[..., Any]:
        return jax.jit(jax.grad(lambda x: (f(x) * W).sum()))

    op = loops(last_of_row, "native", sharding="i k -> i")
    expected = slope(last_of_row_in_jax)(X)
    for spec in ((None, "b"), ("b", "a"), ("a", None)):
        x = put(X, AUTO, *spec)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Custom 'last_of_row")
            agree(slope(op)(x), expected)
    (call,) = kernel_calls(hlo(slope(op), put(X, AUTO, "a")))
    assert call.startswith("f32[2,8]"), call


@check("raised loops of arrays that are whole in an explicit mesh")
def _whole_in_explicit_mesh() -> None:
    op = loops(last_of_row, "xla")
    # The cotangent has no mesh in its type, the kernel's input has one.
    got = jax.jit(jax.grad(lambda x: (op(x) * W).sum()))(put(X, EXPLICIT))
    agree(got, jax.grad(lambda x: (last_of_row_in_jax(x) * W).sum())(X))


@check("loops, conditions and recomputation")
def _control_flow() -> None:
    op = scaling("aot", sharding=RULE)
    for mesh in MESHES.values():
        x, w = put(X, mesh, "a", "b"), put(W, mesh, "b")

        def steps(x: Any, w: Any) -> Any:
            def body(x: Any, _: Any) -> tuple[Any, None]:
                x = jax.lax.cond(True, lambda x: jax.checkpoint(op)(x, w), lambda x: x, x)
                return x, None

            return jax.lax.scan(body, x, length=3)[0]

        text = hlo(steps, x, w)
        assert not gathers(text), text
        agree(jax.jit(steps)(x, w), X * W**3)
        agree(jax.jit(jax.grad(lambda x, w: steps(x, w).sum(), 1))(x, w), (X * 3 * W**2).sum(0))


@check("some axes by hand, the others by XLA")
def _partly_by_hand() -> None:
    op = scaling("aot", sharding=RULE)
    x, w = put(X, AUTO, "a", "b"), put(W, AUTO, "b")
    local = jax.shard_map(op, mesh=AUTO, in_specs=(P("a"), P()), out_specs=P("a"), axis_names={"a"})
    text = hlo(local, x, w)
    assert not gathers(text), text
    assert kernel_calls(text)[0].startswith("f32[2,4]")
    agree(jax.jit(local)(x, w), X * W)
    slope = jax.jit(jax.grad(lambda x, w: (local(x, w) ** 2).sum(), (0, 1)))
    agree(slope(x, w), jax.grad(lambda x, w: ((x * w) ** 2).sum(), (0, 1))(X, W))


@check("tensors and 64 bits")
def _tensors() -> None:
    wide = X.astype(np.float64)
    seen = []

    def scale(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        seen.append((x.dtype, x.shape))
        return x * w

    op = Custom(scale, first, first, sharding=RULE)
    with jax.enable_x64(True):
        x = jax.device_put(wide, NamedSharding(AUTO, P("a", "b")))
        w = jax.device_put(W.astype(np.float64), NamedSharding(AUTO, P("b")))
    result = op(msops.Tensor(x), msops.Tensor(w))
    np.testing.assert_array_equal(result.asnumpy(), wide * W)
    assert {*seen} == {(np.dtype(np.float64), (2, 4))}


@check("through jax.pure_callback")
def _by_callback() -> None:
    op = Custom(np.multiply, first, first, sharding=RULE, compile_attrs={"lower": "callback"})
    x, w = put(X, AUTO, "a", "b"), put(W, AUTO, "b")
    told = warned(op, x, w)
    assert len(told) == 1
    agree(op(x, w), X * W)
    mapped = jax.vmap(op, (0, None))
    stack = np.stack([X, 2 * X])
    agree(mapped(put(stack, AUTO, "b", "a"), w), stack * W)


@check("an exported program")
def _exported() -> None:
    op = scaling("aot", sharding=RULE)
    x, w = put(X, AUTO, "a", "b"), put(W, AUTO, "b")
    checks = [jax.export.DisabledSafetyCheck.custom_call("msops_aot")]
    told = warned(
        lambda: jax.export.export(jax.jit(op), disabled_checks=checks)(x, w).mlir_module()
    )
    assert "will gather" in told[0], told
    program = jax.export.export(jax.jit(op), disabled_checks=checks)(x, w)
    assert "msops_divided" not in program.mlir_module()
    agree(jax.jit(program.call)(x, w), X * W)


@check("programs are told apart by their text")
def _texts() -> None:
    def text(op: Custom) -> str:
        x, w = put(X, AUTO, "a", "b"), put(W, AUTO, "b")
        return jax.jit(op).lower(x, w).as_text()

    def key(op: Custom) -> str:
        return re.findall(r'backend_config = "([^"]*)"', text(op))[0]

    same = scaling("aot", sharding=RULE)
    assert key(scaling("aot", sharding=RULE)) == key(same)
    others = [
        scaling("aot", sharding="i j, j -> i j", reentrant=False),
        scaling("aot", sharding="i k, k -> i k"),
    ]
    assert len({key(op) for op in (same, *others)}) == 3
    assert "0x" not in text(same)


@check("no name is given to another kernel")
def _names() -> None:
    x, w = put(X, AUTO, "a", "b"), put(W, AUTO, "b")

    def key(factor: float) -> str:
        op = Custom(lambda x, w: factor * x * w, first, first, sharding=RULE)
        text = jax.jit(op).lower(x, w).as_text()
        return re.findall(r'backend_config = "([^"]*)"', text)[0]

    # JAX's cache on disk would take one for the other, also when the first is gone.
    assert len({key(2.0), key(3.0), key(4.0)}) == 3


@check("a call holds its function once, in however many programs it is")
def _held() -> None:
    def held_once(x: np.ndarray) -> np.ndarray:
        return x + 1

    op = Custom(held_once, first, first, sharding="i j -> i j")
    x = put(X, AUTO, "a")
    programs, counts = [jax.jit(lambda x, k=k: op(x * k)) for k in (1, 2, 3)], []
    for k, program in enumerate(programs, 1):
        agree([program(x)], [X * k + 1])
        gc.collect()
        counts.append(sys.getrefcount(held_once))
    assert len(set(counts)) == 1, counts


@check("a policy is no other's in the cache on disk")
def _policies() -> None:
    op, x, w = scaling("aot"), put(X, AUTO, "a", "b"), put(W, AUTO, "b")

    def text(policy: str) -> str:
        msops.set_context(implicit_gather=policy)
        try:
            return jax.jit(lambda x, w: op(x, w)).lower(x, w).as_text()
        finally:
            msops.set_context(implicit_gather="warn")

    assert text("warn") == text("warn") != text("raise")


@check("a function without outputs")
def _no_outputs() -> None:
    seen = []
    op = Custom(lambda x: seen.append(x.shape), (), (), batch_dims=1)
    x = put(X, AUTO, "a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax.block_until_ready(jax.jit(lambda x: (op(x), x + 1)[1])(x))
    jax.effects_barrier()
    assert seen == [(8, 8)], seen


@check("opcheck uses the rule")
def _opcheck() -> None:
    skip = ["sizes", "refusals", "two threads", "gradient", "vmap", "alignment", "memory bounds"]
    finding = opcheck(scaling("aot", sharding=RULE), X, W, skip=skip)["sharding"]
    assert finding.verdict == "passed", finding
    assert finding.summary == "as on one device, with i over 8, j over 8", finding
    # Columns depend on one another: the rule is wrong about them, and right about rows.
    wrong = Custom(f"{ROWS}:NormalizeRows", first, first, sharding="i j -> i j")
    finding = opcheck(wrong, np.abs(X) + 1, skip=skip)["sharding"]
    assert finding.verdict == "failed", finding
    assert any(line.startswith("j over 8: ") for line in finding.details), finding
    assert not any(line.startswith("i over 8: ") for line in finding.details), finding
    right = Custom(f"{ROWS}:NormalizeRows", first, first, batch_dims=1)
    finding = opcheck(right, np.abs(X) + 1, skip=skip)["sharding"]
    assert finding.verdict == "passed", finding
    short = Custom(lambda x: x, (8, 8), jnp.float32, sharding="i j -> i j")
    finding = opcheck(short, X, skip=skip)["sharding"]
    assert finding.verdict == "failed", finding
    assert "Make out_shape a function" in " ".join(finding.details), finding
    # An error that is XLA's own names the division, too.
    with mock.patch.object(transformations, "own_error", return_value=None):
        finding = opcheck(short, X, skip=skip)["sharding"]
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith("i over 8: INTERNAL: "), finding


def main(names: list[str]) -> None:
    for name in names or CHECKS:
        error = ""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                CHECKS[name]()
            except BaseException:
                error = traceback.format_exc()
        print(json.dumps({"name": name, "error": error}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(*CHECKS, sep="\n")
    else:
        main(sys.argv[1:])
