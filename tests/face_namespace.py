"""The MindSpore face gathered from its modules, as tests use it: ``ms``."""

from __future__ import annotations

import types

import msops.common.dtype as dtype
from msops import context, nn, ops
from msops._base import dtypes
from msops._face import context as _context
from msops._face.gradients import grad, value_and_grad
from msops._face.jit import jit
from msops._face.parameter import Parameter, ParameterTuple
from msops._face.tensor import Tensor

ms = types.SimpleNamespace(
    GRAPH_MODE=context.GRAPH_MODE,
    PYNATIVE_MODE=context.PYNATIVE_MODE,
    Parameter=Parameter,
    ParameterTuple=ParameterTuple,
    Tensor=Tensor,
    bool_=dtype.bool_,
    context=context,
    dtype=dtype,
    get_context=context.get_context,
    grad=grad,
    jit=jit,
    nn=nn,
    ops=ops,
    set_context=context.set_context,
    set_device=_context.set_device,
    value_and_grad=value_and_grad,
    **dtypes.BY_NAME,
)
