"""Ops are pickled by definition: to another process, to another folder, by cloudpickle."""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

import copy
import functools
import multiprocessing
import operator
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import KERNELS, ROOT
from custom_ops import aicpu, aot, first, loops, multiply, multiply_bprop
from quick_cases import in_turn

import msops
from msops import Custom, Tensor, errors, kernel, nn

X = jnp.array([3.0, -2.0])


def numpy_multiply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x * y


@kernel
def hybrid_multiply(x, y):
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        z[i] = x[i] * y[i]
    return z


OPS = {
    "pyfunc": Custom(numpy_multiply, first, first, bprop=multiply_bprop, forward=True),
    "aot": aot("Multiply", bprop=multiply_bprop),
    "aicpu": aicpu("Mul", bprop=multiply_bprop),
    "akg": loops(multiply),
    "akg_native": loops(multiply, "native"),
    "hybrid": hybrid_multiply
    if isinstance(hybrid_multiply, Custom)
    else Custom(hybrid_multiply, func_type="hybrid"),
}
each_op = pytest.mark.parametrize("op", OPS.values(), ids=OPS)


def slope(op: Any) -> Any:
    return jax.grad(lambda x: op(x, X).sum())(X)


@pytest.mark.parametrize(("name", "library"), in_turn(OPS, [pickle, cloudpickle]))
def test_a_pickled_op_is_the_same_op(name: str, library: Any) -> None:
    op = OPS[name]
    back = library.loads(library.dumps(op))
    assert back.name == op.name
    np.testing.assert_array_equal(back(X, X), X * X)
    np.testing.assert_array_equal(slope(back), X)
    if library is pickle:
        assert back == op
    cell = copy.deepcopy({"op": op})
    np.testing.assert_array_equal(cell["op"](X, X), X * X)


IN_ANOTHER_PROCESS = """
import pickle, sys
import jax.numpy as jnp, numpy as np
ops = pickle.loads(sys.stdin.buffer.read())
x = jnp.array([3.0, -2.0])
for name, op in ops.items():
    np.testing.assert_array_equal(op(x, x), x * x)
print(sorted(ops))
"""


def in_another_process(data: bytes, folder: Path) -> str:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        input=data,
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=240,
    )
    return (done.stdout + done.stderr[-3000:]).decode()


def test_ops_travel_to_another_process_and_folder(tmp_path: Path) -> None:
    local = Custom(lambda x, y: x * y, first, first)
    data = cloudpickle.dumps(OPS | {"lambda": local})
    assert in_another_process(data, tmp_path) == f"{sorted([*OPS, 'lambda'])}\n"


@pytest.mark.slow
def test_ops_travel_to_a_process_that_multiprocessing_spawns() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for op in (OPS["pyfunc"], OPS["aot"], OPS["akg"]):
            got = pool.apply(operator.call, (op, X, X))
            np.testing.assert_array_equal(got, X * X)


def test_a_source_that_has_changed_or_gone_travels_as_text(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cc"
    shutil.copy(KERNELS / "float_ops.cc", source)
    data = pickle.dumps(Custom(f"{source}:Multiply", first, first))
    source.write_text("#error another kernel\n")
    np.testing.assert_array_equal(pickle.loads(data)(X, X), X * X)
    source.unlink()
    np.testing.assert_array_equal(pickle.loads(data)(X, X), X * X)


def test_a_library_is_found_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "mine.so"
    include = ["-I", msops.get_include(), "-I", str(KERNELS)]
    source = str(KERNELS / "float_ops.cc")
    subprocess.run(["g++", "-shared", "-fPIC", *include, "-o", built, source], check=True)
    data = pickle.dumps(Custom(f"{built}:Multiply", first, first))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    built.rename(elsewhere / "other.so")
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))  # which no earlier run filled
    with pytest.raises(errors.BuildError, match=r"(?s)library .*mine\.so.*set MSOPS_LIBRARY_PATH"):
        pickle.loads(data)
    monkeypatch.setenv("MSOPS_LIBRARY_PATH", str(elsewhere))
    np.testing.assert_array_equal(pickle.loads(data)(X, X), X * X)


@pytest.mark.parametrize(
    ("what", "options"),
    [
        ("its kernel is", {"func": lambda x, y: x * y}),
        ("its bprop is", {"bprop": lambda x, y, out, dout: (dout, dout)}),
        ("its jvp is", {"jvp": lambda primals, tangents, out: out}),
        ("its jvp is", {"jvp": functools.partial(lambda n, primals, tangents, out: out, 1)}),
        ("its out_shape is", {"out_shape": lambda x, y: x}),
        ("its vmap is", {"vmap": lambda size, flags, x, y: (x, True)}),
    ],
)
def test_what_cannot_travel_is_named(what: str, options: dict[str, Any]) -> None:
    given = {"func": numpy_multiply, "out_shape": first, "out_dtype": first} | options
    with pytest.raises(errors.ArgumentTypeError, match=rf"cannot be pickled: {what} .*<lambda>"):
        pickle.dumps(Custom(**given))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.op = OPS["pyfunc"]

    def construct(self, x: Any) -> Any:
        return self.op(x, x)


def test_an_added_attribute_and_a_rule_travel() -> None:
    op = Custom(numpy_multiply, first, first).add_prim_attr("axis", 1)
    op.def_jvp(tangent_of_product)
    back = pickle.loads(pickle.dumps(op))
    assert back == op
    np.testing.assert_array_equal(slope(back), X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(Net()))(Tensor(X)).asnumpy(), X * X)


def tangent_of_product(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return x * y, x * dy + dx * y
