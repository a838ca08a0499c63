"""Output shapes and dtypes, from values or functions, checked before any kernel runs.

`Custom`'s `out_shape` and `out_dtype` correspond to MindSpore's (2.7.2, ``mindspore.ops.Custom``):
a value, or a function that gets one argument per call argument. None asks the kernel itself. `out`
is both in one, as `jax.pure_callback` takes it: a tree of `jax.ShapeDtypeStruct`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax

from msops._base.dtypes import known_dtype
from msops._op.arrays import refuse_64_bit
from msops._op.call import Call, ask
from msops._op.identity import ByValue
from msops._op.outputs import (
    NO_OUTPUTS,
    Answer,
    Asked,
    Outputs,
    has_shape,
    join_halves,
    no_outputs,
    read_dtypes,
    read_shapes,
    read_structs,
)
from msops._op.variables import Variables, read_variables
from msops.errors import ArgumentValueError


class ShapeList(list[Any]):
    """A shape as infer functions get it: MindSpore's list, that also adds and compares to tuples.

    Published scripts write both ``x + [1]`` and ``x == (2, 3)``. It is its own `shape`, as users of
    JAX write ``lambda x: x.shape``.
    """

    @property
    def shape(self) -> ShapeList:
        """The shape itself."""
        return self

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a function given as out_shape gets shapes, which have no {name!r}; pass "
            "out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype) for one that gets both"
        )

    def __add__(self, other: Any) -> ShapeList:
        return ShapeList([*self, *other])

    def __radd__(self, other: Any) -> ShapeList:
        return ShapeList([*other, *self])

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        return ShapeList(item) if isinstance(index, slice) else item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, tuple)) and list(self) == list(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


@dataclasses.dataclass(frozen=True)
class Inference:
    """The two halves of an op's inference, or both in one.

    Attributes:
      out_shape: a shape, a tuple of shapes, a function of the inputs' shapes, or None.
      out_dtype: a dtype, a tuple of dtypes, a function of the inputs' dtypes, or None.
      has_outputs: False for a function that is only called for its effect.
      out: the outputs, a function of the inputs that returns their tree, or None.
      in_order: the kernel knows its outputs by their order, so that a tree must keep it.
      has_units: MindSpore gives one output of shape ``()`` one entry, ``(1,)``.
    """

    out_shape: ByValue | Answer | None
    out_dtype: ByValue | Answer | None
    has_outputs: bool = True
    out: ByValue | Outputs | None = None
    in_order: bool = True
    has_units: bool = False

    def is_current(self) -> bool:
        """Returns whether functions among the halves still see what they saw when read."""
        return all(half.is_current() for half in self._functions().values())

    def variables(self) -> Variables | None:
        """Returns what functions among the halves read that may be assigned anew."""
        return read_variables(half.function for half in self._functions().values())

    def read_again(self) -> Inference:
        """Returns the inference with what its functions see now."""
        again: dict[str, Any] = {
            name: ByValue(half.function) for name, half in self._functions().items()
        }
        return dataclasses.replace(self, **again)

    def _functions(self) -> dict[str, ByValue]:
        halves = {"out_shape": self.out_shape, "out_dtype": self.out_dtype, "out": self.out}
        return {name: half for name, half in halves.items() if isinstance(half, ByValue)}


def read_inference(
    out_shape: Any,
    out_dtype: Any,
    may_have_none: bool,
    who: str,
    out: Any = None,
    in_order: bool = True,
) -> Inference:
    """Returns the op's inference; values are checked at once, functions when they are called.

    Args:
      out_shape: as `Custom` takes it.
      out_dtype: as `Custom` takes it.
      may_have_none: whether ``()`` for both means an op without outputs, as ``out=()`` does, and
        for out_shape alone one entry on MindSpore's face.
      who: the op, for messages.
      out: as `Custom` takes it.
      in_order: whether the kernel knows its outputs by their order.
    """
    if out is not None:
        if out_shape is not None or out_dtype is not None:
            raise ArgumentValueError.explained(
                who,
                "out is given together with out_shape or out_dtype",
                "out has both shapes and dtypes: leave the others out.",
            )
        return _read_out(out, may_have_none, in_order, who)
    if may_have_none and _is_empty(out_shape) and _is_empty(out_dtype):
        return Inference(None, None, has_outputs=False)
    if callable(out_shape) and not isinstance(out_shape, type):
        out_shape = ByValue(out_shape)
    elif out_shape is not None:
        out_shape = read_shapes(out_shape, who, "out_shape")
    # A dtype class such as np.float32 is callable and yet a value.
    if callable(out_dtype) and not isinstance(out_dtype, type):
        out_dtype = ByValue(out_dtype)
    elif out_dtype is not None:
        out_dtype = read_dtypes(out_dtype, who, "out_dtype")
    return Inference(out_shape, out_dtype, has_units=may_have_none)


def infer(
    inference: Inference,
    call: Call,
    avals: Sequence[Any],
    ask_kernel: Callable[[str], Any],
    who: str,
) -> Outputs:
    """Infers what a call returns.

    Args:
      inference: the op's two halves.
      call: the call's structure.
      avals: abstract values of the flat inputs.
      ask_kernel: given "shape" or "dtype", what the kernel itself answers; used for a None half.
      who: the op, for messages.

    Raises:
      InferenceTypeError, InferenceValueError: a half answered something that is no shape or dtype,
        or the halves disagree on the number of outputs.
      ArgumentTypeError: an infer function takes another number of arguments than the call has.
    """
    if not avals and call.given:
        who = f"{who}, called without arrays"
    dtypes: list[Any] = [known_dtype(aval.dtype, f"input {i}", who) for i, aval in enumerate(avals)]
    if inference.out is not None:
        outputs = _infer_out(inference, inference.out, call, avals, who)
    elif not inference.has_outputs:
        outputs = NO_OUTPUTS
    else:
        answers: list[Answer | Asked] = []
        shapes: list[Any] = [ShapeList(aval.shape) for aval in avals]
        for position in call.numbers:
            # MindSpore asks about each number of a list, and gives a kernel one array of them.
            if len(shapes[position]) == 1:
                count = shapes[position][0]
                shapes[position] = [ShapeList(()) for _ in range(count)]
                dtypes[position] = [dtypes[position]] * count
        for half, function, inputs in (
            ("shape", inference.out_shape, shapes),
            ("dtype", inference.out_dtype, dtypes),
        ):
            if function is None:
                answers.append(Asked(ask_kernel(half), f"the kernel's own {half} inference"))
            elif isinstance(function, ByValue):
                said = ask(function.function, f"out_{half}", inputs, call, who)
                answers.append(Asked(said, f"its out_{half} function"))
            else:
                answers.append(function)
        may_be_unit = inference.has_units and call.tensors
        outputs = join_halves(answers[0], answers[1], may_be_unit, who)
    if not call.tensors:
        narrowing = "Declare {} by out_dtype" if inference.out is None else "Pass {} in out"
        for index, struct in enumerate(outputs.structs):
            refuse_64_bit(struct.dtype, f"output {index}", who, narrowing)
    return outputs


def _read_out(out: Any, may_have_none: bool, in_order: bool, who: str) -> Inference:
    is_value = all(map(has_shape, leaves := jax.tree.leaves(out)))
    if callable(out) and not (is_value and leaves):
        return Inference(None, None, out=ByValue(out), in_order=in_order)
    outputs = read_structs(out, in_order, who, "out")
    if not outputs.structs and not may_have_none:
        raise no_outputs(who, "out")
    return Inference(None, None, bool(outputs.structs), outputs, in_order)


def _infer_out(
    inference: Inference, out: ByValue | Outputs, call: Call, avals: Sequence[Any], who: str
) -> Outputs:
    if isinstance(out, Outputs):
        return out
    inputs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    result = ask(out.function, "out", inputs, call, who)
    outputs = read_structs(result, inference.in_order, who, "its out function")
    if not outputs.structs:
        raise no_outputs(who, "its out function")
    return outputs


def _is_empty(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not value
