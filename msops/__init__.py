"""Custom operators on JAX."""

from typing import TYPE_CHECKING

from msops import common as common
from msops import context as context
from msops._base.building import Build as Build
from msops._base.building import source as source
from msops._base.kernel_errors import kernel_errors as kernel_errors
from msops._base.missing_names import missing_names
from msops._base.paths import get_include as get_include
from msops._base.version import __version__ as __version__
from msops._custom.custom import Custom as Custom
from msops._face.context import GRAPH_MODE as GRAPH_MODE
from msops._face.context import PYNATIVE_MODE as PYNATIVE_MODE
from msops._face.context import ParallelMode as ParallelMode
from msops._face.context import get_auto_parallel_context as get_auto_parallel_context
from msops._face.context import get_context as get_context
from msops._face.context import reset_auto_parallel_context as reset_auto_parallel_context
from msops._face.context import set_auto_parallel_context as set_auto_parallel_context
from msops._face.context import set_context as set_context
from msops._face.context import set_device as set_device
from msops._face.parameter import Parameter as Parameter
from msops._face.parameter import ParameterTuple as ParameterTuple
from msops._face.tensor import Tensor as Tensor
from msops._face.tensor import tensor as tensor
from msops.common import dtype as dtype
from msops.common.dtype import *  # noqa: F403
from msops.common.seed import get_seed as get_seed
from msops.common.seed import set_seed as set_seed

if TYPE_CHECKING:
    from msops import extension as extension
    from msops import lang as lang
    from msops import nn as nn
    from msops import ops as ops
    from msops import tbe as tbe
    from msops import testing as testing
    from msops._calls.exporting import export_checks as export_checks
    from msops._calls.exporting import register_ffi_targets as register_ffi_targets
    from msops._custom.short_forms import cpp as cpp
    from msops._custom.short_forms import ffi as ffi
    from msops._custom.short_forms import kernel as kernel
    from msops._custom.short_forms import pyfunc as pyfunc
    from msops._face.gradients import get_grad as get_grad
    from msops._face.gradients import grad as grad
    from msops._face.gradients import value_and_grad as value_and_grad
    from msops._face.jit import jit as jit
    from msops._face.jit_config import JitConfig as JitConfig
    from msops._face.saved_tensors import saved_tensors_hooks as saved_tensors_hooks
    from msops._face.transformations import jacfwd as jacfwd
    from msops._face.transformations import jacrev as jacrev
    from msops._face.transformations import jvp as jvp
    from msops._face.transformations import recompute as recompute
    from msops._face.transformations import vjp as vjp
    from msops._face.transformations import vmap as vmap


def load_ipython_extension(shell: object) -> None:
    """Registers the cell magic ``%%aot``; IPython calls this for ``%load_ext msops``.

    Args:
      shell: the running IPython.
    """
    from msops._tools.notebook import load_ipython_extension as load

    load(shell)


# Only some programs use these, and importing them takes long.
_LATER = {
    "_Function": "msops._extension.python_functions",
    "JitConfig": "msops._face.jit_config",
    "cpp": "msops._custom.short_forms",
    "export_checks": "msops._calls.exporting",
    "extension": "msops.extension",
    "ffi": "msops._custom.short_forms",
    "get_grad": "msops._face.gradients",
    "grad": "msops._face.gradients",
    "jacfwd": "msops._face.transformations",
    "jacrev": "msops._face.transformations",
    "jit": "msops._face.jit",
    "jvp": "msops._face.transformations",
    "kernel": "msops._custom.short_forms",
    "lang": "msops.lang",
    "nn": "msops.nn",
    "ops": "msops.ops",
    "pyfunc": "msops._custom.short_forms",
    "recompute": "msops._face.transformations",
    "register_ffi_targets": "msops._calls.exporting",
    "saved_tensors_hooks": "msops._face.saved_tensors",
    "tbe": "msops.tbe",
    "testing": "msops.testing",
    "value_and_grad": "msops._face.gradients",
    "vjp": "msops._face.transformations",
    "vmap": "msops._face.transformations",
}
__getattr__ = missing_names(__name__, _LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER} - {"TYPE_CHECKING", "missing_names"})
