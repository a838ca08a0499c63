"""aot: a C, C++ or CUDA function of MindSpore's C ABI, called through one XLA custom call.

Corresponds to ``mindspore.ops.Custom(func_type="aot")``, 2.7.2.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msops._base.dtypes import BY_TYPE_ID
from msops._base.logging import warn_once
from msops._base.paths import get_include
from msops._calls.host_round_trip import lower_through_host
from msops._calls.library_call import (
    NativeCall,
    infer_shapes,
    infer_type_ids,
    lower_native_call,
    open_library,
)
from msops._op.backend import Division, Opaque, Options, Request, require_one_run
from msops._op.inference import require_numbers
from msops._op_info import OpInfo
from msops._toolchain import (
    Library,
    check_allowed,
    read_path,
    require_file,
    require_symbol,
    resolve,
)
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BackendError,
    InferenceValueError,
    explain,
)

_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".cu")

_log = logging.getLogger("msops.aot")


@dataclasses.dataclass(frozen=True)
class AotSource:
    """Where a kernel comes from: a source or library file, and the symbol in it."""

    path: Path
    symbol: str


@dataclasses.dataclass(frozen=True)
class AotKernel:
    """A kernel ready to run: the library by content, and the symbol in it."""

    library: Library
    symbol: str


class AotBackend(Opaque):
    """Runs on CPU and CUDA, guarded by the rows of the platform lowered for (decision 7)."""

    func_type = "aot"
    platforms: tuple[str, ...] = ("cpu", "cuda", "rocm")
    may_have_no_outputs = False
    runs_on_host = False

    def read(self, func: Any, options: Options, who: str) -> AotSource:
        """Splits ``"path:Symbol"`` and checks that the file exists and may be used."""
        path, symbol = split_func(func, who)
        check_allowed(path, who)
        require_file(path, who)
        return AotSource(path, symbol)

    def resolve(self, source: AotSource, options: Options, who: str) -> AotKernel:
        """Builds or copies the library, and finds the symbol in it."""
        library = resolve(
            source.path, who, include_dirs=(Path(get_include()),), cxx11_abi=options.cxx11_abi
        )
        require_symbol(library, source.symbol, who)
        return AotKernel(library, source.symbol)

    def infer(
        self, kernel: AotKernel, half: str, request: Request, infos: Sequence[OpInfo], who: str
    ) -> Any:
        """Asks ``<symbol>InferShape`` or ``<symbol>InferType`` in the library."""
        companion = f"{kernel.symbol}Infer{'Shape' if half == 'shape' else 'Type'}"
        if companion not in kernel.library.functions:
            raise InferenceValueError(
                explain(
                    who,
                    f"out_{half} is None, and {kernel.library.name} has no {companion}",
                    f'Pass out_{half}, or define extern "C" {companion} in the library.',
                )
            )
        if half == "shape":
            for index, struct in enumerate(request.inputs):
                require_numbers(
                    struct.shape,
                    f"input {index}, as {companion} is asked",
                    who,
                    "Pass out_shape as a function of the inputs' shapes, e.g. lambda x: x, which "
                    "gets the symbols too",
                )
        # Decision 16: which of the two C++ return types a companion has cannot be seen in the
        # library, only in the op info.
        multiple = any(
            len(info.outputs) > 1 or any(port.kind == "dynamic" for port in info.outputs)
            for info in infos
        )
        call = _native_call(kernel, request)
        if half == "shape":
            return infer_shapes(call, request.inputs, multiple, who)
        type_ids = infer_type_ids(call, request.inputs, multiple, who)
        unknown = [number for number in type_ids if number not in BY_TYPE_ID]
        if unknown:
            raise InferenceValueError(
                explain(
                    who,
                    f"expected TypeId numbers of dtypes from {companion}; got {unknown}",
                    "Return one of the numbers: "
                    + ", ".join(f"{row.type_id} {row.name}" for row in BY_TYPE_ID.values())
                    + ".",
                )
            )
        dtypes = tuple(BY_TYPE_ID[number] for number in type_ids)
        return dtypes if multiple else dtypes[0]

    def guard_target(self, platform: str) -> str:
        """Returns the target of the platform lowered for."""
        return "CPU" if platform == "cpu" else "GPU"

    def native(self, kernel: AotKernel, request: Request) -> NativeCall | None:
        """Returns the call, unless the library is for a GPU."""
        return None if kernel.library.has_device_code else _bound_call(kernel, request)

    def lower(self, kernel: AotKernel, request: Request, ctx: Any, operands: Sequence[Any]) -> Any:
        """Lowers to the custom call; on a GPU, a host kernel only by ``host=True``."""
        on_gpu = request.platform != "cpu"
        runs_on_gpu = kernel.library.has_device_code or request.guarded
        if on_gpu and request.options.host:
            warn_once(_log, f"{request.who}: runs on the host, with a copy of its arrays each way")
            return lower_through_host(request, ctx, operands)
        if on_gpu and not runs_on_gpu:
            raise BackendError(
                explain(
                    request.who,
                    f"{kernel.library.name} holds no GPU code",
                    "Pass Custom(..., host=True) to run it on the host with a copy each way, "
                    "give a .cu kernel, or register op info for target 'GPU' if the library does "
                    "launch on the GPU.",
                )
            )
        if not on_gpu and kernel.library.has_device_code and not request.guarded:
            raise BackendError(
                explain(
                    request.who,
                    f"{kernel.library.name} holds GPU code, and the program runs on the CPU",
                    "Place the arrays on a GPU, or register op info for target 'CPU' if "
                    f"{kernel.symbol} is a host function of that library.",
                )
            )
        require_one_run(request, ctx)
        return lower_native_call(
            _bound_call(kernel, request),
            request.platform,
            request.inputs,
            request.outputs.structs,
            request.options.stateful,
            request.who,
            ctx,
            operands,
        )

    def division(self, kernel: AotKernel, request: Request) -> Division:
        """Returns "parts" where the library itself runs; host callbacks take whole arrays."""
        has_device_code = kernel.library.has_device_code
        if request.platform == "cpu":
            runs = not has_device_code or request.guarded
        else:
            runs = (has_device_code or request.guarded) and not request.options.host
        return "parts" if runs else "whole"

    def library(self, kernel: AotKernel, request: Request) -> Library:
        """Opens and returns the library, which has the kernel for every shape."""
        open_library(kernel.library, request.platform, request.who)
        return kernel.library


def split_func(func: Any, who: str) -> tuple[Path, str]:
    """Returns the absolute path and the symbol of ``"path:Symbol"``."""
    path, colon, symbol = func.rpartition(":") if isinstance(func, str) else ("", "", "")
    if not colon or not path or "\0" in func:
        raise ArgumentTypeError(
            explain(
                who,
                f"expected func 'library.so:Symbol' or 'source.cc:Symbol' for func_type 'aot'; "
                f"got {func!r}",
                "Name the file and the function, with a colon between them.",
            )
        )
    if not (symbol.isascii() and symbol.isidentifier()):
        raise ArgumentValueError(
            explain(
                who,
                f"expected the name of a C function after the colon of func; got {symbol!r}",
                "Name a function that is exported with extern \"C\", e.g. './add.cc:Add'.",
            )
        )
    if not (path.endswith(_SOURCES) or ".so" in Path(path).name):
        raise ArgumentValueError(
            explain(
                who,
                f"expected a library (.so) or a source ({', '.join(_SOURCES)}); got {path!r}",
                "Rename the file, or build it to a shared library first.",
            )
        )
    return read_path(path, who), symbol


def _native_call(kernel: AotKernel, request: Request) -> NativeCall:
    return NativeCall(
        op=request.op,
        library=kernel.library,
        symbol=kernel.symbol,
        attributes=(*request.prim_attrs, *request.attributes),
        reentrant=request.options.reentrant,
    )


def _bound_call(kernel: AotKernel, request: Request) -> NativeCall:
    """Returns the call with what needs its outputs to be known."""
    return dataclasses.replace(_native_call(kernel, request), aliases=request.aliases())
