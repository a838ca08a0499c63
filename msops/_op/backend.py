"""What an op is made of, and what a func_type must answer to serve it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import jax

from msops import _jax_seam as seam
from msops._op.call import Call
from msops._op.identity import ByValue
from msops._op.inference import Inference, Outputs
from msops._op.traced import Traced
from msops._op_info import OpInfo
from msops.errors import ArgumentValueError, BackendError, explain

if TYPE_CHECKING:
    from msops._op.sharding_rule import ShardingRule
    from msops._toolchain import Library

Division = Literal["operations", "parts", "whole"]
"""How a call is divided over devices: as operations of XLA's are; by a call on each device's part;
or not at all."""

TARGETS = {"cpu": "CPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}
"""MindSpore's target for each of JAX's platforms."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Keyword options of `Custom`; see there."""

    stateful: bool = False
    reentrant: bool = True
    writable: bool = False
    host: bool = False
    dynamic_outputs: bool = False
    cxx11_abi: bool | None = None
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
                raise ArgumentValueError(
                    explain(
                        self.who,
                        f"inplace names output {output} and input {argument}; the call has "
                        f"{len(outputs)} output(s) and the inputs {self.call}",
                        "Count both from 0, and name an input that is one array.",
                    )
                )
            have, want = self.inputs[index], outputs[output]
            if (have.shape, have.dtype) != (want.shape, want.dtype):
                raise ArgumentValueError(
                    explain(
                        self.who,
                        f"inplace expected input {argument} and output {output} of one shape and "
                        f"dtype; got {have.dtype}{list(have.shape)} and "
                        f"{want.dtype}{list(want.shape)}",
                        "Leave inplace out, or let the output have the input's shape and dtype.",
                    )
                )
            pairs.append((index, output))
        return tuple(pairs)


def require_one_run(request: Request, ctx: Any) -> None:
    """Raises if a stateful call is in a program that XLA would run it whole on each device of.

    Args:
      request: the call.
      ctx: JAX's lowering context.

    Raises:
      BackendError: it is.
    """
    if request.options.stateful and seam.is_partitioned(ctx):
        raise refuse_copies(request.who, seam.partition_count(ctx))


def refuse_copies(who: str, copies: int) -> BackendError:
    """Returns the error of a stateful op that so many devices would run for the same arrays."""
    return BackendError(
        explain(
            who,
            f"it is stateful: one call must be one run, and {copies} devices would each run it "
            "for the same arrays",
            "Call it inside jax.shard_map, once per device; or move the inputs to one device with "
            "jax.device_put; or divide them over all devices along what Custom(sharding=) allows.",
        )
    )


class Backend(Protocol):
    """What a func_type answers, in this order, for its kernels.

    Attributes:
      func_type: its name.
      platforms: JAX's names of the platforms it lowers for.
      may_have_no_outputs: whether a kernel may be called for its effect alone.
      runs_on_host: whether it lowers to a host callback.
      requires_op_info: whether an op must have op info for the target that guards it.
      takes_tuples: whether a tuple of numbers beside Tensors is an argument of its kernels.
      vmap: how its kernels batch unless ``Custom(vmap=)`` says otherwise.
      compile_attrs: the keys it takes in ``Custom(compile_attrs=)``.
    """

    func_type: str
    platforms: tuple[str, ...]
    may_have_no_outputs: bool
    runs_on_host: bool
    requires_op_info: bool
    takes_tuples: bool
    vmap: str
    compile_attrs: tuple[str, ...]

    def read(self, func: Any, options: Options, who: str) -> Any:
        """Checks what `Custom` was given as kernel; returns it, source or library unread."""

    def settle(self, source: Any, options: Options, infos: Sequence[OpInfo], who: str) -> Options:
        """Checks the op info against what was read; returns the options with what it implies."""

    def resolve(self, source: Any, options: Options, who: str) -> Hashable:
        """Returns the kernel ready to run, equal for equal kernels; builds it where needed."""

    def infer(
        self, kernel: Any, half: str, request: Request, infos: Sequence[OpInfo], who: str
    ) -> Any:
        """Returns the kernel's own answer for "shape" or "dtype"."""

    def guard_target(self, platform: str) -> str:
        """Returns the target whose op info guards on `platform`."""

    def trace(self, kernel: Any, request: Request) -> Traced | None:
        """Returns one call as JAX code, for derivatives; None if the kernel is opaque."""

    def native(self, kernel: Any, request: Request) -> LibraryCall | None:
        """Returns the call into a library that one call becomes on the CPU, if it becomes one."""

    def host_function(self, kernel: Any, request: Request) -> Any:
        """Returns the `HostFunction` that one call becomes on the CPU; None if it becomes none."""

    def lower(self, kernel: Any, request: Request, ctx: Any, operands: Sequence[Any]) -> Any:
        """Lowers one call for one platform."""

    def division(self, kernel: Any, request: Request) -> Division:
        """Tells how one call may be divided over devices."""

    def library(self, kernel: Any, request: Request) -> Library | None:
        """Opens and returns the library that runs a call whatever its shapes are, or returns None.

        A program with the call may come from JAX's cache on disk: then nothing of it is lowered.
        """

    def cost(self, kernel: Any, request: Request) -> Mapping[str, float] | None:
        """Returns the operations of one call that are known; None where XLA counts them."""

    def explain(self, kernel: Any, request: Request) -> str:
        """Tells what becomes of one call, and why."""

    def stages(self, kernel: Any, request: Request) -> Mapping[str, Callable[[], str]]:
        """Returns the texts a call goes through on its way, by name, in order."""


