"""ffi: a handler of XLA's FFI out of a library or a source, with all that an op has.

It is what people write for `jax.ffi.ffi_call`. A call of msops's own runs it, which names the
library by its content: so programs with it go to JAX's cache on disk, and are exported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from msops import _jax_seam as seam
from msops._backends.aot.backend import AotBackend, AotKernel, AotSource, build_library
from msops._backends.aot.handler_options import Handler, split_attributes
from msops._base.building import SourceText
from msops._calls.library_call import ForeignCall, LibraryCall
from msops._op.backend import Backend
from msops._op.request import Options, Request
from msops._op_info import OpInfo
from msops._toolchain import require_symbol
from msops.errors import ArgumentValueError, InferenceValueError


@dataclasses.dataclass(frozen=True)
class HandlerSource(AotSource):
    """Where a handler comes from, and the dtypes of its attributes."""

    dtypes: tuple[tuple[str, str], ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _with_dtypes, (AotSource(self.file, self.symbol), self.dtypes)


def _with_dtypes(source: AotSource, dtypes: tuple[tuple[str, str], ...]) -> HandlerSource:
    return HandlerSource(source.file, source.symbol, dtypes)


@dataclasses.dataclass(frozen=True)
class HandlerKernel(AotKernel):
    """A handler, which is another kernel where an attribute has another dtype."""

    dtypes: tuple[tuple[str, str], ...] = ()


class FfiBackend(AotBackend):
    """Runs where the library does: on the CPU, or on a GPU that it has code for."""

    func_type = "ffi"
    own_options: tuple[str, ...] = ("stateful", "reentrant", "inplace", "host", "build")

    def prepare(self, func: Any, attrs: Any) -> tuple[Handler, Any]:
        """Takes the dtypes of attributes to the handler, whose binding has them."""
        if not isinstance(attrs, Mapping):
            return Handler(func), attrs
        values, dtypes = split_attributes(attrs)
        return Handler(func, dtypes), values

    def read(self, func: Handler, options: Options, who: str) -> HandlerSource:
        """Splits ``"path:Symbol"`` and checks that the files exist and may be used."""
        named = func.func
        if isinstance(named, str) and named.isidentifier():
            raise ArgumentValueError.explained(
                who,
                f"expected 'library.so:Symbol' or 'source.cc:Symbol'; got {named!r}",
                "Name the library, too. A target that is registered already is called by "
                "jax.ffi.ffi_call.",
            )
        source = super().read(named, options, who)
        assert isinstance(source, AotSource)
        return _with_dtypes(source, func.dtypes)

    def resolve(self, source: Any, options: Options, who: str) -> AotKernel:
        """Builds or copies the library, and finds the handler in it."""
        is_library = not isinstance(source.file, SourceText) and ".so" in source.file.name
        # A system header: g++ finds missing returns in it.
        flags = () if is_library else ("-isystem", seam.ffi_headers())
        library = build_library(source, options, who, flags)
        handler = "Name a handler: XLA_FFI_DEFINE_HANDLER_SYMBOL defines and exports one."
        require_symbol(library, source.symbol, who, handler)
        return HandlerKernel(library, source.symbol, source, source.dtypes)

    def infer(
        self, kernel: AotKernel, half: str, request: Request, infos: Sequence[OpInfo], who: str
    ) -> NoReturn:
        """Refuses: a handler cannot be asked."""
        raise InferenceValueError.explained(
            who,
            "out is not given, and a handler does not tell the shapes of its results",
            "Pass out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype).",
        )

    def call(self, kernel: AotKernel, request: Request) -> Any:
        """Returns the call, unless the library is for another platform."""
        call = super().call(kernel, request)
        if call is None:
            return None
        assert isinstance(kernel, HandlerKernel)
        common = {
            field.name: getattr(call, field.name) for field in dataclasses.fields(LibraryCall)
        }
        return ForeignCall(**common, dtypes=kernel.dtypes)


def make_backend(func_type: str) -> Backend[Any, Any]:
    """Returns the backend, for the table of func_types."""
    return FfiBackend()
