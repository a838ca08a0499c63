"""MindSpore's ``ops.composite`` namespace, usually imported as ``C``."""

from msops._gradients import GradOperation
from msops._names import missing_names
from msops.ops.composite import multitype_ops

__all__ = ["GradOperation", "multitype_ops"]

__getattr__ = missing_names(__name__)
