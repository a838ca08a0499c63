"""MindSpore's ``zeros_like`` for bprop functions: zeros for a tensor, or for a tuple of them."""

from msops._base.missing_names import missing_names
from msops.ops._table import zeros_like_tree as zeros_like

__all__ = ["zeros_like"]

__getattr__ = missing_names(__name__)
