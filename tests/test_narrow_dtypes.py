"""float8, and numbers narrower than a byte, in each kind of kernel: held against ml_dtypes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from custom_ops import aicpu, aot, first, loops, multiply, tbe
from quick_cases import one_in

import msops
from msops import ops
from msops.errors import ArgumentTypeError, InferenceTypeError, OpInfoTypeError
from msops.ops import CustomRegOp
from msops.testing import opcheck

pytestmark = pytest.mark.usefixtures("as_users_compile")

FLOATS = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
]
INTEGERS = ["int4", "uint4", "int2", "uint2"]
BITS = {"float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}

SOURCE = r"""
#include <cstdint>
#include <cstring>
extern "C" {
// Looks each code up in a table of what the 256 codes mean, and copies the codes.
int Decode(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *,
           void *) {
  if (nparam != 4 || std::strcmp(dtypes[0], dtypes[3]) != 0) return 1;
  int64_t count = 1;
  for (int axis = 0; axis < ndims[0]; ++axis) count *= shapes[0][axis];
  const uint8_t *codes = static_cast<const uint8_t *>(params[0]);
  const float *meaning = static_cast<const float *>(params[1]);
  for (int64_t i = 0; i < count; ++i) static_cast<float *>(params[2])[i] = meaning[codes[i]];
  std::memcpy(params[3], codes, count);
  return 0;
}
// Reads signed numbers as int8_t, and others as uint8_t.
int Widen(int, void **params, int *, int64_t **shapes, const char **dtypes, void *, void *) {
  for (int64_t i = 0; i < shapes[0][0]; ++i) {
    static_cast<int32_t *>(params[1])[i] = dtypes[0][0] == 'u'
                                               ? static_cast<const uint8_t *>(params[0])[i]
                                               : static_cast<const int8_t *>(params[0])[i];
  }
  return 0;
}
// Writes bytes as they are given.
int Encode(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  for (int64_t i = 0; i < shapes[0][0]; ++i) {
    static_cast<uint8_t *>(params[1])[i] = static_cast<const uint8_t *>(params[0])[i];
  }
  return 0;
}
int Scale(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  for (int64_t i = 0; i < shapes[0][0]; ++i) {
    static_cast<int8_t *>(params[1])[i] = 2 * static_cast<const int8_t *>(params[0])[i];
  }
  return 0;
}
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("narrow") / "narrow.cc"
    path.write_text(SOURCE)
    return path


def all_values(name: str) -> np.ndarray:
    """Returns each value of a dtype, as numpy has it."""
    codes = np.arange(2 ** BITS.get(name, 8), dtype=np.uint8)
    return codes.view(getattr(ml_dtypes, name))


def meanings(name: str) -> np.ndarray:
    """Returns what ml_dtypes reads each byte as; of narrow ones it reads the low bits."""
    return np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(np.float32)


def same(got: Any, expected: np.ndarray) -> None:
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(
        np.asarray(got).astype(np.float32), expected.astype(np.float32), strict=True
    )


def decoder(source: Path) -> msops.Custom:
    floats = lambda x, table: (jax.ShapeDtypeStruct(x.shape, jnp.float32), x)  # noqa: E731
    return msops.cpp(f"{source}:Decode", out=floats)


# Of the dtypes of one width and kind, one at every run.
DECODED = ("float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint2")


@pytest.mark.parametrize(
    "name",
    one_in(
        2,
        [
            pytest.param(name, marks=() if name in DECODED else pytest.mark.slow)
            for name in (*FLOATS, *INTEGERS)
        ],
    ),
)
def test_a_cpp_kernel_gets_each_value_as_ml_dtypes_has_it(source: Path, name: str) -> None:
    op, table, values = decoder(source), meanings(name), all_values(name)
    # An odd count: XLA packs several into a byte.
    for x in (values, values[1:], values[:1].reshape(()), values[:0], values.reshape(2, -1)):
        for call in (op, jax.jit(op)):
            numbers, copy = call(x, table)
            np.testing.assert_array_equal(numbers, x.astype(np.float32))
            same(copy, x)
    batch = np.stack([values[1:], values[:-1], values[1:]], axis=1)
    mapped = jax.vmap(op, in_axes=(1, None), out_axes=1)
    numbers, copy = mapped(batch, table)
    np.testing.assert_array_equal(numbers, batch.astype(np.float32))
    same(copy, batch)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_extended_to_a_byte(source: Path, name: str) -> None:
    op = msops.cpp(f"{source}:Widen", out=lambda x: jax.ShapeDtypeStruct(x.shape, jnp.int32))
    np.testing.assert_array_equal(op(all_values(name)), all_values(name).astype(np.int32))


@pytest.mark.parametrize("name", BITS)
def test_the_low_bits_of_what_a_kernel_writes_count(source: Path, name: str) -> None:
    dtype = getattr(ml_dtypes, name)
    op = msops.cpp(f"{source}:Encode", out=lambda x: jax.ShapeDtypeStruct(x.shape, dtype))
    codes = np.arange(256, dtype=np.uint8)
    same(op(codes), (codes % 2 ** BITS[name]).view(dtype))


@pytest.mark.parametrize(
    "name",
    one_in(
        2,
        [
            pytest.param(name, marks=pytest.mark.slow if name in DECODED else ())
            for name in (*FLOATS, *INTEGERS)
        ],
    ),
)
def test_a_python_function_gets_numpy_arrays_of_ml_dtypes(name: str) -> None:
    values, seen = all_values(name), []
    struct = jax.ShapeDtypeStruct((), values.dtype)

    def look(x, out=None):
        seen.append(x.dtype)
        np.testing.assert_array_equal(x.astype(np.float32), values.astype(np.float32))
        out[0][...] = x[::-1]
        out[1][...] = x[1]

    op = msops.pyfunc(look, out=lambda x: (x, struct))
    for call in (op, jax.jit(op)):
        turned, one = call(values)
        same(turned, values[::-1])
        same(one, values[1])
    assert set(seen) == {values.dtype}
    plain = msops.pyfunc(
        lambda x: x[1:], out=lambda x: jax.ShapeDtypeStruct((len(x) - 1,), x.dtype)
    )
    same(plain(values), values[1:])
    same(
        jax.vmap(plain, in_axes=1)(np.stack([values, values], 1)),
        np.stack([values[1:], values[1:]]),
    )


def test_a_number_that_a_narrow_integer_holds_is_a_result() -> None:
    struct = jax.ShapeDtypeStruct((), jnp.int4)
    assert int(msops.pyfunc(lambda: -8, out=struct)()) == -8
    assert float(msops.pyfunc(lambda: 0.5, out=struct.update(dtype=jnp.float8_e5m2))()) == 0.5
    for value, dtype in ((8, jnp.int4), (-1, jnp.uint4), (0.5, jnp.int4), (1e9, jnp.float8_e5m2)):
        with pytest.raises(InferenceTypeError, match="expected dtype"):
            msops.pyfunc(lambda value=value: value, out=struct.update(dtype=dtype))()


def test_a_result_takes_over_a_packed_input(source: Path) -> None:
    op = msops.Custom(f"{source}:Scale", first, first, inplace={0: 0})
    x = jnp.arange(-4, 3).astype(jnp.int4)
    same(jax.jit(op, donate_argnums=0)(x + 0), np.arange(-8, 5, 2).astype(ml_dtypes.int4))
    same(op(x), np.arange(-8, 5, 2).astype(ml_dtypes.int4))


def test_bprop_gets_and_returns_float8(source: Path) -> None:
    seen = []

    def bprop(x, table, out, dout):
        seen.append([a.dtype for a in (x, out[0], dout[0], dout[1])])
        return dout[0].astype(x.dtype), None

    op = msops.cpp(
        f"{source}:Decode",
        out=lambda x, table: (jax.ShapeDtypeStruct(x.shape, jnp.float32), x),
        bprop=bprop,
    )
    dtype = jnp.float8_e4m3fn
    x = jnp.array([0.5, -2.0, 3.0], dtype)
    slope = jax.grad(lambda x: (op(x, meanings("float8_e4m3fn"))[0] * jnp.arange(3.0)).sum())(x)
    same(slope, np.arange(3).astype(dtype))
    assert seen == [[np.dtype(dtype), np.dtype(np.float32), np.dtype(np.float32), np.dtype(dtype)]]


def test_integers_have_no_gradient_and_do_not_disturb_that_of_others(source: Path) -> None:
    @msops.pyfunc(
        out=lambda w, x: x, bprop=lambda w, x, out, dout: (None, w.astype(x.dtype) * dout)
    )
    def weigh(w, x):
        return w.astype(np.float32) * x

    w, x = jnp.array([-8, 3, 7], jnp.int4), jnp.ones(3)
    np.testing.assert_array_equal(jax.grad(lambda x: weigh(w, x).sum())(x), [-8, 3, 7])
    slope = jax.grad(lambda w: weigh(w, x).sum(), allow_int=True)(w)
    assert slope.dtype == jax.dtypes.float0


def test_scan_export_and_symbolic_sizes(source: Path) -> None:
    op, table = decoder(source), meanings("int4")
    x = all_values("int4").reshape(4, 4)[:, :3]
    _, (numbers, copy) = jax.lax.scan(lambda c, row: (c, op(row, table)), 0, x)
    np.testing.assert_array_equal(numbers, x.astype(np.float32))
    same(copy, x)
    struct = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), jnp.int4)
    exported = jax.export.export(
        jax.jit(lambda x: op(x, table)), disabled_checks=msops.export_checks()
    )(struct)
    for size in (3, 16):
        numbers, copy = exported.call(all_values("int4")[:size])
        np.testing.assert_array_equal(numbers, all_values("int4")[:size].astype(np.float32))
        same(copy, all_values("int4")[:size])


