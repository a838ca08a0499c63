"""What MindSpore's face adds: the same calls on Tensors and on arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mindspore_column
from kernels import make_aot_op, make_inputs, waiting
from report import Report, Table, judge, show_count, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

import msops as ms
from msops import nn, ops

METHOD = (
    "Adds two float32 values eagerly and waits for the sum; microseconds a call as median "
    "(quartiles) of {rounds} rounds in which all contenders take turns. Each row's baseline is the "
    "same work on jax.Arrays. A Cell looks after its parameters, too; the target is for single "
    "calls"
)
# By name: the call on Tensors, and the call on arrays that does the same work.
PAIRS = {
    "Tensor + Tensor": "jnp.add",
    "ops.Add()(Tensor, Tensor)": "jnp.add",
    "aot op on Tensors": "aot op on arrays",
    "Cell of it, GRAPH_MODE": "jax.jit of it",
}
JUDGED = ("Tensor + Tensor", "ops.Add()(Tensor, Tensor)", "aot op on Tensors")


class Net(nn.Cell):
    """A network of one op."""

    def __init__(self, op: ms.Custom):
        super().__init__()
        self.op = op

    def construct(self, x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        """Calls the op."""
        return self.op(x, y)


def run(settings: Settings) -> Report:
    """Measures each call at every size."""
    measured = {count: _measure(count, settings.rounds) for count in settings.counts}
    tables = [
        Table(
            f"{show_count(count)} elements",
            ["on Tensors", "us", "on arrays", "us", "ratio"],
            [
                [
                    name,
                    show_us(times[name].microseconds),
                    baseline,
                    show_us(times[baseline].microseconds),
                    show_ratio(times[name].over(times[baseline])),
                ]
                for name, baseline in PAIRS.items()
            ],
        )
        for count, times in measured.items()
    ]
    others = mindspore_column.columns(settings, "tensor eager")
    if others:
        rows = [
            [show_count(count), *(column[count] for column in others.values())]
            for count in settings.counts
        ]
        tables.append(Table("Tensor + Tensor, us", ["elements", *others], rows))
    ratios = {
        f"{name}, {show_count(count)}": times[name].over(times[PAIRS[name]]).median
        for count, times in measured.items()
        for name in JUDGED
    }
    return Report(
        "tensor_face",
        "Call cost on MindSpore's face",
        METHOD.format(rounds=settings.rounds),
        tables,
        [judge("a call on Tensors takes at most 2x its call on arrays", ratios, 2.0)],
    )


def _measure(count: int, rounds: int) -> dict[str, Times]:
    arrays = make_inputs(count)
    tensors = [ms.Tensor(array) for array in arrays]
    op, add = make_aot_op(), ops.Add()
    mode = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        calls = {
            "Tensor + Tensor": _waiting_tensor(lambda x, y: x + y, *tensors),
            "ops.Add()(Tensor, Tensor)": _waiting_tensor(add, *tensors),
            "aot op on Tensors": _waiting_tensor(op, *tensors),
            "Cell of it, GRAPH_MODE": _waiting_tensor(Net(op), *tensors),
            "jnp.add": waiting(jnp.add, *arrays),
            "aot op on arrays": waiting(op, *arrays),
            "jax.jit of it": waiting(jax.jit(lambda x, y: op(x, y)), *arrays),
        }
        return take_turns(calls, rounds)
    finally:
        ms.set_context(mode=mode)


def _waiting_tensor(function, x: ms.Tensor, y: ms.Tensor):
    def call() -> None:
        function(x, y).value.block_until_ready()

    return call
