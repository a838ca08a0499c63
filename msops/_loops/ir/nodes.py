"""The loop IR: what every front end makes, every pass rewrites and every printer reads.

A `Kernel` is specialised: shapes, dtypes and attribute values are constants. Nodes are frozen and
compare by structure; where they come from (`Location`) does not count. The text form (text.py,
parse.py) round-trips. The rules of meaning are in `_loops/README.md`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from msops._loops.ir.facts import KeepsFacts

INDEX_DTYPE = "int32"
"""The dtype of loop variables, as in AKG and TVM."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where in the author's source a node comes from.

    Attributes:
      file: the file, or the name Python gives a notebook cell.
      line: 1-based.
      column: 0-based, of the first character.
      end_column: 0-based, past the last character on that line.
      text: the line of source.
    """

    file: str
    line: int
    column: int
    end_column: int
    text: str


def _location() -> Location | None:
    return dataclasses.field(default=None, compare=False, repr=False, kw_only=True)


# Expressions. Each has a dtype; operands of `Binary` and the branches of `Select` have equal ones.


@dataclass(frozen=True, slots=True)
class Const(KeepsFacts):
    """A number: bool for "bool", int for integers, float for floats (rounded to the dtype)."""

    value: bool | int | float
    dtype: str

    # By text: -0.0 is not 0.0, and NaN is itself.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str]:
        return repr(self.value), self.dtype


@dataclass(frozen=True, slots=True)
class Var(KeepsFacts):
    """The variable of an enclosing loop."""

    name: str
    dtype: ClassVar[str] = INDEX_DTYPE


@dataclass(frozen=True, slots=True)
class Load(KeepsFacts):
    """An element of a buffer; one integer index per dimension (none for a scalar)."""

    buffer: str
    indices: tuple[Expr, ...]
    dtype: str
    location: Location | None = _location()


UnaryOp: TypeAlias = Literal["neg", "not", "invert", "bits"]
BinaryOp: TypeAlias = Literal[
    "add", "sub", "mul", "div", "floordiv", "mod", "truncdiv", "truncmod", "pow", "min", "max",
    "and", "or", "xor", "shl", "shr", "land", "lor", "eq", "ne", "lt", "le", "gt", "ge",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unary(KeepsFacts):
    """`neg` of numbers, `not` of bools, `invert` of integers, `bits` of what `BITS` has."""

    op: UnaryOp
    operand: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class Binary(KeepsFacts):
    """An operation on two operands of equal dtype; see `operators.BINARY` for each."""

    op: BinaryOp
    left: Expr
    right: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class FunctionCall(KeepsFacts):
    """A mathematical function of `functions.FUNCTIONS`."""

    function: str
    args: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Cast(KeepsFacts):
    """A conversion; floats to integers truncate and saturate, NaN becomes 0."""

    operand: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class Select(KeepsFacts):
    """`then` where `condition` holds, else `otherwise`; only the chosen branch is evaluated."""

    condition: Expr
    then: Expr
    otherwise: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class Within(KeepsFacts):
    """An index that a condition around it keeps in a range; a pass to C says so.

    Attributes:
      operand: the index.
      low: the least value that it has.
      high: the greatest.
      is_guarded: it may have others where the conditions around it do not hold, so nothing may be
        read there before they are known to hold.
    """

    operand: Expr
    low: int
    high: int
    is_guarded: bool = False

    @property
    def dtype(self) -> str:
        return self.operand.dtype


Expr: TypeAlias = Const | Var | Load | Unary | Binary | FunctionCall | Cast | Select | Within


# Statements. A body is a tuple of them, run in order.

LoopKind: TypeAlias = Literal["serial", "parallel", "reduction"]
LoopHint: TypeAlias = Literal["", "serial", "parallel", "vectorize", "reduce", "unroll"]
VectorForm: TypeAlias = Literal["", "lanes"]
LocalStorage: TypeAlias = Literal["", "workspace"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array; a local scalar has shape ()."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Store(KeepsFacts):
    """Writes one element."""

    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    location: Location | None = _location()


@dataclass(frozen=True, slots=True)
class For(KeepsFacts):
    """Runs `body` for var = begin, begin + 1, ..., end - 1; not at all if end <= begin.

    Attributes:
      var: the variable; unique in the kernel.
      begin: first value.
      end: past the last value.
      body: what is run.
      kind: what is known of the iterations: "serial" run in order, "parallel" in any order or at
        once, "reduction" likewise up to the reassociation of one update. Passes set it.
      hint: the author's keyword.
      grain: the fewest iterations that are worth a thread; 0: one thread runs the whole loop. A
        loop that has one, and is all of the body of another one, is shared with that as one loop
        over the pairs of their iterations. A pass to C sets it.
      vector: "lanes" if C runs an innermost loop in vectors; else "". A pass to C sets it, see
        `to_c.lanes.vectors`.
      in_grid: whether the loop's iterations, or their pairs with those of the loops around, are
        shared out to the threads of a launch. A pass to CUDA sets it, see `to_cuda.grid`.
    """

    var: str
    begin: Expr
    end: Expr
    body: tuple[Stmt, ...]
    kind: LoopKind = "serial"
    hint: LoopHint = ""
    location: Location | None = _location()
    grain: int = 0
    vector: VectorForm = ""
    in_grid: bool = False


@dataclass(frozen=True, slots=True)
class If(KeepsFacts):
    """Runs one of two bodies.

    Attributes:
      condition: chooses `then` where it holds.
      then: the one body.
      otherwise: the other one.
      is_usual: whether the condition holds for all data but those that lie out of range. A pass
        sets it; estimates of time leave out `otherwise`.
    """

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()
    location: Location | None = _location()
    is_usual: bool = False


@dataclass(frozen=True, slots=True)
class Local(KeepsFacts):
    """Runs `body` with a buffer of its own, fresh and zero at every execution.

    Attributes:
      buffer: the buffer.
      body: what is run.
      storage: "workspace" if the function that runs the body takes the array from a workspace; ""
        if it is on the stack. A pass to C or to CUDA sets it, see `to_c.materialise.workspaces`.
    """

    buffer: Buffer
    body: tuple[Stmt, ...]
    location: Location | None = _location()
    storage: LocalStorage = ""


Stmt: TypeAlias = Store | For | If | Local


@dataclass(frozen=True, slots=True)
class Note:
    """What the author of a kernel should know of its source.

    Attributes:
      problem: one sentence without its full stop.
      remedy: what to do about it.
      location: where in the source.
    """

    problem: str
    remedy: str
    location: Location | None


@dataclass(frozen=True, slots=True)
class Kernel(KeepsFacts):
    """A whole kernel: a function from arrays to arrays.

    Attributes:
      name: the author's name for it; an identifier.
      parameters: the inputs, in the order of the call. One that is written works on a copy.
      results: names of the buffers returned, in order: of `buffers`, or of `parameters`.
      buffers: outputs and temporaries of the whole kernel; zero at the start.
      body: what is run.
      notes: on its source, from a front end.
    """

    name: str
    parameters: tuple[Buffer, ...]
    results: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    location: Location | None = _location()
    notes: tuple[Note, ...] = dataclasses.field(default=(), compare=False, repr=False)

    def buffer(self, name: str) -> Buffer:
        """Returns a parameter or a buffer of the whole kernel by name."""
        for buffer in (*self.parameters, *self.buffers):
            if buffer.name == name:
                return buffer
        raise KeyError(name)

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The buffers that are returned, in order."""
        return tuple(self.buffer(name) for name in self.results)