def test_a_kernel_that_wants_packed_elements_takes_bytes(source: Path) -> None:
    op = msops.cpp(f"{source}:Encode", out=lambda x: x)
    x = jnp.asarray(all_values("int4"))

    def packed(x):
        two = jax.lax.bitcast_convert_type(op(pack(x)), jnp.int4)
        return two.reshape(x.shape)

    def pack(x):
        return jax.lax.bitcast_convert_type(x.reshape(-1, 2), jnp.uint8)

    low, high = np.arange(0, 16, 2), np.arange(1, 16, 2)
    np.testing.assert_array_equal(pack(x), low | high << 4)
    same(jax.jit(packed)(x), all_values("int4"))


def test_opcheck_runs_kernels_on_narrow_arrays(source: Path) -> None:
    op = msops.cpp(f"{source}:Decode", out=lambda x, t: (jax.ShapeDtypeStruct(x.shape, t.dtype), x))
    opcheck(op, (all_values("int4")[:7], meanings("int4")))
    opcheck(op, (all_values("float4_e2m1fn")[:7], meanings("float4_e2m1fn")))
    opcheck(op, (all_values("float8_e5m2")[:7], meanings("float8_e5m2")))


CHILD = """
import sys
import jax, jax.numpy as jnp, numpy as np
import msops
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
for dtype in (jnp.int4, jnp.uint2, jnp.float8_e4m3fn, jnp.float4_e2m1fn):
    x = (np.arange(12) % 3).astype(dtype)
    placed = jax.device_put(x, NamedSharding(mesh, P("i")))
    ops = [
        msops.Custom(sys.argv[1] + ":Encode", lambda x: x, lambda x: x, sharding="i -> i"),
        msops.Custom(lambda x: x, lambda x: x, lambda x: x, sharding="i -> i"),
    ]
    for op in ops:
        mapped = jax.shard_map(op, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
        for call in (mapped, jax.jit(mapped), op, jax.jit(op)):
            y = call(placed)
            assert y.dtype == dtype and len(y.sharding.device_set) == 4, y.sharding
            np.testing.assert_array_equal(np.asarray(y).astype(float), x.astype(float))
print("fine")
"""


