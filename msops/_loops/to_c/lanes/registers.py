"""Local arrays of one vector become values of a vector type, and loops over their lanes statements.

    local tile: float32[8] {                     local tile: float32[8] @register {
      reduction k in 0 .. 64 {                     reduction k in 0 .. 64 {
        parallel lane in 0 .. 8 @vector(simd) {      parallel lane in 0 .. 8 @vector(registers) {
          tile[lane] = tile[lane]             ->       tile[lane] = tile[lane]
            + a[k] * b[k, lane]                          + a[k] * b[k, lane]
    ...

A compiler that vectorises the loops leaves such an array in memory unless it can show that no
pointer meets it. It also computes everything that all rows need before the first row. As values of
gcc's vector types (`__attribute__((vector_size))`, which clang has, too) the sums of a tile stay in
registers: twice as fast on a processor with 16 of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msops._base import processor
from msops._base.dtypes import as_dtype
from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.building import integer
from msops._loops.ir.nodes import (
    Binary,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Unary,
    Var,
)
from msops._loops.ir.walk import (
    accesses_in,
    accesses_of,
    is_innermost,
    rewrite_statements,
    statements,
    variables,
    visit,
    with_parts,
)
from msops._loops.to_c.facts.strides import coefficient, offset

_DTYPES = ("float32", "float64")
_OPERATIONS = ("add", "sub", "mul", "div")


def keep_vectors_in_registers(kernel: Kernel) -> Kernel:
    """Returns the kernel with such local arrays and loops marked."""
    kept = _vectors(kernel)
    if not kept:
        return kernel

    def local(stmt: Local) -> tuple[Stmt, ...]:
        is_kept = stmt.buffer.name in kept
        return (with_parts(stmt, storage="register") if is_kept else stmt,)

    def loop(stmt: For) -> tuple[Stmt, ...]:
        touches = any(access.buffer in kept for access in accesses_in(stmt.body))
        return (with_parts(stmt, vector="registers") if touches and is_over_lanes(stmt) else stmt,)

    body = rewrite_statements(kernel.body, local, Local)
    return with_parts(kernel, body=rewrite_statements(body, loop, For))


def _vectors(kernel: Kernel) -> set[str]:
    """Returns the locals of one vector that no pointer meets, all in one function.

    Loops over lanes touch whole vectors or read parts of them; other statements read one lane.
    """
    inside = statements(kernel.body)
    shapes = {
        stmt.buffer.name: stmt.buffer.shape
        for stmt in inside
        if isinstance(stmt, Local) and _is_vector(stmt)
    }
    found = set(shapes)
    if not found:
        return found
    touched: Counter[str] = Counter()
    in_lanes: Counter[str] = Counter()
    lanes: set[str] = set()
    for stmt, scope in visit(kernel):
        if isinstance(stmt, For) and stmt.grain:
            # Tasks get the address of what is around them.
            found -= scope.depths.keys()
        touched.update(access.buffer for access in accesses_of(stmt))
        if isinstance(stmt, For) and is_over_lanes(stmt):
            lanes.add(stmt.var)
            in_lanes.update(
                access.buffer
                for access in accesses_in(stmt.body)
                if access.buffer in found and _is_part(access, shapes[access.buffer], stmt)
            )
        elif lanes.isdisjoint(loop.var for loop in scope.loops):
            in_lanes.update(
                access.buffer
                for access in accesses_of(stmt)
                if access.buffer in found and _is_of_one_lane(access, shapes[access.buffer])
            )
    return {name for name in found if in_lanes[name] == touched[name]}


def _is_part(access: Load | Store, shape: tuple[int, ...], lanes: For) -> bool:
    """Returns whether a loop over lanes touches a whole vector, or reads a half or a quarter."""
    (index,), (size,), trips = access.indices, shape, fixed_trips(lanes)
    if trips == size:
        return index == Var(lanes.var)
    first = offset(index, lanes.var)
    assert trips is not None
    is_inside = first is not None and first % trips == 0 and 0 <= first <= size - trips
    return is_inside and isinstance(access, Load)


def _is_of_one_lane(access: Load | Store, shape: tuple[int, ...]) -> bool:
    """Returns whether an access reads one lane of a vector."""
    (index,), (size,) = access.indices, shape
    return isinstance(access, Load) and isinstance(index, Const) and 0 <= index.value < size


def _is_vector(local: Local) -> bool:
    dtype, shape = local.buffer.dtype, local.buffer.shape
    return not local.storage and dtype in _DTYPES and len(shape) == 1 and _fill(shape[0], dtype)


def is_over_lanes(loop: For) -> bool:
    """Returns whether a loop does one operation to all lanes of vectors of contiguous elements."""
    if loop.kind != "parallel" or not is_innermost(loop) or loop.begin != integer(0):
        return False
    return bool(loop.body) and all(
        isinstance(stmt, Store)
        and stmt.value.dtype in _DTYPES
        and _fill(fixed_trips(loop), stmt.value.dtype)
        and _is_contiguous(stmt, loop.var)
        and all(_is_of_vectors(part, loop.var) for part in _moving(stmt.value, loop.var))
        and loop.var in variables(stmt.value)
        for stmt in loop.body
    )


def _moving(expr: Expr, lane: str) -> Iterator[Expr]:
    """Yields the parts of an expression that differ between lanes."""
    if lane in variables(expr):
        yield expr
        match expr:
            case Binary(left=left, right=right):
                yield from _moving(left, lane)
                yield from _moving(right, lane)
            case Unary(operand=operand):
                yield from _moving(operand, lane)


def _is_of_vectors(expr: Expr, lane: str) -> bool:
    match expr:
        case Load():
            return _is_contiguous(expr, lane)
        case Binary(op=op):
            return op in _OPERATIONS
        case Unary(op=op):
            return op == "neg"
    return False


def _is_contiguous(access: Load | Store, lane: str) -> bool:
    """Returns whether the lanes of an access are contiguous elements."""
    if not access.indices:
        return False
    *outer, last = access.indices
    return coefficient(last, lane) == 1 and not any(lane in variables(index) for index in outer)


def _fill(lanes: int | None, dtype: str) -> bool:
    """Returns whether so many elements fill a vector register of one of the processor's sizes."""
    size = (lanes or 0) * int(as_dtype(dtype).dtype.itemsize)
    is_power = size & (size - 1) == 0
    return is_power and processor.LEAST_VECTOR_BYTES <= size <= processor.vector_bytes()
