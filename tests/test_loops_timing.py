"""Where estimates are too close, the first call by itself times both forms of a loop kernel."""

from __future__ import annotations

import functools
import itertools
import logging
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops
from msops._backends.loops import kernels
from msops._backends.loops.timing import LIMIT_S, time_forms
from msops.errors import ArgumentValueError, BuildError
from msops.lang import output_tensor

# Whole numbers, which both forms compute exactly.
X = np.arange(64 * 100, dtype=np.float32).reshape(64, 100)
CLOSE = "; these are close, so a first call outside jax.jit times both"


def scaled(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j] * 3.0 + 1.0
    return b


@pytest.fixture(autouse=True)
def unsure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has no estimate be sure, in an empty cache; estimates are those of new specialisations."""
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("MSOPS_LOOPS_TIMING", "1")
    monkeypatch.setattr("msops._loops.choice.SURE_FACTOR", 1e9)
    # XLA needs no thread for so little otherwise, and native code is chosen without any costs.
    monkeypatch.setattr("msops._loops.specialisation.is_quick_as_native", lambda *_: False)
    forget()
    yield
    forget()


def forget() -> None:
    """Makes ops start anew, as in a new process."""
    kernels._own_specialisation.cache_clear()
    kernels._shared_stages.cache_clear()
    jax.clear_caches()


class Clock:
    """A clock by which forms take what it is given, which counts the trials."""

    def __init__(self, **seconds: float):
        self.seconds = seconds
        self.trials = 0

    def __call__(self, calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
        self.trials += 1
        for call in calls.values():
            (result,) = call()
            np.testing.assert_array_equal(result, X[: len(result)] * 3 + 1)
        return self.seconds


def use(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> msops.Custom:
    monkeypatch.setattr("msops._backends.loops.backend.time_forms", clock)
    return msops.Custom(scaled, func_type="akg")


def reason(op: msops.Custom, x: np.ndarray = X) -> str:
    return op.explain(x).splitlines()[0]


def form_in(text: str) -> str:
    return "native" if "custom_call" in text else "xla"


@pytest.mark.parametrize(
    ("clock", "form"),
    [(Clock(xla=1.0, native=3.0), "xla"), (Clock(xla=3.0, native=1.0), "native")],
)
def test_the_first_call_chooses_the_faster_form(
    clock: Clock, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    op = use(clock, monkeypatch)
    assert reason(op).endswith(CLOSE)
    for _ in range(2):
        np.testing.assert_array_equal(op(X), X * 3 + 1)
    assert clock.trials == 1
    assert form_in(op.lower_text(X, stage="stablehlo")) == form
    first, second = clock.seconds["native"], clock.seconds["xla"]
    expected = f": a measured {first:g} s as native code, {second:g} s as XLA operations"
    assert expected in reason(op)
    # A larger program follows.
    program = jax.jit(lambda x: op(x) + 1)
    assert form_in(program.lower(X).as_text()) == form


def test_a_pullback_of_before_the_choice_runs_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Native code, as nothing is saved by fusing.
    monkeypatch.setattr("msops._loops.choice.fusion_seconds", lambda kernel: 0.0)
    op = use(Clock(xla=1.0, native=3.0), monkeypatch)
    assert reason(op).endswith(CLOSE)
    assert form_in(jax.jit(op.__call__).lower(X).as_text()) == "native"
    _, pull = jax.vjp(op, X)
    op(X)
    assert form_in(jax.jit(op.__call__).lower(X).as_text()) == "xla"
    np.testing.assert_array_equal(*pull(X), 3 * X)


def test_the_clock_decides_without_what_fusing_might_save(monkeypatch: pytest.MonkeyPatch) -> None:
    op = use(Clock(xla=3e-6, native=2.5e-6), monkeypatch)
    assert "of which fusing them with others may save" in reason(op)
    op(X)
    assert reason(op).endswith("a measured 2.5 us as native code, 3 us as XLA operations")


def lower_triangle(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if j <= i:
                b[i, j] = a[i, j] * 3.0
    return b


def test_what_is_timed_is_compiled_as_one_program(caplog: pytest.LogCaptureFixture) -> None:
    op = msops.Custom(lower_triangle, func_type="akg")
    x = jnp.tril(X) + 0
    with jax.log_compiles():
        result = op(x)
    np.testing.assert_array_equal(result, np.tril(X) * 3)
    compiled = [text for text in caplog.messages if text.startswith("Compiling ")]
    # Either form, and the op in the faster one.
    assert len(compiled) == 3
    assert all("lower_triangle" in text for text in compiled)


def test_a_later_process_finds_the_times_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(xla=3.0, native=1.0)
    use(clock, monkeypatch)(X)
    forget()
    other = Clock(xla=1.0, native=3.0)
    op = use(other, monkeypatch)
    assert "a measured 1 s as native code" in reason(op)
    op(X)
    assert (clock.trials, other.trials) == (1, 0)
    op(X[:32])
    assert other.trials == 1, "other shapes are timed by themselves"


@pytest.mark.parametrize(
    "text", ['{"xla": NaN, "native": 1}', '{"xla": 1, "native": -5}', "[" * 100_000, "null"]
)
def test_times_that_are_none_are_measured_again(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(Clock(xla=3.0, native=1.0), monkeypatch)(X)
    (file,) = (tmp_path / "measurements").glob("*/*.json")
    file.write_text(text)
    forget()
    clock = Clock(xla=1.0, native=3.0)
    use(clock, monkeypatch)(X)
    assert clock.trials == 1


def test_only_a_call_by_itself_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(xla=1.0, native=3.0)
    op = use(clock, monkeypatch)
    op.lower_text(X, stage="hlo")
    op.cost_analysis(X)
    jax.jit(op.__call__)(X)
    jax.grad(lambda x: jax.jit(op.__call__)(x).sum())(X)
    assert clock.trials == 0
    assert reason(op).endswith(CLOSE)


def test_a_call_on_constants_of_a_traced_function_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(xla=1.0, native=3.0)
    op, constant = use(clock, monkeypatch), jnp.asarray(X)
    np.testing.assert_array_equal(jax.jit(lambda y: op(constant) + y)(1.0), X * 3 + 2)
    assert clock.trials == 1


def test_a_call_with_jit_disabled_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(xla=1.0, native=3.0)
    with jax.disable_jit():
        np.testing.assert_array_equal(use(clock, monkeypatch)(X), X * 3 + 1)
    assert clock.trials == 1


@pytest.mark.parametrize("lower", [None, "xla", "native"])
def test_without_timing_the_estimate_decides(
    lower: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(Clock(xla=1e-9, native=1.0), monkeypatch)(X)
    forget()
    clock = Clock(xla=1.0, native=1.0)
    use(clock, monkeypatch)
    if lower is None:
        monkeypatch.setenv("MSOPS_LOOPS_TIMING", "0")
    attrs = {} if lower is None else {"lower": lower}
    op = msops.Custom(scaled, func_type="akg", compile_attrs=attrs)
    op(X)
    assert clock.trials == 0
    assert "measured" not in reason(op)
    assert not reason(op).endswith(CLOSE)


def test_what_cannot_be_built_is_not_timed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise BuildError("no space left")

    monkeypatch.setattr("msops._toolchain.build_generated", fail)
    op = msops.Custom(scaled, func_type="akg")
    # Fusing so large an array may save more than native code does.
    large = np.zeros((1024, 1024), np.float32)
    assert reason(op, large).startswith("Custom 'scaled' on CPU: XLA operations")
    with caplog.at_level(logging.WARNING, "msops.loops"):
        for _ in range(2):
            np.testing.assert_array_equal(op(large), large + 1)
    assert not reason(op, large).endswith(CLOSE)
    assert caplog.text.count("its native code was not timed: no space left") == 1


def test_a_switch_that_is_neither_on_nor_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSOPS_LOOPS_TIMING", "yes")
    with pytest.raises(ArgumentValueError, match="MSOPS_LOOPS_TIMING: expected 0 or 1; got 'yes'"):
        msops.Custom(scaled, func_type="akg")(X)


class Work:
    """Forms that take given seconds of a clock that nothing else moves, and the order of calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now_s = 0.0
        self.order: list[str] = []
        clock = types.SimpleNamespace(perf_counter=lambda: self.now_s)
        monkeypatch.setattr("msops._backends.loops.timing.time", clock)

    def call(self, form: str, seconds: float, more_after_another: float = 0.0) -> None:
        if self.order and self.order[-1] != form:
            self.now_s += more_after_another
        self.order.append(form)
        self.now_s += seconds


