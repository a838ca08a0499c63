"""How an operator says no: without knowing who asked."""

from __future__ import annotations


class Refused(Exception):
    """An operator cannot serve its inputs; `AclnnOp` adds who asked.

    Attributes:
      problem: expected and got.
      remedy: what to do.
    """

    def __init__(self, problem: str, remedy: str):
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


class WrongShape(Exception):
    """A result would have another shape than its only output; `AclnnOp` says which.

    Attributes:
      shape: that of the result.
    """

    def __init__(self, shape: tuple[int, ...]):
        super().__init__(shape)
        self.shape = shape