@pytest.mark.slow
def test_arrays_over_several_devices(source: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(source)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == "fine\n", done.stderr[-4000:]


# ---- op info


def test_op_info_names_narrow_dtypes(source: Path) -> None:
    narrow = ("int4", "DefaultFormat")
    info = CustomRegOp("Encode").input(0, "x").output(0, "y").dtype_format(narrow, narrow)
    op = msops.Custom(f"{source}:Encode", first, first, reg_info=info.target("CPU").get_op_info())
    same(op(all_values("int4")), all_values("int4"))
    with pytest.raises(OpInfoTypeError, match=r"\(uint4\) match no row(.|\n)*\(int4\) -> int4"):
        op(all_values("uint4"))


def test_the_names_that_mindspore_has() -> None:
    """Source: MindSpore 2.7.2, mindspore.common.dtype and its TypeId numbers."""
    assert str(msops.float8_e4m3fn) == "Float8E4M3FN"
    assert repr(msops.float8_e5m2) == "msops.float8_e5m2"
    numbers = [msops.float8_e4m3fn.type_id, msops.float8_e5m2.type_id]
    assert numbers == [46, 47]
    assert msops.float8_e5m2 in msops.common.dtype.float_type
    assert msops.Tensor(np.ones(2, ml_dtypes.float8_e5m2)).dtype == msops.float8_e5m2


def test_a_companion_is_asked_by_type_ids_of_mindspore() -> None:
    op = aot("Nonsense", first, None)
    text = "expected for input 0 a dtype with a TypeId, as NonsenseInferType is asked; got int4"
    with pytest.raises(InferenceTypeError, match=text):
        op(jnp.ones(3, jnp.int4))


# ---- the other kinds

REFUSING = {
    "akg": lambda: loops(multiply),
    "hybrid": lambda: loops(ops.kernel(multiply)),
    "tbe": lambda: tbe(lambda te, x, y: te.vmul(x, y)),
    "aicpu": lambda: aicpu("Mul"),
    "aot": lambda: msops.Custom("aclnnMul", first, first),
}


@pytest.mark.parametrize("name", ["float8_e4m3fn", "int4"])
@pytest.mark.parametrize("kind", REFUSING)
def test_other_kinds_refuse_them(kind: str, name: str) -> None:
    x = all_values(name)[:4]
    with pytest.raises(ArgumentTypeError) as caught:
        REFUSING[kind]()(x, x)
    text = str(caught.value)
    assert f"expected for input 0 a dtype that func_type '{kind}' takes, one of bool," in text
    assert f"got {name}.\nCast by x.astype(jnp." in text
    assert f"which take {name}." in text


def test_other_kinds_refuse_them_as_results() -> None:
    op = aicpu("Mul", first, lambda *_: jnp.int4)
    with pytest.raises(ArgumentTypeError, match="expected for output 0 a dtype that func_type"):
        op(jnp.ones(3), jnp.ones(3))
