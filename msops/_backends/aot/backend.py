"""aot: a C, C++ or CUDA function of MindSpore's C ABI, called through one XLA custom call.

Corresponds to ``mindspore.ops.Custom(func_type="aot")``, 2.7.2.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msops import _jax_seam as seam
from msops._backends.aot.infer_functions import InferFunctions
from msops._base import config
from msops._base.building import Build, SourceText
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
    check_build,
    find_in_cache,
    index,
    read_path,
    require_file,
    require_signature,
    require_symbol,
    resolve,
)
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BackendError,
    BuildError,
    InferenceValueError,
)

if TYPE_CHECKING:
    from msops._backends.aot.operators import NamedOperator

_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".cu")

_log = logging.getLogger("msops.aot")


@dataclasses.dataclass(frozen=True)
class AotSource:
    """Where a kernel comes from: a source or library file, or a text; and the symbol in it."""

    file: Path | SourceText
    symbol: str

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self.file, SourceText):
            return AotSource, (self.file, self.symbol)
        content = self.file.read_bytes()
        is_library = content.startswith(b"\x7fELF")
        text = None if is_library else content.decode("utf-8", "surrogateescape")
        return _found_again, (self.file, hashlib.sha256(content).hexdigest(), text, self.symbol)


def _found_again(path: Path, digest: str, text: str | None, symbol: str) -> AotSource:
    """Returns a kernel that was pickled: its file, or equal content from elsewhere.

    Args:
      path: of the file, where it was pickled.
      digest: SHA-256 of its content.
      text: of a source; None for a library.
      symbol: the function in it.

    Raises:
      BuildError: it is a library, and none of this content is found.
    """
    with contextlib.suppress(OSError):
        if hashlib.sha256(path.read_bytes()).hexdigest() == digest:
            return AotSource(path, symbol)
    if text is not None:
        return AotSource(SourceText(text, symbol, path.suffix), symbol)
    who = f"Custom '{symbol}'"
    copies = [index(folder).get(digest) for folder in config.library_path()]
    found = next(filter(None, copies), None) or find_in_cache(digest, who)
    if found is not None:
        return AotSource(found, symbol)
    raise BuildError.explained(
        who,
        f"it was pickled with the library {path} of SHA-256 {digest[:16]}, and there is no "
        "such file, nor one of this content",
        "Copy the library to a folder, and set MSOPS_LIBRARY_PATH to that folder.",
        [f"looked in {folder}" for folder in (*config.library_path(), config.cache_dir())],
    )


@dataclasses.dataclass(frozen=True)
class AotKernel:
    """A kernel ready to run: the library by content, the symbol in it, and what it was read as."""

    library: Library
    symbol: str
    source: AotSource | None = dataclasses.field(default=None, compare=False)


class AotBackend(OpaqueBackend["AotSource | NamedOperator", AotKernel]):
    """Runs on CPU and CUDA, guarded by the rows of the platform lowered for."""

    func_type = "aot"
    platforms: tuple[str, ...] = ("cpu", "cuda", "rocm")
    own_options: tuple[str, ...] = (
        "stateful",
        "reentrant",
        "inplace",
        "host",
        "cxx11_abi",
        "build",
    )
    takes_low_precision = True

    def read(self, func: Any, options: Options, who: str) -> AotSource | NamedOperator:
        """Splits ``"path:Symbol"`` and checks that the files exist and may be used.

        A name alone is that of an operator of Ascend.
        """
        if options.build is not None:
            check_build(options.build, who)
        if isinstance(func, SourceText):
            return AotSource(func, func.name)
        if isinstance(func, str) and func.isidentifier():
            if options.build is not None:
                raise ArgumentValueError.explained(
                    who,
                    f"expected a source with build; got the operator {func}",
                    "Leave build out, or name a source: Custom('file.cc:Name', ...).",
                )
            # Imported where an operator is asked for: other kernels do without its modules.
            from msops._backends.aot.operators import BACKEND

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
        if not isinstance(source, AotSource):
            return source
        library = build_library(source, options, who)
        if source.symbol not in library.functions:
            from msops._backends.aot.operators import BACKEND, infer_functions_of

            infer_functions = infer_functions_of(library, source.symbol)
            if infer_functions is not None:
                operator = BACKEND.read(source.symbol, options, who)
                return dataclasses.replace(operator, infer_functions=infer_functions)
        require_symbol(library, source.symbol, who)
        build, include_dirs = options.build or Build(), (Path(get_include()),)
        require_signature(library, source.symbol, source.file, include_dirs, build, who)
        return AotKernel(library, source.symbol, source)

    def infer(
        self, kernel: AotKernel, half: str, request: Request, infos: Sequence[OpInfo], who: str
    ) -> Any:
        """Asks ``<symbol>InferShape`` or ``<symbol>InferType`` in the library."""
        infer_functions = InferFunctions(kernel.library, kernel.symbol)
        if not infer_functions.has(half):
            name = infer_functions.name(half)
            raise InferenceValueError.explained(
                who,
                f"neither out nor out_{half} is given, and {kernel.library.name} has no {name}",
                "Pass out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), or "
                f'out_{half}=lambda x: x; or define extern "C" {name} in the library.',
            )
        return infer_functions.ask(half, call_of(kernel, request), request.inputs, infos, who)

    def call(self, kernel: AotKernel, request: Request) -> AotCall | None:
        """Returns the call, unless the library is for another platform."""
        if not _runs(kernel, request):
            return None
        return dataclasses.replace(call_of(kernel, request), aliases=request.aliases())

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
            raise BackendError.explained(
                request.who,
                f"{kernel.library.name} holds no GPU code",
                "Make the op with host=True to run it on the host with a copy each way, "
                "give a .cu kernel, or register op info for target 'GPU' if the library does "
                "launch on the GPU.",
            )
        elif not _runs(kernel, request):
            raise BackendError.explained(
                request.who,
                f"{kernel.library.name} holds GPU code, and the program runs on the CPU",
                "Place the arrays on a GPU, or register op info for target 'CPU' if "
                f"{kernel.symbol} is a host function of that library.",
            )
        return super().lower(kernel, request, lowering, operands)

    def explain(self, kernel: AotKernel, request: Request) -> str:
        """Says that the kernel runs as it is, and who finds out why it ends the process."""
        advice = "If it crashes, msops.testing.opcheck names the access outside its arrays."
        return f"{super().explain(kernel, request)}\n{advice}"

    def division(self, kernel: AotKernel, request: Request) -> Division:
        """Returns "parts" where the library itself runs; host callbacks take whole arrays."""
        by_host = request.platform != "cpu" and request.options.host
        return "parts" if _runs(kernel, request) and not by_host else "whole"


def make_backend(func_type: str) -> Backend[Any, Any]:
    """Returns the backend, for the table of func_types."""
    return AotBackend()


def build_library(
    source: AotSource, options: Options, who: str, flags: tuple[str, ...] = ()
) -> Library:
    """Returns the library of a kernel, built or copied unless the cache has it.

    Args:
      source: where the kernel comes from.
      options: of the op.
      who: the op that messages name.
      flags: further words for the compiler.
    """
    build = options.build or Build()
    if flags:
        build = dataclasses.replace(build, flags=(*build.flags, *flags))
    return resolve(
        source.file,
        who,
        include_dirs=(Path(get_include()),),
        options=build,
        cxx11_abi=options.cxx11_abi,
    )


def split_func(func: Any, who: str) -> tuple[Path, str]:
    """Returns the absolute path and the symbol of ``"path:Symbol"``."""
    text = os.fspath(func) if isinstance(func, os.PathLike) else func
    if isinstance(text, str) and "\n" in text and not os.path.isfile(text.rpartition(":")[0]):
        raise ArgumentTypeError.explained(
            who,
            "expected func 'library.so:Symbol' or 'source.cc:Symbol'; got a text of "
            f"{len(text.splitlines())} lines",
            'Pass a source itself as msops.source(text, "Symbol").',
        )
    path, colon, symbol = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not colon or not path or "\0" in path:
        raise ArgumentTypeError.explained(
            who,
            f"expected func 'library.so:Symbol' or 'source.cc:Symbol' for func_type 'aot'; "
            f"got {func!r}",
            "Name the file and the function, with a colon between them.",
        )
    if not (symbol.isascii() and symbol.isidentifier()):
        raise ArgumentValueError.explained(
            who,
            f"expected the name of a C function after the colon of func; got {symbol!r}",
            "Name a function that is exported with extern \"C\", e.g. './add.cc:Add'.",
        )
    if not (path.endswith(_SOURCES) or ".so" in Path(path).name):
        raise ArgumentValueError.explained(
            who,
            f"expected a library (.so) or a source ({', '.join(_SOURCES)}); got {path!r}",
            "Rename the file, or build it to a shared library first.",
        )
    return read_path(path, who), symbol


def _runs(kernel: AotKernel, request: Request) -> bool:
    """Returns whether the library runs on the platform: op info for it says so, or its code."""
    return request.guarded or kernel.library.has_device_code == (request.platform != "cpu")


def call_of(kernel: AotKernel, request: Request) -> AotCall:
    """Returns the call but for what needs its outputs to be known."""
    return AotCall(
        op=request.op,
        kernel_name=kernel.symbol,
        library=kernel.library,
        attributes=(*request.prim_attrs, *request.attributes),
        reentrant=request.options.reentrant,
    )
