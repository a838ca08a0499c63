"""MindSpore's ``nn`` namespace: the Cells that operator scripts build on."""

from msops._base.missing_names import missing_names
from msops._face.cell import Cell
from msops._face.cell_containers import CellList, SequentialCell

__all__ = ["Cell", "CellList", "SequentialCell"]

__getattr__ = missing_names(__name__)
