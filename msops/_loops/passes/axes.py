"""Drops dimensions of buffers and locals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msops._loops.ir.nodes import Buffer, Kernel, Local, Stmt
from msops._loops.ir.walk import A, map_accesses, rewrite_statements, with_parts

T = TypeVar("T")


def keep_axes(kernel: Kernel, kept: Mapping[str, Sequence[int]]) -> Kernel:
    """Returns the kernel in which some buffers and locals have only some of their dimensions.

    Args:
      kernel: any kernel.
      kept: the axes that stay, by the name of the buffer.
    """

    def chosen(items: tuple[T, ...], name: str) -> tuple[T, ...]:
        return tuple(items[axis] for axis in kept[name]) if name in kept else items

    def declared(buffer: Buffer) -> Buffer:
        return with_parts(buffer, shape=chosen(buffer.shape, buffer.name))

    def accessed(access: A, /) -> A:
        return with_parts(access, indices=chosen(access.indices, access.buffer))

    def local(stmt: Local) -> tuple[Stmt, ...]:
        return (with_parts(stmt, buffer=declared(stmt.buffer)),)

    if not kept:
        return kernel
    return with_parts(
        kernel,
        buffers=tuple(map(declared, kernel.buffers)),
        body=rewrite_statements(map_accesses(kernel.body, accessed), local, Local),
    )
