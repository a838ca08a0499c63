"""Everything that makes an op what it is."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Hashable
from typing import Any

from msops._op.backend import Backend
from msops._op.identity import ByValue
from msops._op.inference import Inference
from msops._op.request import Options
from msops._op_info import OpInfo

TARGETS = {"cpu": "CPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}
"""MindSpore's target for each of JAX's platforms."""


class Renewable(abc.ABC):
    """A kernel that may become another one: it finds files when it is lowered, say."""

    @abc.abstractmethod
    def is_current(self) -> bool:
        """Returns whether it is still what it was when the op was first used."""


class Redefining(abc.ABC):
    """A kernel that another backend serves than the one that read it."""

    @abc.abstractmethod
    def redefine(self, definition: Definition) -> Definition:
        """Returns what the op really is."""


@dataclasses.dataclass(frozen=True)
class Definition:
    """Everything that makes an op what it is; equal definitions are the same operator.

    `vjp` is a pair of rules as `jax.custom_vjp` takes them, in place of `bprop`. `infos` and
    `prim_attrs` are compared as text: 0.0 == -0.0 and 1 == True in Python, and a kernel
    distinguishes them.
    """

    name: str
    backend: Backend[Any, Any]
    kernel: Hashable
    inference: Inference
    bprop: ByValue | None
    options: Options
    infos: tuple[OpInfo, ...] = dataclasses.field(compare=False)
    prim_attrs: tuple[tuple[str, Any], ...] = dataclasses.field(compare=False)
    vjp: tuple[ByValue, ByValue] | None = None
    static_text: str = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "static_text", repr((self.infos, self.prim_attrs)))

    def is_current(self) -> bool:
        """Returns whether its functions and files are what they were when the op was first used."""
        if isinstance(self.kernel, Renewable) and not self.kernel.is_current():
            return False
        rules = (self.bprop, *(self.vjp or ()), self.options.vmap, self.options.jvp)
        functions = [rule for rule in rules if isinstance(rule, ByValue)]
        return all(f.is_current() for f in functions) and self.inference.is_current()
