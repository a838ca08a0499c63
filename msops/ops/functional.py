"""MindSpore's ``ops.functional`` namespace: the function forms, usually imported as ``F``."""

from msops._base.missing_names import missing_names
from msops._face.gradients import grad, value_and_grad
from msops.ops._table import FUNCTIONS

globals().update(FUNCTIONS)

__all__ = ["grad", "value_and_grad", *FUNCTIONS]

__getattr__ = missing_names(__name__)
