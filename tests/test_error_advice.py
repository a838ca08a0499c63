"""Errors of the first hour name what was meant, in the words of whoever wrote the call."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT

import msops
from msops.errors import (
    ArgumentTypeError,
    BuildError,
    InferenceError,
    InferenceTypeError,
    KernelError,
    OpInfoError,
)

X = jnp.ones(3)
same = lambda x: x  # noqa: E731

KERNEL = """
#include "custom_aot_extra.h"
extern "C" double defined_elsewhere(double);
extern "C" int CallsInit(int *, int64_t **, const char **, AotExtra *extra) {
  extra->Attr<float>("alpha");
  return 0;
}
extern "C" int Calls(int, void **params, int *, int64_t **, const char **, void *, void *) {
  static_cast<float *>(params[1])[0] = defined_elsewhere(2);
  return 0;
}
extern "C" int ScalesInit(int *, int64_t **, const char **, AotExtra *extra) {
  extra->Attr<float>("alpha");
  return 0;
}
extern "C" int Scales(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  for (int64_t i = 0; i < shapes[0][0]; ++i) {
    static_cast<float *>(params[1])[i] = 2 * static_cast<float *>(params[0])[i];
  }
  return 0;
}
"""


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("undefined.cc").write_text(KERNEL)
    lines = [line for line in KERNEL.splitlines() if "defined_elsewhere" not in line]
    Path("scales.cc").write_text("\n".join(lines))


def scales(**options: Any) -> msops.Custom:
    return msops.cpp("scales.cc:Scales", out=same, **options)


def keyword_only(x: Any, *, n: Any) -> Any:
    return x * n


def wrong(result: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: msops.pyfunc(result, out=same)(X)


CASES: list[tuple[Callable[[], Any], type[Exception], list[str]]] = [
    (
        lambda: msops.cpp("undefined.cc:Calls", out=same)(X),
        BuildError,
        ["undefined symbol: defined_elsewhere", "build=msops.Build(libraries=", "sources="],
    ),
    (
        lambda: msops.cpp(KERNEL, out=same),
        ArgumentTypeError,
        [
            f"got a text of {len(KERNEL.splitlines())} lines",
            'Pass a source itself as msops.source(text, "Symbol")',
        ],
    ),
    (lambda: scales()(X), KernelError, ["this op has none", 'attrs={"alpha": ...}']),
    (
        lambda: scales(attrs={"beta": 1.0})(X),
        KernelError,
        ["no attribute called alpha; this op has beta", 'attrs={"alpha": ...}'],
    ),
    (
        lambda: scales(attrs={"alpha": 1.0})(X, alpha="s"),
        OpInfoError,
        ["expected attribute 'alpha' to be a float", "or give it another default."],
    ),
    (
        lambda: scales(attrs={"alpha": 1.0})(),
        ArgumentTypeError,
        ["Custom 'Scales', called without arrays: ", "0 input(s) and its attributes"],
    ),
    (
        lambda: msops.cpp("scales.cc:Scales", out=lambda x, y: x, attrs={"alpha": 1.0})(X),
        ArgumentTypeError,
        ["out function (x, y) cannot take the call's 2 argument(s), 1 input(s) and"],
    ),
    (
        lambda: scales(attrs={"alpha": 1.0})(X, X),
        ArgumentTypeError,
        ["out function (x) cannot take the call's 3 argument(s), 2 input(s) and"],
    ),
    (
        lambda: msops.pyfunc(keyword_only, out=lambda x, **_: x)(X, 3),
        ArgumentTypeError,
        ["expected at most 1 argument(s) by position (x); got 2", "Pass attributes by name: n=..."],
    ),
    (
        lambda: msops.pyfunc(keyword_only, out=lambda x, **_: x)(X),
        OpInfoError,
        ["the required attribute 'n'", "in the kernel's signature, or by attrs={'n': ...}"],
    ),
    (
        lambda: msops.pyfunc(keyword_only),
        ArgumentTypeError,
        ["pyfunc: expected out", "@msops.pyfunc(out=lambda x: x)"],
    ),
    (
        lambda: msops.cpp("scales.cc:Scales", same),
        ArgumentTypeError,
        ["cpp: expected the kernel alone by position; got 1 more", "as out=..."],
    ),
    (
        lambda: msops.Build(source=["scales.cc"]),
        ArgumentTypeError,
        ["Build: it has no option 'source'", "Did you mean sources=?"],
    ),
    (
        lambda: msops.Build(speed=2),
        ArgumentTypeError,
        ["Build: it has no option 'speed'", "It has sources, include_dirs, defines,"],
    ),
    (
        wrong(lambda x: x.astype(np.float64)),
        InferenceTypeError,
        ["float32 for output 0, as out says; its function returned float64", "or fix out."],
    ),
    (
        wrong(lambda x: np.ones(4, np.float32)),
        InferenceError,
        ["(3,) for output 0, as out says; its function returned (4,)", "or fix out."],
    ),
    (
        lambda: msops.pyfunc(same, out=lambda x: (x, x))(X),
        InferenceError,
        ["expected a tuple of 2 outputs, as out says", "per output, or fix out."],
    ),
    (
        lambda: msops.pyfunc(same, out=lambda x: (x.shape, x.dtype))(X),
        InferenceTypeError,
        ["or a tree of them; got ((3,), dtype('float32'))", "jax.ShapeDtypeStruct(x.shape,"],
    ),
    (
        lambda: msops.pyfunc(same, out=((3,), np.float32)),
        InferenceTypeError,
        ["or a tree of them; got ((3,), <class 'numpy.float32'>)", "Write out=jax.Shape"],
    ),
    (
        lambda: scales(attrs={"alpha": None}),
        OpInfoError,
        ["'alpha' its default or its type in attrs; got None", "attrs={'alpha': float} if"],
    ),
    (
        lambda: msops.ffi("scales.cc:Scales", out=same, attrs={"alpha": None}),
        OpInfoError,
        ["'alpha' its default or its type in attrs; got None"],
    ),
    (
        lambda: msops.pyfunc(keyword_only, out=same, attrs={"n": None}),
        OpInfoError,
        ["'n' its default or its type in attrs; got None"],
    ),
]


@pytest.mark.parametrize(("call", "family", "said"), CASES)
def test_an_error_names_what_was_meant(
    in_folder: None, call: Callable[[], Any], family: type[Exception], said: list[str]
) -> None:
    with pytest.raises(family) as caught:
        jax.block_until_ready(call())
    text = str(caught.value)
    for words in said:
        assert words in text
    assert "op info" not in text or "attrs=" in text


@pytest.mark.parametrize("command", ["ls", "size"])
def test_a_listing_may_be_cut_short(command: str, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    # Nobody reads: as behind `| head` once it has its lines.
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "msops", "cache", command],
        env={**os.environ, "MSOPS_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


SEVEN_ROWS_ON_FOUR_DEVICES = """
import jax, numpy as np, msops
from jax.sharding import AxisType, NamedSharding, PartitionSpec
mesh = jax.make_mesh((4,), ("d",), (AxisType.Auto,))
op = msops.Custom(np.square, lambda x: x, lambda x: x, sharding="i j -> i j")
rows = NamedSharding(mesh, PartitionSpec("d"))
f = jax.jit(lambda x: op(jax.lax.with_sharding_constraint(2 * x, rows)))
x = np.arange(14, dtype=np.float32).reshape(7, 2)
np.testing.assert_array_equal(f(x), (2 * x) ** 2)
"""


def test_a_size_that_the_devices_do_not_divide_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SEVEN_ROWS_ON_FOUR_DEVICES],
        env={
            **os.environ,
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "input 0, dimension 0, is divided over 4 devices, a number that does not divide its size, 7"
        in done.stderr
    )
