"""Cells that hold others in order: SequentialCell and CellList."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from msops._face.cell import Cell
from msops.errors import ArgumentTypeError


class _CellSequence(Cell):
    """Cells under the names "0", "1", ..., or under names of their own."""

    def __init__(self, *cells: Any):
        super().__init__()
        listed = len(cells) == 1 and isinstance(cells[0], (list, tuple))
        for cell in cells[0] if listed else cells:
            self.append(cell)

    def append(self, cell: Cell) -> Any:
        """Adds a Cell at the end and returns the container."""
        if not isinstance(cell, Cell):
            raise ArgumentTypeError.explained(
                self.cls_name, f"expected Cells; got {type(cell).__name__}", "Pass Cells."
            )
        self._insert_cell(str(len(self)), cell)
        return self

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __getitem__(self, index: int | slice) -> Any:
        found = list(self._cells.values())[index]
        return type(self)(found) if isinstance(index, slice) else found


class SequentialCell(_CellSequence):
    """A chain: each Cell is called with what the one before it returned.

    Corresponds to ``mindspore.nn.SequentialCell``.

    Args:
      cells: Cells, or one list of Cells, or one OrderedDict of Cells by name.

    Raises:
      ArgumentTypeError: an entry is no Cell.

    Source: MindSpore 2.7.2, mindspore/nn/layer/container.py, SequentialCell.
    """

    def __init__(self, *cells: Any):
        named = cells[0] if len(cells) == 1 and isinstance(cells[0], OrderedDict) else None
        super().__init__(*(cells if named is None else ()))
        for name, cell in (named or {}).items():
            self._insert_cell(name, cell)

    def construct(self, input_data: Any) -> Any:
        """Returns the last Cell's result."""
        for cell in self:
            input_data = cell(input_data)
        return input_data


class CellList(_CellSequence):
    """A list of Cells whose Parameters belong to the Cell that holds the list.

    Corresponds to ``mindspore.nn.CellList``.

    Args:
      cells: Cells, or one list of Cells.

    Raises:
      ArgumentTypeError: an entry is no Cell.

    Source: MindSpore 2.7.2, mindspore/nn/layer/container.py, CellList.
    """

    def extend(self, cells: Iterable[Cell]) -> CellList:
        """Adds Cells at the end and returns the list."""
        for cell in cells:
            self.append(cell)
        return self
