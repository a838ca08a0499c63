"""Each cell of the support table of docs/guides/kinds.md is what happens."""

from __future__ import annotations

import pytest
from support_table import OPS, PROBES, stated, works


@pytest.mark.parametrize("feature", PROBES)
@pytest.mark.parametrize("func_type", OPS)
def test_cell_is_true(func_type: str, feature: str) -> None:
    if feature == "export":
        pytest.importorskip("flatbuffers")
    assert works(func_type, feature) == stated()[func_type, feature]


def test_table_has_no_other_cells() -> None:
    assert set(stated()) == {(func_type, feature) for func_type in OPS for feature in PROBES}
