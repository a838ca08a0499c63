"""What breaks in extension modules: every case is an error that says why, or the right answer."""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT
from extension_modules import extension

import msops as ms
from msops.errors import (
    ArgumentValueError,
    BackendError,
    GradientRuntimeError,
    KernelError,
    MsopsError,
)

X = jnp.array([1.0, 2.0, 3.0], jnp.float32)
# Python 3.11.2 loses a text that is not UTF-8, 3.11.7 does not.
NO_UTF8 = ":\n  no \ufffd text, caf\u00e9\n" if sys.version_info >= (3, 11, 7) else "not UTF-8"


@pytest.fixture(scope="module")
def ops():
    return extension("hostile")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda o: o.scaled(X), "incompatible function arguments"),
        (lambda o: o.scaled(X, 2, 1.0, "n", 5), "incompatible function arguments"),
        (lambda o: o.scaled(X, 2, 1.0, None), "incompatible function arguments"),
        (lambda o: o.scaled(X, 2.5, 1.0, "n"), "incompatible function arguments"),
        (lambda o: o.scaled(X, 2**40, 1.0, "n"), "incompatible function arguments"),
        (lambda o: o.scaled(X, 2, "one", "n"), "incompatible function arguments"),
        (lambda o: o.scaled(X, 2, 1.0, mode="n"), "incompatible function arguments"),
        (lambda o: o.scaled(None, 2, 1.0, "n"), "incompatible function arguments"),
        (lambda o: o.scaled([1.0], 2, 1.0, "n"), "incompatible function arguments"),
        (lambda o: o.same(object()), "incompatible function arguments"),
        (lambda o: o.same(), "incompatible function arguments"),
        (lambda o: o.count([X, None]), "incompatible function arguments"),
        (lambda o: o.count([X, "x"]), "incompatible function arguments"),
        (lambda o: o.count([X, [X]]), "incompatible function arguments"),
    ],
)
def test_arguments_of_the_wrong_number_or_kind(ops, call, text):
    with pytest.raises(TypeError, match=text):
        call(ops)


def test_lists_of_tensors(ops):
    assert ops.count([X, ms.Tensor([1.0]), np.ones(2, np.float32)]) == 3
    assert ops.count([]) == 0
    assert ops.count((X, X)) == 2
    assert ops.count_pointers([X, None, X]) == 2
    # One object stays one object, whichever face it came through.
    tensor = ms.Tensor([1.0])
    assert ops.same(tensor) is tensor


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        ("runtime", RuntimeError, "a runtime error"),
        ("bytes", KernelError, f"'throw': threw an exception, .*{NO_UTF8}"),
        ("range", IndexError, "an index out of range"),
        ("argument", ValueError, "an invalid argument"),
        ("memory", MemoryError, "bad_alloc"),
        ("own", LookupError, "an error of its own"),
        ("unknown", RuntimeError, "unknown exception"),
        ("silent", RuntimeError, "^Silent: no text"),
        ("nested", RuntimeError, "holds a silent one"),
        ("number", RuntimeError, "unknown exception"),
        ("python", ModuleNotFoundError, "no_such_module"),
    ],
)
def test_exceptions_of_a_function(ops, what, kind, text):
    with pytest.raises(kind, match=text):
        ops.throw(what)


KERNEL_ERRORS = {
    "runtime": "a runtime error",
    "bytes": "no \ufffd text, caf\u00e9",
    "memory": "bad_alloc",
    "own": "an error of its own",
    "unknown": "no std::exception",
    "silent": "an exception without a text",
    "python": "no_such_module",
    "workspace": "no memory for a workspace of 1152921504606846976 bytes",
    "itself": "runs its own runner again|outside a call of one of its functions",
    "input": "serves the kernel only",
}


@pytest.mark.parametrize("what", KERNEL_ERRORS)
def test_exceptions_of_a_kernel(ops, what):
    """Eagerly and in a program; the next launch finds everything in order."""
    with pytest.raises(KernelError, match=f"Runner 'Odd'.*\n.*({KERNEL_ERRORS[what]})"):
        ops.odd(X, what)
    compiled = jax.jit(lambda x: ops.odd(x, what))
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match=KERNEL_ERRORS[what]):
            compiled(X).block_until_ready()
    np.testing.assert_array_equal(ops.odd(X, ""), X + 1)


