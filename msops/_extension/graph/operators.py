"""A graph operator: its function in Python, and its calls into C++.

Infer functions run whenever it is called or traced. Its kernel is a `PyboostRunner` (runner.h), so
it runs at once on memory or as a custom call in a program, and vmap, shard_map and in-place results
are those of runners.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from msops._extension.calls import Module, as_function, from_python, to_python
from msops._extension.graph.arguments import contents, convert, promote
from msops._extension.graph.definitions import REQUIRED, OperatorDefinition
from msops._extension.graph.gradients import bprop_getters
from msops._extension.handles import is_array
from msops._face.cell_bprop import with_bprop
from msops._face.changed_tensors import note_changed
from msops._face.parameter import is_compiling
from msops._face.tensor import Tensor
from msops.errors import ArgumentTypeError, GradientTypeError

_NO_RESULT = re.compile(r"\) -> None$|\(\) -> ", re.MULTILINE)


class GraphOperator:
    """An operator of op_def in a loaded module.

    Attributes:
      name: "Custom_" and its name in op_def.
      attrs: its labels.
    """

    def __init__(
        self,
        module: Module,
        definition: OperatorDefinition,
        entry: Callable[..., Any],
        own: Callable[..., Any] | None,
    ):
        self.name = f"Custom_{definition.name}"
        self.attrs = dict(definition.labels)
        self._module = module
        self._who = f"{self.name} of extension module '{module.name}'"
        self._names = tuple(argument.name for argument in definition.arguments)
        self._definition = definition
        self._entry = entry
        self._own = own
        self._depends = entry(definition.name)
        self._run = as_function(module, self._run_in_frame)

    def __repr__(self) -> str:
        return f"Prim[{self.name}]"

    def function(self, doc: str | None) -> Callable[..., Any]:
        """Returns its function, with the signature that op_def describes."""
        definition = self._definition
        signature = inspect.Signature(
            [
                inspect.Parameter(
                    argument.name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=inspect.Parameter.empty
                    if argument.default is REQUIRED
                    else argument.default,
                )
                for argument in definition.arguments
            ]
        )

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ArgumentTypeError.explained(
                    self._who,
                    f"expected the arguments {signature}; {error}",
                    "Pass them by position or by name.",
                ) from None
            bound.apply_defaults()
            return self(*bound.args)

        call.__name__ = call.__qualname__ = definition.function
        call.__doc__ = doc
        call.__module__ = self._module.name
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    def __call__(self, *values: Any) -> Any:
        """Calls it with one value for each argument."""
        converted = [
            convert(argument, value, self._who)
            for argument, value in zip(self._definition.arguments, values, strict=True)
        ]
        # Outside its graphs MindSpore calls the module's own function.
        if self._own is not None and not is_compiling():
            return self._own(*converted)
        promoted = promote(self._definition, converted, self._who)
        getter = bprop_getters.get(self.name)
        if getter is None:
            return self._packed(self._run(*promoted))
        return self._differentiable(getter(self), promoted)

    def _packed(self, results: Sequence[Any]) -> Any:
        return results[0] if len(self._definition.results) == 1 else tuple(results)

    def _run_in_frame(self, *values: Any) -> tuple[Any, ...]:
        """Returns the results; Tensors that C++ changed get their arrays when the frame ends."""
        definition = self._definition
        handles = [self._handle(value) for value in values]
        results = self._entry(
            definition.name,
            self._names,
            definition.results,
            definition.written,
            tuple(handles),
            contents(values, self._depends),
            self.attrs,
        )
        return tuple(map(to_python, results))

    def _handle(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._handle, value))
        return from_python(value) if is_array(value) else value

    def _differentiable(self, bprop: Callable[..., Any], values: list[Any]) -> Any:
        """Calls it with the gradient that was registered.

        Raises:
          GradientTypeError: it changes an argument whose gradient the bprop cannot know.
        """
        if changed := self._definition.only_written:
            raise GradientTypeError.explained(
                self._who,
                f"argument '{self._names[changed[0]]}' is changed in place and is no result, so "
                "the registered bprop does not get the gradient of its new value",
                "Return the argument: in op_def, give a result 'inplace' with its name.",
            )

        def bprop_of_results(*arguments: Any) -> Any:
            *inputs, out, dout = arguments
            return bprop(*inputs, self._packed(out), self._packed(dout))

        def construct(*inputs: Any) -> tuple[Any, ...]:
            results: tuple[Any, ...] = self._run(*inputs)
            return results

        results = with_bprop(construct, bprop_of_results, self._who)(*values)
        return self._packed(self._handed_back(results, values))

    def _handed_back(self, results: Sequence[Any], values: list[Any]) -> list[Any]:
        """Gives Tensors that were changed in place their new arrays, as JAX worked on copies."""
        handed: list[Any] = []
        for result, source in zip(results, self._definition.results, strict=True):
            tensor = values[source] if source >= 0 else None
            if isinstance(tensor, Tensor) and isinstance(result, Tensor) and result is not tensor:
                tensor.value = result.value
                note_changed(tensor)
                result = tensor
            handed.append(result)
        return handed


def implements(function: Callable[..., Any]) -> bool:
    """Returns whether a module's own function computes something, and is no placeholder.

    Modules bind an empty function for an operator that only graphs have.
    """
    doc = function.__doc__ or ""
    signatures = [line for line in doc.splitlines() if " -> " in line]
    return not signatures or not all(map(_NO_RESULT.search, signatures))
