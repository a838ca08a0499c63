"""Python functions that exported programs call, in processes that import them by name.

Such a program names a module, a function of it, a digest of the function's code, and how it is
called, as JSON. The process that loads it says by `register_ffi_targets(modules=)` which modules
programs may call functions of. Nothing else is imported or called, whatever a program says.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import PyTreeDef

from msops._base.dtypes import as_dtype
from msops._calls.function_digest import FileChangedError, digest
from msops._calls.host_function import HostFunction
from msops._op.call import Call
from msops._op.identity import layers_at_name
from msops._op.outputs import Outputs
from msops._op.request import Options, Request
from msops.errors import ArgumentTypeError, BackendError, KernelError

_modules: dict[str, types.ModuleType] = {}
# Programs hold the functions that they call, and ops those that they export.
_functions: weakref.WeakValueDictionary[str, HostFunction] = weakref.WeakValueDictionary()
_own: set[bytes] = set()
"""Hashes of what programs that this process exported say; it trusts them."""


def allow_modules(modules: Iterable[str | types.ModuleType]) -> None:
    """Imports modules, and has loaded programs call functions of them.

    Raises:
      ArgumentTypeError: one is neither a module nor the name of one.
    """
    if isinstance(modules, str):
        modules = [modules]
    for module in modules:
        if not isinstance(module, (str, types.ModuleType)) or not module:
            raise ArgumentTypeError.explained(
                "msops.register_ffi_targets",
                f"expected for modules a list of modules or of their names; got {module!r}",
                "Pass modules=['my_kernels'].",
            )
        found = importlib.import_module(module) if isinstance(module, str) else module
        _modules[found.__name__] = found


def describe(function: HostFunction, request: Request, who: str) -> str:
    """Returns what an exported program says of a Python function, for `find`.

    Raises:
      BackendError: another process could not import the function, or not call it alike.
    """
    module, name, layer = _location_of(function.function, who)
    try:
        code = digest(function.function)
    except FileChangedError as error:
        raise BackendError.explained(
            who,
            f"a program that calls the Python function {name} is being exported, and {error}, "
            "so another process would import another function",
            "Import it again, in a new process say, and export the program then.",
        ) from None
    call, outputs = request.call, request.outputs
    text = json.dumps(
        {
            "module": module,
            "name": name,
            "layer": layer,
            "code": code,
            "op": request.op,
            "who": request.who,
            "layout": [_slot(slot, who) for slot in call.layout],
            "numbers": [] if call.batch else call.numbers,
            "tensors": call.tensors,
            "inputs": [array.dtype.name for array in request.inputs],
            "outputs": [array.dtype.name for array in outputs.structs],
            "is_tuple": outputs.is_tuple,
            "has_sizes": outputs.has_sizes,
            "tree": _slot(outputs.tree, who),
            "attributes": [[name, _encode(value, who)] for name, value in request.attributes],
            "ports": function.ports,
            "writable": request.options.writable is True,
            "inplace": request.options.inplace,
        },
        sort_keys=True,
    )
    _functions[text] = function
    _own.add(_hash_of(text))
    return text


def find(text: str) -> HostFunction:
    """Returns the function that an exported program describes.

    Raises:
      KernelError: its module is not allowed, or has no such function, or another one.
    """
    function = _functions.get(text)
    if function is None:
        function = _functions[text] = _read(json.loads(text), _hash_of(text) in _own)
    return function


def _hash_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _read(said: dict[str, Any], is_own: bool) -> HostFunction:
    module, name = said["module"], said["name"]

    def refused(problem: str, remedy: str) -> KernelError:
        return KernelError.explained(said["who"], problem, remedy)

    if module not in _modules and not is_own:
        raise refused(
            f"the program calls the Python function {name} of module {module}, and this process "
            "allows programs no functions of that module",
            f"If you trust the program, call msops.register_ffi_targets(modules=[{module!r}]) "
            "before it.",
        )
    layers = layers_at_name(module, name)
    function: Any = layers[said["layer"]] if 0 <= said["layer"] < len(layers) else None
    if not _is_at(function, module, name):
        raise refused(
            f"the program calls the Python function {name} of module {module}, which has no such "
            "function",
            "Provide the module as it was when the program was exported, or export it again.",
        )
    try:
        code = digest(function)
    except FileChangedError as error:
        raise refused(
            f"the program calls the Python function {name} of module {module}, and {error}",
            "Import it again, in a new process say.",
        ) from None
    if code != said["code"]:
        raise refused(
            f"the Python function {name} of module {module} is not the one that the program was "
            "exported with: its code differs",
            "Provide the module as it was when the program was exported, or export it again.",
        )
    call = Call(
        tuple(_tree_of(slot) for slot in said["layout"]),
        tensors=said["tensors"],
        numbers=tuple(said["numbers"]),
    )
    # The arrays of each call bring their shapes.
    inputs, outputs = (
        tuple(jax.ShapeDtypeStruct((), as_dtype(dtype).dtype) for dtype in said[side])
        for side in ("inputs", "outputs")
    )
    tree = _tree_of(said["tree"])
    request = Request(
        op=said["op"],
        op_type="",
        platform="cpu",
        guarded=False,
        infos=(),
        call=call,
        attributes=tuple((name, _decode(value)) for name, value in said["attributes"]),
        prim_attrs=(),
        inputs=inputs,
        outputs=Outputs(outputs, said["is_tuple"], said["has_sizes"], tree),
        options=Options(
            writable=said["writable"], inplace=tuple((o, i) for o, i in said["inplace"])
        ),
        bind=_bind_nothing,
        who=said["who"],
    )
    return HostFunction(function, function, request, said["ports"])


def _bind_nothing(call: Call, arrays: Sequence[Any]) -> Sequence[Any]:
    raise AssertionError("a loaded program binds no op")


def _location_of(function: Callable[..., Any], who: str) -> tuple[str, str, int]:
    """Returns where another process can import a function.

    Returns:
      The module, the name, and how many decorators made by `functools.wraps` are above it there.
    """
    name = str(getattr(function, "__qualname__", "") or getattr(function, "__name__", ""))
    module = str(getattr(function, "__module__", "") or "")
    if isinstance(function, np.ufunc):
        module = "numpy"
    what = f"the Python function {name or type(function).__name__}"
    if getattr(function, "__name__", "") == "<lambda>":
        what, reason = "the Python function <lambda>", "which is a lambda"
    elif "<locals>" in name:
        reason = "which is defined inside another function"
    elif module == "__main__":
        reason = "which is defined in the program that runs (__main__)"
    elif isinstance(function, functools.partial) or not isinstance(
        function, (types.FunctionType, np.ufunc)
    ):
        what, reason = f"a {type(function).__name__}", "which is no function at a name of a module"
    else:
        layers = layers_at_name(module, name) if module in sys.modules else []
        for layer, found in enumerate(layers):
            if found is function:
                return module, name, layer
        reason = f"which is not what module {module} has at that name"
    raise BackendError.explained(
        who,
        f"a program that calls {what} is being exported, {reason}, so another process cannot "
        "import it",
        "Define it by def at the top of a module that the other process can import, or write "
        "the kernel as func_type 'aot', 'akg', 'hybrid' or 'tbe'.",
    )


def _is_at(function: Any, module: str, name: str) -> bool:
    """Returns whether this is a function that the module defines; it may have imported others."""
    if isinstance(function, np.ufunc):
        return module == "numpy" and function.__name__ == name
    return (
        isinstance(function, types.FunctionType)
        and function.__module__ == module
        and function.__qualname__ == name
    )


def _slot(slot: int | PyTreeDef | None, who: str) -> Any:
    """Returns an entry of a layout, or the structure of results, as JSON has it."""
    if isinstance(slot, PyTreeDef):
        return {"tree": _encode(jax.tree.unflatten(slot, range(slot.num_leaves)), who)}
    return slot


def _tree_of(said: Any) -> Any:
    return jax.tree.structure(_decode(said["tree"])) if isinstance(said, dict) else said


def _encode(value: Any, who: str) -> Any:
    """Returns a value, or a tree of them, as JSON has it."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in (tuple, list):
        return {type(value).__name__: [_encode(item, who) for item in value]}
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        return {"dict": [[key, _encode(item, who)] for key, item in value.items()]}
    raise BackendError.explained(
        who,
        "a program that calls a Python function with or for a "
        f"{type(value).__name__} is being exported",
        "Pass and return arrays in tuples, lists and dicts of str there.",
    )


def _decode(said: Any) -> Any:
    if not isinstance(said, dict):
        return said
    ((kind, items),) = said.items()
    if kind == "dict":
        return {key: _decode(item) for key, item in items}
    return (tuple if kind == "tuple" else list)(map(_decode, items))
