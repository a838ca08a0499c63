"""The MindSpore face gathered from its modules, as tests use it: ``ms``."""

from __future__ import annotations

import types

from conftest import DTYPE_NAMES

import msops.common.dtype as dtype
from msops import (
    Parameter,
    ParameterTuple,
    Tensor,
    context,
    grad,
    jit,
    nn,
    ops,
    set_device,
    value_and_grad,
)

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
    set_device=set_device,
    value_and_grad=value_and_grad,
    **{name: getattr(dtype, name) for name in DTYPE_NAMES if name != "bool"},
)
