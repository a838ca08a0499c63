"""MindSpore's ``ops.functional`` namespace: the function forms, usually imported as ``F``."""

from msops._base.missing_names import missing_names
from msops._face.gradients import get_grad, grad, value_and_grad
from msops._face.transformations import jacfwd, jacrev, jvp, vjp, vmap
from msops.ops._table import FUNCTIONS

globals().update(FUNCTIONS)

__all__ = [
    "get_grad",
    "grad",
    "jacfwd",
    "jacrev",
    "jvp",
    "value_and_grad",
    "vjp",
    "vmap",
    *FUNCTIONS,
]

__getattr__ = missing_names(__name__)
