"""aicpu: a C++ class derived from ``aicpu::CpuKernel``, in a shared library.

Corresponds to ``mindspore.ops.Custom(func_type="aicpu")``, 2.7.2, which runs it on the AI CPU of
Ascend. Here it runs on the CPU, and from another device by a round trip to the host.
"""

from __future__ import annotations

import dataclasses
import inspect
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msops import _jax_seam as seam
from msops._backends.aicpu.libraries import (
    ATTRIBUTE,
    INPUT_NAMES,
    SEEDS,
    build_library,
    find_library,
)
from msops._base.building import SourceText
from msops._base.logging import warn_once
from msops._calls.library_call import AicpuCall
from msops._calls.opaque import OpaqueBackend
from msops._op.backend import Backend, Division
from msops._op.call import width
from msops._op.definition import Renewable
from msops._op.request import Options, Request
from msops._op_info import OpInfo
from msops._toolchain import Library, check_allowed, check_build, read_path, require_file
from msops.errors import ArgumentTypeError, ArgumentValueError, MsopsError, OpInfoValueError

_SOURCES = (".cc", ".cpp", ".cxx")

_log = logging.getLogger("msops.aicpu")


@dataclasses.dataclass(frozen=True)
class AicpuSource:
    """Where kernels come from: sources, or the folder of the function that was passed."""

    sources: tuple[Path, ...] | SourceText
    folder: Path | None = None


@dataclasses.dataclass(frozen=True)
class AicpuKernel(Renewable):
    """Kernels ready to run.

    Attributes:
      library: the library built from sources; None if calls name it.
      folder: where the op's function is, beside which libraries are looked for.
      sources: what the library was built from.
      found: the libraries that calls named so far.
    """

    library: Library | None
    folder: Path | None
    sources: tuple[Path, ...] | SourceText = dataclasses.field(default=(), compare=False)
    found: dict[str, Library] = dataclasses.field(default_factory=dict, compare=False)

    def library_of(self, request: Request) -> Library:
        """Returns the library that runs a call."""
        if self.library is not None:
            return self.library
        name = dict(request.attributes).get(ATTRIBUTE)
        if not isinstance(name, str) or not name:
            raise OpInfoValueError.explained(
                request.who,
                f"expected the name of a library as attribute {ATTRIBUTE}; got {name!r}",
                "Pass it in the call, at its position in the op info, or give it a default.",
            )
        library = self.found[name] = find_library(name, self.folder, request.who)
        return library

    def is_current(self) -> bool:
        """Returns whether the names still mean the libraries that they meant."""
        try:
            return all(
                find_library(name, self.folder, "msops") == library
                for name, library in self.found.items()
            )
        except MsopsError:
            return False


