"""The program that a kernel describes: tensors from inputs to results, computed by JAX.

Operations of the DSL are JAX operations. What `tvm.compute` and its kin made is handed to the loop
compiler: neighbouring stages as one kernel, which is raised to JAX operations.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from msops._ascend.tbe.operation import DslOperation
from msops._loops.frontends.tvm.lower import lower
from msops._loops.frontends.tvm.tensor import Operation, PlaceholderOp, Tensor, by_age
from msops._loops.frontends.tvm.tracing import age, build_error

Arrays = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Program:
    """One kernel, specialised.

    Attributes:
      name: the kernel's name.
      inputs: its placeholders, in the order of the call.
      results: its results.
      who: how messages name the op.
    """

    name: str
    inputs: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    who: str

    def __call__(self, *arrays: Any) -> list[Any]:
        """Computes the results from one array per input, of the placeholders' shapes."""
        known: Arrays = {x.key: a for x, a in zip(self.inputs, arrays, strict=True)}
        for step in self._steps:
            step(known)
        return [known[result.key] for result in self.results]

    @functools.cached_property
    def _steps(self) -> tuple[Callable[[Arrays], None], ...]:
        steps: list[Callable[[Arrays], None]] = []
        for group in _groups(self.operations):
            dsl = [each for each in group if isinstance(each, DslOperation)]
            if dsl:
                steps += [functools.partial(_run_dsl, operation) for operation in dsl]
            else:
                steps.append(self._loops(group))
        return tuple(steps)

    def _loops(self, group: Sequence[Operation]) -> Callable[[Arrays], None]:
        """Returns the step that runs operations of loops, as one kernel."""
        # At the first kernel that has loops of its own: the DSL alone needs none of the compiler.
        from msops._loops.specialisation import Stages

        made = {key for one in group for key in one.keys}
        read = {x for one in group for x in one.input_tensors if x.key not in made}
        elsewhere = {
            x.key for other in self.operations if other not in group for x in other.input_tensors
        } | {x.key for x in self.results}
        inputs = by_age(read)
        outputs = by_age(x for one in group for x in _outputs(one) if x.key in elsewhere)
        kernel = lower(outputs, inputs, self.name)
        stages = Stages(kernel, self.who)

        def run(known: Arrays) -> None:
            # The kernel says what its temporaries are; JAX must not narrow those of 64 bits.
            with jax.enable_x64(True):
                values = stages.function(*(known[x.key] for x in inputs))
            known.update(zip((x.key for x in outputs), values, strict=True))

        return run

    @functools.cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations that make the results, each after those that it reads, without the inputs.

        Raises:
          BuildError: a placeholder is used that is no input.
        """
        own = {x.key for x in self.inputs}
        found: dict[str, Operation] = {}
        waiting = list(self.results)
        while waiting:
            tensor = waiting.pop()
            if tensor.key in own or tensor.op.keys[0] in found:
                continue
            if isinstance(tensor.op, PlaceholderOp):
                raise build_error(
                    f"tvm.placeholder {tensor.name!r}",
                    "a result is made from it, and it is not in the tensor_list",
                    "List it in tensor_list, at the position of its input.",
                    location=tensor.op.location,
                )
            found[tensor.op.keys[0]] = tensor.op
            waiting += tensor.op.input_tensors
        return tuple(sorted(found.values(), key=lambda op: age(op.keys[0])))

    @property
    def text(self) -> str:
        """The program as text, one operation a line."""
        names: dict[str, str] = {}
        lines = [f"{x.name}: {_type(x)}" for x in self.inputs]
        for number, x in enumerate(self.inputs):
            names[x.key] = f"%{number} {x.name}"
        lines = [f"%{n} = input {line}" for n, line in enumerate(lines)]
        for operation in self.operations:
            read = ", ".join(names[x.key].split()[0] for x in operation.inputs)
            options = getattr(operation, "options", "")
            made = []
            for x in _outputs(operation):
                names[x.key] = f"%{len(names)}"
                made.append(f"{names[x.key]}: {_type(x)}")
            call = f"{operation.name}({', '.join(filter(None, [read, options]))})"
            lines.append(f"{', '.join(made)} = {call}")
        returned = ", ".join(names[x.key].split()[0] for x in self.results)
        return "\n".join([f"tbe kernel {self.name}", *lines, f"return {returned}"])


def _run_dsl(operation: DslOperation, known: Arrays) -> None:
    arrays = (known[x.key] for x in operation.inputs)
    known[operation.keys[0]] = operation.rule(*arrays)


def _outputs(operation: Operation) -> list[Tensor]:
    return [operation.output(index) for index in range(operation.num_outputs)]


def _type(x: Tensor) -> str:
    return f"{x.dtype}[{', '.join(map(str, x.shape))}]"


def _groups(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Returns operations in groups of one kind, DSL or loops; a group reads only earlier ones.

    The number of a group is how often the kind changes, at most, on the way to its operations.
    """
    numbers: dict[str, int] = {}
    groups: dict[tuple[int, bool], list[Operation]] = {}
    for operation in operations:
        is_dsl = isinstance(operation, DslOperation)
        number = max(
            (
                numbers[x.key] + (isinstance(x.op, DslOperation) != is_dsl)
                for x in operation.input_tensors
                if x.key in numbers
            ),
            default=0,
        )
        numbers.update(dict.fromkeys(operation.keys, number))
        groups.setdefault((number, is_dsl), []).append(operation)
    return [groups[key] for key in sorted(groups)]
