"""From CUDA C that msops generated to cubins, by NVRTC, which needs no toolkit and no GPU.

The compiler is a library: that of the packages that ``jax[cuda12]`` or ``jax[cuda13]`` installs,
else the system's. It is opened here, for compiling only; what it makes lies in the same cache as
built libraries, under the same kind of key.

Source: NVRTC 12.9, https://docs.nvidia.com/cuda/nvrtc.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msops._base import config
from msops._base.logging import log_build
from msops._toolchain.cuda import device_architectures, driver_major
from msops._toolchain.manifest import Result, add_object, found_or_made, key_of
from msops._toolchain.store import open_store
from msops.errors import ArgumentValueError, BuildError

# Contraction is left out: a * b + c rounds twice, as on the CPU.
_FLAGS = ("--std=c++17", "--fmad=false")
_SHOWN_LINES = 12
_INSTALL = (
    'Install JAX with its CUDA packages, which include NVRTC (pip install "jax[cuda13]"), or NVRTC '
    "alone (pip install nvidia-cuda-nvrtc), or the CUDA toolkit."
)


@dataclass(frozen=True)
class Cubin:
    """Compiled CUDA code for one architecture.

    Attributes:
      hash: SHA-256 of its content, in hexadecimal; what programs refer to it by.
      content: what the driver loads.
      path: where the cache has it.
    """

    hash: str
    content: bytes
    path: Path


def build_cubins(text: str, name: str, who: str) -> tuple[Cubin, ...]:
    """Returns the code compiled for each architecture here, from the cache where it has it.

    Args:
      text: CUDA C without includes.
      name: an identifier; what files and messages call the code.
      who: the op that messages name.

    Raises:
      BuildError: there is no NVRTC, it refuses the code or the architecture, or no architecture is
        known.
    """
    return tuple(_build(text, name, architecture, who) for architecture in architectures(who))


def architectures(who: str) -> tuple[str, ...]:
    """Returns what to compile for: ``MSOPS_CUDA_ARCH``, else the devices present.

    Raises:
      ArgumentValueError: the variable names no real architecture.
      BuildError: it is not set, and there is no device.
    """
    chosen = config.cuda_arch()
    if chosen is None:
        found = device_architectures()
        if found:
            return found
        raise BuildError.explained(
            who,
            "compiling for CUDA needs a GPU's architecture, and this machine has no GPU",
            "Set MSOPS_CUDA_ARCH to the architecture of the GPU that will run it, for example "
            "sm_90.",
        )
    if not re.fullmatch(r"sm_\d+[af]?", chosen):
        raise ArgumentValueError.explained(
            who,
            f"expected MSOPS_CUDA_ARCH to be an architecture like sm_90; got {chosen!r}",
            "Name the GPU's own architecture: generated code is compiled for it alone.",
        )
    return (chosen,)


def index_cubins(folder: str | os.PathLike[str]) -> dict[str, bytes]:
    """Returns the files ``*.cubin`` in one folder of ``MSOPS_LIBRARY_PATH``, by content hash."""
    found: dict[str, bytes] = {}
    for path in sorted(Path(folder).glob("*.cubin")):
        try:
            content = path.read_bytes()
        except OSError:
            # What cannot be read, or goes away, is not there.
            continue
        found[hashlib.sha256(content).hexdigest()] = content
    return found


def _build(text: str, name: str, architecture: str, who: str) -> Cubin:
    compiler = find_compiler(architecture, who)
    store = open_store(who)
    identity = ("nvrtc", compiler.version, architecture, _FLAGS, name, text)
    key, file_name = key_of(identity), f"{name}.{architecture}.cubin"

    def make() -> tuple[Result, bytes]:
        with log_build(who, file_name, (compiler.path, *compile_flags(architecture))):
            content = compiler.compile(text, name, architecture, who)
        return add_object(store, key, file_name, content)

    result, content = found_or_made(store, key, file_name, make)
    return Cubin(result.library, content, store.object_path(result.library, file_name))


def compile_flags(architecture: str) -> tuple[str, ...]:
    """Returns NVRTC's options for an architecture."""
    return (f"--gpu-architecture={architecture}", *_FLAGS)


