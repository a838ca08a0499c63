"""Requests of extension modules, in the order of ``MsopsVerb`` in msops_extension/table.h."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from msops._calls.handlers import native_module
from msops._extension.applied_functions import apply
from msops._extension.calls import from_python, new_handle, to_python
from msops._extension.handles import Handle, dtype_of, layout
from msops._extension.methods import call_method, make
from msops._extension.operators import launch_aclnn
from msops._extension.runners import run


def _empty(type_id: int, shape: Sequence[int]) -> Handle:
    return new_handle(tuple(shape), dtype_of(type_id))


def _address(handle: Handle) -> int:
    return handle.writable().ctypes.data


def _is_traced(handles: Sequence[Handle]) -> bool:
    return any(handle.is_traced for handle in handles)


def _assign(target: Handle, source: Handle) -> None:
    target.become(source)


VERBS = (
    from_python,
    to_python,
    _empty,
    layout,
    _address,
    _is_traced,
    call_method,
    make,
    _assign,
    launch_aclnn,
    run,
    apply,
)


@functools.cache
def serve() -> None:
    """Lets extension modules reach these functions."""
    native_module().set_extension_verbs(VERBS)
