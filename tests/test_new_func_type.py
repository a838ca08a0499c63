"""A func_type is a folder and a row: one that is added here works in every way that others do."""

from __future__ import annotations

import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops
from msops import _backends as backends
from msops.errors import ArgumentTypeError, ArgumentValueError

EXPRESSION = '''
"""expression: a text over the array x, computed by numpy."""

import dataclasses

import numpy as np

from msops import _jax_seam as seam
from msops._calls.host_function import HostFunction
from msops._calls.opaque import OpaqueBackend
from msops._calls.python_call import PythonCall
from msops.errors import ArgumentTypeError, explain


@dataclasses.dataclass(frozen=True)
class Expression:
    text: str

    def __call__(self, x):
        return eval(self.text, {"np": np}, {"x": x})


class ExpressionBackend(OpaqueBackend):
    func_type = "expression"
    platforms = seam.PLATFORMS
    own_options = ("stateful",)
    may_have_no_outputs = False
    runs_on_host = True

    def read(self, func, options, who):
        if not isinstance(func, str):
            raise ArgumentTypeError(explain(who, "expected a text", "Pass 'x + 1'."))
        return Expression(func)

    def resolve(self, source, options, who):
        return source

    def infer(self, kernel, half, request, infos, who):
        (x,) = request.inputs
        return x.shape if half == "shape" else x.dtype

    def call(self, kernel, request):
        function = HostFunction(kernel, kernel, request)
        return PythonCall(request.op, function, request.aliases(), request)

    def division(self, kernel, request):
        return "parts" if request.platform == "cpu" else "whole"


def make_backend(func_type):
    return ExpressionBackend()
'''

X = jnp.array([1.0, 2.0, 4.0])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds the func_type "expression" for the time of a test."""
    (tmp_path / "expressions").mkdir()
    (tmp_path / "expressions" / "__init__.py").touch()
    (tmp_path / "expressions" / "backend.py").write_text(inspect.cleandoc(EXPRESSION))
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    monkeypatch.setitem(backends.BACKENDS, "expression", "expressions.backend")


def square() -> msops.Custom:
    return msops.Custom("x * x", func_type="expression", bprop=lambda x, out, dout: (2 * x * dout,))


@pytest.mark.usefixtures("folder")
def test_a_func_type_of_a_folder_and_a_row_runs_eagerly_and_under_every_transformation() -> None:
    op = square()
    np.testing.assert_array_equal(op(X), [1, 4, 16])
    np.testing.assert_array_equal(jax.jit(op)(X), [1, 4, 16])
    np.testing.assert_array_equal(jax.grad(lambda x: op(x).sum())(X), [2, 4, 8])
    np.testing.assert_array_equal(jax.vmap(op)(jnp.stack([X, -X])), [[1, 4, 16]] * 2)
    np.testing.assert_array_equal(op(msops.Tensor([3.0])).asnumpy(), [9])


@pytest.mark.usefixtures("folder")
def test_its_facts_are_those_of_its_backend() -> None:
    assert square().explain(X).startswith("Custom 'x * x' on CPU: the kernel runs as it is")
    with pytest.raises(ArgumentTypeError, match="expected a text"):
        msops.Custom(len, func_type="expression")
    with pytest.raises(ArgumentValueError, match=r"'aot' or 'ffi'; this op is 'expression'"):
        msops.Custom("x", func_type="expression", host=True)
    said = "stateful is for func_type 'aicpu' or 'aot' or 'ffi' or 'pyfunc' or 'expression'; this"
    with pytest.raises(ArgumentValueError, match=said):
        msops.Custom(lambda x: x, func_type="akg", stateful=True)


@pytest.mark.usefixtures("folder")
def test_errors_list_it() -> None:
    with pytest.raises(ArgumentValueError, match="'aot', 'expression', 'ffi', 'hybrid'"):
        msops.Custom("x", func_type="expresion")
