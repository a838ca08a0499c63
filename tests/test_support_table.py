"""Each cell of the support table of docs/guides/kinds.md is what happens."""

from __future__ import annotations

import pytest
from support_table import DTYPES, OPS, PROBES, TAKERS, stated, stated_dtypes, takes, works


@pytest.mark.parametrize("feature", PROBES)
@pytest.mark.parametrize("func_type", OPS)
def test_cell_is_true(func_type: str, feature: str) -> None:
    assert works(func_type, feature) == stated()[func_type, feature]


@pytest.mark.parametrize("func_type", TAKERS)
def test_dtypes_are_taken_or_not_as_the_page_says(func_type: str) -> None:
    names = [name for row in DTYPES for name in row.split()]
    found = {(func_type, name): takes(func_type, name) for name in names}
    stated = {key: yes for key, yes in stated_dtypes().items() if key[0] == func_type}
    assert found == stated


def test_table_has_no_other_cells() -> None:
    assert set(stated()) == {(func_type, feature) for func_type in OPS for feature in PROBES}
