"""The cell magic ``%%aot``: from a cell's text to ops in the notebook's variables."""

from __future__ import annotations

import contextlib
import keyword
import shlex
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments

from msops._base.building import Build
from msops._base.paths import get_include
from msops._custom.custom import Custom
from msops._toolchain import Library, check_build, require_symbol, resolve
from msops._toolchain.store import open_store
from msops._tools.notebook.gradient import kernel_as_bprop
from msops._tools.notebook.kernel_text import KERNEL_PARAMETERS, find_kernels, other_parameters
from msops._tools.notebook.line import WHO, check_python_name, expression_of, per_op, read_names
from msops.errors import ArgumentTypeError, ArgumentValueError, BuildError, MsopsError

# It replaces the magic's own line, so that the compiler counts lines as the cell does.
_FIRST_LINE = "// The cell below %%aot.\n"


def load_ipython_extension(shell: Any) -> None:
    """Registers the magics of msops; IPython calls this for ``%load_ext msops``.

    Args:
      shell: the running `InteractiveShell`.
    """
    shell.register_magics(AotMagics)


@magics_class
class AotMagics(Magics):
    """The cell magic ``%%aot``."""

    shell: InteractiveShell

    @no_var_expand  # a lambda may hold braces
    @magic_arguments()
    @argument(
        "names",
        nargs="*",
        help="""Kernels of the cell to bind as ops: NAME, or PYTHON_NAME=NAME to call it otherwise
        in Python. Without any: every extern "C" function of the cell with a kernel's parameters,
        but those that --bprop names.""",
    )
    @argument(
        "--out",
        action="append",
        default=[],
        metavar="[OP=]EXPR",
        help="""What the op returns, an expression: a jax.ShapeDtypeStruct, a tree of them, or a
        function of the inputs. Left out: what the kernel's own NameInferShape and NameInferType
        say if the cell has them, else an array like the first input.""",
    )
    @argument(
        "--attrs",
        action="append",
        default=[],
        metavar="[OP=]EXPR",
        help="The kernel's attributes and their defaults, an expression: dict(alpha=0.5).",
    )
    @argument(
        "--shape",
        action="append",
        default=[],
        metavar="[OP=]EXPR",
        help="Custom's out_shape, an expression: MindSpore's form of --out.",
    )
    @argument(
        "--dtype",
        action="append",
        default=[],
        metavar="[OP=]EXPR",
        help="Custom's out_dtype, likewise.",
    )
    @argument(
        "--bprop",
        action="append",
        default=[],
        metavar="[OP=]EXPR",
        help="""The gradient: an expression for Custom's bprop, or the name of a kernel in the cell
        that takes the op's inputs, its outputs and the gradients of its outputs, and gives one
        output for each floating-point input, of the input's shape and dtype.""",
    )
    @argument(
        "--reg-info",
        action="append",
        default=[],
        metavar="[OP=]EXPR",
        help="Custom's reg_info, an expression: names attributes, restricts dtypes.",
    )
    @argument(
        "--build",
        metavar="EXPR",
        help="""Custom's build, an expression: further sources, folders of headers, flags and
        libraries of the cell's library, as a msops.Build.""",
    )
    @argument(
        "--path",
        metavar="NAME",
        help="""Binds NAME to the path of the stored source, for what the magic has no option for:
        Custom(f"{NAME}:Kernel", ..., stateful=True).""",
    )
    @argument("--cuda", action="store_true", help="The cell is CUDA C++, compiled by nvcc.")
    @cell_magic
    def aot(self, line: str, cell: str) -> None:
        """Builds the C++ in the cell and binds its kernels as `msops.Custom` ops.

        A kernel is a function of MindSpore's aot ABI:

            extern "C" int Name(int nparam, void **params, int *ndims, int64_t **shapes,
                                const char **dtypes, void *stream, void *extra)

        Expressions see the notebook's variables; quote those with spaces. An option holds for all
        ops of the line, or for one of them if its value starts with OP=. Running a cell again
        compiles only what is new; ops made earlier keep the code they were made with, and so do
        functions already traced by jax.jit.

            %%aot Swish --bprop SwishGrad
            %%aot scale=Scale --attrs dict(by=2.0) --bprop "lambda x, by, out, dout: (by * dout,)"
            %%aot Top Sum --out Top="lambda x: x[:1]" --out "Sum=jax.ShapeDtypeStruct((), 'int32')"
        """
        with _errors_without_traceback():
            self.shell.push(self._bindings(line, cell))

    def _bindings(self, line: str, cell: str) -> dict[str, Any]:
        """Returns what the cell binds, by Python name."""
        args = self._parse(line)
        named = read_names(args.names)
        path = open_store(WHO).add(
            (_FIRST_LINE + cell).encode(), "cell.cu" if args.cuda else "cell.cc"
        )
        build = self._evaluate("--build", args.build)
        library = _build(path, build)
        gradients = set(map(expression_of, args.bprop))
        symbols = named or _all_kernels(cell, library, gradients)
        options = {
            option: per_op(f"--{option}", getattr(args, option.replace("-", "_")), symbols)
            for option in ("out", "attrs", "shape", "dtype", "bprop", "reg-info")
        }
        bound: dict[str, Any] = {}
        for name, symbol in symbols.items():
            _check_kernel(cell, library, symbol)
            out = self._evaluate("--out", options["out"].get(name))
            shape, dtype = (
                self._infer(half, options[half].get(name), library, symbol, out)
                for half in ("shape", "dtype")
            )
            bound[name] = Custom(
                f"{path}:{symbol}",
                shape,
                dtype,
                "aot",
                self._bprop(options["bprop"].get(name), cell, library, path, build),
                self._evaluate("--reg-info", options["reg-info"].get(name)),
                out=out,
                attrs=self._evaluate("--attrs", options["attrs"].get(name)),
                build=build,
            )
        if args.path:
            bound[check_python_name(args.path)] = str(path)
        if not named:
            print(f"{WHO} bound {', '.join(symbols)}")
        return bound

    def _parse(self, line: str) -> Any:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"{WHO}: {error} in: {line}") from None
        return self.aot.parser.parse_intermixed_args(words)

    def _infer(self, half: str, text: str | None, library: Library, symbol: str, out: Any) -> Any:
        """Returns Custom's out_shape or out_dtype; None beside an `out`, which says both."""
        if text is not None:
            return self._evaluate(f"--{half}", text)
        if out is not None:
            return None
        companion = f"{symbol}Infer{'Shape' if half == 'shape' else 'Type'}"
        return None if companion in library.functions else _like_first_input

    def _bprop(
        self, text: str | None, cell: str, library: Library, path: Path, build: Build | None
    ) -> Any:
        """Returns Custom's bprop."""
        if text is None or not text.isidentifier() or keyword.iskeyword(text):
            return self._evaluate("--bprop", text)
        if text in self.shell.user_ns and text not in library.functions:
            return self.shell.user_ns[text]
        _check_kernel(cell, library, text)
        return kernel_as_bprop(f"{path}:{text}", build)

    def _evaluate(self, option: str, text: str | None) -> Any:
        """Returns the value of an option's expression in the user's namespace."""
        if text is None:
            return None
        try:
            return eval(compile(text, f"<{WHO} {option}>", "eval"), self.shell.user_ns)
        except Exception as error:
            raise ArgumentValueError.explained(
                WHO,
                f"{option} {text!r} raised {type(error).__name__}: {error}",
                "It is evaluated as a Python expression when the cell runs; quote it if it "
                "has spaces or quotes, and define the names it uses in an earlier cell.",
            ) from error


