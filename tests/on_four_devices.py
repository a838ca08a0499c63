"""What test_devices.py runs in a process that has four CPU devices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aot, first, loops, multiply, multiply_bprop, tbe
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from msops import Custom, errors, pyfunc

P = PartitionSpec
MESH = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
X = jnp.arange(8.0)
W = jnp.array([2.0, 3.0])


def check(op: Custom) -> None:
    """Holds an op that multiplies against jnp."""
    local = jax.shard_map(op, mesh=MESH, in_specs=(P("i"), P("i")), out_specs=P("i"))
    np.testing.assert_allclose(jax.jit(local)(X, X), X * X)
    np.testing.assert_allclose(jax.grad(lambda x: local(x, X).sum())(X), X)

    # One input is sharded and one replicated: the gradient of the latter is summed.
    mixed = jax.shard_map(op, mesh=MESH, in_specs=(P("i"), P()), out_specs=P("i"))
    plain = jax.shard_map(jnp.multiply, mesh=MESH, in_specs=(P("i"), P()), out_specs=P("i"))
    for position in (0, 1):
        slope = [
            jax.jit(jax.grad(lambda x, w, f=f: (f(x, w) * X).sum(), position))(X, W)
            for f in (mixed, plain)
        ]
        np.testing.assert_allclose(*slope)

    inside = jax.shard_map(
        lambda x: jax.lax.psum(jax.grad(lambda x: op(x, x).sum())(x), "i"),
        mesh=MESH,
        in_specs=P("i"),
        out_specs=P(),
    )
    np.testing.assert_allclose(inside(X), (2 * X).reshape(4, 2).sum(0))

    with pytest.raises(ValueError, match="out_specs"):
        jax.shard_map(op, mesh=MESH, in_specs=(P("i"), P("i")), out_specs=P())(X, X)

    sharded = jax.device_put(X, NamedSharding(MESH, P("i")))
    np.testing.assert_allclose(jax.jit(op)(sharded, sharded), X * X)
    second = jax.device_put(X, jax.devices()[1])
    got = op(second, second)
    assert got.devices() == {jax.devices()[1]}
    np.testing.assert_allclose(got, X * X)


def check_effects() -> None:
    """A stateful kernel runs once per device inside shard_map; outside, the advice is to do so."""
    count = aot("Count", [1], np.float32, stateful=True)
    sharded = jax.device_put(X, NamedSharding(MESH, P("i")))
    for call in (count, jax.jit(count)):
        with pytest.raises(errors.BackendError, match=r"Call it inside jax\.shard_map"):
            call(sharded)
    in_order = aot("Count", [1], np.float32, stateful="ordered")
    for call in (
        in_order,
        jax.shard_map(in_order, mesh=MESH, in_specs=P("i"), out_specs=P("i")),
    ):
        with pytest.raises(errors.BackendError, match="run a program together have no order"):
            jax.jit(call)(sharded)
    local = jax.jit(jax.shard_map(count, mesh=MESH, in_specs=P("i"), out_specs=P("i")))
    assert sorted(np.diff(sorted(np.asarray(local(X))))) == [1, 1, 1]


def check_split() -> None:
    """Holds loops to operations that XLA splits over devices, where one device had native code."""
    op = loops(multiply)
    whole = jnp.arange(4096.0)
    split = jax.device_put(whole, NamedSharding(MESH, P("i")))
    assert "custom_call" in jax.jit(op).lower(whole, whole).as_text()
    program = jax.jit(op).lower(split, split)
    assert "msops_aot" not in program.as_text()
    assert program.compile().output_shardings == split.sharding
    np.testing.assert_array_equal(jax.jit(op)(split, split), whole * whole)


def check_trees() -> None:
    """Trees, keywords and attributes of an op whose calls are divided, and inside shard_map."""

    def scale(inputs, *, factor=1.0):
        calls.append(inputs["x"].shape)
        return {"row": np.float32(factor) * inputs["x"], "sum": inputs["x"].sum(1)}

    def bprop(inputs, factor, out, dout):
        return {"x": factor * dout["row"] + dout["sum"][:, None]}, None

    calls: list[tuple[int, ...]] = []
    op = pyfunc(
        scale,
        out=lambda inputs: {
            "row": inputs["x"],
            "sum": jax.ShapeDtypeStruct(inputs["x"].shape[:1], jnp.float32),
        },
        bprop=bprop,
        sharding="b i -> b i, b",
    )
    x = jnp.arange(24.0).reshape(8, 3)

    def total(x: jax.Array) -> jax.Array:
        results = op(inputs={"x": x}, factor=3.0)
        return (results["row"] * results["sum"][:, None]).sum()

    expected = jax.grad(lambda x: (3 * x * x.sum(1)[:, None]).sum())(x)
    for types in (AxisType.Auto, AxisType.Explicit):
        mesh = jax.make_mesh((4,), ("i",), axis_types=(types,))
        sharded = jax.device_put(x, NamedSharding(mesh, P("i")))
        calls.clear()
        with jax.set_mesh(mesh):
            results = jax.jit(lambda x: op({"x": x}, factor=2.0))(sharded)
            np.testing.assert_allclose(results["row"], 2 * x)
            np.testing.assert_allclose(results["sum"], x.sum(1))
            assert results["sum"].sharding.is_equivalent_to(NamedSharding(mesh, P("i")), 1)
            np.testing.assert_allclose(jax.jit(jax.grad(total))(sharded), expected)
        assert set(calls) == {(2, 3)}
    local = jax.shard_map(
        lambda x: op({"x": x})["sum"], mesh=MESH, in_specs=P("i"), out_specs=P("i")
    )
    np.testing.assert_allclose(jax.jit(local)(x), x.sum(1))


check(aot("Multiply", bprop=multiply_bprop))
print("aot ok")
check(Custom(np.multiply, first, first, bprop=multiply_bprop))
print("pyfunc ok")
check(loops(multiply, "xla"))
check(loops(multiply, "native"))
check_split()
print("loops ok")
check(tbe(lambda te, x, y: te.vmul(x, y)))
print("tbe ok")
check_effects()
print("effects ok")
check_trees()
print("trees ok")