class Opaque:
    """What a backend answers whose kernels nothing is known of but how to call them."""

    requires_op_info = False
    takes_tuples = False
    vmap = "sequential"
    compile_attrs: tuple[str, ...] = ()

    def settle(self, source: Any, options: Options, infos: Sequence[OpInfo], who: str) -> Options:
        """Returns the options: nothing is asked of the op info, nor implied by it."""
        return options

    def trace(self, kernel: Any, request: Request) -> Traced | None:
        """Returns None: the kernel is no JAX code."""
        return None

    def native(self, kernel: Any, request: Request) -> LibraryCall | None:
        """Returns None: the kernel is in no library."""
        return None

    def host_function(self, kernel: Any, request: Request) -> Any:
        """Returns None: the kernel is no Python function."""
        return None

    def library(self, kernel: Any, request: Request) -> Library | None:
        """Returns None: the kernel is in no library."""
        return None

    def cost(self, kernel: Any, request: Request) -> Mapping[str, float] | None:
        """Returns none: what a kernel computes, its author alone knows."""
        return {}

    def explain(self, kernel: Any, request: Request) -> str:
        """Says that the kernel runs as it is."""
        return f"{request.who}: the kernel runs as it is; XLA sees one call."

    def stages(self, kernel: Any, request: Request) -> Mapping[str, Callable[[], str]]:
        """Returns none."""
        return {}


class LibraryCall(Protocol):
    """A call into a library, as `_calls` makes them."""

    @property
    def op(self) -> str:
        """Name of the op, for the messages of the handler."""

    @property
    def library(self) -> Library:
        """The library, by content."""

    @property
    def attributes(self) -> tuple[tuple[str, Any], ...]:
        """Every attribute by name."""

    @property
    def reentrant(self) -> bool:
        """False serialises all calls into the library."""

    @property
    def aliases(self) -> tuple[tuple[int, int], ...]:
        """Pairs of an input and the output that takes over its buffer."""

    @property
    def kernel_name(self) -> str:
        """What messages call the kernel."""


Trial: TypeAlias = Callable[[Sequence[Any]], None]
"""Runs a call's forms on its arrays, to find out which one to compile."""


@runtime_checkable
class Experimental(Protocol):
    """A backend that may ask the clock what a call shall become."""

    def trial(self, kernel: Any, request: Request) -> Trial | None:
        """Returns the trial that a call needs before it is compiled; None once it needs none."""


class TrialNeeded(Exception):
    """A call that is traced by itself needs a trial first; it can be traced again after that.

    Attributes:
      trial: what to run on the call's arrays.
    """

    def __init__(self, trial: Trial):
        super().__init__("a trial is needed")
        self.trial = trial


@runtime_checkable
class Renewable(Protocol):
    """A kernel that may become another one: it finds files when it is lowered, say."""

    def is_current(self) -> bool:
        """Tells whether it is still what it was when the op was first used."""


@dataclasses.dataclass(frozen=True)
class Definition:
    """Everything that makes an op what it is; equal definitions are the same operator.

    `infos` and `prim_attrs` are compared as text: 0.0 == -0.0 and 1 == True in Python, and a kernel
    tells them apart.
    """

    name: str
    backend: Backend
    kernel: Any
    inference: Inference
    bprop: ByValue | None
    options: Options
    infos: tuple[OpInfo, ...] = dataclasses.field(compare=False)
    prim_attrs: tuple[tuple[str, Any], ...] = dataclasses.field(compare=False)
    static_text: str = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "static_text", repr((self.infos, self.prim_attrs)))

    def is_current(self) -> bool:
        """Tells whether its functions and files are what they were when the op was first used."""
        if isinstance(self.kernel, Renewable) and not self.kernel.is_current():
            return False
        rules = (self.bprop, self.options.vmap, self.options.jvp)
        functions = [rule for rule in rules if isinstance(rule, ByValue)]
        return all(f.is_current() for f in functions) and self.inference.is_current()
