"""The command ``msops``: runs a script with ``mindspore`` meaning msops, and manages the cache."""

from __future__ import annotations

import argparse
import atexit
import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import re
import shlex
import sys
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msops._base.missing_names import describe_missing
from msops._base.version import __version__
from msops._face import context
from msops._tools import cache
from msops.errors import MsopsError


class MindSporeFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers ``import mindspore.x.y`` with the module msops.x.y itself.

    It stands before the path finders, so a MindSpore that is installed is never reached.
    """

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Claims ``mindspore`` and everything below it."""
        if fullname.partition(".")[0] != "mindspore":
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Returns the module of msops, or raises ImportError naming what is missing."""
        name = "msops" + spec.name[len("mindspore") :]
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
            parent, _, last = name.rpartition(".")
            known = vars(sys.modules[parent]) if parent in sys.modules else {}
            raise ModuleNotFoundError(
                describe_missing(parent, last, known), name=spec.name
            ) from None
        _alias_loaded_modules()
        # Importing gives a module the spec it is imported by; this one has its own already.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Leaves the module, which has run, as it was."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


class TbeFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers ``import te.lang.cce`` at the top of a script with the module that kernels see.

    It stands behind the path finders, so a real package of the name comes first; inside kernels the
    name means msops's in any case.
    """

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Claims the modules that TBE kernels import."""
        if fullname.partition(".")[0] not in ("te", "tbe", "topi", "impl"):
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """Returns the module, or raises ImportError naming what there is."""
        # Here, as most scripts have no TBE kernels.
        from msops._ascend.tbe.kernel_files import find_module

        return find_module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leaves the module, which is complete, as it is."""


def _alias_loaded_modules() -> None:
    """Makes every loaded module of msops known by MindSpore's name.

    A module that is imported by a new name is bound in its package again, which would replace the
    function ``ops.op_info_register`` by the module that has the same name.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("msops."):
            sys.modules.setdefault("mindspore" + name[len("msops") :], module)


def run_script(path: Path, arguments: Sequence[str]) -> None:
    """Runs a script as ``__main__``, as ``python script.py`` does.

    At the end, also of a script that failed, names that msops does not have are reported.

    Args:
      path: the script.
      arguments: what follows it in ``sys.argv``.
    """
    context.enter_script()
    sys.meta_path.insert(0, MindSporeFinder())
    sys.meta_path.append(TbeFinder())
    sys.argv = [str(path), *arguments]
    sys.path[0] = str(path.parent.resolve())
    sys.excepthook = _script_excepthook(str(path))
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=str(path), __builtins__=__builtins__)
    # The script's classes are pickled as __main__'s, so it has to be findable as that.
    sys.modules["__main__"] = module
    source = path.read_bytes()
    code = compile(source, str(path), "exec")
    atexit.register(_report_missing, str(path), source)
    exec(code, module.__dict__)


def _report_missing(name: str, source: bytes) -> None:
    # Here, as it is for the end of a script.
    from msops._tools.missing_in_script import report

    text = report(name, source)
    if text:
        print(text, file=sys.stderr)


def _script_excepthook(path: str) -> Any:
    """Returns an excepthook that shows the traceback from the script's own frame on."""

    def show(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        own = trace
        while own is not None and own.tb_frame.f_code.co_filename != path:
            own = own.tb_next
        traceback.print_exception(kind, error, own)
        # Before Python 3.12 only the message names what an import looked for.
        missing = re.match(r"cannot import name '(\w+)'", str(error))
        module = getattr(error, "name", None) or ""
        if isinstance(error, ImportError) and missing and module.partition(".")[0] == "msops":
            names = vars(sys.modules[module])
            print(describe_missing(module, missing[1], names), file=sys.stderr)

    return show


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line of ``msops``, which is that of ``python -m msops`` too.

    Args:
      arguments: what follows the command's name; None takes ``sys.argv``.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="msops",
        description="Runs scripts written for MindSpore, with mindspore meaning msops; lists and "
        "clears what msops has built.",
    )
    parser.add_argument("--version", action="version", version=f"msops {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    for add in (_add_run, _add_cache, _add_doctor):
        add(commands)
    if given and given[0] not in commands.choices and any(name.endswith(".py") for name in given):
        parser.error(f"no command; did you mean: {parser.prog} run {shlex.join(given)}")
    options = parser.parse_args(given)
    if options.command is None:
        parser.print_help()
        raise SystemExit(2)
    options.serve(options)


def _add_run(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="run a MindSpore script on msops",
        description="Runs a script in which mindspore means msops.",
    )
    parser.add_argument(
        "--device",
        choices=context.TARGETS,
        help="device to run on, whatever device_target the script sets",
    )
    parser.add_argument("script", type=Path, help="the script to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to the script")
    parser.set_defaults(serve=functools.partial(_serve_run, parser))


def _serve_run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    try:
        is_file = options.script.is_file()
    except OSError as error:  # a name that is too long, say
        parser.error(f"no such script, {error.strerror}: {options.script}")
    if not is_file:
        parser.error(f"no such script: {options.script}")
    if options.device is not None:
        context.fix_device(options.device)
    run_script(options.script, options.arguments)


def _add_cache(commands: Any) -> None:
    parser = commands.add_parser(
        "cache",
        help="list, measure or clear the libraries that were built",
        description="The folder of built libraries: MSOPS_CACHE_DIR, or msops in the user's cache. "
        "Without an action, lists them.",
    )
    parser.set_defaults(action="ls", serve=functools.partial(_serve_cache, parser))
    actions = parser.add_subparsers(metavar="action")
    for name, (text, _) in cache.COMMANDS.items():
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        action.set_defaults(action=name)


def _serve_cache(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    try:
        print(cache.COMMANDS[options.action][1](), flush=True)
    except BrokenPipeError:  # `head` has read what it wants
        # Python flushes again as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except MsopsError as error:  # of the variables that name the folder
        parser.error(str(error))


def _add_doctor(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="report whether this machine has what each kind of kernel needs",
        description="Looks at Python, JAX, devices, compilers and the cache, and runs one tiny op "
        "per func_type, then at the libraries named; exits with 1 if something is amiss that every "
        "kernel needs, or with a library.",
    )
    parser.add_argument("libraries", nargs="*", type=Path, help="shared libraries of kernels")
    parser.set_defaults(serve=_serve_doctor)


def _serve_doctor(options: argparse.Namespace) -> None:
    # Here, as it imports all of msops.
    from msops._tools import doctor

    raise SystemExit(min(doctor.main(options.libraries), 1))
