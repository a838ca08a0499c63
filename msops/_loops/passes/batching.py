"""Maps a kernel over a leading axis of its inputs: one more loop around its body.

    kernel f(a: float32[4], w: float32[4]) -> (y) {      kernel f(a: float32[8, 4], w: float32[4])
      buffer y: float32[4]                         ->      buffer y: float32[8, 4]
      parallel i in 0 .. 4 {                               parallel n in 0 .. 8 {
        y[i] = a[i] * w[i]                                   parallel i in 0 .. 4 {
                                                               y[n, i] = a[n, i] * w[i]

The loop is parallel whatever is inside: each example has its own results and temporaries.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir.names import Names, over_box
from msops._loops.ir.nodes import Buffer, Const, Expr, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import A, map_accesses, stored_in


def batched(kernel: Kernel, size: int, batched_parameters: tuple[bool, ...]) -> Kernel:
    """Returns a kernel that runs another one on each example of a batch.

    Args:
      kernel: any kernel.
      size: the number of examples.
      batched_parameters: for each parameter, whether it has an example axis in front; the others
        are shared. One that the kernel works on in place is copied for each example.

    Returns:
      A kernel whose results have the example axis in front.
    """
    names = Names(kernel)
    example = Var(names.fresh("n"))
    written = stored_in(kernel.body)
    moved: dict[str, str] = {}
    parameters: list[Buffer] = []
    copies: list[tuple[Buffer, Buffer]] = []
    for parameter, is_batched in zip(kernel.parameters, batched_parameters, strict=True):
        parameters.append(_with_axis(parameter, size) if is_batched else parameter)
        if is_batched:
            moved[parameter.name] = parameter.name
        elif parameter.name in (*written, *kernel.results):
            copy = dataclasses.replace(parameter, name=names.fresh(f"{parameter.name}_copy"))
            copies.append((copy, parameter))
    own = [copy for copy, _ in copies] + list(kernel.buffers)
    renamed = {parameter.name: copy.name for copy, parameter in copies}
    results = tuple(renamed.get(name, name) for name in kernel.results)
    moved |= {buffer.name: buffer.name for buffer in own if buffer.name in results}

    # Renamed first, as what is copied must still be read by its own name.
    body = (*(_copy(*pair, names) for pair in copies), *_accesses(kernel.body, renamed, ()))
    body = _accesses(body, moved, (example,))
    for buffer in reversed(own):
        if buffer.name not in results:
            body = (Local(buffer, body),)
    loop = For(example.name, Const(0, example.dtype), Const(size, example.dtype), body, "parallel")
    return dataclasses.replace(
        kernel,
        parameters=tuple(parameters),
        results=results,
        buffers=tuple(_with_axis(buffer, size) for buffer in own if buffer.name in results),
        body=(loop,),
    )


def _with_axis(buffer: Buffer, size: int) -> Buffer:
    return dataclasses.replace(buffer, shape=(size, *buffer.shape))


def _copy(target: Buffer, source: Buffer, names: Names) -> Stmt:
    """Returns loops that copy a buffer."""
    spans = [(0, size) for size in target.shape]

    def element(at: tuple[Expr, ...]) -> Stmt:
        return Store(target.name, at, Load(source.name, at, source.dtype))

    return over_box(spans, ["e"] * len(spans), names.fresh, element)


def _accesses(
    body: tuple[Stmt, ...], names: dict[str, str], first: tuple[Expr, ...]
) -> tuple[Stmt, ...]:
    """Returns statements whose accesses to some buffers have new names and indices in front."""

    def moved(access: A, /) -> A:
        if access.buffer not in names:
            return access
        return dataclasses.replace(
            access, buffer=names[access.buffer], indices=(*first, *access.indices)
        )

    return map_accesses(body, moved)
