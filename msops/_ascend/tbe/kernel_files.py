"""Kernel functions and their modules: what their imports mean, and files that are kernels.

Kernel files import `te` or `tbe` when they are loaded, so Python cannot import them here. They are
executed as modules of their own with an ``import`` of their own: nothing of the process changes,
and a real package of one of these names stays what it is.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import importlib.util
import inspect
import linecache
import sys
import threading
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msops._ascend.tbe.modules import MODULES
from msops._base.kernel_errors import describe_exception
from msops._loops.frontends.tvm.kernel_module import KernelModule
from msops._loops.frontends.tvm.rebinding import ModuleScope
from msops._toolchain import check_allowed, read_path
from msops.errors import ArgumentValueError, BuildError, MsopsError

FACE = "mindspore"
"""The name under which kernel files import msops."""

# Packages whose modules are kernel files: of CANN and of MindSpore.
_KERNEL_PACKAGES = ("impl.", f"{FACE}.ops._op_impl.")


class KernelScope(ModuleScope):
    """``import`` in a kernel: TBE's modules, msops for mindspore, and files beside it.

    Args:
      folder: where the kernel's file lies; None for a kernel that is no file of its own.
    """

    def __init__(self, folder: Path | None = None):
        super().__init__(MODULES)
        self.folder = folder
        self.files: dict[Path, types.ModuleType] = {}
        self.digests: dict[Path, str] = {}

    def find(self, name: str) -> KernelModule | None:
        """Returns a module of TBE by its dotted name; None for any other."""
        # `impl.square` and its like are kernel files of CANN: a copy beside this file serves.
        if name.startswith("impl.") and self._beside(name) is not None:
            return None
        return super().find(name)

    def import_module(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> Any:
        """Replaces ``__import__`` inside a kernel."""
        module = super().import_module(name, globals, locals, fromlist, level)
        for wanted in fromlist or ():
            # An ImportError, since kernels try one name and then another.
            if isinstance(module, KernelModule) and wanted not in (*vars(module), "*"):
                names = ", ".join(sorted(known for known in vars(module) if known[0] != "_"))
                raise ImportError(
                    f"cannot import name {wanted!r} from {module.__name__!r}, which has {names}"
                )
        return module

    def import_other(
        self,
        name: str,
        globals: Mapping[str, Any] | None,
        locals: Mapping[str, Any] | None,
        fromlist: tuple[str, ...] | None,
        level: int,
    ) -> Any:
        """Imports what is no module of TBE."""
        path = self._beside(name)
        if path is not None and (level or name.startswith(_KERNEL_PACKAGES)):
            return self._imported_file(name, path, fromlist)
        if level == 0 and name.partition(".")[0] == FACE:
            return _import_face(name, fromlist)
        try:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        except ModuleNotFoundError as error:
            # A module of the user's that is a kernel file itself.
            if (error.name or "").partition(".")[0] not in self.modules:
                raise
            spec = importlib.util.find_spec(name)
            if spec is None or spec.origin is None:
                raise
            return self._imported_file(name, Path(spec.origin), fromlist)

    def _beside(self, name: str) -> Path | None:
        """Returns the file that the last part of a name means in the kernel's folder."""
        if self.folder is None or not name:
            return None
        path = self.folder / f"{name.rpartition('.')[2]}.py"
        return path if path.is_file() else None

    def _imported_file(self, name: str, path: Path, fromlist: tuple[str, ...] | None) -> Any:
        module = self.load(path)
        if fromlist or "." not in name:
            return module
        first, *rest = name.split(".")
        parent = outer = types.ModuleType(first)
        for part in rest[:-1]:
            inner = types.ModuleType(part)
            setattr(parent, part, inner)
            parent = inner
        setattr(parent, rest[-1], module)
        return outer

    def load(self, path: Path) -> types.ModuleType:
        """Returns the module that a kernel file is, executed once unless it was edited."""
        path = check_allowed(path, f"TBE file {path.name}").resolve()
        text = path.read_text()
        digest = _digest(text)
        if path in self.files and self.digests[path] == digest:
            return self.files[path]
        self.digests[path] = digest
        module = types.ModuleType(path.stem)
        module.__file__ = str(path)
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self.import_module}
        self.files[path] = module
        linecache.checkcache(str(path))
        try:
            exec(compile(text, str(path), "exec"), module.__dict__)
        except BaseException:
            del self.files[path]
            raise
        return module

    def is_current(self) -> bool:
        """Returns whether the files that were loaded still hold what they held."""
        return all(
            path.is_file() and _digest(path.read_text()) == digest
            for path, digest in self.digests.items()
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _import_face(name: str, fromlist: tuple[str, ...] | None) -> Any:
    """Imports a module of msops by MindSpore's name for it."""
    own = "msops" + name[len(FACE) :]
    importlib.import_module(own)
    # Not what that returns: `ops.op_info_register` is a function, too.
    return sys.modules[own if fromlist else "msops"]


_loaded: dict[Path, KernelScope] = {}
# A file may make an op of another one while it is executed.
_loading = threading.RLock()
_executing: set[Path] = set()


def load_kernel(source: str, who: str) -> types.FunctionType:
    """Returns the function that ``"file.py:function"`` names.

    A file that is unchanged, with all files it imported, is executed once per process.

    Args:
      source: path and name.
      who: the op, for messages.

    Raises:
      ArgumentValueError: there is no such file, or no such function in it.
      BuildError: the file could not be executed.
    """
    text, _, name = source.rpartition(":")
    path = read_path(text, who)
    if not text.endswith(".py") or not name.isidentifier() or not path.is_file():
        problem = "there is no such file" if text.endswith(".py") else "it names no file"
        raise ArgumentValueError.explained(
            who,
            f"expected a function, or 'file.py:function', for func_type 'tbe'; got {source!r}, "
            f"and {problem}",
            "Pass the kernel function, or the path of its file and its name. Paths are "
            "relative to the working directory.",
        )
    with _loading:
        module = _execute(path.resolve(), who)
    function = vars(module).get(name)
    if not isinstance(function, types.FunctionType):
        names = [n for n, v in vars(module).items() if isinstance(v, types.FunctionType)]
        raise ArgumentValueError.explained(
            who, f"{path.name} has no function {name!r}", f"It has {', '.join(names) or 'none'}."
        )
    return function


def _execute(path: Path, who: str) -> types.ModuleType:
    if path in _executing:
        raise BuildError.explained(
            who,
            f"{path.name} makes an op of itself while it is imported",
            "Make the op in a function, or in the file that uses the kernel.",
        )
    scope = _loaded.get(path)
    if scope is None or not scope.is_current():
        scope = _loaded[path] = KernelScope(path.parent)
    _executing.add(path)
    try:
        return scope.load(path)
    except MsopsError:
        del _loaded[path]
        raise
    except (Exception, SystemExit) as error:
        del _loaded[path]
        raise BuildError.explained(
            who,
            f"{path.name} could not be imported: {describe_exception(error)}",
            "A kernel file may import te, tbe, topi, impl, mindspore, what Python can import, "
            "and files beside it.",
        ) from error
    finally:
        _executing.discard(path)


_KERNEL_MODULES_SCOPE = KernelScope()


def as_kernel(function: types.FunctionType) -> types.FunctionType:
    """Returns a function with TBE's modules at hand: itself if it is of a kernel file."""
    own = inspect.unwrap(function).__globals__.get("__builtins__")
    importer = own.get("__import__") if isinstance(own, dict) else None
    if isinstance(getattr(importer, "__self__", None), KernelScope):
        return function
    return _KERNEL_MODULES_SCOPE.rebound(function)


def carried_op_info(function: types.FunctionType) -> Any:
    """Returns the op info that a kernel brings: by a decorator, or beside it in its module.

    MindSpore's kernel files register op info with an empty function; its ``kernel_name`` names the
    entry function.

    Args:
      function: the entry function.
    """
    own = getattr(function, "reg_info", None)
    if own is not None:
        return own
    for value in inspect.unwrap(function).__globals__.values():
        infos = getattr(value, "reg_info", None) if isinstance(value, types.FunctionType) else None
        for info in infos or ():
            if isinstance(info, dict) and info.get("kernel") == function.__name__:
                return infos
    return None


def find_module(name: str) -> types.ModuleType | None:
    """Returns the module that kernels see by a dotted name; None if TBE has none of its root.

    Args:
      name: such as ``"te.lang.cce"``.

    Raises:
      ModuleNotFoundError: the root has no such module; the message lists those it has.
    """
    return KernelScope().find(name)
