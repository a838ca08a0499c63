"""`msops.ffi`: handlers of XLA's FFI, which people wrote for `jax.ffi.ffi_call`, as ops."""

from __future__ import annotations

import ctypes
import pickle
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import msops
from msops import errors
from msops.testing import opcheck

SOURCE = r"""
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Normalise(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (eps < 0) return ffi::Error::InvalidArgument("eps is " + std::to_string(eps));
  if (eps > 1000) throw std::runtime_error("eps is absurd");
  const auto dims = x.dimensions();
  const int64_t width = dims.size() ? dims.back() : 1;
  const int64_t rows = width ? static_cast<int64_t>(x.element_count()) / width : 0;
  for (int64_t i = 0; i < rows; ++i) {
    const float* const a = x.typed_data() + i * width;
    float sum = 0;
    for (int64_t j = 0; j < width; ++j) sum += a[j] * a[j];
    for (int64_t j = 0; j < width; ++j)
      y->typed_data()[i * width + j] = a[j] / std::sqrt(sum / width + eps);
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Normalise_, Normalise,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

static ffi::Error Echo(bool flag, int64_t whole, double real, std::string_view text,
                       ffi::Span<const int32_t> list, ffi::ResultBuffer<ffi::F64> y) {
  const double values[] = {double(flag), double(whole), real, double(text.size()),
                           std::accumulate(list.begin(), list.end(), 0.0)};
  std::copy(values, values + 5, y->typed_data());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Echo_, Echo,
                              ffi::Ffi::Bind()
                                  .Attr<bool>("flag")
                                  .Attr<int64_t>("whole")
                                  .Attr<double>("real")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int32_t>>("list")
                                  .Ret<ffi::Buffer<ffi::F64>>());

static ffi::Error Count(ffi::Buffer<ffi::F32>, ffi::ResultBuffer<ffi::F32> y) {
  static int runs = 0;
  *y->typed_data() = ++runs;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Count_, Count, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

static ffi::Future Later(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  std::copy(x.typed_data(), x.typed_data() + x.element_count(), y->typed_data());
  ffi::Promise promise;
  promise.SetAvailable();
  return ffi::Future(promise);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Later_, Later, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""
X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
EPS = np.float32(0.5)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("handlers") / "normalise.cc"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def library(source: Path) -> Path:
    """A library that somebody else built."""
    path = source.with_name("libnormalise.so")
    headers = ("-isystem", jax.ffi.include_dir())
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", *headers, str(source), "-o", str(path)],
        check=True,
    )
    return path


def like(x: Any) -> Any:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def expected(x: Any, eps: float = 0.5) -> Any:
    return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)


def normaliser(path: Path, **options: Any) -> Any:
    return msops.ffi(f"{path}:Normalise_", out=like, attrs={"eps": EPS}, **options)


@pytest.mark.parametrize("file", ["source", "library"])
def test_eager_jit_vmap_and_scan(file: str, request: pytest.FixtureRequest) -> None:
    op = normaliser(request.getfixturevalue(file))
    np.testing.assert_allclose(op(X), expected(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(op)(X), expected(X), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(op)(X), expected(X), rtol=1e-6)
    _, rows = jax.lax.scan(lambda c, x: (c, op(x)), 0, X)
    np.testing.assert_allclose(rows, expected(X), rtol=1e-6)
    assert op(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_custom_keeps_the_dtypes_of_attributes(source: Path) -> None:
    op = msops.Custom(f"{source}:Normalise_", func_type="ffi", out=like, attrs={"eps": EPS})
    np.testing.assert_allclose(op(X), expected(X), rtol=1e-6)
    np.testing.assert_allclose(op(X, eps=1.0), expected(X, 1.0), rtol=1e-6)
    assert jax.jit(op)(X).dtype == np.float32


def test_it_agrees_with_ffi_call(library: Path) -> None:
    handler = ctypes.CDLL(str(library)).Normalise_
    jax.ffi.register_ffi_target("test_normalise", jax.ffi.pycapsule(handler), platform="cpu")
    by_jax = jax.ffi.ffi_call("test_normalise", like(X))(X, eps=EPS)
    np.testing.assert_array_equal(normaliser(library)(X), by_jax)


def test_an_attribute_of_a_call_has_the_dtype_of_its_default(library: Path) -> None:
    op = normaliser(library)
    np.testing.assert_allclose(op(X, eps=2), expected(X, 2), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda x: op(x, eps=0.1))(X), expected(X, 0.1), rtol=1e-6)


def test_ops_with_other_dtypes_of_an_attribute_share_no_program(library: Path) -> None:
    right, wrong = (
        msops.ffi(f"{library}:Normalise_", out=like, attrs={"eps": kind(0.5)})
        for kind in (np.float32, np.float64)
    )
    assert right != wrong
    np.testing.assert_allclose(right(X), expected(X), rtol=1e-6)
    with pytest.raises(errors.KernelError, match="expected F32 but got F64"):
        wrong(X)


def test_an_attribute_without_a_default(library: Path) -> None:
    op = msops.ffi(f"{library}:Normalise_", out=like, attrs={"eps": np.float32})
    np.testing.assert_allclose(op(X, eps=2), expected(X, 2), rtol=1e-6)
    with pytest.raises(errors.OpInfoValueError, match="eps"):
        op(X)


def test_attributes_of_each_kind(library: Path) -> None:
    op = msops.ffi(
        f"{library}:Echo_",
        out=jax.ShapeDtypeStruct((5,), np.float64),
        attrs={
            "flag": True,
            "whole": 2**40,
            "real": 0.1,
            "text": "four",
            "list": np.array([1, 2], np.int32),
        },
    )
    with jax.enable_x64(True):
        np.testing.assert_array_equal(op(), [1, 2.0**40, 0.1, 4, 3])
        np.testing.assert_array_equal(op(flag=False, list=[5, 6, 7]), [0, 2.0**40, 0.1, 4, 18])
        with pytest.raises(errors.ArgumentValueError, match=r"'list' a value of dtype int32"):
            op(list=[2**40])


def test_gradient_by_bprop(library: Path) -> None:
    def bprop(x: Any, out: Any, dout: Any) -> Any:
        return (jax.vjp(expected, x)[1](dout)[0],)

    op = normaliser(library, bprop=bprop)
    found = jax.grad(lambda x: (op(x) ** 3).sum())(X)
    np.testing.assert_allclose(found, jax.grad(lambda x: (expected(x) ** 3).sum())(X), rtol=1e-5)


def test_opcheck(library: Path) -> None:
    report = opcheck(normaliser(library), X)
    assert report.ok
    for check in ("own symbols", "vmap", "memory bounds", "two threads", "sizes", "refusals"):
        assert report[check].verdict == "passed", report


def test_opcheck_hands_over_attributes_of_all_types(library: Path) -> None:
    attrs = {"flag": True, "whole": 7, "real": 0.5, "text": "four", "list": np.int32([1, 2])}
    with jax.enable_x64(True):
        five = jax.ShapeDtypeStruct((5,), np.float64)
        report = opcheck(msops.ffi(f"{library}:Echo_", out=five, attrs=attrs), X)
    assert report["repeatable"].verdict == report["sizes"].verdict == "passed", report


def test_opcheck_of_a_handler_that_only_xla_can_call(library: Path) -> None:
    report = opcheck(msops.ffi(f"{library}:Later_", out=like), X)
    assert report.ok, report
    for check in ("memory bounds", "sizes", "refusals"):
        assert "a handler" in report[check].summary, report


@pytest.mark.parametrize("stateful", [True, "ordered"])
def test_stateful_calls_run_once_each(library: Path, stateful: Any) -> None:
    one = jax.ShapeDtypeStruct((), np.float32)
    op = msops.ffi(f"{library}:Count_", out=one, stateful=stateful)
    before = op(X)
    jax.block_until_ready(jax.jit(lambda x: (op(x), op(x), x)[2])(X))
    jax.effects_barrier()
    assert op(X) - before == 3


def test_under_shard_map(library: Path) -> None:
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    op = normaliser(library, sharding="b i -> b i")
    spread = jax.shard_map(op, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    np.testing.assert_allclose(spread(X), expected(X), rtol=1e-6)


def test_export_and_pickle(library: Path) -> None:
    op = normaliser(library)
    exported = jax.export.export(jax.jit(op), disabled_checks=msops.export_checks())(X)
    np.testing.assert_allclose(
        jax.export.deserialize(exported.serialize()).call(X), expected(X), rtol=1e-6
    )
    again = pickle.loads(pickle.dumps(op))
    np.testing.assert_array_equal(again(X, eps=2), op(X, eps=2))


@pytest.mark.parametrize(
    ("default", "text"),
    [
        (["x"], r"got \('x',\)"),
        ([True], r"got \(True,\)"),
        (np.array([True]), r"got \(True,\)"),
        (np.float16(1), "got float16"),
        (np.array([1], np.float16), "got float16"),
        (np.array([1, 2], object), "got object"),
        (np.number, "got number"),
        (np.uint64(2**63), "got 9223372036854775808"),
        (np.array([2**64 - 1], np.uint64), "got 18446744073709551615"),
    ],
)
def test_attributes_that_no_handler_can_read(library: Path, default: Any, text: str) -> None:
    with pytest.raises(errors.ArgumentValueError, match=text):
        msops.ffi(f"{library}:Normalise_", out=like, attrs={"eps": default})(X)


def test_a_number_beyond_the_range_of_its_dtype(library: Path) -> None:
    op = normaliser(library)
    with pytest.raises(errors.ArgumentValueError, match=r"dtype float32; got 1e\+300"):
        op(X, eps=1e300)
    assert np.isnan(op(X, eps=np.nan)).all()


@pytest.mark.parametrize("wrap", [lambda op: op, jax.jit])
@pytest.mark.parametrize(
    ("eps", "dtype", "text"),
    [
        (-1.0, np.float32, "eps is -1.0"),
        (2000.0, np.float32, "std::runtime_error: eps is absurd"),
        (0.5, np.int32, "the handler failed"),
    ],
)
def test_failures_name_the_op(library: Path, wrap: Any, eps: float, dtype: Any, text: str) -> None:
    op = normaliser(library)
    call = wrap(lambda x: op(x, eps=eps))
    with pytest.raises(errors.KernelError) as raised, msops.kernel_errors():
        jax.block_until_ready(call(X.astype(dtype)))
    assert "Custom 'Normalise_' on CPU: the handler" in str(raised.value)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (
            lambda p: msops.ffi("Normalise_", out=like),
            errors.ArgumentValueError,
            "the library, too",
        ),
        (lambda p: msops.ffi(p, out=like), errors.ArgumentTypeError, "with a colon between"),
        (lambda p: msops.ffi(f"{p}:Normalise_"), errors.ArgumentTypeError, "Pass out="),
        (lambda p: msops.ffi(print, out=like), errors.ArgumentTypeError, "its __file__"),
        (
            lambda p: msops.ffi(f"{p}:Nothing", out=like)(X),
            errors.BuildError,
            r"(?s)no function Nothing, but does export:\n.*  Normalise_\n.*Name a handler: XLA_FFI",
        ),
        (
            lambda p: msops.ffi(f"{p}:Normalise", out=like)(X),
            errors.BuildError,
            r"no function Normalise, but does export:\n  Normalise_\nName one of these",
        ),
        (lambda p: normaliser(p)(X, scale=2.0), errors.ArgumentTypeError, "unknown .* 'scale'"),
        (lambda p: msops.ffi(f"{p}:A", like), errors.ArgumentTypeError, "alone by position"),
    ],
)
def test_wrong_use(library: Path, make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make(library)
