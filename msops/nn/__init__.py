"""MindSpore's ``nn`` namespace: the Cells that operator scripts build on."""

from msops._cell import Cell
from msops._cell_containers import CellList, SequentialCell
from msops._names import missing_names

__all__ = ["Cell", "CellList", "SequentialCell"]

__getattr__ = missing_names(__name__)
