"""A kernel's source is found, is its own, and its language is recognised."""

from __future__ import annotations

import doctest
import functools
import os
import pty
import select
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from loop_source import define, read, run

from msops import Custom
from msops.errors import ArgumentValueError


def decorated(func: Any) -> Any:
    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        raise AssertionError("the kernel is compiled, not called")

    return wrapper


@decorated
@decorated
def twice(
    a,  # a comment, and a signature of several lines
):
    for i in range(len(a)):
        a[i] = 2.0 * a[i]
    return a


def same(a):
    for i in range(len(a)):
        a[i] = 1.0
    return a


first_same = same


def same(a):
    for i in range(len(a)):
        a[i] = 2.0
    return a


def test_decorators_are_dropped() -> None:
    assert run(twice, np.float32([1, 2])).tolist() == [2, 4]
    assert read(twice).name == "twice"
    assert read(twice).parameters == ("a",)


def test_of_two_definitions_each_function_has_its_own() -> None:
    assert run(first_same, np.float32([0])).tolist() == [1]
    assert run(same, np.float32([0])).tolist() == [2]


def test_kernels_may_be_nested_and_methods_of_none() -> None:
    class Holder:
        @staticmethod
        def k(a):
            a[0] = 5.0
            return a

    assert run(Holder.k, np.float32([1])).tolist() == [5]


def test_an_assert_that_pytest_rewrote_is_read() -> None:
    def k(a):
        assert len(a) == 1, "one"
        a[0] = 5.0
        return a

    assert run(k, np.float32([1])).tolist() == [5]


def test_doctests_work() -> None:
    text = """
    >>> def k(a):
    ...     a[0] = 7.0
    ...     return a
    >>> run(k, np.float32([1])).tolist()
    [7.0]
    """
    test = doctest.DocTestParser().get_doctest(text, {"run": run, "np": np}, "name", None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(test).failed == 0


class FakeReadline(types.ModuleType):
    """A session's history."""

    def __init__(self, lines: list[str]):
        super().__init__("readline")
        self.lines = lines

    def get_current_history_length(self) -> int:
        return len(self.lines)

    def get_history_item(self, index: int) -> str:
        return self.lines[index - 1]


def session(text: str) -> Any:
    """Returns the function `k` as an interactive session defines it."""
    scope: dict[str, Any] = {}
    exec(compile(text, "<stdin>", "exec"), scope)
    return scope["k"]


K1 = ["def k(a):", "    a[0] = 1.0", "    return a"]
K2 = ["def k(a):", "    a[0] = 2.0", "    return a"]


def test_history_gives_the_definition_with_the_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    indented = ["if True:", *(f"  {line}" for line in K2)]
    history = ["import msops", *indented, "k(1)", "@decorated", *K1, "k = k", "def kk(a):"]
    monkeypatch.setitem(sys.modules, "readline", FakeReadline(history))
    for lines, value in ((K1, 1), (K2, 2)):
        func = session("\n".join(lines))
        assert run(func, np.float32([0])).tolist() == [value]
    assert read(session("\n".join(K2))).location.file == "<stdin>"


def test_history_without_it_is_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "readline", FakeReadline(K1))
    with pytest.raises(ArgumentValueError, match="source of the function cannot be read"):
        Custom(session("\n".join(K2)), func_type="akg")


def test_constants_of_other_types_are_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        f"def k(a):\n    a[0] = {v}\n    return a" for v in ("1", "1.0", "True", "-0.0", "0.0")
    ]
    for one in texts:
        for other in texts:
            monkeypatch.setitem(sys.modules, "readline", FakeReadline(one.split("\n")))
            # On other lines, as a prompt and a script number them.
            func = session(f"\n\n{other}")
            if one is other:
                assert Custom(func, func_type="akg").__name__ == "k"
            else:
                with pytest.raises(ArgumentValueError, match="source of the function cannot be"):
                    Custom(func, func_type="akg")


def test_a_real_session_works(tmp_path: Path) -> None:
    lines = [
        "import msops, numpy",
        *K1,
        "",
        *K2,
        "",
        "op = msops.Custom(k, func_type='akg')",
        "text = op.lower_text(numpy.float32([1, 1, 1]), stage='ir')",
        "print('<' + text.splitlines()[1].strip() + '>')",
        "exit()",
    ]
    output = typed_at_a_prompt(lines, tmp_path)
    assert "<a[0] = 2.0:float32>" in output


def typed_at_a_prompt(lines: list[str], home: Path) -> str:
    """Returns what an interactive Python shows for lines typed at its terminal."""
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home), "TERM": "dumb",
        "JAX_PLATFORMS": "cpu",
    }  # fmt: skip
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-q"], env=environment, stdin=other_end, stdout=other_end, stderr=other_end
    )
    os.close(other_end)
    shown = wait_for(terminal, ">>> ")
    for line in lines:
        os.write(terminal, f"{line}\n".encode())
        shown += wait_for(terminal, ">>> " if line != "exit()" else "\0", "... ")
    process.wait(60)
    os.close(terminal)
    return shown


def wait_for(terminal: int, *prompts: str) -> str:
    """Reads until a prompt, the end, or a minute has passed."""
    shown, end = "", time.monotonic() + 60
    while not shown.endswith(prompts) and time.monotonic() < end:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other side closed
            break
        if not part:
            break
        shown += part.decode(errors="replace")
    return shown


KINDS = {
    "hybrid": [
        "def k(x):\n    # tvm.compute and ir_builder\n    compute = 1\n    return x",
        'def k(x):\n    "calls topi.add"\n    return x',
        "def k(topi):\n    n = topi.shape\n    return topi",
        "def f(v):\n    return v\ndef k(x):\n    x[0] = f(x[1])\n    return x",
    ],
    "tvm_compute": [
        "def k(x):\n    return tvm.compute(x.shape, lambda i: x[i])",
        "def k(x):\n    import akg.tvm as t\n    return t.compute(x.shape, lambda i: x[i])",
        "def k(x):\n    from akg.tvm import compute as make\n    return make(x.shape, None)",
        "def k(x):\n    from akg import topi\n    return topi.exp(x)",
        "def k(x):\n    import akg.topi\n    return akg.topi.exp(x)",
        "def k(x):\n    from akg.topi import exp\n    return exp(x)",
        "def k(x):\n    import akg\n    return akg.tvm.extern(x.shape, [x], None)",
        "def f(v):\n    return topi.exp(v)\ndef k(x):\n    return f(x)",
        "def f(v):\n    return f(tvm.compute(v.shape, None)) or k(v)\ndef k(x):\n    return f(x)",
    ],
    "ir_builder": [
        "def k(inputs, attrs):\n"
        "    def body(ins, outs):\n"
        "        ib = tvm.ir_builder.create()\n"
        "        return ib.get()\n"
        "    return tvm.extern((1,), inputs, body)",
        "def k(inputs, attrs):\n"
        "    from akg.tvm import ir_builder as b\n"
        "    ib = b.create()\n"
        "    return ib",
    ],
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in KINDS.items() for text in texts]
)
def test_the_kind_is_what_the_kernel_calls(kind: str, text: str) -> None:
    assert read(define(text)).kind == kind
