"""How an op shows itself: as text, and as a table in notebooks."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from msops import Custom
from msops.ops import CustomRegOp, DataType

INFO = (
    CustomRegOp()
    .input(0, "x")
    .output(0, "y")
    .dtype_format(DataType.F32_Default, DataType.F32_Default)
    .dtype_format(DataType.F16_Default, DataType.F32_Default)
    .target("CPU")
    .get_op_info()
)


def cells(op: Custom) -> list[list[str]]:
    table = ElementTree.fromstring(op._repr_html_())
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_an_op_prints_its_targets_and_dtypes() -> None:
    op = Custom(np.square, lambda x: x, "float32", reg_info=INFO)
    assert repr(op) == (
        "Custom('square', func_type='pyfunc')\n"
        "  CPU: (float32) -> float32\n"
        "  CPU: (float16) -> float32"
    )


def test_a_notebook_shows_a_table() -> None:
    op = Custom(np.square, lambda x: x, "float32", reg_info=INFO)
    assert cells(op) == [
        ["target", "dtypes"],
        ["CPU", "(float32) -> float32"],
        ["CPU", "(float16) -> float32"],
    ]


def test_names_are_escaped() -> None:
    op = Custom(lambda x: x, lambda x: x, lambda x: x)
    table = ElementTree.fromstring(op._repr_html_())
    assert "".join(table.find("caption").itertext()) == "<lambda>, pyfunc"
    assert cells(op)[1:] == [["any", "any dtypes"]]
