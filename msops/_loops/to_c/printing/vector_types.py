"""Vector types of gcc and clang for generated C++, and how vectors are made, moved and joined."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Self

from msops._base import processor
from msops._loops.ir.operators import is_float, itemsize
from msops._loops.to_c.printing.vector_helpers import HELPERS
from msops._loops.to_c.text import Values, bare
from msops._loops.to_c.text.arithmetic import SIGN_BITS
from msops._loops.to_c.text.helpers import TEMPLATES, words_of
from msops._loops.to_c.text.operations import QUOTIENTS, Operations
from msops._loops.to_c.text.syntax import ROUNDED, computed, short_name

INLINE = "static inline __attribute__((always_inline))"
_EACH = """
template <class V, class F, class... A>
{inline} V {name}(F f, A... a) {{
  const auto at = [&](int lane) {{ return f(lane, a[lane]...); }};
  return V{{{calls}}};
}}"""
_SHUFFLE = """
#ifdef __clang__
#define ms_shuffle(a, b, type, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ms_shuffle(a, b, type, ...) __builtin_shuffle(a, b, type{__VA_ARGS__})
#endif"""


def bytes_of(dtype: str) -> int:
    """Returns the bytes of a value, which may be more than those of an element of an array."""
    return itemsize(computed(dtype))


class UnprintableError(Exception):
    """A loop computes what vectors do not."""


