"""MindSpore's ``ops.composite`` namespace, usually imported as ``C``."""

from msops._base.missing_names import missing_names
from msops._face.gradients import GradOperation
from msops.ops.composite import multitype_ops

__all__ = ["GradOperation", "multitype_ops"]

__getattr__ = missing_names(__name__)