class AicpuBackend(OpaqueBackend[AicpuSource, AicpuKernel]):
    """Runs natively on the CPU and through it elsewhere; guarded by the "Ascend" rows."""

    func_type = "aicpu"
    own_options: tuple[str, ...] = (
        "stateful",
        "reentrant",
        "inplace",
        "writable",
        "dynamic_outputs",
        "build",
    )
    guard = "Ascend"
    # Only off the CPU, but a primitive is one for all platforms.
    runs_on_host = True
    requires_op_info = True

    def read(self, func: Any, options: Options, who: str) -> AicpuSource:
        """Checks the sources, or notes where the function is that was passed."""
        _check_vmap(options, who)
        if options.build is not None:
            check_build(options.build, who)
        if callable(func):
            return AicpuSource((), _folder_of(func))
        if isinstance(func, SourceText):
            return AicpuSource(func)
        if isinstance(func, str) and func.isidentifier():
            return AicpuSource(())  # a name alone: op info names the library
        names = func if isinstance(func, (list, tuple)) else [func]
        if not names or not all(map(_is_source, names)):
            raise ArgumentTypeError.explained(
                who,
                "expected a function, a name, or C++ sources of kernels, for func_type "
                f"'aicpu'; got {func!r}",
                "Pass 'kernel.cc' or a list of such files, or msops.source(text, name); or a "
                "function that does nothing or the op's name, and name the library by "
                f"{ATTRIBUTE} in its op info.",
            )
        sources = tuple(read_path(os.fspath(name), who) for name in names)
        for source in sources:
            check_allowed(source, who)
            require_file(source, who)
        return AicpuSource(sources)

    def settle(
        self, source: AicpuSource, options: Options, infos: Sequence[OpInfo], who: str
    ) -> Options:
        """Refuses a kernel whose library is not named; unseeded draws are state."""
        info = next(info for info in infos if info.target == "Ascend")
        attributes = {attribute.name: attribute for attribute in info.attributes}
        if not source.sources and ATTRIBUTE not in attributes:
            raise OpInfoValueError.explained(
                who,
                f"nothing names its library: the op info has no attribute {ATTRIBUTE}",
                f"Add .attr('{ATTRIBUTE}', 'required', 'str', 'name') for libname.so, or give "
                "C++ sources as func.",
            )
        seed = attributes.get(SEEDS.get(info.op_name, ""))
        is_seeded = seed is not None and (
            seed.required or seed.default is not None or seed.value is not None
        )
        draws = not source.sources and info.op_name in SEEDS and not is_seeded
        return dataclasses.replace(options, stateful=options.stateful or draws)

    def resolve(self, source: AicpuSource, options: Options, who: str) -> AicpuKernel:
        """Builds the sources; a library that calls name is found when they are lowered."""
        sources = source.sources
        library = build_library(sources, who, options.build) if sources else None
        return AicpuKernel(library, source.folder, source.sources)

    def call(self, kernel: AicpuKernel, request: Request) -> AicpuCall:
        """Returns the call into the library that holds the kernel, or that the call names."""
        return AicpuCall(
            op=request.op,
            kernel_name=request.op_type,
            library=kernel.library_of(request),
            attributes=(*request.prim_attrs, *request.attributes, *_input_names(request)),
            reentrant=request.options.reentrant,
            dynamic_outputs=request.options.dynamic_outputs,
            # A kernel declares nothing about its inputs: only the user knows.
            writable=request.options.writable is not False,
            aliases=request.aliases(),
        )

    def lower(
        self,
        kernel: AicpuKernel,
        request: Request,
        lowering: seam.Lowering,
        operands: Sequence[Any],
    ) -> Sequence[Any]:
        """Lowers to the custom call; off the CPU, to a host callback."""
        if request.platform != "cpu":
            warn_once(
                _log,
                f"aicpu ops run on the host: a program on {request.platform} copies their arrays "
                "each way",
            )
        return super().lower(kernel, request, lowering, operands)

    def division(self, kernel: AicpuKernel, request: Request) -> Division:
        """Returns "parts" on the CPU; host callbacks take whole arrays."""
        return "parts" if request.platform == "cpu" else "whole"


def make_backend(func_type: str) -> Backend[Any, Any]:
    """Returns the backend, for the table of func_types."""
    return AicpuBackend()


def _check_vmap(options: Options, who: str) -> None:
    if options.dynamic_outputs and options.vmap in ("expand_dims", "broadcast_all"):
        raise ArgumentValueError.explained(
            who,
            f"dynamic_outputs does not go with vmap={options.vmap!r}: the elements of a batch "
            "differ in shape",
            "Leave vmap out, so that the kernel runs once per element.",
        )


def _input_names(request: Request) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns the attribute that names the inputs as op info does.

    Kernels find out by the names which of their optional inputs a call has.
    """
    ports = request.infos[0].inputs
    if len(ports) != len(request.call.layout):
        return ()
    names: list[str] = []
    for port, slot in zip(ports, request.call.layout, strict=True):
        count = width(slot)
        names += [port.name] if slot is None else [f"{port.name}{i}" for i in range(count)]
    return ((INPUT_NAMES, tuple(names)),) if names else ()


def _is_source(name: Any) -> bool:
    return isinstance(name, (str, os.PathLike)) and str(name).endswith(_SOURCES)


def _folder_of(func: Callable[..., Any]) -> Path | None:
    """Returns the folder of the file that defines a function, if it is in one."""
    func = inspect.unwrap(func)
    code = getattr(func, "__code__", None)
    path = Path(code.co_filename) if code is not None else None
    return path.absolute().parent if path is not None and path.is_file() else None
