"""A kernel as its author wrote it: read once, translated for each set of shapes and dtypes."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from msops._loops.frontends.hybrid import HybridKernel, read_hybrid
from msops._loops.frontends.references import global_names, read_with_own_names, references
from msops._loops.frontends.source import Source, unwrap
from msops._loops.frontends.spec import Spec
from msops._loops.ir.nodes import Kernel, Location
from msops.errors import ArgumentTypeError

Kind = Literal["hybrid", "tvm_compute", "ir_builder"]

# What resolves inside a kernel without an import.
_MODULES = {"tvm": "tvm", "topi": "topi", "akg": "akg"}


def recognise(definition: ast.FunctionDef, function: types.FunctionType) -> Kind:
    """Returns the kind of a kernel from what it calls, directly or through other functions.

    MindSpore looks for the words "ir_builder" and "compute" in the source, comments included. Here
    it is what the function calls that counts: names of `tvm` and `topi`, however they were
    imported.
    """
    names = _MODULES | dict(_bindings(definition))
    called = {
        _path(node.func, names) for node in ast.walk(definition) if isinstance(node, ast.Call)
    }
    if "tvm.ir_builder.create" in called:
        return "ir_builder"
    if any(path.startswith(("tvm.", "topi.")) for path in called) or _calls_tvm(function, set()):
        return "tvm_compute"
    return "hybrid"


def _calls_tvm(function: types.FunctionType, seen: set[types.FunctionType]) -> bool:
    """Returns whether a function, or one that it names, uses the modules of TVM."""
    seen.add(function)
    if not _MODULES.keys().isdisjoint(global_names(function.__code__)):
        return True
    values = [value for _, value in references(function)]
    modules = (value.__name__ for value in values if isinstance(value, types.ModuleType))
    if any(name.partition(".")[0] in _MODULES for name in modules):
        return True
    # This library's functions are no author's.
    return any(
        _calls_tvm(value, seen)
        for value in values
        if isinstance(value, types.FunctionType)
        and not str(value.__module__).startswith("msops.")
        and value not in seen
    )


def _bindings(definition: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Yields the names that imports inside the function bind, with what they mean."""
    for node in ast.walk(definition):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import akg.tvm` binds akg; `import akg.tvm as t` binds t to the module.
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _path(func: ast.expr, names: dict[str, str]) -> str:
    """Returns what is called as a dotted path below tvm or topi; "" for anything else."""
    parts: list[str] = []
    while isinstance(func, ast.Attribute):
        parts.append(func.attr)
        func = func.value
    if not isinstance(func, ast.Name) or func.id not in names:
        return ""
    path = ".".join([names[func.id], *reversed(parts)])
    return path.removeprefix("msops.").removeprefix("akg.")


Dialect: TypeAlias = Literal["akg", "hybrid"]


@dataclass(frozen=True, eq=False)
class LoopProgram:
    """A kernel, read and checked.

    Attributes:
      kind: the language it is written in.
      func: the function, without its decorators.
      parameters: its parameters.
      source: the author's text, and where it is.
      hybrid: its checked form, if it is written in the loop language.
    """

    kind: Kind
    func: types.FunctionType
    parameters: tuple[str, ...]
    source: Source
    hybrid: HybridKernel | None

    @property
    def name(self) -> str:
        """The author's name for it."""
        return self.func.__name__

    @property
    def location(self) -> Location:
        """The location of its ``def``."""
        return self.source.location(self.source.definition)

    def specialise(
        self, inputs: Sequence[Spec | tuple[Spec, ...]], attributes: Mapping[str, Any], who: str
    ) -> Kernel:
        """Translates the kernel for one set of arguments.

        Args:
          inputs: shape and dtype of each tensor; a tuple where an input is a list of tensors.
          attributes: constants, by the names of the op info; they come after the tensors in the
            loop language, by the names of the parameters.
          who: names the op in messages.

        Raises:
          BuildError: the kernel does not fit these arguments.
        """
        if self.hybrid is not None:
            return self.hybrid.specialise(inputs, attributes, who)
        from msops._loops.frontends import tvm

        return tvm.specialise(self.func, inputs, attributes, who)


def read_kernel(func: Any, dialect: Dialect, who: str) -> LoopProgram:
    """Reads and checks a kernel; shapes and dtypes are not needed for that.

    Args:
      func: the author's function.
      dialect: the func_type: "hybrid" wants a function decorated by `kernel`, "akg" takes any, and
        recognises TVM compute and the IR builder by what it calls.
      who: names the op in messages.

    Raises:
      ArgumentTypeError, ArgumentValueError: it is no kernel, or not in the language.
    """
    if dialect == "hybrid" and not hasattr(func, "ms_kernel_flag"):
        raise ArgumentTypeError.explained(
            who,
            "'func' must be a function decorated by kernel",
            "Decorate it with @ops.kernel, or pass func_type='akg' and out_shape, out_dtype.",
        )
    function = unwrap(func, who)
    source = read_with_own_names(function, who)
    kind = "hybrid" if dialect == "hybrid" else recognise(source.definition, function)
    hybrid = read_hybrid(function, source, dialect, who) if kind == "hybrid" else None
    parameters = tuple(inspect.signature(function).parameters)
    return LoopProgram(kind, function, parameters, source, hybrid)
