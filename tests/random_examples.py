"""Hypothesis in two sizes: a few examples at every run, many with `make test-all`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy


def examples(thorough: int) -> int:
    """Returns how many examples a test tries: so many with `make test-all`, else a fifth."""
    return thorough if settings.get_current_profile_name() == "new" else thorough // 5


def on_random(
    *strategies: SearchStrategy[Any], quick: int, thorough: int
) -> Callable[[Callable[..., None]], Callable[[int], None]]:
    """Returns a decorator that makes a test of a check of random values.

    Args:
      strategies: one per parameter of the check.
      quick: examples at every run.
      thorough: examples of the slow run.
    """

    def decorate(check: Callable[..., None]) -> Callable[[int], None]:
        @pytest.mark.parametrize(
            "examples", [quick, pytest.param(thorough, marks=pytest.mark.slow)]
        )
        def test(examples: int) -> None:
            size = settings(
                max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck)
            )
            size(given(*strategies)(check))()

        test.__doc__ = check.__doc__
        return test

    return decorate