def test_the_clock_takes_the_least_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    slow = itertools.chain([9e-3, 7e-3], itertools.repeat(4e-3))
    found = time_forms(
        {
            "fast": lambda: work.call("fast", 3e-3),
            "slow": lambda: work.call("slow", next(slow)),
        }
    )
    assert found == pytest.approx({"fast": 3e-3, "slow": 4e-3})
    assert min(work.order.count("fast"), work.order.count("slow")) > 6


def test_what_is_clear_is_not_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    seconds = {"fast": 1e-6, "slow": 5e-3}
    time_forms({form: functools.partial(work.call, form, s) for form, s in seconds.items()})
    # To compile it, for a first estimate, and in two turns, each after a call that is not timed.
    assert work.order.count("slow") == 6


def test_a_form_that_takes_longer_than_the_limit_runs_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Work(monkeypatch)
    found = time_forms({"fast": functools.partial(work.call, "fast", 1e-3),
                        "slow": functools.partial(work.call, "slow", 2 * LIMIT_S)})  # fmt: skip
    assert work.order == ["fast", "fast", "slow", "slow"]
    assert found == pytest.approx({"fast": 1e-3, "slow": 2 * LIMIT_S})


def test_a_call_is_timed_after_another_of_its_form(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    found = time_forms({"one": functools.partial(work.call, "one", 1e-3, 4e-3),
                        "other": functools.partial(work.call, "other", 1.5e-3)})  # fmt: skip
    assert found == pytest.approx({"one": 1e-3, "other": 1.5e-3})
