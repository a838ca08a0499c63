"""The interface of a func_type: reading, building, inference, lowering."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from msops import _jax_seam as seam
from msops._op.process_call import ProcessCall
from msops._op.request import Options, Request
from msops._op.traced import Traced
from msops._op_info import OpInfo
from msops.errors import ArgumentValueError

Division = Literal["operations", "parts", "whole"]
"""How a call is divided over devices: as operations of XLA's are; by a call on each device's part;
or not at all."""


SourceT = TypeVar("SourceT", bound=Hashable)
KernelT = TypeVar("KernelT", bound=Hashable)

Trial: TypeAlias = Callable[[Sequence[Any]], None]
"""Runs a call's forms on its arrays, to find out which one to compile."""


class Backend(abc.ABC, Generic[SourceT, KernelT]):
    """The questions that a func_type answers, in this order, for its kernels.

    `SourceT` is what it reads, and `KernelT` what that becomes once it is built.

    Attributes:
      func_type: its name.
      platforms: JAX's names of the platforms it lowers for.
      may_have_no_outputs: whether a kernel may be called for its effect alone.
      runs_on_host: whether it lowers to a host callback.
      own_options: of the options of `Custom` that only some func_types have, those it takes.
      guard: the target whose op info guards on every platform; empty for the platform's own.
      imply_type: what op info that names no target is taken to be made for; empty for none.
      requires_op_info: whether an op must have op info for the target that guards it.
      takes_trees: whether its kernels take and return trees of arrays, and beside Tensors take
        tuples of numbers; others know their outputs by the order.
      takes_low_precision: whether its kernels take float8, and numbers narrower than a byte.
      takes_values: whether arguments that are no arrays are attributes, wherever they stand.
      has_attributes_by_default: whether a positional parameter with a default is an attribute, not
        an input.
      vmap: how its kernels batch unless ``Custom(vmap=)`` says otherwise.
      compile_attrs: the keys it takes in ``Custom(compile_attrs=)``.
      compiles_per_shape: whether a call of other shapes runs other code.
      has_trials: whether it may ask the clock what a call shall become.
      hides_inputs: whether XLA must not know inputs that are constants of a program, since it would
        simplify operations on them as if floats were real numbers.
    """

    func_type: str
    platforms: tuple[str, ...] = seam.PLATFORMS
    may_have_no_outputs = False
    runs_on_host = False
    own_options: tuple[str, ...] = ()
    guard = ""
    imply_type = ""
    requires_op_info = False
    takes_trees = False
    takes_low_precision = False
    takes_values = False
    has_attributes_by_default = False
    vmap = "expand_dims"
    compile_attrs: tuple[str, ...] = ()
    compiles_per_shape = False
    has_trials = False
    hides_inputs = False

    def prepare(self, func: Any, attrs: Any) -> tuple[Any, Any]:
        """Returns what `read` is given, and the attributes without what only the kernel needs."""
        return func, attrs

    @abc.abstractmethod
    def read(self, func: Any, options: Options, who: str) -> SourceT:
        """Checks what `Custom` was given as kernel; returns it, source or library unread."""

    def settle(
        self, source: SourceT, options: Options, infos: Sequence[OpInfo], who: str
    ) -> Options:
        """Checks the op info against what was read; returns the options with what it implies."""
        return options

    def signature(self, source: SourceT) -> inspect.Signature | None:
        """Returns how the kernel is called, if it is a Python function, but for what msops adds."""
        return None

    def resolve(self, source: SourceT, options: Options, who: str) -> Hashable:
        """Returns the kernel ready to run, equal for equal kernels; builds it where needed."""
        return source

    def infer(
        self, kernel: KernelT, half: str, request: Request, infos: Sequence[OpInfo], who: str
    ) -> Any:
        """Returns the kernel's own answer for "shape" or "dtype"; refuses where it has none."""
        raise ArgumentValueError.explained(
            who,
            f"out_{half} is required for func_type {self.func_type!r}; got None",
            f"Pass out_{half} as a value or as a function of the inputs', e.g. lambda x: x.",
        )

    @abc.abstractmethod
    def trace(self, kernel: KernelT, request: Request) -> Traced | None:
        """Returns one call as JAX code, for derivatives; None if the kernel is opaque."""

    def call(self, kernel: KernelT, request: Request) -> ProcessCall | None:
        """Returns what of this process one call calls; None if XLA's operations run, or nothing."""
        return None

    @abc.abstractmethod
    def lower(
        self, kernel: KernelT, request: Request, lowering: seam.Lowering, operands: Sequence[Any]
    ) -> Sequence[Any]:
        """Lowers one call for one platform."""

    @abc.abstractmethod
    def division(self, kernel: KernelT, request: Request) -> Division:
        """Returns how one call may be divided over devices."""

    def trial(self, kernel: KernelT, request: Request) -> Trial | None:
        """Returns the trial that a call needs before it is compiled; None once it needs none."""
        return None

    def cost(self, kernel: KernelT, request: Request) -> Mapping[str, float] | None:
        """Returns the operations of one call that are known; None where XLA counts them."""
        return None

    @abc.abstractmethod
    def explain(self, kernel: KernelT, request: Request) -> str:
        """Returns what becomes of one call, and why: lines, the first of which is the outcome."""

    def stages(self, kernel: KernelT, request: Request) -> Mapping[str, Callable[[], str]]:
        """Returns the texts a call goes through on its way, by name, in order."""
        return {}


class TracedBackend(Backend[SourceT, KernelT]):
    """A backend whose kernels are JAX code; a func_type adds how it reads and traces them."""

    @abc.abstractmethod
    def trace(self, kernel: KernelT, request: Request) -> Traced:
        """Returns one call as JAX code."""

    def lower(
        self, kernel: KernelT, request: Request, lowering: seam.Lowering, operands: Sequence[Any]
    ) -> Sequence[Any]:
        """Lowers to XLA operations."""
        return seam.lower_as(lowering, self.trace(kernel, request).function, operands)

    def division(self, kernel: KernelT, request: Request) -> Division:
        """Returns "operations"."""
        return "operations"


class TrialNeeded(Exception):
    """A call that is traced by itself needs a trial first; it can be traced again after that.

    Attributes:
      trial: what to run on the call's arrays.
    """

    def __init__(self, trial: Trial):
        super().__init__("a trial is needed")
        self.trial = trial
