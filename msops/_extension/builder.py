"""CustomOpBuilder: C++ written for MindSpore's extension API, built and loaded."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msops import _toolchain
from msops._base.building import AnyPath, Build
from msops._base.paths import get_include
from msops._extension.options import BuilderOptions, read_options, words
from msops._face import context
from msops._toolchain import LANGUAGES
from msops.errors import ArgumentTypeError, BuildError


class CustomOpBuilder:
    """Builds C++ sources into a module of operators, and loads it.

    Corresponds to ``mindspore.ops.CustomOpBuilder``. The sources include ``ms_extension.h`` or
    ``ms_extension/api.h`` and bind functions with ``PYBIND11_MODULE(MS_EXTENSION_NAME, m)``. The
    functions take and return Tensors or arrays, eagerly and under `jax.jit`, `jax.vmap` and,
    through ``Function``, `jax.grad`. msops keeps the library in its cache.

    Args:
      name: the module's name, an identifier.
      sources: path of a .cc, .cpp, .cxx or .cu file, or a list or tuple of paths; each may be a str
        or a `pathlib.Path`.
      backend: where kernels run: "CPU", "GPU" or "Ascend"; None means "CPU". With "Ascend",
        operators of aclnn run on JAX's device. A .cu file needs "GPU".
      include_paths: folder searched for headers, or a list or tuple of folders.
      cflags: options for the compiler, as on a command line.
      ldflags: options for the linker, as on a command line.
      build_dir: folder that gets a copy of the library, ``<name>.so``, when it is built, and with
        `op_def` the folder ``<name>_auto_generate``, of whose ``gen_ops_def`` the operators can be
        imported, too (not with `build`).
      debug_mode: whether to build for a debugger, without optimisation.
      verbose: whether commands and what they print are shown while they run.
      build: a `Build`, for what else the sources need: libraries, flags, macros; it comes after the
        other options.
      enable_atb, enable_asdsip: whether the sources call operators of these libraries of Ascend,
        ATB and SiP, which here are JAX code; the backend is "Ascend" then.
      op_def: a YAML file, or a list or tuple of them, that defines graph operators of the module.
      op_doc: a YAML file, or several, with the docstrings of these operators.

    Raises:
      ArgumentTypeError: an argument is of a wrong type.
      ArgumentValueError: `name` is no identifier, `backend` none of these, there are no sources, a
        quote in `cflags` or `ldflags` is not closed, or a library of Ascend needs another backend.

    Example:
      >>> import jax.numpy as jnp, msops
      >>> module = msops.ops.CustomOpBuilder.from_source("halves", '''
      ... #include "ms_extension/api.h"
      ... ms::Tensor Half(const ms::Tensor& x) { return x.chunk(2)[0]; }
      ... PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("half", &Half); }
      ... ''').load()
      >>> print(module.half(jnp.arange(6)))
      [0 1 2]

    Source: MindSpore 2.7.2, mindspore/ops/operations/custom_ops.py, CustomOpBuilder.
    """

    def __init__(
        self,
        name: str,
        sources: AnyPath | Sequence[AnyPath],
        backend: str | None = None,
        include_paths: AnyPath | Sequence[AnyPath] | None = None,
        cflags: str | None = None,
        ldflags: str | None = None,
        **kwargs: Any,
    ):
        self._options: BuilderOptions = read_options(
            name, sources, backend, include_paths, cflags, ldflags, kwargs
        )
        self._text: str | None = None
        self.name = self._options.name
        self.backend = self._options.backend
        if self.backend == "Ascend":
            context.announce_ascend()

    @classmethod
    def from_source(
        cls, name: str, source_text: str, backend: str | None = None, **kwargs: Any
    ) -> CustomOpBuilder:
        """Returns a builder of one source that is given as text, for notebooks.

        Args:
          name: the module's name.
          source_text: the C++ source; with backend "GPU", CUDA C++.
          backend, kwargs: as for the class, but `sources`.

        Raises:
          ArgumentTypeError: `source_text` is no str, or there are `sources` besides it.
          ArgumentValueError: as for the class.
          BuildError: the cache cannot be written.
        """
        if not isinstance(source_text, str):
            raise ArgumentTypeError.explained(
                "CustomOpBuilder.from_source",
                f"expected source_text str; got {type(source_text).__name__}",
                "Pass the source itself; for files use CustomOpBuilder(name, sources).",
            )
        if "sources" in kwargs:
            raise ArgumentTypeError.explained(
                "CustomOpBuilder.from_source",
                "expected no sources together with source_text",
                "Put them into the text, or use CustomOpBuilder(name, sources) with files.",
            )
        options = read_options(name, "text.cpp", backend, None, None, None, {})
        suffix = ".cu" if options.backend == "GPU" else ".cpp"
        path = _toolchain.store_source(source_text, f"{options.name}{suffix}", options.who)
        builder = cls(name, str(path), backend, **kwargs)
        builder._text = source_text
        return builder

    def get_sources(self) -> list[str]:
        """Returns the paths of the sources."""
        return list(self._options.sources)

    def get_include_paths(self) -> list[str]:
        """Returns the folders searched for headers: the caller's, then ours, pybind11's, Python's.

        Raises:
          BuildError: pybind11, or the headers of Python, are not installed.
        """
        who = self._options.who
        return [*self._options.include_paths, get_include(), *_python_folders(who)]

    def get_cflags(self) -> list[str]:
        """Returns the options for the compiler; nvcc passes those that it does not know to g++."""
        options = self._options
        flags = [
            f"-DMS_EXTENSION_NAME={options.name}",
            "-std=c++17",
            "-fPIC",
            "-fvisibility=hidden",
        ]
        flags += ["-O0", "-g"] if options.debug_mode else ["-O3"]
        if options.backend == "Ascend":
            flags.append("-DCUSTOM_ASCEND_OP")
        flags += [f"-DCUSTOM_ENABLE_{library}" for library in options.libraries]
        return [*flags, *options.cflags]

    def get_ldflags(self) -> list[str]:
        """Returns the options for the linker."""
        return list(self._options.ldflags)

    def build(self) -> str:
        """Builds the module, unless the cache has it.

        Returns:
          Absolute path of the library: in `build_dir` if that was given, else in the cache.

        Raises:
          ArgumentValueError: a file of `op_def` or `op_doc` does not exist (the error is a
            FileNotFoundError, too), or its name does not end in .yaml or .yml.
          BuildError: there is no compiler, it failed (the message holds its command and its first
            lines, the attribute ``output`` all of them), a file of `op_def` is malformed, or the
            cache cannot be written.
        """
        return str(self._copied(self._build()))

    def load(self) -> types.ModuleType:
        """Builds the module, unless the cache has it, and loads it.

        Unlike in MindSpore, a name does not identify a module: other sources, headers or options
        give another module.

        Raises:
          BuildError: as `build`, or the library does not load.
        """
        # The rest of this package, which `import msops` does without.
        from msops._extension.loader import Module, TypeTakenError, load_module

        built = self._build()
        self._copied(built)
        try:
            native = load_module(Module(self.name, built.hash, self.backend), built.path)
        except TypeTakenError:
            # pybind11 shares the table of C++ classes among modules, by this macro: with a value of
            # its own this one, say the latest of a notebook's cell, has a table of its own.
            built = self._build(f'-DPYBIND11_COMPILER_TYPE="{built.hash[:16]}"')
            native = load_module(Module(self.name, built.hash, self.backend), built.path)
        except BuildError as error:
            raise self._explained(error) from error
        return self._with_operators(native, built)

    def _explained(self, error: BuildError) -> BuildError:
        """Returns the error of a module that does not load."""
        if not self._options.op_def:
            return error
        from msops._extension.graph.modules import explain_missing

        return explain_missing(error, self._options.who)

    def _with_operators(
        self, native: types.ModuleType, built: _toolchain.Built
    ) -> types.ModuleType:
        """Returns the module with the operators of op_def."""
        options = self._options
        if not options.op_def:
            return native
        from msops._extension.calls import Module
        from msops._extension.graph import modules

        return modules.add_operators(
            native,
            Module(self.name, built.hash, self.backend),
            built.path,
            modules.read_definitions(options.op_def, options.who),
            modules.read_docs(options.op_doc, options.who),
        )

    def _operator_sources(self) -> tuple[Path, ...]:
        """Returns the source that connects the operators of op_def with msops, if there are any."""
        options = self._options
        if not options.op_def:
            return ()
        from msops._extension.graph.modules import read_definitions, read_docs
        from msops._extension.graph.source import write_source

        read_docs(options.op_doc, options.who)
        names = [definition.name for definition in read_definitions(options.op_def, options.who)]
        return (
            _toolchain.store_source(
                write_source(names), f"{options.name}_operators.cpp", options.who
            ),
        )

    def _build(self, *more_flags: str) -> _toolchain.Built:
        who = self._options.who
        build = self._options.build
        if self._text is not None:
            # The cache may have been emptied since the builder was made.
            _toolchain.store_source(self._text, Path(self.get_sources()[0]).name, who)
        _toolchain.check_build(build, who)
        flags = (*words("cflags", self.get_cflags(), who), *more_flags)
        linker = LANGUAGES[".cu" if self.backend == "GPU" else ".cpp"]
        paths = (*map(Path, self.get_sources()), *build.sources, *self._operator_sources())
        folders = (*map(Path, self.get_include_paths()), *build.include_dirs)
        sources = _toolchain.ModuleSources(
            name=self.name,
            sources=tuple(_toolchain.check_source(path.absolute(), who) for path in paths),
            flags=(*flags, *_toolchain.compiler_words(build, LANGUAGES[".cpp"])),
            cuda_flags=(
                *(word for flag in flags for word in _for_nvcc(flag)),
                *_toolchain.compiler_words(build, LANGUAGES[".cu"]),
            ),
            link_flags=(
                *words("ldflags", self.get_ldflags(), who),
                *_toolchain.linker_words(build, linker),
            ),
            include_dirs=tuple(folder.absolute() for folder in folders),
            uses_cuda=self.backend == "GPU",
        )
        return self._reported(sources)

    def _reported(self, sources: _toolchain.ModuleSources) -> _toolchain.Built:
        """Builds, and says on stderr what is being built and how long it took."""
        started_s = time.monotonic()
        who = self._options.who
        steps: list[str] = []

        def begin(step: str) -> None:
            steps.append(step)
            print(f"{who}: {step}", file=sys.stderr, flush=True)

        def echo(line: str) -> None:
            print(line, file=sys.stderr, flush=True)

        report = _toolchain.BuildReport(begin, echo if self._options.verbose else None)
        built = _toolchain.build_module(sources, who, report)
        if steps:
            elapsed_s = time.monotonic() - started_s
            print(f"{who}: built in {elapsed_s:.1f} s", file=sys.stderr, flush=True)
        return built

    def _copied(self, built: _toolchain.Built) -> Path:
        """Puts a copy of the library into build_dir, at once, and returns where it lies."""
        if self._options.build_dir is None:
            return built.path
        folder = Path(self._options.build_dir).absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                shutil.copy(built.path, os.path.join(scratch, built.name))
                os.replace(os.path.join(scratch, built.name), folder / built.name)
            if self._options.op_def and self._options.build == Build() and self._text is None:
                from msops._extension.graph.generated import write_files

                write_files(folder, self._options)
        except OSError as error:
            raise BuildError.explained(
                self._options.who,
                f"build_dir {folder} cannot be written ({error.strerror})",
                "Name a folder that can be written, or leave build_dir out.",
            ) from error
        return folder / built.name


def _for_nvcc(flag: str) -> tuple[str, ...]:
    if flag.startswith(("-D", "-U", "-I", "-O", "-std=", "-g", "-arch", "-gencode", "--")):
        return (flag,)
    return ("-Xcompiler", flag) if flag.startswith("-") else (flag,)


def _python_folders(who: str) -> tuple[str, str]:
    """Returns where the headers of pybind11 and of Python are."""
    try:
        import pybind11
    except ImportError:
        raise BuildError.explained(
            who, "pybind11 is not installed", "Install it: pip install pybind11."
        ) from None
    python = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(python, "Python.h")):
        raise BuildError.explained(
            who,
            f"the headers of Python are not installed: there is no Python.h in {python}",
            "Install them (Debian, Ubuntu: apt-get install python3-dev; Fedora: dnf install "
            "python3-devel).",
        )
    return pybind11.get_include(), python
