"""Estimates what raised steps cost on a CPU, to choose between them and native code.

The constants are times on two processors, rounded. They are right within a factor of about two, as
``benchmarks/loops_choice.py`` shows, which is enough where the alternatives differ by more. XLA
runs an elementwise operation in vector registers, also where it is masked or writes a part of a
buffer. What it fuses with all that reads it is never an array in memory. The file is long since
each constant says what was measured.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from msops._base import processor
from msops._base.dtypes import as_dtype
from msops._loops.analysis.costs import (
    CACHE_BYTES,
    MEASURED_VECTOR_BYTES,
    UNKNOWN_TRIPS,
    arithmetic,
    computed,
    width_in_float32s,
)
from msops._loops.ir.algebra import is_whole_power
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import Binary, Const, Expr, FunctionCall, Kernel, Load, Store, Var
from msops._loops.ir.operators import QUOTIENTS, is_float, itemsize, size_bytes
from msops._loops.ir.walk import buffers_of, expressions, index_variables, loads, variables
from msops._loops.to_jax.raising.nests import Nest
from msops._loops.to_jax.raising.steps import (
    Accumulate,
    Branch,
    Clear,
    Contract,
    Convolve,
    Loop,
    Map,
    Pool,
    Recur,
    Reduce,
    Step,
    VectorStep,
)
from msops._loops.to_jax.raising.views import find_view

SECONDS_PER_OPERATION = 1e-11
"""The time of one operation on an element of 4 bytes in vector registers, or of copying a byte."""
SECONDS_PER_ROW_ADDED = 3e-11
"""The time of one operation in a reduction over rows, whose sums go through memory."""
SECONDS_PER_STREAMED = 2.5e-11
"""The time of a byte of an array that no cache near the processor holds."""
SECONDS_PER_CROSSED = 7e-10
"""The time of an element of such an array, if it is read along another axis than written."""
SECONDS_PER_SCALAR = 2e-10
"""The time of one operation on an element by itself."""
SECONDS_PER_FUNCTION = 2e-10
"""The time of a mathematical function of an element of 4 bytes."""
SECONDS_PER_SCALAR_FUNCTION = 4e-9
"""The time of a function that XLA computes for one element after the other: 2 to 10 ns."""
_CALLED_IN_FLOAT32 = frozenset(
    ("sin", "cos", "tan", "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "fmod")
)
_CALLED = (_CALLED_IN_FLOAT32, _CALLED_IN_FLOAT32 | {"log", "log1p", "log2", "log10", "erf"})
"""Functions that XLA has no vectors for: of float32, and of float64."""
SECONDS_PER_POWER = 1.5e-9
"""The time of a power of floats, per 4 bytes: 1.3 ns of float32, 3.7 of float64."""
SECONDS_PER_QUOTIENT = 8e-10
"""The time of a quotient or remainder of integers that is not by a constant."""
SECONDS_PER_GATHERED = 1.5e-10
"""The time of reading an element through an index."""
SECONDS_PER_POSITION = 3e-11
"""The time of an operation on the position of such an element, by itself for each element: 0.03 to
0.1 ns, also where elements share a position, as the channels of a pixel do."""
SECONDS_PER_COPIED = 1e-9
"""The time of reading an element of windows that overlap, which are no slices: 1 to 7 ns."""
SECONDS_PER_SCATTERED = 4e-9
"""The time of writing an element through an index: 1 to 3 ns, and 12 in gradients of samples of an
image, with what is computed for it."""
SECONDS_PER_INTERLEAVED = 4e-10
"""The time of an element of an array, some of which are written anew and lie among the others: 0.36
ns."""
SECONDS_PER_POOLED = 1e-9
"""The time of an element in a window of two dimensions or more, if all windows are apart, or if it
is their extreme: 0.3 to 2 ns."""
SECONDS_PER_WINDOW_SUM = 1.5e-10
"""The time of an element in other windows, whose sums go along an array in vectors."""
SECONDS_PER_SCANNED = 5e-9
"""The time of an element of a cumulative operation or an associative scan."""
SECONDS_PER_PRODUCT = 1e-11
"""The time of a multiplication and addition of 4 bytes each in a matrix product; wider vectors take
less, as far as they are wider."""
SECONDS_PER_SHARED_PRODUCT = 3e-5
"""The time of sharing a large product among threads."""
_SHARED_PRODUCT = 1e5
"""Multiplications of the least product that is shared."""
SECONDS_PER_SMALL_PRODUCT = 2.5e-10
"""The time of a multiplication and addition in one of many products of small matrices, if one has
at most 4 rows or columns; less of larger ones, as far as they are larger."""
_SMALL = 4
SECONDS_PER_MATRIX = 5e-9
"""The time of starting each of these products."""
SECONDS_PER_CONVOLVED = 2e-11
"""The time of a multiplication and addition in a convolution."""
SECONDS_PER_PATCH = 4e-9
"""The time of an element that a convolution gathers into its patches, once for all its filters: 1
to 10 ns. Of few filters the products count for nothing beside it."""
SECONDS_PER_SPATIAL_PATCH = 2e-8
"""The same in three dimensions, by the channel: 20 to 35 ns."""
SECONDS_PER_CONVOLVED_ALONE = 1.5e-10
"""The time of a multiplication and addition in a convolution of elements that no library convolves,
float64 and integers: 0.04 to 0.5 ns."""
_CONVOLVED = ("float16", "bfloat16", "float32")
"""Dtypes of the convolutions that XLA hands to a library."""
SECONDS_PER_STEP = 1e-7
"""The time of starting a step that is not in a loop."""
SECONDS_PER_ITERATION = 1e-9
"""The time of starting a step in an iteration of a loop, but for what `_IN_LOOP` makes of it."""
_IN_LOOP = 10
"""How many times as long a step takes in a loop, where XLA runs most of it element by element. That
is rough: nothing is chosen by the estimate of a loop."""
SECONDS_PER_WAKING = 1e-5
"""The time of handing a program to a thread, and of waiting for it."""
MOST_COPIES = 15
"""The most times that XLA computes an element anew where it is read:
`FusionNodeIndexingEvaluation` in xla/service/fusion_node_indexing_evaluation.cc."""
INLINE_OPERATIONS = 1000
"""XLA runs programs of fewer operations in the thread that calls them: `cheap_computation_` in
xla/pjrt/cpu/cpu_client.cc. Copies, also by indices, do not count as operations."""


def raised_seconds(kernel: Kernel, steps: Sequence[Step]) -> float:
    """Returns the estimated seconds of the steps of a kernel, beside those of the call."""
    is_inline = operations(steps) < INLINE_OPERATIONS
    waking = 0.0 if is_inline else SECONDS_PER_WAKING
    return waking + _Costs(kernel).steps(steps, SECONDS_PER_STEP)


def operations(steps: Sequence[Step]) -> float:
    """Returns how many arithmetic operations steps have, as XLA counts them."""
    total = 0.0
    for step in steps:
        match step:
            case Loop(axis=axis, body=body):
                total += (UNKNOWN_TRIPS if axis is None else axis.extent) * operations(body)
            case Branch(then=then, otherwise=otherwise):
                total += max(operations(then), operations(otherwise))
            case Clear():
                pass
            case Map(nest=nest):
                values = (nest.store.value, *nest.mask)
                total += nest.iterations * sum(map(arithmetic, values))
            case _:
                total += step.nest.iterations
    return total


@dataclass(frozen=True)
class _Fused:
    """An elementwise operation that XLA fuses with what reads it.

    Attributes:
      seconds: of one element.
      copies: how often the operations in it are computed for one element.
    """

    seconds: float
    copies: int


class _Costs:
    """Adds up steps; knows the sizes of the buffers."""

    def __init__(self, kernel: Kernel):
        self._buffers = buffers_of(kernel)
        self._sizes = {name: math.prod(b.shape) for name, b in self._buffers.items()}
        sizes = {name: size_bytes(b) for name, b in self._buffers.items()}
        self._large = {name: size for name, size in sizes.items() if size > CACHE_BYTES}
        self._results = frozenset(kernel.results)
        self._fused: dict[str, _Fused] = {}
        # Whether a later operation stores to the buffer again, and what the ones before have read.
        self._is_stored_again = False
        self._read: dict[str, frozenset[str]] = {}

    def steps(self, steps: Sequence[Step], start: float) -> float:
        """Returns the seconds of steps, each of which takes `start` by itself."""
        total = 0.0
        for step, again in zip(steps, _stored_again(steps), strict=True):
            self._is_stored_again = again
            total += self._step(step, start)
        return total

    def _step(self, step: Step, start: float) -> float:
        match step:
            case Loop(axis=axis, body=body):
                trips = UNKNOWN_TRIPS if axis is None else axis.extent
                self._fused = {}
                seconds = start + trips * _IN_LOOP * self.steps(body, SECONDS_PER_ITERATION)
                self._fused = {}
                return seconds
            case Branch(then=then, otherwise=otherwise):
                return start + max(self.steps(then, start), self.steps(otherwise, start))
            case Clear():
                return 0.0
            case _:
                # In this order: what an element costs depends on what stays fused.
                again = self._fuse(step)
                element = again + self._element(step)
                seconds = start + step.nest.iterations * element + self._factors(step)
                return seconds + self._copying(step)

    def _factors(self, step: VectorStep) -> float:
        """Returns the seconds of making arrays of the factors of a product, and of reading them."""
        nest, total = step.nest, 0.0
        match step:
            case Contract(factors=factors):
                parts: Sequence[Expr] = factors
                if nest.iterations >= _SHARED_PRODUCT:
                    total = SECONDS_PER_SHARED_PRODUCT
            case Convolve(image=image, filter=kernel):
                parts = (image, kernel)
            case _:
                return 0.0
        is_whole = isinstance(step, Convolve)
        for part in parts:
            if isinstance(part, Load) and (is_whole or _is_plain(part)):
                total += SECONDS_PER_STREAMED * self._large.get(part.buffer, 0)
                continue
            elements = math.prod(nest.extents.get(axis, 1) for axis in variables(part))
            own = sum(self._part(inner, nest, SECONDS_PER_OPERATION) for inner in computed(part))
            size = elements * itemsize(part.dtype)
            moving = 2 * SECONDS_PER_STREAMED * size if size > CACHE_BYTES else 0.0
            # It is computed and read once more to see whether it is finite.
            total += (elements * own + moving) * (1 if step.fallback is None else 2)
        return total

    def _copying(self, step: VectorStep) -> float:
        """Returns the seconds of copies that XLA makes for the update of a part of an array.

        The part is computed by itself, and then written among the elements around it: one by one
        over all of the array, if it is more than one block of it.
        """
        nest = step.nest
        buffer = self._buffers[nest.store.buffer]
        if nest.iterations >= math.prod(buffer.shape):
            return 0.0
        view = find_view(nest.store.indices, buffer.shape, nest.axis_ranges)
        if view is not None and view.has_gaps:
            return SECONDS_PER_INTERLEAVED * math.prod(buffer.shape)
        if self._is_one_with_next(nest):
            return 0.0
        byte = SECONDS_PER_STREAMED if buffer.name in self._large else SECONDS_PER_OPERATION
        return 2 * byte * nest.iterations * itemsize(buffer.dtype)

    def _fuse(self, step: VectorStep) -> float:
        """Returns the seconds, per element, of operands that XLA computes for each of their reads.

        It fuses elementwise operations with what reads them, and computes elements again where
        several are read, as by a stencil; not where functions are called, and not in operations of
        a library.
        """
        store = step.nest.store
        if not isinstance(step, Map | Reduce):
            self._fused.pop(store.buffer, None)
            return 0.0
        reads = Counter(load.buffer for load in set(loads(store.value)))
        copies, seconds = 1, 0.0
        for buffer, count in reads.items():
            operand = self._fused.get(buffer)
            if operand is not None and count * operand.copies <= MOST_COPIES:
                copies = max(copies, count * operand.copies)
                seconds += (count - 1) * operand.seconds
            elif operand is not None:
                # It is an array after all.
                del self._fused[buffer]
                seconds += self._streaming({buffer}, step.nest)
        self._fused.pop(store.buffer, None)
        is_cheap = not any(map(_is_transcendental, computed(store.value)))
        is_whole = step.nest.iterations >= self._sizes.get(store.buffer, 0)
        if isinstance(step, Map) and is_cheap and is_whole:
            own = self._computing(step.nest, SECONDS_PER_OPERATION)
            self._fused[store.buffer] = _Fused(own + seconds, copies)
        return seconds

    def _element(self, step: VectorStep) -> float:
        match step:
            case Contract():
                return self._multiplying(step)
            case Convolve(nest=nest, over=over, image=image, filter=kernel):
                if nest.store.value.dtype not in _CONVOLVED:
                    return SECONDS_PER_CONVOLVED_ALONE
                own = variables(kernel) - variables(image) - set(over)
                filters = math.prod(nest.extents.get(axis, 1) for axis in own)
                patch = SECONDS_PER_PATCH
                if len(step.windows) > 2:
                    taps = {window.tap for window in step.windows}
                    channels = math.prod(nest.extents[axis] for axis in set(over) - taps)
                    patch = max(patch, SECONDS_PER_SPATIAL_PATCH / channels)
                return SECONDS_PER_CONVOLVED + patch / max(1, filters)
            case Pool():
                return _pooling(step)
            case Accumulate() | Recur():
                return SECONDS_PER_SCANNED
            case Reduce(nest=nest, value=value, over=over):
                if nest.mask:
                    return self._computing(nest, SECONDS_PER_SCALAR, in_vectors=False)
                lasts = [load.indices[-1] for load in loads(value) if load.indices]
                is_along = any(Var(axis) in expressions(last) for last in lasts for axis in over)
                operation = SECONDS_PER_OPERATION if is_along else SECONDS_PER_ROW_ADDED
                return (
                    self._computing(nest, operation)
                    + self._moving(nest)
                    + self._slicing(nest, value)
                )
            case Map(nest=nest):
                return self._computing(nest, SECONDS_PER_OPERATION) + self._moving(nest)

    def _multiplying(self, step: Contract) -> float:
        """Returns the seconds of one multiplication and addition in products of matrices."""
        extents = step.nest.extents
        width = width_in_float32s(step.nest.store.value.dtype)
        vectors = MEASURED_VECTOR_BYTES / processor.vector_bytes()
        large = SECONDS_PER_PRODUCT * width * vectors

        def size(axes: Collection[str]) -> int:
            return math.prod(extents.get(axis, 1) for axis in axes)

        by_size = sorted((set(variables(part)) for part in step.factors), key=size)
        others, last = set().union(*by_size[:-1]), by_size[-1]
        matrices = size((others & last) - set(step.over))
        if matrices == 1:
            return large
        sides = (size(step.over), size(last - others), size(others - last))
        small = SECONDS_PER_SMALL_PRODUCT * width * min(1.0, _SMALL / min(sides))
        return max(large, small) + SECONDS_PER_MATRIX / math.prod(sides)

    def _computing(self, nest: Nest, operation: float, *, in_vectors: bool = True) -> float:
        """Returns the seconds of one element's value and store, by those of an operation."""

        def share(part: Expr) -> float:
            """Returns for which fraction of the iterations XLA computes a part.

            It does so once along an axis that the part does not depend on.
            """
            own = math.prod(nest.extents.get(axis, 1) for axis in variables(part))
            return min(1.0, own / max(1, nest.iterations))

        store = nest.store
        width = width_in_float32s(store.value.dtype) if in_vectors else 1.0
        own = operation * width
        is_scattered = nest.is_indirect(store) or self._overlaps(store, nest)
        total = SECONDS_PER_SCATTERED if is_scattered else own
        # What a value and its mask have in common is computed once.
        parts = dict.fromkeys(part for e in (store.value, *nest.mask) for part in computed(e))
        picked = (load for part in parts if isinstance(part, Load) for load in loads(part))
        positions = {
            part
            for load in picked
            if nest.is_indirect(load)
            for index in load.indices
            for part in computed(index)
        }

        def seconds(part: Expr) -> float:
            own = self._part(part, nest, operation, in_vectors=in_vectors)
            if part in positions and not isinstance(part, Const | Var):
                return max(own, SECONDS_PER_POSITION)
            return own * share(part)

        return total + sum(map(seconds, parts))

    def _part(self, part: Expr, nest: Nest, operation: float, *, in_vectors: bool = True) -> float:
        """Returns the seconds of one element of a part of a value, by those of an operation."""
        width = width_in_float32s(part.dtype) if in_vectors else 1.0
        match part:
            case Const() | Var():
                return 0.0
            case FunctionCall(function=name) if name in _CALLED[part.dtype == "float64"]:
                return SECONDS_PER_SCALAR_FUNCTION
            case Binary(op="pow", right=Const(value=by)) if by == 0.5 or is_whole_power(part):
                return operation * width * max(1, int(abs(by)).bit_length() - 1)
            case Binary(op="pow") if is_float(part.dtype):
                return SECONDS_PER_POWER * width
            case Binary(op="mod" | "floordiv") if is_float(part.dtype):
                return SECONDS_PER_SCALAR_FUNCTION
            case Binary(op=op, right=right) if op in QUOTIENTS and not isinstance(right, Const):
                return SECONDS_PER_QUOTIENT
            case FunctionCall(function=name) if not FUNCTIONS[name].is_instruction:
                return SECONDS_PER_FUNCTION * width
            case Load() if self._overlaps(part, nest):
                return SECONDS_PER_COPIED
            case Load() if nest.is_indirect(part):
                return SECONDS_PER_GATHERED
        return operation * width

    def _overlaps(self, access: Load | Store, nest: Nest) -> bool:
        """Returns whether an access follows its axes, but is no slice of an array."""
        buffer = self._buffers.get(access.buffer)
        if buffer is None or nest.is_indirect(access):
            return False
        return find_view(access.indices, buffer.shape, nest.axis_ranges) is None

    def _slicing(self, nest: Nest, value: Expr) -> float:
        """Returns the seconds that one element's part in copying slices takes.

        A reduction is an operation of a library, which reads whole arrays.
        """
        slices = {load.buffer: load for load in loads(value) if self._is_slice(load, nest)}
        total = 0.0
        for load in slices.values():
            elements = math.prod(nest.extents.get(axis, 1) for axis in index_variables(load))
            size = as_dtype(load.dtype).dtype.itemsize
            is_large = load.buffer in self._large
            element = SECONDS_PER_STREAMED * size if is_large else SECONDS_PER_OPERATION
            total += 2 * element * elements
        return total / max(1, nest.iterations)

    def _is_slice(self, load: Load, nest: Nest) -> bool:
        """Returns whether the loops of a nest go over a part of an array, along some axis."""
        shape = self._buffers[load.buffer].shape if load.buffer in self._buffers else ()
        return any(
            nest.extents.get(axis, size) < size
            for index, size in zip(load.indices, shape, strict=False)
            for axis in variables(index)
        )

    def _moving(self, nest: Nest) -> float:
        """Returns the seconds that one element's part in moving large arrays takes."""
        store = nest.store
        read = {load.buffer: load for load in loads(store.value) if load.buffer in self._large}
        if not nest.reduced and any(_crosses(load, store, nest) for load in read.values()):
            return SECONDS_PER_CROSSED
        kept = {name for name in {*read, store.buffer} if not self._stays_fused(name)}
        known = self._read.pop(store.buffer, frozenset())
        if self._is_one_with_next(nest):
            kept.discard(store.buffer)
            self._read[store.buffer] = known.union(read)
        return self._streaming(kept - known, nest)

    def _is_one_with_next(self, nest: Nest) -> bool:
        """Returns whether XLA fuses an operation with the next one that stores to the same array.

        The next one is the other branch of a condition, or stores another part of the array.
        """
        is_cheap = not any(map(_is_transcendental, computed(nest.store.value)))
        return self._is_stored_again and is_cheap

    def _stays_fused(self, buffer: str) -> bool:
        """Returns whether a buffer is never an array, as far as is known yet."""
        return buffer in self._fused and buffer not in self._results

    def _streaming(self, buffers: Collection[str], nest: Nest) -> float:
        """Returns the seconds that one element's part in moving some buffers takes."""
        moved = sum(self._large.get(name, 0) for name in buffers)
        return SECONDS_PER_STREAMED * moved / max(1, nest.iterations)