class NvrtcCompiler:
    """One libnvrtc, opened.

    Args:
      path: the file, or a name for the dynamic linker.

    Attributes:
      version: major and minor version of CUDA.
    """

    def __init__(self, path: str):
        self.path = path
        self._library = ctypes.CDLL(path)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    def supports(self, architecture: str) -> bool:
        """Returns whether it compiles for an architecture."""
        count = ctypes.c_int()
        self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._library.nvrtcGetSupportedArchs(numbers)
        return int(re.sub(r"\D", "", architecture)) in numbers[:]

    def compile(self, text: str, name: str, architecture: str, who: str) -> bytes:
        """Returns the cubin of a text.

        Raises:
          BuildError: the text does not compile; the error's ``output`` is the whole log.
        """
        program = ctypes.c_void_p()
        source_name = f"{name}.cu".encode()
        status = self._library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), source_name, 0, None, None
        )
        if status == 0:
            try:
                flags = compile_flags(architecture)
                words = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
                status = self._library.nvrtcCompileProgram(program, len(flags), words)
                if status == 0:
                    return self._read(program, "CUBIN")
                log = self._read(program, "ProgramLog").decode(errors="replace").rstrip("\0\n")
            finally:
                self._library.nvrtcDestroyProgram(ctypes.byref(program))
        else:
            log = ""
        raise self._refused(status, log, name, architecture, who)

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        """Returns what NVRTC has of a program: its "CUBIN", or its "ProgramLog"."""
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{what}")(program, data)
        return data.raw

    def _refused(self, status: int, log: str, name: str, architecture: str, who: str) -> BuildError:
        describe = self._library.nvrtcGetErrorString
        describe.restype = ctypes.c_char_p
        error = BuildError.explained(
            who,
            f"NVRTC {'.'.join(map(str, self.version))} could not compile {name} for "
            f"{architecture} ({describe(status).decode()})",
            "Please report it: msops wrote this code. All that the compiler said is in the "
            "attribute 'output' of this error.",
            log.splitlines()[:_SHOWN_LINES],
        )
        error.output = log
        return error


@functools.cache
def find_compiler(architecture: str, who: str) -> NvrtcCompiler:
    """Returns the newest NVRTC that compiles for an architecture and that the driver can follow.

    Raises:
      BuildError: there is none.
    """
    newest = driver_major()
    passed: list[str] = []
    for compiler in _compilers():
        version = ".".join(map(str, compiler.version))
        if newest is not None and compiler.version[0] > newest:
            passed.append(f"{compiler.path} is {version}, the driver takes code of CUDA {newest}")
        elif not compiler.supports(architecture):
            passed.append(f"{compiler.path} is {version} and does not know {architecture}")
        else:
            return compiler
    raise BuildError.explained(
        who, "compiling for CUDA needs NVRTC, and none that fits was found", _INSTALL, passed
    )


def _compilers() -> Iterator[NvrtcCompiler]:
    """Yields every NVRTC there is: Python packages' before the system's, newest first."""
    for path in (*_packaged(), *_installed()):
        try:
            yield NvrtcCompiler(path)
        except OSError:
            # Not there, or for another machine.
            continue


def _packaged() -> list[str]:
    """Returns the libraries in NVIDIA's Python packages."""
    package = importlib.util.find_spec("nvidia")
    folders = (package and package.submodule_search_locations) or ()
    paths = [path for folder in folders for path in Path(folder).glob("*/lib/libnvrtc.so.*")]
    return [os.fspath(path) for path in sorted(paths, key=_soname_number, reverse=True)]


def _installed() -> list[str]:
    """Returns where a toolkit has the library: CUDA_HOME, the linker's path, the usual folder."""
    home = os.environ.get("CUDA_HOME")
    folders = (*([f"{home}/lib64/"] if home else []), "", "/usr/local/cuda/lib64/")
    return [f"{folder}libnvrtc.so.{major}" for folder in folders for major in (13, 12)]


def _soname_number(path: Path) -> int:
    return int(path.suffix.lstrip(".")) if path.suffix.lstrip(".").isdigit() else 0
