"""Loop kernels by value, and their specialisations.

What a kernel is must be known before any shape is (ops of equal kernels share), and it is compiled
per `LoopCase`: shapes, dtypes and attributes. A kernel's derivative is a kernel again.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, TypeAlias

from msops._op.arrays import require_numbers
from msops._op.definition import Renewable
from msops._op.identity import ByIdentity, ByValue, RunPerShape, as_travelling
from msops._op.request import Request
from msops.errors import InferenceTypeError

if TYPE_CHECKING:
    from msops._loops.choice import Form
    from msops._loops.frontends.program import LoopProgram
    from msops._loops.frontends.spec import Spec
    from msops._loops.ir.nodes import Kernel
    from msops._loops.specialisation import Specialisation, Stages


@dataclasses.dataclass(frozen=True)
class LoopKernel(Renewable):
    """A kernel as the author wrote it; equal for functions that mean the same.

    Attributes:
      function: the author's function.
      dialect: "akg" or "hybrid".
      lower: "xla" or "native" if forced.
      from_others: what the function has of helpers of other modules, as text.
      program: the function as it was read.
    """

    function: ByValue
    dialect: str
    lower: Form | None
    from_others: str
    program: LoopProgram = dataclasses.field(compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_again, (as_travelling(self.function.function), self.dialect, self.lower)

    def is_current(self) -> bool:
        """Returns whether its specialisations are those of an equal kernel made now."""
        # The loop language reads its globals once, with the source.
        return self.program.hybrid is not None or self.function.is_current()

    def read_again(self) -> LoopKernel:
        """Returns the kernel as it is if its function runs now."""
        return dataclasses.replace(self, function=self.function.read_again())

    def in_any_form(self) -> LoopKernel:
        """Returns the kernel without a form that is forced."""
        return dataclasses.replace(self, lower=None)

    def specialise(self, case: LoopCase) -> Kernel:
        """Returns the loop IR for one case."""
        arguments = iter(case.inputs)
        grouped = [
            next(arguments) if length is None else tuple(next(arguments) for _ in range(length))
            for length in case.layout
        ]
        return self.program.specialise(grouped, dict(case.attributes), case.who)


def _read_again(function: Any, dialect: Any, lower: Form | None) -> LoopKernel:
    """Returns a kernel that was pickled, from its function's source."""
    from msops._loops.frontends.program import read_kernel

    return make_kernel(dialect, lower, read_kernel(function, dialect, "pickle"))


def make_kernel(dialect: Any, lower: Form | None, program: LoopProgram) -> LoopKernel:
    """Returns the kernel of a function that was read."""
    hybrid = program.hybrid
    by_value = RunPerShape if hybrid is None else ByValue
    from_others = "" if hybrid is None else hybrid.from_others
    return LoopKernel(by_value(program.func), dialect, lower, from_others, program)


@dataclasses.dataclass(frozen=True)
class AdjointKernel:
    """The reverse-mode derivative of a kernel: inputs and cotangents to gradients.

    Attributes:
      forward: the kernel it is the derivative of, compared by identity: an equal one may have been
        made when its globals had other values.
      layout: structure of the forward call.
      attributes: attributes of the forward call.
      attributes_text: the same as text, which is compared.
      inputs: number of the forward call's inputs.
      wanted: positions of the inputs whose gradients it returns.
      lower: "xla" or "native" if forced.
    """

    forward: ByIdentity[LoopKernel | AdjointKernel]
    layout: tuple[int | None, ...]
    attributes: tuple[tuple[str, Any], ...] = dataclasses.field(compare=False)
    attributes_text: str
    inputs: int
    wanted: tuple[int, ...]
    lower: Form | None

    def read_again(self) -> AdjointKernel:
        """Returns itself: all that it is made of is fixed."""
        return self

    def in_any_form(self) -> AdjointKernel:
        """Returns itself: adjoints of kernels of other forms are other kernels."""
        return self

    def specialise(self, case: LoopCase) -> Kernel:
        """Returns the loop IR for one case."""
        forward = dataclasses.replace(
            case,
            layout=self.layout,
            inputs=case.inputs[: self.inputs],
            attributes=self.attributes,
            attributes_text=self.attributes_text,
        )
        return compile_case(self.forward.value, forward).stages.adjoint(self.wanted)


@dataclasses.dataclass(frozen=True)
class LoopCase:
    """The arguments that a kernel is specialised for.

    Attributes:
      layout: per argument None, or the length of a list.
      inputs: shape and dtype of the flat inputs, without axes that vmap added.
      attributes: every attribute by name.
      attributes_text: the same as text, which is compared: 0.0 == -0.0 in Python.
      who: the op, for messages.
    """

    layout: tuple[int | None, ...]
    inputs: tuple[Spec, ...]
    attributes: tuple[tuple[str, Any], ...] = dataclasses.field(compare=False)
    attributes_text: str
    who: str = dataclasses.field(compare=False)


Kernels: TypeAlias = LoopKernel | AdjointKernel


def case_of(request: Request) -> LoopCase:
    """Returns what a call asks its kernel to be specialised for."""
    from msops._loops.frontends.spec import Spec

    depth = len(request.call.batch)
    specs = tuple(Spec(tuple(s.shape[depth:]), s.dtype.name) for s in request.inputs)
    return LoopCase(
        layout=request.call.layout,
        inputs=specs,
        attributes=request.attributes,
        attributes_text=repr(request.attributes),
        who=request.who,
    )


def _check(spec: Spec, what: str, who: str) -> None:
    from msops._loops.ir.operators import DTYPES

    if spec.dtype not in DTYPES:
        raise InferenceTypeError.explained(
            who,
            f"expected for {what} a dtype that loops compute in, one of {', '.join(DTYPES)}; "
            f"got {spec.dtype}",
            "Pass real and imaginary parts as two inputs.",
        )
    require_numbers(
        spec.shape,
        what,
        who,
        "Loops are compiled for the shapes of a call: write them for one example and export "
        "jax.vmap of the op, whose axis may be symbolic",
    )


def compile_case(kernel: Kernels, case: LoopCase) -> Specialisation:
    """Returns the kernel compiled for a case; every stage of it is made once.

    Raises:
      InferenceTypeError: loops do not compute in the dtype of an input.
      InferenceValueError: an extent of an input is symbolic.
    """
    return _own_specialisation(ByIdentity(kernel), case)


@functools.lru_cache(maxsize=256)
def _own_specialisation(kernel: ByIdentity[Kernels], case: LoopCase) -> Specialisation:
    """Returns the specialisation that a kernel keeps for a case, even if its globals change."""
    for position, spec in enumerate(case.inputs):
        _check(spec, f"input {position}", case.who)
    # At the first call of a loop kernel: `import msops` loads none of the compiler.
    from msops._loops.specialisation import Specialisation

    stages = _shared_stages(kernel.value.in_any_form().read_again(), case)
    return Specialisation(stages, kernel.value.lower)


@functools.lru_cache(maxsize=256)
def _shared_stages(kernel: Kernels, case: LoopCase) -> Stages:
    """Returns the stages of equal kernels; what authors wrote is equal whatever form is forced."""
    from msops._loops.specialisation import Stages

    return Stages(kernel.specialise(case), case.who)
