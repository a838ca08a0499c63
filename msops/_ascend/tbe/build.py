"""Schedules and the calls that end a kernel; a schedule has nothing to decide here.

`build` says which tensors are the inputs and the results. XLA does what schedules do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msops._ascend.tbe.session import KernelTypeError, record_build
from msops._loops.frontends.tvm.tensor import PlaceholderOp, Tensor, by_age
from msops._loops.frontends.tvm.tracing import build_error, call_error


@dataclass(frozen=True)
class Schedule:
    """The object that a kernel passes from ``auto_schedule`` to ``build``.

    Attributes:
      results: the tensors scheduled.
    """

    results: tuple[Tensor, ...]


class ScheduleScope:
    """A block that only Ascend's compiler takes notice of: a target, a configuration.

    Kernels write both ``with build_config:`` and ``with build_config(...):``.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> ScheduleScope:
        return self

    def __enter__(self) -> ScheduleScope:
        return self

    def __exit__(self, *error: object) -> None:
        return None


SCOPE = ScheduleScope()


def auto_schedule(outs: Any, option: Any = None) -> Schedule:
    """Returns the schedule of a tensor, or of a list of them.

    Args:
      outs: the kernel's results.
      option: not used.
    """
    results = tuple(outs) if isinstance(outs, (list, tuple)) else (outs,)
    _check_all_tensors("auto_schedule", results)
    return Schedule(results)


def build(sch: Any, config_map: Any = None) -> None:
    """Completes the kernel, whose inputs and results the configuration's ``tensor_list`` names.

    Args:
      sch: a schedule, or a list of them for kernels of dynamic shapes.
      config_map: a dict with ``name`` and ``tensor_list``: all inputs in the order of the op info,
        then all results; a list of such lists for a list of schedules.
    """
    if not isinstance(config_map, Mapping) or "tensor_list" not in config_map:
        raise build_error(
            "build",
            "expected a config with 'name' and 'tensor_list'; got "
            + (f"keys {sorted(config_map)}" if isinstance(config_map, Mapping) else "none"),
            'Write {"name": kernel_name, "tensor_list": [x, y, result]}.',
        )
    for schedule in sch if isinstance(sch, (list, tuple)) else (sch,):
        _check_schedule("build", schedule)
    tensors = config_map["tensor_list"]
    if tensors and isinstance(tensors[0], (list, tuple)):
        # Shapes are known, so every case that the kernel distinguished is the case at hand.
        tensors = tensors[-1]
    _record("build", tensors)


def tvm_build(sch: Any, args: Any, target: Any = None, name: Any = "default") -> None:
    """Completes the kernel, as `build` does.

    Args:
      sch: a schedule.
      args: all inputs, then all results.
      target: not used.
      name: not used.
    """
    _check_schedule("tvm.build", sch)
    _record("tvm.build", args)


def schedule_of_results(results: Any) -> tuple[Schedule, list[Tensor]]:
    """Returns a schedule and the list for ``tvm.build``: the inputs it finds, then the results."""
    schedule = auto_schedule(results)
    found: set[Tensor] = set()
    waiting = list(schedule.results)
    while waiting:
        tensor = waiting.pop()
        if tensor not in found:
            found.add(tensor)
            waiting += tensor.op.input_tensors
    inputs = [tensor for tensor in by_age(found) if isinstance(tensor.op, PlaceholderOp)]
    return schedule, [*inputs, *schedule.results]


def _record(name: str, tensors: Any) -> None:
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise call_error(
            KernelTypeError,
            name,
            f"expected a list of tensors; got {type(tensors).__name__}",
            "List all inputs in the order of the op info, then all results.",
        )
    _check_all_tensors(name, tensors)
    record_build(name, tuple(tensors))


def _check_schedule(name: str, schedule: Any) -> None:
    if not isinstance(schedule, Schedule):
        raise call_error(
            KernelTypeError,
            name,
            f"expected a schedule; got {type(schedule).__name__}",
            "Pass what auto_schedule(result) returned.",
        )


def _check_all_tensors(name: str, tensors: Any) -> None:
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise call_error(
                KernelTypeError,
                name,
                f"expected tensors; got {type(tensor).__name__} at position {position}",
                "Pass placeholders and what the DSL made of them.",
            )
