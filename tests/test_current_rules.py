"""A rule of differentiation sees what it reads as the rule of the same function of JAX does."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_cases import in_turn

from msops import Custom

X = jnp.ones(2)
ROWS = jnp.ones((2, 2))

REVERSE: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: jax.grad(lambda x: f(x).sum())(X),
    "jit of grad": lambda f: jax.jit(jax.grad(lambda x: f(x).sum()))(X),
    "grad of jit": lambda f: jax.grad(jax.jit(lambda x: f(x).sum()))(X),
    "jit of vmap of grad": lambda f: jax.jit(jax.vmap(jax.grad(lambda x: f(x).sum())))(ROWS),
    "grad of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum())(ROWS),
    "grad of jit of vmap": lambda f: jax.grad(lambda x: jax.jit(jax.vmap(f))(x).sum())(ROWS),
    "grad of vmap of jit": lambda f: jax.grad(lambda x: jax.vmap(jax.jit(f))(x).sum())(ROWS),
    "grad of map": lambda f: jax.grad(lambda x: jax.lax.map(f, x).sum())(ROWS),
    "grad of checkpoint": lambda f: jax.grad(jax.checkpoint(lambda x: f(x).sum()))(X),
}
FORWARD: dict[str, Callable[[Any], Any]] = {
    "jvp": lambda f: jax.jvp(f, (X,), (X,))[1],
    "jit of jvp": lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (x,))[1])(X),
    "jvp of jit": lambda f: jax.jvp(jax.jit(f), (X,), (X,))[1],
    "jvp of vmap": lambda f: jax.jvp(jax.vmap(f), (ROWS,), (ROWS,))[1],
    "jacfwd": lambda f: jax.jacfwd(f)(X),
    "linearize": lambda f: jax.linearize(f, X)[1](X),
}


def double(x: Any) -> Any:
    return 2 * x


def first(x: Any) -> Any:
    return x


def reverse_of_jax(factor: Callable[[], float]) -> Any:
    function = jax.custom_vjp(double)
    function.defvjp(lambda x: (function(x), None), lambda _, dout: (factor() * dout,))
    return function


def forward_of_jax(factor: Callable[[], float]) -> Any:
    function = jax.custom_jvp(double)
    function.defjvp(lambda primals, tangents: (function(*primals), factor() * tangents[0]))
    return function


def by_bprop(factor: Callable[[], float]) -> Any:
    return Custom(double, first, first, bprop=lambda x, out, dout: (factor() * dout,))


def by_forward(factor: Callable[[], float]) -> Any:
    rule = lambda x, out, dout: (factor() * dout,)  # noqa: E731
    return Custom(double, first, first, bprop=rule, forward=True)


def by_jvp(factor: Callable[[], float]) -> Any:
    return Custom(double, first, first, jvp=lambda primals, tangents, out: factor() * tangents[0])


def by_both(factor: Callable[[], float]) -> Any:
    return Custom(
        double,
        first,
        first,
        bprop=lambda x, out, dout: (factor() * dout,),
        jvp=lambda primals, tangents, out: factor() * tangents[0],
    )


class Setting:
    factor = 2.0


def in_list() -> tuple[Callable[[], float], Callable[[float], None]]:
    values = [2.0]
    return lambda: values[0], lambda value: values.__setitem__(0, value)


def in_attribute() -> tuple[Callable[[], float], Callable[[float], None]]:
    setting = Setting()
    return lambda: setting.factor, lambda value: setattr(setting, "factor", value)


def in_module() -> tuple[Callable[[], float], Callable[[float], None]]:
    module = types.ModuleType("settings")
    module.factor = 2.0  # type: ignore[attr-defined]
    return lambda: module.factor, lambda value: setattr(module, "factor", value)


def slopes(make: Any, path: Callable[[Any], Any], keep: Any, is_new: bool) -> list[float]:
    """Returns the slope before and after what the rule reads has changed."""
    factor, change = keep()
    function = make(factor)
    before = np.asarray(path(function))
    change(5.0)
    after = np.asarray(path(make(factor) if is_new else function))
    return [float(before.max()), float(after.max())]


SHORT = ("grad", "jvp")
# An op made anew is equal to the one before, and jax.jit of equal functions traces once.
OF_JITTED_OP = ("grad of vmap of jit", "jvp of jit")
KEEPS = {"list": (in_list, None), "attribute": (in_attribute, SHORT), "module": (in_module, SHORT)}


@pytest.mark.parametrize(
    ("keep", "names", "is_new"),
    in_turn(
        [pytest.param(*row, id=name) for name, row in KEEPS.items()],
        [pytest.param(False, id="same op"), pytest.param(True, id="op made anew")],
    ),
)
def test_a_rule_is_as_current_as_a_rule_of_jax(keep: Any, names: Any, is_new: bool) -> None:
    for name in names or REVERSE:
        if name in REVERSE:
            expected = slopes(
                reverse_of_jax, REVERSE[name], keep, is_new and name not in OF_JITTED_OP
            )
            assert slopes(by_bprop, REVERSE[name], keep, is_new) == expected, name
    for name in names or FORWARD:
        if name in FORWARD:
            expected = slopes(
                forward_of_jax, FORWARD[name], keep, is_new and name not in OF_JITTED_OP
            )
            for make in (by_forward, by_jvp):
                assert slopes(make, FORWARD[name], keep, is_new) == expected, (name, make)
    expected = slopes(forward_of_jax, FORWARD["jvp"], keep, is_new)
    assert slopes(by_both, FORWARD["jvp"], keep, is_new) == expected