def _stored_again(steps: Sequence[Step]) -> list[bool]:
    """Returns for each step whether a later elementwise one stores to the same buffer."""
    found: list[bool] = []
    later: set[str] = set()
    for step in reversed(steps):
        own = {step.nest.store.buffer} if isinstance(step, Map) else set()
        found.append(bool(own & later))
        later |= own
    return found[::-1]


def _pooling(step: Pool) -> float:
    """Returns the seconds of one element of a window."""
    windows = [(w, step.nest.extents[w.tap]) for w in step.windows]
    is_apart = all(w.stride >= abs(w.dilation) * length for w, length in windows)
    is_slow = len(windows) > 1 and (is_apart or step.op != "add")
    return SECONDS_PER_POOLED if is_slow else SECONDS_PER_WINDOW_SUM


def _is_transcendental(part: Expr) -> bool:
    """Returns whether XLA does not compute a part again for each that reads it."""
    return isinstance(part, FunctionCall) and FUNCTIONS[part.function].is_transcendental


def _is_plain(load: Load) -> bool:
    """Returns whether a product can read an array as it is: each index is one loop's variable."""
    return all(isinstance(index, Var | Const) for index in load.indices)


def _crosses(load: Load, store: Store, nest: Nest) -> bool:
    """Returns whether the axis along which a store walks is an outer one of a load."""
    if not store.indices:
        return False
    along = variables(store.indices[-1])
    *outer, last = (variables(index) for index in load.indices)
    return any(axis in nest.extents and axis not in last for part in outer for axis in part & along)
