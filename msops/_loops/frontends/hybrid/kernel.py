"""A kernel in the loop language: checked once, translated for each set of arguments."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msops._loops.frontends.hybrid.calls import Rules
from msops._loops.frontends.hybrid.early import check_types
from msops._loops.frontends.hybrid.expressions import constant_value
from msops._loops.frontends.hybrid.grammar import check_grammar
from msops._loops.frontends.hybrid.helpers import defaults_of, outside_of
from msops._loops.frontends.hybrid.kept import keep_values
from msops._loops.frontends.hybrid.names import ResolvedNames, ScopedName, resolve_names
from msops._loops.frontends.hybrid.rewriting import rewrite
from msops._loops.frontends.hybrid.statement_forms import parameter_names
from msops._loops.frontends.hybrid.statements import run
from msops._loops.frontends.hybrid.translation import RESERVED, Again, Known, Translation
from msops._loops.frontends.hybrid.typing import Retype, Typing
from msops._loops.frontends.hybrid.values import Value, WholeTensor
from msops._loops.frontends.references import as_constant
from msops._loops.frontends.reporting import Reporter
from msops._loops.frontends.source import Source
from msops._loops.frontends.spec import Spec
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Const, Kernel

_METHOD = (
    "A kernel is a function, not a method: define it outside the class, and pass it the arrays and "
    "numbers that it needs of the object."
)


@dataclass(frozen=True, eq=False)
class HybridKernel:
    """A function that is in the language.

    Attributes:
      source: the author's text, and where it is; its definition in few forms (rewriting.py).
      names: what its names mean.
      captured: the numbers and tuples it sees from outside.
      defaults: values of parameters that need not be given.
      from_others: what it has of helper functions and objects outside, as text.
    """

    source: Source
    names: ResolvedNames
    captured: Mapping[str, Any]
    defaults: Mapping[str, Any]
    from_others: str

    def specialise(
        self, inputs: Sequence[Spec | tuple[Spec, ...]], attributes: Mapping[str, Any], who: str
    ) -> Kernel:
        """Translates it for shapes, dtypes and attribute values; see `LoopProgram.specialise`."""
        report = Reporter(who, self.source)
        arguments = self._arguments(report, inputs, attributes)
        known = Known()
        known.keep(self.names, self.names.early)
        while True:
            try:
                return self._translate(report, arguments, known)
            except Retype as found:
                known.retyped |= dict.fromkeys(found.symbols, found)
            except Again:
                pass

    def _arguments(
        self,
        report: Reporter,
        inputs: Sequence[Spec | tuple[Spec, ...]],
        attributes: Mapping[str, Any],
    ) -> dict[str, Spec | Any]:
        """Returns what each parameter is: the tensors first, then the attributes."""
        definition = self.source.definition
        parameters = parameter_names(definition)
        constants = parameters[len(inputs) :]
        given = {**self.defaults, **attributes}
        missing = [name for name in constants if name not in given]
        unknown = [name for name in attributes if name not in constants]
        if len(inputs) > len(parameters) or missing or unknown:
            attribute_text = f" and the attributes {', '.join(attributes)}" if attributes else ""
            raise report.build_error(
                definition,
                f"the kernel has the parameters ({', '.join(parameters)}); it is called with "
                f"{len(inputs)} tensor{'s' * (len(inputs) != 1)}{attribute_text}",
                _METHOD
                if missing and parameters[0] in ("self", "cls")
                else f"Pass an array for {missing[0]}, or its value by name, {missing[0]}=..."
                if missing
                else "Pass an array for each tensor, in order; the parameters after them are "
                "attributes.",
            )
        for name, spec in zip(parameters, inputs, strict=False):
            if not isinstance(spec, Spec):
                raise report.build_error(
                    definition,
                    f"'{name}' is a list of tensors",
                    "A kernel of loops takes tensors one by one: give it a parameter for each.",
                )
        return dict(zip(parameters, [*inputs, *(given[name] for name in constants)], strict=True))

    def _translate(self, report: Reporter, arguments: Mapping[str, Any], known: Known) -> Kernel:
        body = self.source.definition.body
        taken = Names(reserved=(*RESERVED, *arguments))
        dtypes = {each.dtype for each in arguments.values() if isinstance(each, Spec)}
        float_dtype = "float64" if "float64" in dtypes else "float32"
        typing = Typing(report, frozenset(symbol.name for symbol in known.retyped), float_dtype)
        t = Translation(self.names, report, typing, known, taken)
        t.values |= self._bindings(t, arguments)
        with t.block(self.names.blocks[id(body)]) as block:
            run(t, body)
        check_types(t)
        parameters = tuple(
            Buffer(name, spec.shape, spec.dtype)
            for name, spec in arguments.items()
            if isinstance(spec, Spec)
        )
        return Kernel(
            self.source.definition.name,
            parameters,
            tuple(self._result(t, symbol) for symbol in self.names.results),
            tuple(t.buffers),
            keep_values(t, block.finish()),
            location=report.source.location(self.source.definition),
            notes=tuple(t.typing.notes),
        )

    def _bindings(self, t: Translation, arguments: Mapping[str, Any]) -> dict[ScopedName, Value]:
        """Returns the values of the names that the kernel does not assign."""
        values: dict[ScopedName, Value] = {}
        for symbol in self.names.symbols.values():
            if symbol.kind == "captured":
                values[symbol] = constant_value(self.captured[symbol.name])
            elif symbol.kind == "parameter":
                given = arguments[symbol.name]
                if isinstance(given, Spec):
                    values[symbol] = WholeTensor(Buffer(symbol.name, given.shape, given.dtype))
                else:
                    values[symbol] = self._attribute(t.report, symbol.name, given)
        return values

    def _attribute(self, report: Reporter, name: str, given: Any) -> Value:
        if isinstance(given, Const):
            return given
        constant = as_constant(given)
        if constant is None:
            raise report.build_error(
                self.source.definition,
                f"the attribute '{name}' is {given!r}, which is no constant of the language",
                "Attributes are numbers, strings, and tuples of them.",
            )
        return constant_value(constant)

    def _result(self, t: Translation, symbol: ScopedName) -> str:
        value = t.values.get(symbol)
        if isinstance(value, WholeTensor):
            return value.buffer.name
        raise t.report.build_error(
            self.source.definition.body[-1],
            f"'{symbol.name}' is returned, but is no tensor for these arguments",
            "Return tensors that are declared whatever the attributes.",
        )


def read_hybrid(
    function: types.FunctionType,
    source: Source,
    dialect: str,
    who: str,
    capture: Mapping[str, Any] | None = None,
) -> HybridKernel:
    """Checks a kernel; see `program.read_kernel`.

    Args:
      function: the author's function.
      source: its text.
      dialect: "akg" or "hybrid".
      who: names the op in messages.
      capture: what it sees outside besides its own surroundings, by name.
    """
    report = Reporter(who, source)
    rules = Rules(dialect, report, outside_of(function) | dict(capture or {}))
    check_grammar(source.definition, rules)
    rewritten = rewrite(source, rules)
    definition, captured = rewritten.source.definition, rewritten.captured
    names = resolve_names(definition, captured, rules)
    return HybridKernel(
        rewritten.source, names, captured, defaults_of(function), rewritten.from_others
    )
