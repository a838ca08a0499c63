"""A kernel as its author wrote it: read once, translated for each set of shapes and dtypes."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from msops._loops.frontends.hybrid import HybridKernel, read_hybrid
from msops._loops.frontends.imported_names import read_with_own_names
from msops._loops.frontends.recognise import Kind, recognise
from msops._loops.frontends.source import Source, unwrap
from msops._loops.frontends.spec import Spec
from msops._loops.ir.nodes import Kernel, Location
from msops.errors import ArgumentTypeError

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
