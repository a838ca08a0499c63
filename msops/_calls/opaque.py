"""The base of func_types whose kernels are opaque: msops only knows how to call them."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

from msops import _jax_seam as seam
from msops._calls.lowering import lower_call, lower_through_host
from msops._op.backend import Backend, Division, KernelT, SourceT
from msops._op.process_call import ProcessCall
from msops._op.request import Request
from msops._op.traced import Traced


class OpaqueBackend(Backend[SourceT, KernelT]):
    """A backend whose kernels are called as they are; a func_type adds how it reads them."""

    vmap = "sequential"
    runs_once = False
    """Whether XLA must not call a kernel on each device of a program that it partitions."""

    def trace(self, kernel: KernelT, request: Request) -> Traced | None:
        """Returns None: the kernel is no JAX code."""
        return None

    @abc.abstractmethod
    def call(self, kernel: KernelT, request: Request) -> ProcessCall | None:
        """Returns what one call becomes; None where the kernel cannot run on the platform."""

    @abc.abstractmethod
    def division(self, kernel: KernelT, request: Request) -> Division:
        """Returns "parts" where the kernel itself runs; host callbacks take whole arrays."""

    def lower(
        self, kernel: KernelT, request: Request, lowering: seam.Lowering, operands: Sequence[Any]
    ) -> Sequence[Any]:
        """Lowers one call to the custom call, or to a host callback where the kernel cannot run."""
        division, call = self.division(kernel, request), self.call(kernel, request)
        if call is None or division == "whole" or (self.runs_once and lowering.is_partitioned):
            return lower_through_host(call, request, lowering, operands)
        return lower_call(call, request.has_effect, request.who, lowering, operands)

    def cost(self, kernel: KernelT, request: Request) -> Mapping[str, float] | None:
        """Returns none: what a kernel computes, its author alone knows."""
        return {}

    def explain(self, kernel: KernelT, request: Request) -> str:
        """Says that the kernel runs as it is."""
        return f"{request.who}: the kernel runs as it is; XLA sees one call."
