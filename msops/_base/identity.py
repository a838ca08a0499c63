"""Values that compare by identity."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class ByIdentity(Generic[T]):
    """Compares by identity of `value`, which it keeps alive so that the id is not reused."""

    __slots__ = ("value",)

    def __init__(self, value: T):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
