"""MindSpore's ``common`` namespace: Tensor, Parameter, dtypes, jit and the seed."""

from typing import TYPE_CHECKING

from msops._base.missing_names import missing_names
from msops._face.parameter import Parameter, ParameterTuple
from msops._face.tensor import Tensor
from msops.common import dtype
from msops.common.seed import get_seed, set_seed

if TYPE_CHECKING:
    from msops._face.jit import jit

__all__ = ["Parameter", "ParameterTuple", "Tensor", "dtype", "get_seed", "jit", "set_seed"]

_LATER = {
    "_Function": "msops._extension.python_functions",
    "_grad_function": "msops.common._grad_function",
    "jit": "msops._face.jit",
}

__getattr__ = missing_names(__name__, _LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
