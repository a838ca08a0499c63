"""One call of an op for one platform, as the backend of its func_type gets it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax

from msops._base.building import Build
from msops._op.call import Call
from msops._op.identity import ByValue
from msops._op.outputs import Outputs
from msops._op_info import OpInfo
from msops.errors import ArgumentValueError

if TYPE_CHECKING:
    from msops._op.sharding_rule import ShardingRule


@dataclasses.dataclass(frozen=True)
class Options:
    """Keyword options of `Custom`; see there."""

    stateful: bool | str = False
    reentrant: bool = True
    writable: bool | None = None
    host: bool = False
    dynamic_outputs: bool = False
    cxx11_abi: bool | None = None
    build: Build | None = None
    vmap: str | ByValue = "sequential"
    forward: bool = False
    jvp: ByValue | None = None
    inplace: tuple[tuple[int, int], ...] = ()
    sharding: ShardingRule | None = None
    compile_attrs: tuple[tuple[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class Request:
    """One call for one platform, as a backend sees it.

    Attributes:
      op: the op's name.
      op_type: the name op info gives it; empty without op info.
      platform: JAX's platform name; empty while shapes are inferred.
      guarded: whether the op has op info for that platform.
      infos: the op info of the op, one per target.
      call: the call's structure.
      attributes: the attributes op info names, defaults included.
      prim_attrs: those added by ``add_prim_attr``.
      inputs: shapes and dtypes of the flat inputs.
      outputs: what the op returns; `NO_OUTPUTS` while shapes are inferred.
      options: the op's options.
      bind: binds the op again for a nested program: a call of it, on flat arrays.
      who: the op and where it runs, for messages.
    """

    op: str
    op_type: str
    platform: str
    guarded: bool
    infos: tuple[OpInfo, ...]
    call: Call
    attributes: tuple[tuple[str, Any], ...]
    prim_attrs: tuple[tuple[str, Any], ...]
    inputs: tuple[jax.ShapeDtypeStruct, ...]
    outputs: Outputs
    options: Options
    bind: Callable[[Call, Sequence[Any]], Sequence[Any]]
    who: str

    @property
    def has_effect(self) -> bool:
        """Whether one call must be one run: it is neither merged with another nor dropped."""
        return bool(self.options.stateful) or not self.outputs.structs

    @property
    def is_ordered(self) -> bool:
        """Whether calls run in the order of the program."""
        return self.options.stateful == "ordered"

    def memory_traffic(self) -> dict[str, float]:
        """Returns the bytes of inputs and outputs, each counted once."""
        arrays = (*self.inputs, *self.outputs.structs)
        size_bytes = sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays)
        return {"bytes accessed": float(size_bytes)}

    def aliases(self) -> tuple[tuple[int, int], ...]:
        """Returns the pairs of flat input and output that ``Custom(inplace=)`` names.

        Raises:
          ArgumentValueError: the call has no such pair, or the two differ in shape or dtype.
        """
        outputs = self.outputs.structs
        pairs = []
        for output, argument in self.options.inplace:
            index = self.call.flat_index(argument)
            if index is None or output >= len(outputs):
                raise ArgumentValueError.explained(
                    self.who,
                    f"inplace names output {output} and input {argument}; the call has "
                    f"{len(outputs)} output(s) and the inputs {self.call}",
                    "Count both from 0, and name an input that is one array.",
                )
            have, want = self.inputs[index], outputs[output]
            if (have.shape, have.dtype) != (want.shape, want.dtype):
                raise ArgumentValueError.explained(
                    self.who,
                    f"inplace expected input {argument} and output {output} of one shape and "
                    f"dtype; got {have.dtype}{list(have.shape)} and "
                    f"{want.dtype}{list(want.shape)}",
                    "Leave inplace out, or let the output have the input's shape and dtype.",
                )
            pairs.append((index, output))
        return tuple(pairs)
