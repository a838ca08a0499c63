"""Operators of Ascend by name: ``Custom("aclnnMul", ..., func_type="aot")``, run as JAX code.

Corresponds to ``mindspore.ops.Custom(func_type="aot")``, 2.7.2, on an Ascend, which finds the
operator in the libraries of CANN. Here `msops._ascend.aclnn` has it, on any device. The arguments
of a call are those of the operator, in its order: tensors, lists of tensors, numbers, dtypes.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn import PREFIX, AclnnOp, lookup
from msops._backends.aot.infer_functions import InferFunctions
from msops._base.dtypes import DType
from msops._base.logging import warn_once
from msops._calls.library_call import AotCall
from msops._op.backend import TracedBackend
from msops._op.call import Call
from msops._op.definition import Definition, Redefining
from msops._op.request import Options, Request
from msops._op.traced import Function, Traced
from msops._op_info import Attribute, OpInfo, decode_text
from msops._primitive.batching import over_batch
from msops._toolchain import Library, is_mangled_from
from msops.errors import ArgumentValueError

_log = logging.getLogger("msops.aot")


@dataclasses.dataclass(frozen=True)
class NamedOperator(Redefining):
    """An operator as a kernel.

    Attributes:
      operator: the operator.
      infer_functions: those in C++ that the user wrote for it, or None.
      info: the op info that names inputs and attributes, or None.
      info_text: the same as text, which is compared: 0.0 == -0.0 in Python.
    """

    operator: AclnnOp
    infer_functions: InferFunctions | None = None
    info: OpInfo | None = dataclasses.field(default=None, compare=False)
    info_text: str = ""

    def redefine(self, definition: Definition) -> Definition:
        """Returns the definition of an op whose kernel this is.

        Rows of op info do not guard it, as on an Ascend: an operator knows its dtypes.
        """
        infos = sorted(definition.infos, key=lambda info: info.target != "Ascend")
        info = infos[0] if infos else None
        options = definition.options
        return dataclasses.replace(
            definition,
            backend=BACKEND,
            kernel=dataclasses.replace(self, info=info, info_text=repr(info)),
            infos=(),
            options=dataclasses.replace(
                options,
                vmap="expand_dims" if options.vmap == "sequential" else options.vmap,
                host=False,
            ),
        )

    def bind(self, call: Call, flat: Sequence[Any]) -> tuple[list[Any], list[tuple[str, Any]]]:
        """Returns the operator's arguments in its order, and those that are no tensors by name."""
        arguments = call.arguments(flat)
        info = self.info
        if info is None or not (info.inputs or info.attributes):
            names = [parameter.name for parameter in self.operator.signature.parameters or ()]
            named = list(zip(names, arguments, strict=False))
            return arguments, [(name, value) for name, value in named if _is_value(value)]
        called = sum(attribute.value is None for attribute in info.attributes)
        leading = next((n for n, one in enumerate(arguments) if _is_value(one)), len(arguments))
        ports = len(info.inputs) or leading
        count = min(ports, max(leading, len(arguments) - called))
        given = iter(arguments[count:])
        values = [(one.name, _value_of(one, given)) for one in info.attributes]
        surplus = list(given)
        if surplus:
            raise ArgumentValueError.explained(
                self.operator.who,
                f"expected {ports} input(s) and {called} attribute(s) as op info lists; got "
                f"{len(arguments)} arguments",
                "Pass the inputs, then the attributes, in that order.",
            )
        inputs = [*arguments[:count], *[None] * (ports - count)]
        return [*inputs, *(value for _, value in values)], values

    def run(
        self, arguments: Sequence[Any], outputs: Sequence[jax.ShapeDtypeStruct]
    ) -> list[jax.Array]:
        """Returns one array per output of the op: the operator's outputs, then updated inputs."""
        operator = self.operator
        results = operator.signature.results
        own = len(outputs) if results is None else min(len(results), len(outputs))
        computed = _present(operator(self._read_numbers(arguments), outputs[:own]))
        if len(computed) < len(outputs):
            operator.refuse_count(len(computed), len(outputs))
        wanted = len(outputs) - own
        if wanted < len(computed) - own:
            names = ", ".join(operator.updated_names[wanted:])
            warn_once(
                _log,
                f"{operator.who}, {operator.name}: arrays are not written to, so {names} keep "
                "their values; declare an output more for each, behind the others, to have the "
                "new ones",
            )
        return [
            operator.fit(result, struct, index)
            for index, (result, struct) in enumerate(zip(computed, outputs, strict=False))
        ]

    def infer(self, call: Call, inputs: Sequence[jax.ShapeDtypeStruct]) -> tuple[Any, bool]:
        """Returns shapes and dtypes of the outputs, and whether they are several."""
        operator, info = self.operator, self.info

        def results(*flat: Any) -> Sequence[jax.Array]:
            arguments, _ = self.bind(call, flat)
            return _present(operator(self._read_numbers(arguments), None))

        structs = jax.eval_shape(results, *inputs)
        results_of = operator.signature.results
        own = len(structs) if results_of is None else min(len(results_of), len(structs))
        # An operator that only updates inputs returns their new values.
        several = results_of is None or own > 1
        structs = structs[: own or len(structs)]
        if info is not None and info.outputs:
            is_dynamic = any(port.kind == "dynamic" for port in info.outputs)
            several = is_dynamic or len(info.outputs) > 1
            structs = structs if is_dynamic else structs[: len(info.outputs)]
        return structs, several

    def _read_numbers(self, arguments: Sequence[Any]) -> list[Any]:
        """Returns the arguments with a tensor for a number where the operator takes tensors."""
        kinds = [parameter.kind for parameter in self.operator.signature.parameters or ()]
        read = list(arguments)
        for position, (value, kind) in enumerate(zip(arguments, kinds, strict=False)):
            if kind.is_tensor and isinstance(value, (bool, int, float)):
                read[position] = jnp.asarray(value, np.float32 if type(value) is float else None)
        return read