@contextlib.contextmanager
def _errors_without_traceback() -> Iterator[None]:
    """Lets IPython show an error of msops as its message alone: no frame of it is the user's."""
    try:
        yield
    except MsopsError as error:
        shown = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
        error._render_traceback_ = lambda: shown  # type: ignore[attr-defined]
        raise


def _build(path: Path, build: Build | None) -> Library:
    """Builds the stored cell, exactly as `Custom` will ask for it."""
    if build is not None and not isinstance(build, Build):
        raise ArgumentTypeError.explained(
            WHO,
            f"expected a msops.Build for --build; got {build!r}",
            "Write --build \"msops.Build(libraries=['openblas'])\", say.",
        )
    options = build or Build()
    check_build(options, WHO)
    try:
        return resolve(path, WHO, include_dirs=(Path(get_include()),), options=options)
    except BuildError as error:
        error.add_note(f"Lines are numbered as in the cell: the one with {WHO} is line 1.")
        raise
    except ArgumentTypeError as error:
        error.add_note("Cells are stored in the cache: set MSOPS_CACHE_DIR to a folder in there.")
        raise


def _all_kernels(cell: str, library: Library, gradients: Set[str]) -> dict[str, str]:
    """Returns the kernels that a line without names binds."""
    found = [name for name in find_kernels(cell) if name not in gradients]
    kernels = [name for name in found if name in library.functions]
    if not kernels:
        for name in found:
            require_symbol(library, name, WHO)
        exported = [name for name in sorted(library.functions) if not name.startswith("_")]
        raise ArgumentValueError.explained(
            WHO,
            "found no kernel in the cell" + (", which exports" if exported else ""),
            f'Define extern "C" int Name({KERNEL_PARAMETERS}), or name the functions to bind: '
            "%%aot Name.",
            exported,
        )
    return {check_python_name(name): name for name in kernels}


def _check_kernel(cell: str, library: Library, symbol: str) -> None:
    """Raises unless the cell exports `symbol` and, as far as one sees, as a kernel."""
    require_symbol(library, symbol, WHO)
    parameters = other_parameters(cell, symbol)
    if parameters is not None:
        raise ArgumentTypeError.explained(
            WHO,
            f"expected {symbol} to take the parameters of a kernel; got ({parameters})",
            f'Define it as extern "C" int {symbol}({KERNEL_PARAMETERS}).',
        )


def _like_first_input(first: Any, *_: Any) -> Any:
    # A list of tensors comes as a plain list; a shape has a type of its own.
    return first[0] if type(first) is list else first