class VectorTypes(Operations):
    """Vectors of some lanes.

    Attributes:
      lanes: how many.
      bool_bytes: of the elements of a local variable of bools.
    """

    bool_bytes = 4

    def __init__(self, values: Values, lanes: int) -> None:
        self.values = values
        self.lanes = lanes

    # Types.

    def value_type(self, dtype: str) -> str:
        """Returns the type of a vector of values."""
        return self._type(self.values.value_type(dtype), bytes_of(dtype))

    def _type(self, element: str, bytes_: int) -> str:
        name = f"ms_vector_{element}_{self.lanes}"
        size = f"__attribute__((vector_size({self.lanes * bytes_})))"
        return self._defined(name, f"typedef {element} {name} {size};")

    def unsigned(self, dtype: str) -> str:
        """Returns the type of a vector of unsigned integers of the same width."""
        return self._type(f"uint{8 * bytes_of(dtype)}_t", bytes_of(dtype))

    def mask(self, bytes_: int) -> str:
        """Returns the type of a vector of conditions."""
        return self._type(f"int{8 * bytes_}_t", bytes_)

    def of_own(self, dtype: str) -> str:
        """Returns the type of a local variable of the loop."""
        return self.mask(self.bool_bytes) if dtype == "bool" else self.value_type(dtype)

    def in_memory(self, dtype: str) -> str:
        """Returns the type of neighbours in an array, which begin at any element."""
        element = "uint16_t" if dtype in ROUNDED else self.values.value_type(dtype)
        name, bytes_ = f"ms_memory_{element}_{self.lanes}", itemsize(dtype)
        size = f"vector_size({self.lanes * bytes_}), aligned({bytes_}), may_alias"
        return self._defined(name, f"typedef {element} {name} __attribute__(({size}));")

    def _defined(self, name: str, text: str) -> str:
        self.values.helpers.setdefault(name, text)
        return name

    def size(self, dtype: str) -> int:
        """Returns the bytes of a vector."""
        return self.lanes * bytes_of(dtype)

    # Values.

    def constant(self, value: float, dtype: str) -> str:
        """Returns a vector of a number."""
        return self.everywhere(self.values.constant(value, dtype), dtype)

    def everywhere(self, number: str, dtype: str) -> str:
        """Returns a vector of a number."""
        kind = self.value_type(dtype)
        if is_float(dtype):
            # x - 0 is x, also for -0.
            return f"({number} - {kind}{{}})"
        if bytes_of(dtype) >= 4:
            return f"({kind}{{}} + {number})"
        # gcc takes a cast of an int whose value it knows for that int, which does not fit.
        return f"{self.helper('everywhere', dtype)}({bare(number)})"

    def mask_everywhere(self, condition: str, bytes_: int) -> str:
        """Returns a condition as a vector."""
        return f"({self.mask(bytes_)}{{}} - (int{8 * bytes_}_t)({bare(condition)}))"

    def widened(self, mask: str, bytes_: int, wanted: int) -> str:
        """Returns a condition with elements of another width."""
        return self.converted(mask, f"int{8 * bytes_}", f"int{8 * wanted}")

    def converted(self, text: str, source: str, dtype: str) -> str:
        """Returns a vector of another dtype; C's conversion must be the IR's."""
        kind = self.value_type(dtype)
        if self.value_type(source) == kind:
            return text
        if is_float(dtype) and bytes_of(source) < bytes_of(dtype) == 4:
            # gcc converts these lane by lane.
            return self.converted(self.converted(text, source, "int32"), "int32", dtype)
        if bytes_of(source) < bytes_of(dtype) == 4 and self.lanes == 16:
            wider = self.helper("wider", dtype, source=source, **self._narrow_words(source))
            return f"{wider}({bare(text)})"
        return f"__builtin_convertvector({bare(text)}, {kind})"

    def applied(self, template: str, dtype: str, *args: str) -> str:
        """Returns a helper of vectors, or of numbers for each lane."""
        if template.partition("__")[0] not in (*QUOTIENTS, "pow") or (
            template in HELPERS
            and dtype == "int32"
            and self.size("float64") <= processor.vector_bytes()
        ):
            return super().applied(template, dtype, *args)
        kind = self.values.value_type(dtype)
        call = f"{self.values.helper(template, dtype)}(a, b)"
        function = f"[](int, {kind} a, {kind} b) {{ return {call}; }}"
        vectors = ", ".join(map(bare, args))
        return f"{self.each()}<{self.value_type(dtype)}>({function}, {vectors})"

    def _narrow_words(self, source: str) -> dict[str, str]:
        """Returns what the helper that widens vectors names of those that it gets."""
        element, letters = ("char", "bd") if bytes_of(source) == 1 else ("short", "wd")
        narrow = self._type(element, bytes_of(source))
        sign = "z" if source.startswith("u") else "s"
        words = {"S": self.value_type(source), "narrow": narrow, "way": f"{sign}x{letters}"}
        return words | {"wide": self._type("int", 4)}

    def converter(self, way: str, dtype: str) -> str:
        """Returns what converts "from" elements of float16 or bfloat16, or "to" them."""
        return self.helper(f"{way}__{dtype}", dtype)

    def helper(self, template: str, dtype: str, **words: str) -> str:
        """Returns the name of a helper function on vectors.

        Args:
          template: its name in `vector_helpers`, else in `text.helpers`.
          dtype: of the values of the vectors.
          words: what else the template names; `source` is a dtype that distinguishes it, too.
        """
        source = words.pop("source", "")
        stem = template.partition("__")[0]
        name = self.name(f"{stem}_{short_name(source)}" if source else stem, dtype)
        if name not in self.values.helpers:
            is_narrow = bytes_of(dtype) < 4
            own = (HELPERS.get(f"{template}__narrow") if is_narrow else None) or HELPERS.get(
                template
            )
            text = own.template(self.lanes, bytes_of(dtype)) if own else TEMPLATES[template]
            known = _Words(self, dtype, {"name": name, "inline": INLINE} | words)
            self.values.helpers[name] = text.substitute(known)
        return name

    def name(self, stem: str, dtype: str) -> str:
        """Returns the name of a function on vectors of a dtype."""
        # The one of float32_c.py has no dtype.
        kind = "" if stem == "fma" and _is_single(dtype) else f"{short_name(dtype)}_"
        return f"ms_{stem}_{kind}{self.lanes}"

    def each(self) -> str:
        """Returns the name of the function that makes a vector of what is computed lane by lane."""
        name = f"ms_each_{self.lanes}"
        calls = ", ".join(f"at({lane})" for lane in range(self.lanes))
        return self._defined(name, _EACH.format(inline=INLINE, name=name, calls=calls).strip())

    # Elements in memory.

    def spaced(self, dtype: str) -> str:
        """Returns the name of a function that loads elements any steps apart, from the first on."""
        name, kind = self.name("spaced", dtype), self.value_type(dtype)
        # gcc joins integers in pairs before it moves them into a vector, which takes 4 to 8 times.
        moved = _float_of(dtype) if bytes_of(dtype) >= 4 else dtype
        elements = ", ".join(f"q[{lane} * step]" for lane in range(self.lanes))
        lines = [
            f"{INLINE} {kind} {name}(const {self.values.value_type(dtype)}* p, int64_t step) {{",
            f"  const auto q = (const {self.values.value_type(moved)}*)p;",
            f"  return ({kind}){self.value_type(moved)}{{{elements}}};",
            "}",
        ]
        return self._defined(name, "\n".join(lines))

    def apart(self, dtype: str, step: int, before: int = 0, after: int = 0) -> str:
        """Returns the name of a function that loads elements some steps apart, from the first on.

        It reads whole vectors, and nothing outside of the span of these elements.

        Args:
          dtype: of the elements.
          step: from one to the next.
          before: elements that exist before that span.
          after: those that do after it.
        """
        beside = f"_{before}_{after}" if before or after else ""
        name = self.name(f"every_{'back_' if step < 0 else ''}{abs(step)}{beside}", dtype)
        kind, memory, lanes = self.value_type(dtype), self.in_memory(dtype), self.lanes
        picked = [lane * step for lane in range(lanes)]
        low, span = min(picked) - before, max(picked) - min(picked) + 1 + before + after
        starts = [low + min(k * lanes, span - lanes) for k in range(-(-span // lanes))]
        places = [
            next((k, at - s) for k, s in enumerate(starts) if s <= at < s + lanes) for at in picked
        ]
        lines = []
        for k, start in enumerate(starts):
            lines.append(f"  const {kind} v{k} = *(const {memory}*)(p + ({start}));")
            one = f"r{k - 1}" if k > 1 else "v0"
            order = [
                lanes + at if own == k else at if own == 0 and k < 2 else lane
                for lane, (own, at) in enumerate(places)
            ]
            if k or len(starts) == 1:
                lines.append(f"  const {kind} r{k} = {self._shuffled(one, f'v{k}', dtype, order)};")
        lines.append(f"  return r{len(starts) - 1};")
        head = f"{INLINE} {kind} {name}(const {self.values.value_type(dtype)}* p) {{"
        return self._defined(name, "\n".join([head, *lines, "}"]))

    def put_apart(self, dtype: str, step: int) -> str:
        """Returns the name of a function that stores vectors whose elements take turns in memory.

        Args:
          dtype: of the elements.
          step: the number of vectors.
        """
        name, lanes = self.name(f"put_every_{step}", dtype), self.lanes
        kind, memory = self.value_type(dtype), self.in_memory(dtype)
        lines = []
        for k in range(step):
            text = "v0"
            for row in range(1, step):
                order = [
                    lanes + at // step if at % step == row else j if row > 1 else at // step
                    for j, at in enumerate(range(k * lanes, (k + 1) * lanes))
                ]
                text = self._shuffled(text, f"v{row}", dtype, order)
            lines.append(f"  *({memory}*)(p + {k * lanes}) = {text};")
        vectors = ", ".join(f"{kind} v{row}" for row in range(step))
        head = f"{INLINE} void {name}({self.values.value_type(dtype)}* p, {vectors}) {{"
        return self._defined(name, "\n".join([head, *lines, "}"]))

    def turned(self, dtype: str, value: str) -> str:
        """Returns a vector with its lanes in the opposite order."""
        return f"{self.helper('turned', dtype)}({bare(value)})"

    def _shuffled(self, one: str, other: str, dtype: str, order: list[int]) -> str:
        """Returns lanes of two vectors in an order."""
        numbers = ", ".join(map(str, order))
        return f"{self.shuffle()}({one}, {other}, {self.mask(bytes_of(dtype))}, {numbers})"

    def shuffle(self) -> str:
        """Returns the name of the macro that picks lanes of two vectors."""
        return self._defined("ms_shuffle", _SHUFFLE.strip())

    # Reductions.

    def joined(self, op: str, dtype: str, one: str, other: str) -> str:
        """Returns an operation of a reduction."""
        # Of vectors of 0 and 1, `&&` would be one of 0 and -1.
        return super().joined({"land": "and", "lor": "or"}.get(op, op), dtype, one, other)

    def half(self) -> Self:
        """Returns vectors of half as many lanes."""
        narrower = copy.copy(self)
        narrower.lanes //= 2
        return narrower

    def halves(self, value: str, dtype: str) -> tuple[str, str]:
        """Returns both halves of a vector that is a variable."""
        kind = self.half().value_type(dtype)
        return f"*(const {kind}*)&{value}", f"*((const {kind}*)&{value} + 1)"

    def total(self, op: str, dtype: str) -> str:
        """Returns the name of a function that brings all lanes together, half by half."""
        name = self.name(f"all_{op}", dtype)
        types, value, lines = self, "all", []
        while types.size(dtype) > processor.LEAST_VECTOR_BYTES and types.lanes > 2:
            halves = types.halves(value, dtype)
            types = types.half()
            value = f"of_{types.lanes}"
            joined = types.joined(op, dtype, *halves)
            lines.append(f"  const {types.value_type(dtype)} {value} = {joined};")
        texts = [f"{value}[{lane}]" for lane in range(types.lanes)]
        while len(texts) > 1:
            half = len(texts) // 2
            pairs = zip(texts[:half], texts[half:], strict=True)
            texts = [f"({self.values.joined(op, dtype, *pair)})" for pair in pairs]
        lines.append(f"  return {bare(texts[0])};")
        head = f"{INLINE} {self.values.value_type(dtype)} {name}({self.value_type(dtype)} all) {{"
        return self._defined(name, "\n".join([head, *lines, "}"]))


class _Words(dict[str, str]):
    """What templates of helper functions may name, each defined where it is named first."""

    def __init__(self, types: VectorTypes, dtype: str, words: dict[str, str]) -> None:
        of_numbers = words_of(dtype).items()
        super().__init__({word: text for word, text in of_numbers if word not in _WORDS} | words)
        self._types, self._dtype = types, dtype

    def __missing__(self, word: str) -> str:
        return _WORDS[word](self._types, self._dtype)


def _is_single(dtype: str) -> bool:
    return bytes_of(dtype) == 4


def _float_of(dtype: str) -> str:
    """Returns the float dtype as wide as a dtype."""
    return "float32" if _is_single(dtype) else "float64"


_INTEGERS = {1: "char", 2: "short", 4: "int", 8: "long long"}
"""By their bytes, the integers that gcc's instructions take."""

_WORDS: dict[str, Callable[[VectorTypes, str], str]] = {
    "T": lambda types, dtype: types.value_type(dtype),
    "E": lambda types, dtype: types.values.value_type(dtype),
    "U": lambda types, dtype: types.unsigned(dtype),
    "M": lambda types, dtype: types.mask(bytes_of(dtype)),
    "m": lambda types, dtype: f"int{8 * bytes_of(dtype)}_t",
    "F": lambda types, dtype: types.value_type(_float_of(dtype)),
    "D": lambda types, dtype: types.value_type("float64"),
    "I": lambda types, dtype: types.value_type("int32"),
    "H": lambda types, dtype: types.value_type("uint16"),
    "lanes": lambda types, dtype: f"{types.lanes}",
    "bytes": lambda types, dtype: f"{bytes_of(dtype)}",
    "number": lambda types, dtype: types.values.value_type(_float_of(dtype)),
    "s": lambda types, dtype: "s" if _is_single(dtype) else "d",
    "q": lambda types, dtype: "d" if _is_single(dtype) else "q",
    "cast": lambda types, dtype: (
        f"({_INTEGERS[bytes_of(dtype)]} __attribute__((vector_size({types.size(dtype)}))))"
    ),
    "integer": lambda types, dtype: _INTEGERS[bytes_of(dtype)],
    "qi": lambda types, dtype: "qi" if bytes_of(dtype) == 1 else "hi",
    "b": lambda types, dtype: "b" if bytes_of(dtype) == 1 else "w",
    "convert": lambda types, dtype: "__builtin_convertvector",
    "each": lambda types, dtype: types.each(),
    "shuffle": lambda types, dtype: types.shuffle(),
    "back": lambda types, dtype: ", ".join(map(str, reversed(range(types.lanes)))),
    "half": lambda types, dtype: types.values.storage_type("float16"),
    "sqrt": lambda types, dtype: types.helper("sqrt", dtype),
    "fused": lambda types, dtype: types.helper("fused", dtype),
    "least_of": lambda types, dtype: types.helper("least", dtype),
    "greatest_of": lambda types, dtype: types.helper("greatest", dtype),
    "sign": lambda types, dtype: SIGN_BITS[computed(dtype)],
    "most": lambda types, dtype: "2147483647" if _is_single(dtype) else f"{2**63 - 1}l",
    "fast": lambda types, dtype: "__FP_FAST_FMAF" if _is_single(dtype) else "__FP_FAST_FMA",
    "has_fused": lambda types, dtype: (
        {64: "defined(__AVX512F__)", 32: "defined(__FMA__)", 16: "defined(__FMA__)"}
    ).get(types.size(dtype), "0"),
}
"""By name; `vector_helpers` says what they are."""