@pytest.mark.parametrize("what", ["new", "ones", "operator", "launch", "another"])
def test_a_kernel_that_works_on_tensors(ops, what):
    """Eagerly it may; a program runs without the call whose tensors they would be."""
    np.testing.assert_array_equal(ops.odd(X, what), X + 1)
    np.testing.assert_array_equal(ops.odd(ms.Tensor(X), what).asnumpy(), X + 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="outside a call of one of its functions"):
        jax.jit(lambda x: ops.odd(x, what))(X).block_until_ready()


def test_many_threads_throw(ops):
    compiled = jax.jit(lambda x: ops.odd(x, "python"))
    seen = []

    def work():
        for call in (lambda: ops.odd(X, "operator"), lambda: compiled(X).block_until_ready()):
            try:
                seen.append(call().tolist())
            except jax.errors.JaxRuntimeError as error:
                seen.append("no_such_module" in str(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen.count(True) == 8
    assert seen.count([2.0, 3.0, 4.0]) == 8


def test_one_runner_object_for_all_calls(ops):
    """Run prepares a call while programs launch the same object."""
    compiled = [jax.jit(lambda x, n=n: ops.shared(x + n)) for n in range(4)]
    wrong = []

    def work(function, n):
        for _ in range(20):
            if (function(X) != X + n + 1).any() or (ops.shared(X) != X + 1).any():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(f, n)) for n, f in enumerate(compiled)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def sine_of_sine(x, depth):
    for _ in range(depth + 1):
        x = jnp.sin(x)
    return x


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_functions_in_functions(ops, depth):
    np.testing.assert_allclose(ops.nested(X, depth), sine_of_sine(X, depth), rtol=1e-6)
    expected = jax.grad(lambda x: (sine_of_sine(x, depth) * X).sum())(X)
    for compile in (lambda f: f, jax.jit):
        gradient = compile(jax.grad(lambda x: (ops.nested(x, depth) * X).sum()))(X)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        ("null output", RuntimeError, r"Bad\]: Forward returned a null tensor"),
        ("dirty null", RuntimeError, r"Bad\]: an input given to MarkDirty is not an output"),
        ("forward throws", RuntimeError, "unknown exception"),
    ],
)
def test_a_forward_that_does_wrong(ops, what, kind, text):
    for call in (ops.bad, jax.jit(ops.bad, static_argnums=1)):
        with pytest.raises(kind, match=text):
            call(X, what)


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        ("no gradients", GradientRuntimeError, "incorrect number of gradients .expected 2, got 0"),
        ("backward throws", IndexError, "in backward"),
        ("unknown thrown", RuntimeError, "unknown exception"),
        ("wrong type", TypeError, "GetValue: the value wrong type is not of the type"),
        ("no such name", ArgumentValueError, "msops has no aclnn operator 'aclnnNothing'"),
    ],
)
def test_a_backward_that_does_wrong(ops, what, kind, text):
    for compile in (lambda f: f, jax.jit):
        with pytest.raises(kind, match=text):
            compile(jax.grad(lambda x: ops.bad(x, what)[0].sum()))(X)
    np.testing.assert_array_equal(ops.bad(X, what)[0], X * X)


def test_a_gradient_of_another_dtype_is_converted(ops):
    found = jax.grad(lambda x: (0.5 * x * ops.bad(x, "wrong dtype")[0]).sum())(X)
    inside = (0.5 * X).astype(np.int32).astype(np.float32)
    np.testing.assert_array_equal(found, 0.5 * X * X + inside)


def test_tensors_that_are_undefined_or_too_large(ops):
    with pytest.raises(RuntimeError, match="the tensor is undefined"):
        ops.undefined_output(X)
    for shape in ([-1], [2**62, 4], [2**31, 2**31, 2**31]):
        with pytest.raises(MsopsError, match="extents of 0 or more"):
            ops.huge(shape)
    with pytest.raises(BackendError, match="no memory for 4,503,599,627,370,496 bytes"):
        ops.huge([2**50])


def test_a_program_outlives_its_module():
    compiled = jax.jit(functools.partial(extension("hostile").odd, what=""))
    compiled(X)
    extension.cache_clear()
    gc.collect()
    np.testing.assert_array_equal(compiled(X + 1), X + 2)


FORK = """
import os, sys
sys.path[:0] = {path!r}
import warnings
warnings.simplefilter("ignore")
from extension_modules import extension
ops = extension("hostile")
child = os.fork()
if child == 0:
    import numpy as np
    x = np.ones(3, np.float32)
    ok = ops.odd(x, "").tolist() == [2.0, 2.0, 2.0]
    os._exit(0 if ok else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_before_jax_started():
    script = FORK.format(path=[str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.stdout == "0\n", done.stderr
