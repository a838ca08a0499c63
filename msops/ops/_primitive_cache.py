"""MindSpore's ``_primitive_cache`` namespace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from msops._base.missing_names import missing_names


@functools.cache
def _get_cache_prim(cls: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that makes a primitive of a class, and keeps it by its arguments.

    Source: MindSpore 2.7.2, mindspore/ops/_primitive_cache.py, _get_cache_prim.
    """
    made: dict[str, Any] = {}

    def make(*settings: Any, **named: Any) -> Any:
        # As text, as there: settings may be lists, and 1 is not True.
        key = repr((settings, named))
        if key not in made:
            made[key] = cls(*settings, **named)
        return made[key]

    return make


__getattr__ = missing_names(__name__)
