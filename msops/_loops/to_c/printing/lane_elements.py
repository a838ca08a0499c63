"""Elements of arrays in the lanes of vectors, and which lanes are on.

Neighbours are loaded as a vector, elements a few apart are picked from vectors, others are gathered
or loaded lane by lane. Elements that a condition guards are read where it holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from msops._loops.ir.facts import kept
from msops._loops.ir.nodes import INDEX_DTYPE, Expr, For, Load, Store, Within
from msops._loops.ir.ranges import dtype_range
from msops._loops.ir.walk import accesses_in, declared_in, expressions, loads, variables
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.printing.vector_functions import VectorFunctions
from msops._loops.to_c.printing.vector_types import UnprintableError, bytes_of
from msops._loops.to_c.text import Values, bare
from msops._loops.to_c.text.syntax import ROUNDED

MOST_STEP = 4
"""Elements between lanes that are picked from whole vectors."""


@kept
def _accesses(loop: For) -> tuple[Load | Store, ...]:
    """Returns the accesses of arrays in a loop, each once."""
    return tuple(dict.fromkeys(a for a in accesses_in(loop.body) if a.indices))


class LaneElements(VectorFunctions):
    """Prints the elements that a loop reads for several iterations at once.

    Attributes:
      variables: names of the local variables of the loop.
      has_more: whether there are lanes for iterations that the loop does not have.
      stored: by buffer and indices, the vectors that elements hold since they were stored.
    """

    def __init__(
        self, values: Values, loop: For, lanes: int, variables: Collection[str] = ()
    ) -> None:
        super().__init__(values, lanes)
        self.has_more = False
        self.stored: dict[tuple[str, tuple[Expr, ...]], str] = {}
        self._var = loop.var
        self.variables = declared_in(loop.body) | {*variables}
        self._accesses = _accesses(loop)
        self._on: list[tuple[str, int]] = []

    def is_uniform(self, expr: Expr) -> bool:
        """Returns whether an expression has the same value in all lanes."""
        if isinstance(expr, Load) and 0 in self.values.buffers[expr.buffer].shape:
            # An empty array has no nearest element: it is 0 wherever it is read.
            return True
        return self._var not in variables(expr) and self.variables.isdisjoint(
            load.buffer for load in loads(expr)
        )

    @contextmanager
    def where(self, condition: str, width: int) -> Iterator[None]:
        """Prints what is computed where a condition holds.

        Args:
          condition: a vector.
          width: the bytes of its elements.
        """
        self._on.append((condition, width))
        yield
        self._on.pop()

    @property
    def conditions(self) -> int:
        """The number of conditions around."""
        return len(self._on)

    def on(self, width: int, first: int = 0) -> str:
        """Returns the lanes that the conditions around leave, as a vector; "" for all of them.

        Args:
          width: the bytes of its elements.
          first: how many of the outer conditions do not count.
        """
        masks = [self.widened(mask, own, width) for mask, own in self._on[first:]]
        return f"({' & '.join(masks)})" if masks else ""

    def chosen(self, value: str, otherwise: str, width: int) -> str:
        """Returns a vector that has a value where all conditions around hold, else another one.

        Args:
          value: a vector.
          otherwise: another one.
          width: the bytes of their elements.
        """
        for mask, own in reversed(self._on):
            value = f"({self.widened(mask, own, width)} ? {value} : {otherwise})"
        return value

    @contextmanager
    def by_lane(self, names: Collection[str]) -> Iterator[None]:
        """Prints numbers of the lane `ms_lane` instead of vectors.

        Args:
          names: of the local variables that are used.
        """
        values = self.values
        outer = {name: values.names[name] for name in (*names, self._var)}
        for name in names:
            is_bool = values.buffers[name].dtype == "bool"
            lane = f"{outer[name]}[ms_lane]"
            values.names[name] = f"({lane} & 1)" if is_bool else lane
        values.names[self._var] = f"({outer[self._var]} + ms_lane)"
        yield
        values.names.update(outer)

    def own_in(self, exprs: Collection[Expr]) -> set[str]:
        """Returns the variables of the loop that expressions read."""
        return {load.buffer for expr in exprs for load in loads(expr)} & self.variables

    # Elements.

    def _load(self, load: Load) -> str:
        if load.buffer in self.variables:
            return self.values.names[load.buffer]
        if (load.buffer, load.indices) in self.stored:
            return self.stored[load.buffer, load.indices]
        step, bytes_, dtype = self.step(load), bytes_of(load.dtype), load.dtype
        is_guarded = bool(self._on) and not self.is_safe(load)
        # An index that all lanes share is moved into its range, if need be.
        if step == 1 and not is_guarded:
            text = f"*(const {self.in_memory(dtype)}*)&{self.values.lvalue(load)}"
            text = f"({self.value_type('uint16')}){text}" if dtype in ROUNDED else text
            return self.from_storage(text, dtype)
        if dtype in ROUNDED:
            return self._each(load)
        if step == 1:
            place = f"&{self.values.lvalue(load)}"
            return f"{self.helper('some', dtype)}({place}, {bare(self.on(bytes_))})"
        if step and abs(step) <= MOST_STEP and not is_guarded:
            apart = self.apart(dtype, step, *self._beside(load, step))
            return f"{apart}(&{self.values.lvalue(load)})"
        if step == -1:
            first = f"&{self.values.lvalue(load)} - {self.lanes - 1}"
            on = self.turned(f"int{8 * bytes_}", self.on(bytes_))
            return self.turned(dtype, f"{self.helper('some', dtype)}({first}, {on})")
        if step is None and not self._is_affine(load):
            return self._gathered(load, is_guarded)
        if step and not is_guarded:
            return f"{self.spaced(dtype)}(&{self.values.lvalue(load)}, {step})"
        return self._each(load)

    def _beside(self, load: Load, step: int) -> tuple[int, int]:
        """Returns how many elements before and after those of a load its neighbours reach.

        Neighbours lie between the same lanes, and are touched or may be: all share whole vectors.
        """
        offsets = [0]
        for other in self._accesses:
            if other.buffer == load.buffer and self.is_safe(other):
                distance = self.distance(other, load)
                offsets += [distance] if distance is not None and abs(distance) < abs(step) else []
        return -min(offsets), max(offsets)

    def distance(self, one: Load | Store, other: Load | Store) -> int | None:
        """Returns how many elements an access is after another one; None if that is not known."""
        shape, total = self.values.buffers[one.buffer].shape, 0
        for axis, indices in enumerate(zip(one.indices, other.indices, strict=True)):
            span = difference(*indices, self.values.ranges)
            if span is None or span[0] != span[1]:
                return None
            total += span[0] * math.prod(shape[axis + 1 :])
        return total

    def _is_affine(self, load: Load) -> bool:
        """Returns whether the loop's variable alone moves the indices of a load."""
        return not any(loads(index) for index in load.indices if not self.is_uniform(index))

    def _gathered(self, load: Load, is_guarded: bool) -> str:
        """Returns elements at offsets in a vector."""
        values, shape = self.values, self.values.buffers[load.buffer].shape
        if math.prod(shape) > dtype_range("int32")[1]:
            return self._each(load)
        moving: list[str] = []
        fixed: list[str] = []
        for axis, (index, size) in enumerate(zip(load.indices, shape, strict=True)):
            by = math.prod(shape[axis + 1 :])
            if self.is_uniform(index):
                text, terms = values.clamped(load, axis, size), fixed
            else:
                text, terms = self._offset(load, axis, size), moving
            terms.append(text if by == 1 else f"{text} * {by}")
        offsets, first = " + ".join(moving), " + ".join(fixed) or "0"
        bytes_ = bytes_of(load.dtype)
        mask = self.on(bytes_) if is_guarded else f"{self.mask(bytes_)}{{}} - 1"
        place = f"&{values.names[load.buffer]}[{first}]"
        return f"{self.helper('picked', load.dtype)}({place}, {offsets}, {bare(mask)})"

    def _offset(self, load: Load, axis: int, size: int) -> str:
        """Returns an index that moves, in its range, as a vector of int32."""
        index = load.indices[axis]
        text = self.value(index)
        if index.dtype == "uint64":
            raise UnprintableError
        if self.values.may_be_outside(load, axis, size):
            if dtype_range(index.dtype)[1] < size:
                text, most = self.converted(text, index.dtype, INDEX_DTYPE), INDEX_DTYPE
            else:
                most = index.dtype
            text = self.applied("clamp", most, text, self.everywhere(f"{size}", most))
            return self.converted(text, most, INDEX_DTYPE)
        return self.converted(text, index.dtype, INDEX_DTYPE)

    def step(self, access: Load | Store) -> int | None:
        """Returns how far apart the elements of the lanes are; None if this differs."""
        values = self.values
        buffer = values.buffers[access.buffer]
        if access.buffer in values.variables or 0 in buffer.shape:
            return None
        for axis, (index, size) in enumerate(zip(access.indices, buffer.shape, strict=True)):
            if not self.variables.isdisjoint(load.buffer for load in loads(index)) or (
                self._var in variables(index) and values.may_be_outside(access, axis, size)
            ):
                return None
        return stride(access, self._var, values.buffers)

    def is_safe(self, access: Load | Store) -> bool:
        """Returns whether the elements of an access exist whatever the conditions around it are."""
        if self.has_more and any(
            isinstance(part, Within) and self._var in variables(part)
            for index in access.indices
            for part in expressions(index)
        ):
            return False
        load = Load(access.buffer, access.indices, self.values.buffers[access.buffer].dtype)
        return self.values.is_always_inside(load)

    def _each(self, load: Load) -> str:
        """Returns a vector of elements that are loaded lane by lane."""
        own = sorted(self.own_in(load.indices))
        with self.by_lane(own):
            text = self.values.value(load)
        kind, mask, arguments = (
            self.values.value_type(load.dtype),
            self.on(bytes_of(load.dtype)),
            "",
        )
        parameters = "int64_t ms_lane"
        if mask:
            parameters += f", int{8 * bytes_of(load.dtype)}_t ms_on"
            arguments = f", {bare(mask)}"
            text = f"ms_on ? {text} : 0"
        function = f"[&]({parameters}) {{ return ({kind})({bare(text)}); }}"
        return f"{self.each()}<{self.value_type(load.dtype)}>({function}{arguments})"
