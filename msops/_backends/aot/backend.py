"""aot: a C, C++ or CUDA function of MindSpore's C ABI, called through one XLA custom call.

Corresponds to ``mindspore.ops.Custom(func_type="aot")``, 2.7.2.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msops import _jax_seam as seam
from msops._backends.aot.companions import Companions
from msops._backends.aot.operators import BACKEND, NamedOperator, companions_of_operator
from msops._base.logging import warn_once
from msops._base.paths import get_include
from msops._calls.library_call import AotCall
from msops._calls.opaque import OpaqueBackend
from msops._op.backend import Backend, Division
from msops._op.request import Options, Request
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


class AotBackend(OpaqueBackend):
    """Runs on CPU and CUDA, guarded by the rows of the platform lowered for."""

    func_type = "aot"
    platforms: tuple[str, ...] = ("cpu", "cuda", "rocm")
    own_options: tuple[str, ...] = ("stateful", "reentrant", "inplace", "host", "cxx11_abi")
    may_have_no_outputs = False
    runs_on_host = False

    def read(self, func: Any, options: Options, who: str) -> AotSource | NamedOperator:
        """Splits ``"path:Symbol"`` and checks that the file exists and may be used.

        A name alone is that of an operator of Ascend.
        """
        if isinstance(func, str) and func.isidentifier():
            return BACKEND.read(func, options, who)
        path, symbol = split_func(func, who)
        check_allowed(path, who)
        require_file(path, who)
        return AotSource(path, symbol)

    def resolve(
        self, source: AotSource | NamedOperator, options: Options, who: str
    ) -> AotKernel | NamedOperator:
        """Builds or copies the library, and finds the symbol in it.

        A library that only has infer functions for it is about an operator of Ascend.
        """
        if isinstance(source, NamedOperator):
            return BACKEND.resolve(source, options, who)
        library = resolve(
            source.path, who, include_dirs=(Path(get_include()),), cxx11_abi=options.cxx11_abi
        )
        companions = companions_of_operator(library, source.symbol)
        if companions is not None:
            operator = BACKEND.read(source.symbol, options, who)
            return dataclasses.replace(operator, companions=companions)
        require_symbol(library, source.symbol, who)
        return AotKernel(library, source.symbol)

    def infer(
        self, kernel: AotKernel, half: str, request: Request, infos: Sequence[OpInfo], who: str
    ) -> Any:
        """Asks ``<symbol>InferShape`` or ``<symbol>InferType`` in the library."""
        companions = Companions(kernel.library, kernel.symbol)
        if not companions.has(half):
            name = companions.name(half)
            raise InferenceValueError(
                explain(
                    who,
                    f"out_{half} is None, and {kernel.library.name} has no {name}",
                    f'Pass out_{half}, or define extern "C" {name} in the library.',
                )
            )
        return companions.ask(half, _call_of(kernel, request), request.inputs, infos, who)

    def call(self, kernel: AotKernel, request: Request) -> AotCall | None:
        """Returns the call, unless the library is for another platform."""
        if not _runs(kernel, request):
            return None
        return dataclasses.replace(_call_of(kernel, request), aliases=request.aliases())

    def lower(
        self,
        kernel: AotKernel,
        request: Request,
        lowering: seam.Lowering,
        operands: Sequence[Any],
    ) -> Sequence[Any]:
        """Lowers to the custom call; on a GPU, a host kernel only by ``host=True``."""
        on_gpu = request.platform != "cpu"
        if on_gpu and request.options.host:
            warn_once(_log, f"{request.who}: runs on the host, with a copy of its arrays each way")
        elif on_gpu and not _runs(kernel, request):
            raise BackendError(
                explain(
                    request.who,
                    f"{kernel.library.name} holds no GPU code",
                    "Pass Custom(..., host=True) to run it on the host with a copy each way, "
                    "give a .cu kernel, or register op info for target 'GPU' if the library does "
                    "launch on the GPU.",
                )
            )
        elif not _runs(kernel, request):
            raise BackendError(
                explain(
                    request.who,
                    f"{kernel.library.name} holds GPU code, and the program runs on the CPU",
                    "Place the arrays on a GPU, or register op info for target 'CPU' if "
                    f"{kernel.symbol} is a host function of that library.",
                )
            )
        return super().lower(kernel, request, lowering, operands)

    def division(self, kernel: AotKernel, request: Request) -> Division:
        """Returns "parts" where the library itself runs; host callbacks take whole arrays."""
        by_host = request.platform != "cpu" and request.options.host
        return "parts" if _runs(kernel, request) and not by_host else "whole"


def make_backend(func_type: str) -> Backend:
    """Returns the backend, for the table of func_types."""
    return AotBackend()


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


def _runs(kernel: AotKernel, request: Request) -> bool:
    """Tells whether the library runs on the platform: op info for it says so, or its code."""
    return request.guarded or kernel.library.has_device_code == (request.platform != "cpu")


def _call_of(kernel: AotKernel, request: Request) -> AotCall:
    """Returns the call but for what needs its outputs to be known."""
    return AotCall(
        op=request.op,
        kernel_name=kernel.symbol,
        library=kernel.library,
        attributes=(*request.prim_attrs, *request.attributes),
        reentrant=request.options.reentrant,
    )