def _is_value(argument: Any) -> bool:
    """Returns whether an argument is neither a tensor, nor a list of them, nor an absent one."""
    if isinstance(argument, list):
        return False
    return argument is not None and not hasattr(argument, "shape")


def _present(results: Sequence[jax.Array | None]) -> list[jax.Array]:
    """Returns the results without those of absent inputs that would be updated."""
    return [result for result in results if result is not None]


def _value_of(attribute: Attribute, given: Iterator[Any]) -> Any:
    """Returns an attribute's value: fixed, given or default; None for an absent one."""
    if attribute.value is not None:
        return attribute.value
    value = next(given, None)
    if value is None and attribute.default is not None:
        return decode_text(attribute.type, attribute.default)
    return value


class OperatorBackend(TracedBackend[NamedOperator, NamedOperator]):
    """Runs wherever XLA does, as operations of XLA."""

    func_type = "aot"
    takes_values = True

    def read(self, func: Any, options: Options, who: str) -> NamedOperator:
        """Finds an operator by name, with or without the prefix ``aclnn``."""
        return NamedOperator(
            lookup(
                func,
                who,
                "Use one of those it has, add it with msops.extension.register_aclnn, or name a "
                "kernel of your own as 'library.so:Symbol' or 'source.cc:Symbol'.",
            )
        )

    def infer(
        self, kernel: NamedOperator, half: str, request: Request, infos: Sequence[OpInfo], who: str
    ) -> Any:
        """Asks the user's infer function, else the operator."""
        infer_functions = kernel.infer_functions
        if infer_functions is not None and infer_functions.has(half):
            _, values = kernel.bind(request.call, request.inputs)
            attributes = [(name, _for_library(value)) for name, value in values]
            call = AotCall(
                op=request.op,
                kernel_name=infer_functions.symbol,
                library=infer_functions.library,
                attributes=(*request.prim_attrs, *attributes),
            )
            info = () if kernel.info is None else (kernel.info,)
            return infer_functions.ask(half, call, request.inputs, info, who)
        structs, several = kernel.infer(request.call, request.inputs)
        answers = [list(one.shape) if half == "shape" else one.dtype for one in structs]
        return tuple(answers) if several else answers[0]

    def trace(self, kernel: NamedOperator, request: Request) -> Traced:
        """Returns the operator as JAX code, which has derivatives."""
        return Traced(_function(kernel, request))

    def explain(self, kernel: NamedOperator, request: Request) -> str:
        """Says which operator it is."""
        text = (kernel.operator.function.__doc__ or "").strip().partition("\n")[0]
        return (
            f"{request.who}: the operator {kernel.operator.name} of Ascend runs as operations of "
            f"XLA.\n{text}"
        ).rstrip()


BACKEND = OperatorBackend()


def infer_functions_of(library: Library, symbol: str) -> InferFunctions | None:
    """Returns the infer functions that a library without `symbol` has for an operator.

    None if it is a kernel of the user's own for which ``extern "C"`` was forgotten.
    """
    if any(is_mangled_from(symbol, name) for name in library.functions):
        return None
    short = symbol.removeprefix(PREFIX)
    for name in (symbol, short):
        infer_functions = InferFunctions(library, name)
        if infer_functions.has("shape") or infer_functions.has("dtype"):
            return infer_functions
    return InferFunctions(library, short) if symbol != short else None


def _for_library(value: Any) -> Any:
    """Returns a value as C++ infer functions read it: a dtype is its TypeId."""
    return value.type_id if isinstance(value, DType) else value


def _function(kernel: NamedOperator, request: Request) -> Function:
    """Returns a call as JAX code, over the axes that vmap added."""
    call = request.call
    outputs = [call.element(struct) for struct in request.outputs.structs]

    def one(*flat: Any) -> Sequence[jax.Array]:
        arguments, _ = kernel.bind(call, flat)
        return kernel.run(arguments, outputs)

    return over_batch(one, call.batch)
