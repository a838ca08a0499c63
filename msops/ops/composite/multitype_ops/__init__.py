"""MindSpore's ``ops.composite.multitype_ops`` namespace."""

from msops._base.missing_names import missing_names
from msops.ops.composite.multitype_ops import zeros_like_impl
from msops.ops.composite.multitype_ops.zeros_like_impl import zeros_like

__all__ = ["zeros_like", "zeros_like_impl"]

__getattr__ = missing_names(__name__)
