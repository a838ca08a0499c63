"""Expressions of an innermost loop in the lanes of vectors: one value for each of some iterations.

    b[i] = a[i] > 0.0 ? sqrt(a[i]) : x[0]       (a > 0.0f) ? ms_sqrt(a) : ms_all<V>(x[0])
                                                where a is *(const M*)&a[i], and i the first lane's

A vector is a value of gcc's vector types, which clang has, too; operators and choices work on them
in C++. A condition is a vector of integers as wide as what it was computed from: -1 where it holds,
0 where not. What no vector does is done lane by lane. Elements that a condition guards are read
where it holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from msops._base import processor
from msops._loops.ir.formulas import evaluate, is_name
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    Load,
    Select,
    Store,
    Unary,
    Var,
    Within,
)
from msops._loops.ir.operators import COMPARISONS, is_float
from msops._loops.ir.ranges import dtype_range
from msops._loops.ir.walk import accesses_in, declared_in, expressions, loads, variables
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.printing.vector_functions import VectorFunctions
from msops._loops.to_c.printing.vector_types import bytes_of
from msops._loops.to_c.text import Values, bare
from msops._loops.to_c.text.syntax import ROUNDED, SIGNS, computed, signedness
from msops._loops.to_c.text.values import (
    PLAIN_QUOTIENTS,
    POWERS,
    constant_and_number,
    is_chained,
    is_maximum_with_0,
    quotient_template,
)

_SIMPLE = ("float32", "float64", "int32", "int64")
"""Dtypes of which a number may stand beside a vector."""

MOST_STEP = 4
"""Elements between lanes that are picked from whole vectors."""


class UnprintableError(Exception):
    """A loop computes what vectors do not."""


class LaneValues:
    """Prints the expressions of a loop for several iterations at once.

    Attributes:
      values: prints numbers, and knows names and helpers.
      types: the vector types of this many lanes.
      has_more: whether there are lanes for iterations that the loop does not have.
      stored: by buffer and indices, the vectors that elements hold since they were stored.
    """

    def __init__(
        self, values: Values, loop: For, lanes: int, variables: Collection[str] = ()
    ) -> None:
        self.values = values
        self.types = VectorFunctions(values, lanes)
        self.has_more = False
        self.stored: dict[tuple[str, tuple[Expr, ...]], str] = {}
        self._var = loop.var
        self._own = declared_in(loop.body) | {*variables}
        self._accesses = dict.fromkeys(a for a in accesses_in(loop.body) if a.indices)
        self._on: list[tuple[str, int]] = []

    def is_uniform(self, expr: Expr) -> bool:
        """Returns whether an expression has the same value in all lanes."""
        return self._var not in variables(expr) and self._own.isdisjoint(
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
        masks = [self.types.widened(mask, own, width) for mask, own in self._on[first:]]
        return f"({' & '.join(masks)})" if masks else ""

    def chosen(self, value: str, otherwise: str, width: int) -> str:
        """Returns a vector that has a value where all conditions around hold, else another one.

        Args:
          value: a vector.
          otherwise: another one.
          width: the bytes of their elements.
        """
        for mask, own in reversed(self._on):
            value = f"({self.types.widened(mask, own, width)} ? {value} : {otherwise})"
        return value

    # Numbers.

    def value(self, expr: Expr) -> str:
        """Returns a vector of numbers."""
        if self.is_uniform(expr):
            number = self.values.value(expr)
            kind = self.values.value_type(expr.dtype)
            number = number if is_float(expr.dtype) else f"({kind}){number}"
            return self.types.everywhere(number, expr.dtype)
        match expr:
            case Var():
                return self._numbers()
            case Load():
                return self._load(expr)
            case Unary():
                return self._unary(expr)
            case Binary():
                return self._rounded(self._binary(expr), expr.dtype)
            case FunctionCall():
                return self._rounded(self._call(expr), expr.dtype)
            case Cast():
                return self._cast(expr)
            case Select():
                return self._select(expr)
            case Within(operand=operand):
                return self.value(operand)
        raise UnprintableError

    def _rounded(self, text: str, dtype: str) -> str:
        """Returns values, rounded first if their dtype is float16 or bfloat16."""
        if dtype not in ROUNDED:
            return text
        return f"{self.types.from_storage(dtype)}({self.types.to_storage(dtype)}({bare(text)}))"

    def in_storage(self, expr: Expr) -> str:
        """Returns values of float16 or bfloat16 as arrays hold them; they are rounded once."""
        text, from_storage = self.value(expr), f"{self.types.from_storage(expr.dtype)}("
        if text.startswith(from_storage):
            return text.removeprefix(from_storage)[:-1]
        return f"{self.types.to_storage(expr.dtype)}({bare(text)})"

    def _operand(self, expr: Expr) -> str:
        """Returns a value as a vector, or as a number beside which C takes a vector."""
        if expr.dtype in _SIMPLE and self.is_uniform(expr):
            kind = self.values.value_type(expr.dtype)
            text = self.values.value(expr)
            return text if is_float(expr.dtype) else f"({kind}){text}"
        return self.value(expr)

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
        return {load.buffer for expr in exprs for load in loads(expr)} & self._own

    def _numbers(self) -> str:
        first = self.values.names[self._var]
        lanes = ", ".join(map(str, range(self.types.lanes)))
        return f"((int32_t){first} + {self.types.of('int32')}{{{lanes}}})"

    def _unary(self, expr: Unary) -> str:
        kind = self.types.of(expr.dtype)
        if expr.op == "neg" and not is_float(expr.dtype):
            unsigned = self.types.unsigned(expr.dtype)
            return f"({kind})(0 - ({unsigned}){self.value(expr.operand)})"
        if expr.op == "bits":
            return f"({kind}){self.value(expr.operand)}"
        sign = {"neg": "-", "invert": "~"}[expr.op]
        return f"({sign}{self.value(expr.operand)})"

    def _binary(self, expr: Binary) -> str:
        op, dtype, kind = expr.op, computed(expr.dtype), self.types.of(expr.dtype)
        right = expr.right
        if op == "pow" and is_float(dtype) and isinstance(right, Const) and right.value in POWERS:
            words = {"sqrt": self.types.function("sqrt", 1, dtype)} if right.value == 0.5 else {}
            power = self.types.helper(POWERS[right.value], dtype, **words)
            return f"{power}({bare(self.value(expr.left))})"
        if op in ("min", "max"):
            return self._extreme(expr)
        if op == "pow" and is_float(dtype):
            return self._math("pow", (self.value(expr.left), self.value(right)), dtype)
        if op == "pow":
            return self._by_lanes(self.values.helper(f"pow__{signedness(dtype)}", dtype), expr)
        if op in ("floordiv", "mod", "truncdiv", "truncmod"):
            return self._quotient(expr)
        if op in ("shl", "shr"):
            template = op if op == "shl" else f"shr__{signedness(dtype)}"
            return self._helped(template, dtype, self.value(expr.left), self.value(right))
        if op in ("add", "sub", "mul") and not is_float(dtype):
            unsigned = self.types.unsigned(dtype)
            sides = (f"({unsigned}){self.value(side)}" for side in (expr.left, right))
            return f"({kind})({f' {SIGNS[op]} '.join(sides)})"
        return f"({self._operand(expr.left)} {SIGNS[op]} {self._operand(right)})"

    def _quotient(self, expr: Binary) -> str:
        """Returns a division or a remainder: of vectors by a constant, else lane by lane."""
        dtype, op = computed(expr.dtype), expr.op
        if is_float(dtype):
            return self._by_lanes(self.values.helper(f"{op}__float", dtype), expr)
        form, by = self.values.quotient_form(expr)
        general = quotient_template(op, dtype)
        if not isinstance(by, Const) or form == general:
            wide = self.types.size("float64")
            if dtype == "int32" and op in ("floordiv", "mod") and wide <= processor.vector_bytes():
                sides = map(self.value, (expr.left, expr.right))
                return f"{self.types.quotient(op)}({', '.join(map(bare, sides))})"
            # The divisor of a lane that is off may be 0.
            return self._by_lanes(self.values.helper(general, dtype), expr)
        left, right = self.value(expr.left), self.value(by)
        if form in PLAIN_QUOTIENTS:
            return f"({left} {form} {right})"
        return self._helped(form, dtype, left, right)

    def _by_lanes(self, function: str, expr: Binary) -> str:
        """Returns a function of two numbers, called for each lane."""
        kind = self.values.value_type(expr.dtype)
        call = f"[](int, {kind} a, {kind} b) {{ return {function}(a, b); }}"
        sides = ", ".join(bare(self.value(side)) for side in (expr.left, expr.right))
        return f"{self.types.each()}<{self.types.of(expr.dtype)}>({call}, {sides})"

    def _extreme(self, expr: Binary) -> str:
        if not is_float(expr.dtype):
            return self._helped(expr.op, expr.dtype, *map(self.value, (expr.left, expr.right)))
        dtype = computed(expr.dtype)
        of_constant = constant_and_number(expr)
        if of_constant:
            constant, number = map(self.value, of_constant)
            text = f"{self.types.chosen(expr.op, dtype)}({bare(constant)}, {bare(number)})"
            zero = self.values.constant(0.0, dtype)
            return f"({text} + {zero})" if is_maximum_with_0(expr) else text
        left, right = map(self.value, (expr.left, expr.right))
        if is_chained(expr, self._own):
            left, right = right, left
        return self.types.joined(expr.op, dtype, left, right)

    def _helped(self, template: str, dtype: str, *args: str) -> str:
        """Returns a call of a helper function on vectors."""
        return f"{self.types.helper(template, dtype)}({', '.join(map(bare, args))})"

    def _select(self, expr: Select) -> str:
        width = bytes_of(expr.dtype)
        match expr:
            case Select(condition=Binary(op="lt" | "gt" as op, left=one, right=other)) if is_float(
                expr.dtype
            ) and (one, other) == (expr.then, expr.otherwise):
                name = self.types.chosen("min" if op == "lt" else "max", computed(expr.dtype))
                return f"{name}({bare(self.value(one))}, {bare(self.value(other))})"
        condition = self.condition(expr.condition, width)
        with self.where(condition, width):
            then = self._operand(expr.then)
        with self.where(f"(~{condition})", width):
            otherwise = self._operand(expr.otherwise)
        if self.is_uniform(expr.then) and self.is_uniform(expr.otherwise):
            then = self.value(expr.then)
        return f"({condition} ? {then} : {otherwise})"

    def _cast(self, expr: Cast) -> str:
        operand, dtype = expr.operand, expr.dtype
        source = computed(operand.dtype)
        if dtype in ROUNDED:
            if source == "float64":
                raise UnprintableError
            value = self.value(Cast(operand, "float32"))
            return value if dtype == operand.dtype else self._rounded(value, dtype)
        if source == "bool":
            one = f"({self.condition(operand, bytes_of(dtype))} & 1)"
            integers = f"int{8 * bytes_of(dtype)}"
            return one if dtype == integers else self.types.converted(one, integers, dtype)
        text = self.value(operand)
        if source == dtype:
            return text
        if not is_float(source) or is_float(dtype):
            return self.types.converted(text, source, dtype)
        whole = f"int{8 * bytes_of(source)}"
        if bytes_of(source) > bytes_of(dtype):
            text = f"{self.types.saturating(source, whole)}({bare(text)})"
            return f"{self.types.clamping(whole, dtype)}({text})"
        if whole != dtype:
            raise UnprintableError
        return f"{self.types.saturating(source, dtype)}({text})"

    # Elements.

    def _load(self, load: Load) -> str:
        if load.buffer in self._own:
            return self.values.names[load.buffer]
        if (load.buffer, load.indices) in self.stored:
            return self.stored[load.buffer, load.indices]
        step, bytes_ = self.step(load), bytes_of(load.dtype)
        is_guarded = bool(self._on) and not self.is_safe(load)
        if step == 1:
            # An index that all lanes share is moved into its range, if need be.
            element = self.values.lvalue(load)
            if is_guarded and load.dtype in ROUNDED:
                return self._each(load)
            if is_guarded:
                return f"{self.types.some(load.dtype)}(&{element}, {bare(self.on(bytes_))})"
            return self._from_memory(
                f"*(const {self.types.in_memory(load.dtype)}*)&{element}", load
            )
        if (
            step is not None
            and 0 < abs(step) <= MOST_STEP
            and not is_guarded
            and load.dtype not in ROUNDED
        ):
            apart = self.types.apart(load.dtype, step, *self._beside(load, step))
            return f"{apart}(&{self.values.lvalue(load)})"
        if step == -1 and load.dtype not in ROUNDED:
            first = f"&{self.values.lvalue(load)} - {self.types.lanes - 1}"
            on = self.types.turned(f"int{8 * bytes_}", self.on(bytes_))
            found = f"{self.types.some(load.dtype)}({first}, {on})"
            return self.types.turned(load.dtype, found)
        if step is None and not self._is_affine(load):
            return self._gathered(load, is_guarded)
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

    def _from_memory(self, text: str, load: Load) -> str:
        if load.dtype not in ROUNDED:
            return text
        return f"{self.types.from_storage(load.dtype)}(({self.types.of('uint16')}){text})"

    def _is_affine(self, load: Load) -> bool:
        """Returns whether the loop's variable alone moves the indices of a load."""
        return not any(loads(index) for index in load.indices if not self.is_uniform(index))

    def _gathered(self, load: Load, is_guarded: bool) -> str:
        """Returns elements at offsets in a vector."""
        values, shape = self.values, self.values.buffers[load.buffer].shape
        if math.prod(shape) > dtype_range("int32")[1] or load.dtype in ROUNDED:
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
        mask = self.on(bytes_) if is_guarded else f"{self.types.mask(bytes_)}{{}} - 1"
        place = f"&{values.names[load.buffer]}[{first}]"
        return f"{self.types.picked(load.dtype)}({place}, {offsets}, {bare(mask)})"

    def _offset(self, load: Load, axis: int, size: int) -> str:
        """Returns an index that moves, in its range, as a vector of int32."""
        index = load.indices[axis]
        text = self.value(index)
        if index.dtype == "uint64":
            raise UnprintableError
        if self.values.may_be_outside(load, axis, size):
            if dtype_range(index.dtype)[1] < size:
                text, most = self.types.converted(text, index.dtype, INDEX_DTYPE), INDEX_DTYPE
            else:
                most = index.dtype
            text = self._helped("clamp", most, text, self.types.everywhere(f"{size}", most))
            return self.types.converted(text, most, INDEX_DTYPE)
        return self.types.converted(text, index.dtype, INDEX_DTYPE)

    def is_contiguous(self, access: Load | Store) -> bool:
        """Returns whether the elements of the lanes are neighbours, if the access is in range."""
        return self.step(access) == 1

    def step(self, access: Load | Store) -> int | None:
        """Returns how far apart the elements of the lanes are; None if this differs."""
        values = self.values
        buffer = values.buffers[access.buffer]
        if access.buffer in values.variables or 0 in buffer.shape:
            return None
        for axis, (index, size) in enumerate(zip(access.indices, buffer.shape, strict=True)):
            if not self._own.isdisjoint(load.buffer for load in loads(index)) or (
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
        return f"{self.types.each()}<{self.types.of(load.dtype)}>({function}{arguments})"

    # Conditions.

    def condition(self, expr: Expr, width: int) -> str:
        """Returns a vector of integers of some bytes: -1 where a condition holds, else 0."""
        text, own = self._condition(expr)
        return self.types.widened(text, own, width)

    def width(self, expr: Expr) -> int:
        """Returns the bytes of the elements in which a condition is computed."""
        return self._condition(expr)[1]

    def _condition(self, expr: Expr) -> tuple[str, int]:
        if self.is_uniform(expr):
            return self.types.mask_everywhere(self.values.value(expr), 4), 4
        match expr:
            case Binary(op=op, left=left, right=right) if op in COMPARISONS:
                if left.dtype == "bool":
                    (one, width), (other, own) = self._condition(left), self._condition(right)
                    return self._joined(one, width, other, own, "xor", is_negated=op == "eq")
                sides = self._operand(left), self._operand(right)
                return f"({sides[0]} {SIGNS[op]} {sides[1]})", bytes_of(left.dtype)
            case Binary(op="land" | "lor" | "and" | "or" | "xor" as op, left=left, right=right):
                one, width = self._condition(left)
                if op in ("land", "lor"):
                    with self.where(one if op == "land" else f"(~{one})", width):
                        other, own = self._condition(right)
                else:
                    other, own = self._condition(right)
                return self._joined(one, width, other, own, op)
            case Unary(op="not", operand=operand):
                text, width = self._condition(operand)
                return f"(~{text})", width
            case Load(buffer=name) if name in self._own:
                return self.values.names[name], self.types.bool_bytes
            case Load():
                return f"({self._load(expr)} != 0)", 1
            case Select(condition=condition, then=then, otherwise=otherwise):
                test, width = self._condition(condition)
                with self.where(test, width):
                    one, own = self._condition(then)
                with self.where(f"(~{test})", width):
                    other, last = self._condition(otherwise)
                most = max(width, own, last)
                test, one, other = (
                    self.types.widened(*each, most)
                    for each in ((test, width), (one, own), (other, last))
                )
                return f"({test} ? {one} : {other})", most
            case Cast(operand=operand):
                return f"({self.value(operand)} != 0)", bytes_of(operand.dtype)
            case FunctionCall(args=(operand,)):
                return self._call(expr), bytes_of(operand.dtype)
        raise UnprintableError

    def _joined(
        self, one: str, width: int, other: str, own: int, op: str, *, is_negated: bool = False
    ) -> tuple[str, int]:
        most = max(width, own)
        sides = self.types.widened(one, width, most), self.types.widened(other, own, most)
        sign = {"land": "&", "lor": "|"}.get(op) or SIGNS[op]
        text = f"({sides[0]} {sign} {sides[1]})"
        return (f"(~{text})" if is_negated else text), most

    # Functions.

    def _call(self, call: FunctionCall) -> str:
        dtype = computed(call.args[0].dtype)
        if not is_float(dtype):
            raise UnprintableError
        args = tuple(map(self.value, call.args))
        row = FUNCTIONS[call.function]
        is_own = dtype == "float32" and row.c_float32
        if self._on and row.safe and not row.is_instruction and not is_own:
            # The library computes what is out of the domain lane by lane.
            on, kind = self.on(bytes_of(dtype)), self.types.of(dtype)
            safe = (self.values.constant(value, dtype) for value in row.safe)
            args = tuple(
                f"({on} ? {a} : {kind}{{}} + {b})" for a, b in zip(args, safe, strict=True)
            )
        return self._math(call.function, args, dtype)

    def _math(self, function: str, args: tuple[str, ...], dtype: str) -> str:
        """Returns a function of vectors of float32 or float64."""
        name = self.types.function(function, len(args), dtype)
        if name:
            return f"{name}({', '.join(map(bare, args))})"
        row = FUNCTIONS.get(function)
        if row is None or not row.c or is_name(row.c):
            raise UnprintableError

        def apply(op: str, *operands: str) -> str:
            if op == "neg":
                return f"(-{operands[0]})"
            if op == "select":
                return "({} ? {} : {})".format(*operands)
            if op in SIGNS:
                return f"({operands[0]} {SIGNS[op]} {operands[1]})"
            return self._math(op, operands, dtype)

        def number(value: float) -> str:
            return self.types.everywhere(self.values.constant(value, dtype), dtype)

        named = dict(zip(row.arguments, args, strict=True))
        return evaluate(row.c, named, number, apply)
