"""MindSpore's ``ops.operations`` namespace: the primitive classes, usually imported as ``P``."""

from msops._base.missing_names import missing_names
from msops._custom.custom import Custom
from msops.ops._table import PRIMITIVES
from msops.ops.operations import _inner_ops

globals().update(PRIMITIVES)

__all__ = ["Custom", "_inner_ops", *PRIMITIVES]

__getattr__ = missing_names(__name__)
