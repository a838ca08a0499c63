"""Gradients against finite differences: at the inputs given, at others, and at second order."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops.errors import GradientTypeError, GradientValueError, MsopsError
from msops.testing.cotangents import nonlinear_lines
from msops.testing.dtype_gradients import unlike_dtypes
from msops.testing.exceptions import is_of_library
from msops.testing.finite_differences import (
    Comparison,
    average_size,
    compare,
    complex_inputs,
    floats_of,
    random_like,
    real_inputs,
)
from msops.testing.gradient_points import huge_point, long_points, other_points, points_of_one
from msops.testing.guarded import HangError
from msops.testing.long_gradients import at_many
from msops.testing.python_settings import SettingsWatch
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject, structs_of
from msops.testing.tolerances import disagreements

_DIRECTIONS = 4
_DIRECTIONS_ELSEWHERE = 2
_SECOND = "second order"
# Of huge numbers a slope that is less says little: a function that ends in a constant may be that
# of numbers that overflow, and so may be its slope.
_LEAST_SLOPE = 1e-3
_WIDER = {"float32": "float64", "complex64": "complex128"}
_WIDE = ("float64", "int64", "uint64", "complex128")
_SET_BACK = "Set back in the rule, or in the kernel that it calls, what that has set for itself."


def check_gradient(subject: Subject) -> Finding:
    """Checks both modes, where the op has them, along random directions, one input at a time.

    And whether the author's rule, or a kernel that it calls, leaves the process as it was.
    """
    watch = SettingsWatch()
    with watch.calls():
        finding = _check_slopes(subject)
    if finding.verdict != "passed" or not subject.has_rule:
        return finding
    lines = watch.lines()
    return failed("gradient", "it changes the process", lines, _SET_BACK) if lines else finding


def _check_slopes(subject: Subject) -> Finding:
    check = "gradient"
    real = real_inputs(subject.flat)
    if not any(jnp.issubdtype(s.dtype, jnp.inexact) for s in subject.outputs().structs) or not (
        real or complex_inputs(subject.flat)
    ):
        return skipped(check, "no input, or no output, is float32, float64, or complex")
    try:
        with jax.enable_x64(True):
            widened, precision = _widened(subject)
        # A rule may make arrays of JAX's own dtypes, jnp.zeros(1), which x64 widens.
        with jax.enable_x64(any(array.dtype.name in _WIDE for array in widened.flat)):
            lines, measured = _at(widened, Comparison(precision, _DIRECTIONS))
            if not measured:
                return skipped(check, "results beside the inputs are not finite")
            if lines or not real:
                return _differs(precision, lines) if lines else _agrees(precision, [])
            if lines := _traced_otherwise(widened):
                return failed(
                    check,
                    "it fails, or is another, in a program that JAX compiles",
                    lines,
                    "Write the rule in jax.numpy, without NumPy or an `if` on values: a jitted "
                    "program calls it once, with arrays that have no values yet.",
                )
            lines, tried = _elsewhere(widened, precision)
        if not lines and subject.has_rule and (unlike := nonlinear_lines(subject, real)):
            return failed(
                check,
                "it is not linear in its cotangents",
                unlike,
                "A rule multiplies cotangents by slopes: it takes a cotangent of 0, of any size "
                "and of any sign. To clip gradients, do so where they are used.",
            )
        if not lines and subject.has_rule and (lines := unlike_dtypes(subject, real)):
            return failed(
                check,
                "it is another in a narrower dtype",
                lines,
                "Compute in float32 where numbers of 16 bits overflow, or have the op refuse them.",
            )
    except GradientTypeError as error:
        if subject.has_rule:
            raise
        return skipped(check, str(error).splitlines()[0])
    if lines:
        return _differs(precision, lines)
    return _agrees(precision, tried)


def _agrees(precision: str, tried: Sequence[str]) -> Finding:
    elsewhere = f"{len([name for name in tried if name != _SECOND])} other points"
    also = f"; {elsewhere}{f', {_SECOND}' if _SECOND in tried else ''}" if tried else ""
    return passed(
        "gradient",
        f"as finite differences in {precision}, {_DIRECTIONS} directions an input{also}",
    )


def _differs(precision: str, lines: Sequence[str]) -> Finding:
    return failed(
        "gradient",
        f"it differs from finite differences in {precision}",
        lines,
        "Fix the bprop, or the jvp rule; if the inputs lie at a kink (of relu, max), check it "
        "elsewhere. Where the op is not meant to be called so, have it refuse.",
    )


def _widened(subject: Subject) -> tuple[Subject, str]:
    """Returns the op on its inputs in float64 if it computes the same there, else as they are."""
    wide = tuple(x.astype(_WIDER.get(x.dtype.name, x.dtype)) for x in subject.flat)
    try:
        subject.check_taken(wide)
        if subject.stands([wide]):
            results = [
                result.astype(own.dtype)
                for result, own in zip(subject.run(wide), subject.run(), strict=True)
            ]
            is_wide = all(s.dtype.name not in _WIDER for s in subject.outputs(wide).structs)
            if is_wide and not disagreements(subject.run(), results):
                return subject.on(wide), "float64"
    except GradientTypeError:
        raise
    except Exception:  # it does not take float64
        pass
    return subject, "float32"


def _at(subject: Subject, how: Comparison) -> tuple[list[str], int]:
    """Reports where derivatives of the op differ on its inputs; counts what was measured."""
    return _compared(subject.apply, subject, how)


def _compared(
    function: Callable[..., Sequence[Any]], subject: Subject, how: Comparison
) -> tuple[list[str], int]:
    inputs = (*real_inputs(subject.flat), *complex_inputs(subject.flat))
    found = [compare(function, subject.flat, i, how) for i in inputs]
    return [line for lines, _ in found for line in lines], sum(count for _, count in found)


def _elsewhere(subject: Subject, precision: str) -> tuple[list[str], list[str]]:
    """Reports where derivatives differ at second order, and at points that the author did not give.

    Returns:
      Lines, and the names of what was measured.
    """
    how = Comparison(
        precision, _DIRECTIONS_ELSEWHERE, has_forward=subject.has_both_rules, only_if_smooth=True
    )
    attempts: list[tuple[str, Callable[[], tuple[list[str], int]]]] = [
        (_SECOND, functools.partial(_compared, _gradients_of(subject), subject, how)),
        *(
            (name, functools.partial(_at_if_taken, other, how, subject.flat))
            for name, other in other_points(subject)
        ),
    ]
    if subject.has_rule:
        attempts.append(("huge", functools.partial(_at_huge, subject, how)))
        attempts += [
            (name, functools.partial(_at_one, other, how, subject.flat))
            for name, other in points_of_one(subject)
        ]
        of_parts = dataclasses.replace(how, of_parts=True)
        attempts += [
            (name, functools.partial(at_many, other, of_parts))
            for name, other in long_points(subject)
        ]
    reported, tried = [], []
    for name, attempt in attempts:
        try:
            with warnings.catch_warnings():  # NumPy's, of a Python function
                warnings.simplefilter("ignore")
                lines, measured = attempt()
        except HangError:
            raise
        except GradientValueError as error:  # the op has taken the inputs: its rule is wrong
            lines, measured = [] if name == _SECOND else str(error).splitlines()[:1], 0
        except Exception:  # a refusal; and not every gradient has one
            continue
        reported += [f"{name}: {line}" for line in lines]
        tried += [name] if measured else []
    return reported, tried


def _at_if_taken(
    subject: Subject, how: Comparison, own: Sequence[np.ndarray]
) -> tuple[list[str], int]:
    """Reports where derivatives differ if the op takes its inputs, which may not be its own ones.

    What the op takes, its rule takes, too, also where it is traced.
    """
    subject.check_taken(subject.flat)
    if not subject.stands([subject.flat]):
        return [], 0
    try:
        lines, measured = _at(subject, how)
        is_traced = subject.has_given_attributes and structs_of(own) == structs_of(subject.flat)
        if subject.has_rule and not (lines or is_traced):
            jax.eval_shape(_gradients_of(subject), *structs_of(subject.flat))
        return lines, measured
    except (HangError, MsopsError):
        raise
    except Exception as error:
        results = subject.outputs().structs
        has_results = all(math.prod(struct.shape) for struct in results)
        if not (subject.has_rule and has_results and is_of_library(error)):
            raise
        first = str(error).splitlines()[:1]
        return [": ".join(itertools.chain(["the rule", type(error).__name__], first))], 0


def _at_one(subject: Subject, how: Comparison, own: Sequence[np.ndarray]) -> tuple[list[str], int]:
    """Reports where a rule is wrong for one number that counts for many, if it has a gradient.

    NumPy takes such a number for a function that was never meant for it, and whose rule fails.
    """
    try:
        lines, measured = _at_if_taken(subject, how, own)
    except GradientValueError:
        return [], 0
    return lines if measured else [], measured


def _at_huge(subject: Subject, how: Comparison) -> tuple[list[str], int]:
    """Reports where a rule overflows though the op does not, which has a slope on its inputs, too.

    Steps, as those of floor, are too small to be seen of huge numbers.
    """
    of_steep = dataclasses.replace(how, least_slope=_LEAST_SLOPE)
    lines, measured = _at_if_taken(huge_point(subject), of_steep, subject.flat)
    is_steep = not lines or _at(subject, of_steep)[1] > 0
    return lines if is_steep else [], measured


def _gradients_of(subject: Subject, is_batched: bool = False) -> Callable[..., list[Any]]:
    """Returns the gradients of a sum of results and their squares, as a function of the inputs.

    The cotangents depend on the inputs, then, as they do in a program, and a rule is differentiated
    by them, too. Of inputs with an axis more it differentiates `jax.vmap` of the op; each element
    has the same weights.
    """
    real = real_inputs(subject.flat)
    apply = jax.vmap(subject.apply) if is_batched else subject.apply
    sizes = [2 * average_size(result) or 1 for result in map(np.asarray, floats_of(subject.run()))]

    def function(*flat: Any) -> list[Any]:
        def of_real(*inputs: Any) -> list[Any]:
            arguments = list(flat)
            for index, x in zip(real, inputs, strict=True):
                arguments[index] = x
            return floats_of(apply(*arguments))

        results, pull_back = jax.vjp(of_real, *(flat[i] for i in real))
        shapes = [jax.ShapeDtypeStruct(r.shape[is_batched:], r.dtype) for r in results]
        weights = random_like(shapes, np.random.default_rng(0))
        cotangents = [
            (w * (1 + r / size)).astype(r.dtype)
            for w, r, size in zip(weights, results, sizes, strict=True)
        ]
        return list(pull_back(cotangents))

    return function


def _traced_otherwise(subject: Subject) -> list[str]:
    """Reports where gradients under jit and vmap are not those of an eager call."""
    function = _gradients_of(subject)
    of_vmap = _gradients_of(subject, is_batched=True)
    cases = [subject.flat, subject.unlike or subject.flat]
    one, other = ([np.asarray(g) for g in function(*map(jnp.asarray, flat))] for flat in cases)
    pair, turned = (
        [np.stack(arrays) for arrays in zip(*order, strict=True)] for order in (cases, cases[::-1])
    )
    four = [np.stack(arrays) for arrays in zip(pair, turned, strict=True)]
    # The outer axis comes last of both: a rule need not know which it is.
    on_axis_1 = jax.vmap(of_vmap, in_axes=1, out_axes=1)
    ways: dict[str, tuple[list[np.ndarray], Callable[[], list[Any]]]] = {
        "jit": (one, lambda: jax.jit(function)(*map(jnp.asarray, subject.flat))),
        "vmap": (
            [np.stack(gradients) for gradients in zip(one, other, strict=True)],
            lambda: jax.jit(jax.vmap(function))(*pair),
        ),
        "vmap of the gradient of vmap": (
            [np.stack([[x, y], [y, x]]) for x, y in zip(one, other, strict=True)],
            lambda: jax.jit(on_axis_1)(*four),
        ),
    }
    lines = []
    for way, (expected, run) in ways.items():
        try:
            lines += [
                f"{way}: gradients, {line}"
                for line in disagreements(expected, [np.asarray(gradient) for gradient in run()])
            ]
        except Exception as error:
            first = str(error).splitlines()[:1]
            lines.append(": ".join(itertools.chain([way, type(error).__name__], first)))
    return lines
