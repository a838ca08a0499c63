"""`msops.kernel_errors`: one class for the errors of kernels, whoever runs the program."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import first
from extension_modules import extension

import msops
from msops import Custom
from msops.errors import InferenceValueError, KernelError

X = jnp.ones(3)
REFUSES_NEGATIVE = """
#include <cstdint>
extern "C" int Positive(int, void **params, int *, int64_t **shapes, const char **, void *,
                        void *) {
  const float *x = static_cast<float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  for (int64_t i = 0; i < shapes[0][0]; ++i) y[i] = x[i];
  return x[0] < 0 ? 7 : 0;
}
"""


def positive(x: Any) -> Any:
    if (x < 0).any():
        raise LookupError("a negative element")
    return x


CALLS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "by itself": lambda op: op,
    "jit": jax.jit,
    "jit of several": lambda op: jax.jit(lambda x: op(x + 0) * 2),
    "vmap": lambda op: lambda x: jax.vmap(op)(x[None]),
    "jit of vmap": lambda op: jax.jit(lambda x: jax.vmap(op)(x[None])),
    "scan": lambda op: lambda x: jax.lax.scan(lambda c, _: (op(c), None), x, None, length=2)[0],
    "compiled ahead": lambda op: jax.jit(lambda x: op(x)).lower(X).compile(),
}


def failures(call: Callable[[Any], Any], first_successes: int) -> list[Exception]:
    """Returns the errors of a call that fails after some successes, twice on lazy inputs.

    JAX takes another way through its code, and another class, if the first call of all succeeded.
    """
    negative, found = jax.block_until_ready(-X), []
    for successes in (first_successes, 2, 1):
        for x in (*[X] * successes, negative, -X):
            try:
                with msops.kernel_errors():
                    jax.block_until_ready(call(x))
            except Exception as error:
                found.append(error)
    return found


@pytest.mark.parametrize("first_successes", [0, 2])
@pytest.mark.parametrize("attrs", [None, {"lower": "callback"}])
@pytest.mark.parametrize("way", CALLS)
def test_python_functions(way: str, attrs: Any, first_successes: int) -> None:
    op = Custom(positive, first, first, compile_attrs=attrs)
    found = failures(CALLS[way](op), first_successes)
    assert len(found) == 6
    for error in found:
        assert isinstance(error, KernelError)
        assert isinstance(error, LookupError)
        assert str(error).startswith("Custom 'positive' on CPU: its function raised LookupError")
        assert isinstance(error.__cause__, LookupError)


class Coded(Exception):
    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


@pytest.mark.parametrize(
    "raised",
    [
        KeyError("row"),
        Coded(3, "row"),
        OSError(2, "row"),
        StopIteration("row"),
        UnicodeDecodeError("utf-8", b"row", 0, 1, "row"),
    ],
    ids=lambda raised: type(raised).__name__,
)
def test_an_error_is_of_the_class_that_the_function_raised(raised: Exception) -> None:
    def fail(x: Any) -> Any:
        raise raised

    with pytest.raises(KernelError, match=r"^Custom 'fail' on CPU: .*row") as caught:
        jax.block_until_ready(Custom(fail, first, first)(X))
    assert isinstance(caught.value, type(raised))
    assert caught.value.__cause__ is raised
    assert getattr(caught.value, "code", 3) == 3
    travelled = pickle.loads(pickle.dumps(caught.value))
    assert type(travelled) is KernelError
    assert str(travelled) == str(caught.value)


@pytest.mark.parametrize("first_successes", [0, 2])
@pytest.mark.parametrize("way", CALLS)
def test_other_kernels(way: str, first_successes: int, tmp_path: Path) -> None:
    source = tmp_path / "positive.cc"
    source.write_text(REFUSES_NEGATIVE)
    found = failures(CALLS[way](Custom(f"{source}:Positive", first, first)), first_successes)
    assert [type(error) for error in found] == [KernelError] * 6
    assert all("kernel returned 7" in str(error) for error in found)


@pytest.mark.slow
def test_extensions() -> None:
    fail = extension("runners").fail
    for call in (fail, jax.jit(fail)):
        with pytest.raises(KernelError, match=r"^Runner 'Fail'"), msops.kernel_errors():
            jax.block_until_ready(call(X))


def test_results_that_are_not_what_the_op_declares() -> None:
    op = jax.jit(Custom(lambda x: x if x[0] > 0 else x[1:], first, first))
    found = failures(op, 2)
    assert [type(error) for error in found] == [InferenceValueError] * 6


def test_as_a_decorator() -> None:
    compiled = jax.jit(Custom(positive, first, first))

    @msops.kernel_errors()
    def step(x: Any) -> Any:
        return jax.block_until_ready(compiled(x))

    np.testing.assert_array_equal(step(X), X)
    for _ in range(2):
        with pytest.raises(KernelError, match="a negative element"):
            step(-X)


def test_other_errors_are_left_alone() -> None:
    wrong = ValueError("not of a kernel")
    with pytest.raises(ValueError, match="not of a kernel") as caught, msops.kernel_errors():
        raise wrong
    assert caught.value is wrong
    own = KernelError("Custom 'f' on CPU: its own.")
    with pytest.raises(KernelError) as caught, msops.kernel_errors():
        raise own
    assert caught.value is own


def test_an_interruption_is_one() -> None:
    def interrupted(x: Any) -> Any:
        raise KeyboardInterrupt

    op = jax.jit(Custom(interrupted, first, first))
    with pytest.raises(KeyboardInterrupt), msops.kernel_errors():
        jax.block_until_ready(op(X))
