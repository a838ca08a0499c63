"""The infer functions that a library has for a kernel: ``NameInferShape`` and ``NameInferType``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax

from msops._base.dtypes import BY_TYPE_ID
from msops._calls.library_call import AotCall, infer_shapes, infer_type_ids
from msops._op.arrays import require_numbers
from msops._op_info import OpInfo
from msops._toolchain import Library
from msops.errors import InferenceValueError


@dataclasses.dataclass(frozen=True)
class InferFunctions:
    """The infer functions of a library whose names start with a symbol."""

    library: Library
    symbol: str

    def has(self, half: str) -> bool:
        """Returns whether the library has the function for "shape" or "dtype"."""
        return self.name(half) in self.library.functions

    def name(self, half: str) -> str:
        """Returns the name of the function for "shape" or "dtype"."""
        return f"{self.symbol}Infer{'Shape' if half == 'shape' else 'Type'}"

    def ask(
        self,
        half: str,
        call: AotCall,
        inputs: Sequence[jax.ShapeDtypeStruct],
        infos: Sequence[OpInfo],
        who: str,
    ) -> Any:
        """Returns what the function for `half` answers.

        Args:
          half: "shape" or "dtype".
          call: the call, with its attributes and without its outputs.
          inputs: the flat inputs.
          infos: the op info, which says whether there are several outputs.
          who: the op, for messages.
        """
        # Which of the two C++ return types a function has cannot be seen in the
        # library, only in the op info.
        multiple = any(
            len(info.outputs) > 1 or any(port.kind == "dynamic" for port in info.outputs)
            for info in infos
        )
        call = dataclasses.replace(call, kernel_name=self.symbol, library=self.library)
        if half == "shape":
            return self._ask_shapes(call, inputs, multiple, who)
        return self._ask_dtypes(call, inputs, multiple, who)

    def _ask_shapes(
        self, call: AotCall, inputs: Sequence[jax.ShapeDtypeStruct], multiple: bool, who: str
    ) -> Any:
        for index, struct in enumerate(inputs):
            require_numbers(
                struct.shape,
                f"input {index}, as {self.name('shape')} is asked",
                who,
                "Pass out_shape as a function of the inputs' shapes, e.g. lambda x: x, which "
                "gets the symbols too",
            )
        return infer_shapes(call, inputs, multiple, who)

    def _ask_dtypes(
        self, call: AotCall, inputs: Sequence[jax.ShapeDtypeStruct], multiple: bool, who: str
    ) -> Any:
        type_ids = infer_type_ids(call, inputs, multiple, who)
        unknown = [number for number in type_ids if number not in BY_TYPE_ID]
        if unknown:
            raise InferenceValueError.explained(
                who,
                f"expected TypeId numbers of dtypes from {self.name('dtype')}; got {unknown}",
                "Return one of the numbers: "
                + ", ".join(f"{row.type_id} {row.name}" for row in BY_TYPE_ID.values())
                + ".",
            )
        dtypes = tuple(BY_TYPE_ID[number] for number in type_ids)
        return dtypes if multiple else dtypes[0]
