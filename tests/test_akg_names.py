"""Names of AKG and TVM that published operators use beside what they compute."""

from __future__ import annotations

import logging
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import msops
from msops.errors import MsopsError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(kernel: Any, *inputs: Any) -> np.ndarray:
    return np.asarray(msops.Custom(kernel, func_type="akg")(*map(jnp.asarray, inputs)))


def test_hints_for_the_scheduler_are_taken_with_a_line_at_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def kernel(x):
        from akg.utils import custom_tiling as ct
        from akg.utils import dynamic_shape as ds

        assert ct.set_dims(((16, 1), (4, 1))) == ""
        info = ct.create_constraint_on_axis(
            values="FULL", constraints=ct.TileConstraint.MAX, axis=0, level=ct.TileLevel.C1
        )
        info += ct.create_template(tensor="x", template=ct.TileTemplate.NC1HWC0)
        info += ds.set_dynamic_shape_limit_for_tensor(x, 128, 0)
        # Kernels take the first of the constraints, and pad to a block.
        assert len(info) == 2
        assert ct.BLOCK_SIZE % 8 == 0

        @ct.reg_set_dim_func(lambda x: "")
        def twice(x):
            return akg.topi.multiply(x, 2.0)  # noqa: F821

        return x if ds.shape_is_dynamic([x]) else twice(x)

    with caplog.at_level(logging.DEBUG, logger="msops"):
        np.testing.assert_array_equal(run(kernel, X), 2 * X)
    assert "custom_tiling.set_dims does nothing here" in caplog.text


def test_a_hint_that_akg_does_not_have_is_refused_by_name() -> None:
    def kernel(x):
        akg.utils.custom_tiling.set_dim(())  # noqa: F821
        return akg.topi.multiply(x, 2.0)  # noqa: F821

    with pytest.raises(MsopsError, match=r"akg\.utils\.custom_tiling\.set_dim: there is no such"):
        run(kernel, X)


def test_the_kind_of_an_expression() -> None:
    kinds: dict[str, list[str]] = {}

    def kernel(x):
        i = tvm.var("i")  # noqa: F821
        y = x(0, 0)
        expressions = {
            "i + 2": i + 2,
            "i - 2": i - 2,
            "i * 2": i * 2,
            "y / 2": y / 2.0,
            "floordiv": tvm.floordiv(i, 2),  # noqa: F821
            "truncmod": tvm.truncmod(i, 2),  # noqa: F821
            "max": tvm.max(i, 2),  # noqa: F821
            "i < 2": i < 2,
            "cast": y.astype("int32"),
            "i": i,
            "number": 3,
        }
        names = ("Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Max", "LT", "Cast")
        for text, value in expressions.items():
            kinds[text] = [
                name
                for name in names
                if isinstance(value, getattr(tvm.expr, name))  # noqa: F821
            ]
        return topi.multiply(x, 2.0)  # noqa: F821

    run(kernel, X)
    assert kinds == {
        "i + 2": ["Add"],
        "i - 2": ["Sub"],
        "i * 2": ["Mul"],
        "y / 2": ["Div"],
        "floordiv": ["FloorDiv"],
        "truncmod": ["Mod"],
        "max": ["Max"],
        "i < 2": ["LT"],
        "cast": ["Cast"],
        "i": [],
        "number": [],
    }


def test_an_expression_is_not_made_by_its_class() -> None:
    def kernel(x):
        return tvm.compute(x.shape, lambda i, j: tvm.expr.Mul(x(i, j), 2.0))  # noqa: F821

    with pytest.raises(MsopsError, match=r"tvm\.expr\.Mul: it only says what an expression is"):
        run(kernel, X)


def test_a_function_is_found_by_the_name_that_it_is_registered_under() -> None:
    def kernel(x):
        @tvm.register_func("test_akg_names.scale")  # noqa: F821
        def scale(y):
            return topi.multiply(y, 3.0)  # noqa: F821

        return tvm.get_global_func("test_akg_names.scale")(x)  # noqa: F821

    np.testing.assert_array_equal(run(kernel, X), 3 * X)
    np.testing.assert_array_equal(run(kernel, X[:1]), 3 * X[:1])

    def missing(x):
        return tvm.get_global_func("cce.current_product_conf_core")(x)  # noqa: F821

    with pytest.raises(MsopsError, match=r"there is no function 'cce\.current_product_conf_core'"):
        run(missing, X)


@pytest.mark.parametrize("axis", [-1, [0, -1], (1,)])
def test_axes_of_a_reduction(axis: Any) -> None:
    def kernel(x):
        from akg.utils.format_transform import refine_reduce_axis

        axes = refine_reduce_axis(x, axis)
        assert axes == sorted(axes, reverse=True)
        return akg.topi.sum(x, axis=axes)  # noqa: F821

    expected = X.sum(axis=axis if isinstance(axis, int) else tuple(axis))
    np.testing.assert_allclose(run(kernel, X).reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("check", "good", "bad", "message"),
    [
        ("broadcast_check", ([1, 3], [2, 3]), ([2, 3], [1, 3]), "cannot be broadcast"),
        ("axis_check", (2, [-1, 1]), (2, [2]), "expected axes in"),
        ("check_equal", ("a", "b", 1, 1), ("a", "b", 1, 2), "expected a to be equal to b"),
        ("check_greater", ("a", "b", 2, 1), ("a", "b", 1, 1), "expected a to be greater than b"),
        ("check_value_on_integer", ("n", 3, 1, 4), ("n", 4, 1, 4), "expected n to be an int"),
        ("check_int_list", ([1, 2], "pads"), ([1, 2.0], "pads"), "expected ints in pads"),
        ("check_shape_length_equal", ("x", [1], (1, 2)), ("x", [], 1), "to have 1 dimensions"),
        ("check_supported_target", ("cuda",), ("tpu",), "expected a target of cce, cuda, llvm"),
    ],
)
def test_checks_of_akg(check: str, good: tuple[Any], bad: tuple[Any], message: str) -> None:
    def kernel_of(arguments: tuple[Any]) -> Any:
        def kernel(x):
            getattr(akg.utils, check)(*arguments)  # noqa: F821
            return akg.topi.multiply(x, 2.0)  # noqa: F821

        return kernel

    np.testing.assert_array_equal(run(kernel_of(good), X), 2 * X)
    with pytest.raises(MsopsError, match=message):
        run(kernel_of(bad), X)
