"""Vector types of gcc and clang for generated C++, and how vectors are made, moved and joined."""

from __future__ import annotations

from msops._base import processor
from msops._loops.ir.operators import is_float
from msops._loops.ir.sizes import itemsize
from msops._loops.to_c.text import Values, bare
from msops._loops.to_c.text.helpers import fill
from msops._loops.to_c.text.syntax import (
    ROUNDED,
    SIGNS,
    computed,
    short_name,
    unsigned_type,
    width,
)
from msops._loops.to_c.text.values import SIGN_BITS

INLINE = "static inline __attribute__((always_inline))"
_EACH = """
template <class V, class F, class... A>
{inline} V {name}(F f, A... a) {{
  const auto at = [&](int lane) {{ return f(lane, a[lane]...); }};
  return V{{{calls}}};
}}"""
_MACROS = {64: "__AVX512F__", 32: "__AVX__", 16: "__SSE4_1__"}
"""By the bytes of a vector, what a compiler defines for processors with the instructions."""
_FOR_NARROW = dict.fromkeys((1, 2), ("__AVX512BW__", "__AVX512VL__"))
"""By the bytes of an element, what a compiler defines besides if masks have instructions for it."""
_WIDENED = {(1, 4, 64): "bd", (2, 4, 64): "wd"}
"""Letters of the instructions that widen integers, by bytes of elements before and after, and of
the vector."""
_ORDERED = 7
"""The comparison of numbers that holds if neither is NaN."""
_OF_B_CHOSEN_SIGN = {"min": 0xEC, "max": 0xC4}
"""`chosen | (b & sign)` and `chosen & (b | ~sign)`, as tables of an instruction."""
_SHUFFLE = """
#ifdef __clang__
#define ms_shuffle(a, b, type, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ms_shuffle(a, b, type, ...) __builtin_shuffle(a, b, type{__VA_ARGS__})
#endif"""


def bytes_of(dtype: str) -> int:
    """Returns the bytes of a value, which may be more than those of an element of an array."""
    return itemsize(computed(dtype))


class VectorTypes:
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

    def of(self, dtype: str) -> str:
        """Returns the type of a vector of values."""
        return self._type(self.values.value_type(dtype), bytes_of(dtype))

    def _type(self, element: str, bytes_: int) -> str:
        name = f"ms_vector_{element}_{self.lanes}"
        size = f"__attribute__((vector_size({self.lanes * bytes_})))"
        return self._defined(name, f"typedef {element} {name} {size};")

    def unsigned(self, dtype: str) -> str:
        """Returns the type of a vector of unsigned integers of the same width."""
        return self._type(f"uint{width(dtype)}_t", bytes_of(dtype))

    def mask(self, bytes_: int) -> str:
        """Returns the type of a vector of conditions."""
        return self._type(f"int{8 * bytes_}_t", bytes_)

    def of_own(self, dtype: str) -> str:
        """Returns the type of a local variable of the loop."""
        return self.mask(self.bool_bytes) if dtype == "bool" else self.of(dtype)

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

    def everywhere(self, number: str, dtype: str) -> str:
        """Returns a vector of a number."""
        kind = self.of(dtype)
        if is_float(dtype):
            # x - 0 is x, also for -0.
            return f"({number} - {kind}{{}})"
        if bytes_of(dtype) >= 4:
            return f"({kind}{{}} + {number})"
        # gcc takes a cast of an int whose value it knows for that int, which does not fit.
        name, alone = self.name("everywhere", dtype), f"return {kind}{{}} + x;"
        of_number = f"{self.values.value_type(dtype)} x"
        return f"{self.define(name, kind, of_number, '', alone, self.size(dtype))}({bare(number)})"

    def mask_everywhere(self, condition: str, bytes_: int) -> str:
        """Returns a condition as a vector."""
        return f"({self.mask(bytes_)}{{}} - (int{8 * bytes_}_t)({bare(condition)}))"

    def widened(self, mask: str, bytes_: int, wanted: int) -> str:
        """Returns a condition with elements of another width."""
        return self.converted(mask, f"int{8 * bytes_}", f"int{8 * wanted}")

    def converted(self, text: str, source: str, dtype: str) -> str:
        """Returns a vector of another dtype; C's conversion must be the IR's."""
        kind = self.of(dtype)
        if self.of(source) == kind:
            return text
        if is_float(dtype) and bytes_of(source) < bytes_of(dtype) == 4:
            # gcc converts these lane by lane.
            return self.converted(self.converted(text, source, "int32"), "int32", dtype)
        if (bytes_of(source), bytes_of(dtype), self.size(dtype)) in _WIDENED:
            return f"{self._widening(source, dtype)}({bare(text)})"
        return f"__builtin_convertvector({bare(text)}, {kind})"

    def _widening(self, source: str, dtype: str) -> str:
        """Returns the name of a function that widens integers.

        As an instruction: gcc loads an array lane by lane where nothing else reads the vector.
        """
        kind, own = self.of(dtype), self.of(source)
        name = self.name(f"wider_{short_name(source)}", dtype)
        letters = _WIDENED[bytes_of(source), bytes_of(dtype), self.size(dtype)]
        sign = "z" if source.startswith("u") else "s"
        start = f"__builtin_ia32_pmov{sign}x{letters}512_mask"
        narrow = self._type("char" if bytes_of(source) == 1 else "short", bytes_of(source))
        wide = self._type("int", 4)
        call = f"({kind}){start}(({narrow})x, {wide}{{}}, -1)"
        alone = f"return __builtin_convertvector(x, {kind});"
        return self.define(name, kind, f"{own} x", call, alone, self.size(dtype))

    def helper(self, template: str, dtype: str, **words: str) -> str:
        """Returns the name of a helper function of `text.helpers` on vectors.

        Args:
          template: its name there.
          dtype: of the values of the vectors.
          words: what else the template names.
        """
        name = self.name(template.partition("__")[0], dtype)
        if name not in self.values.helpers:
            words["T"] = self.of(dtype)
            if not is_float(dtype):
                words["U"] = self.unsigned(dtype)
            self.values.helpers[name] = fill(template, name, INLINE, dtype, **words)
        return name

    def name(self, stem: str, dtype: str) -> str:
        """Returns the name of a function on vectors of a dtype."""
        return f"ms_{stem}_{short_name(dtype)}_{self.lanes}"

    def each(self) -> str:
        """Returns the name of the function that makes a vector of what is computed lane by lane."""
        name = f"ms_each_{self.lanes}"
        calls = ", ".join(f"at({lane})" for lane in range(self.lanes))
        return self._defined(name, _EACH.format(inline=INLINE, name=name, calls=calls).strip())

    def define(
        self,
        name: str,
        result: str,
        parameters: str,
        call: str,
        alone: str,
        size: int,
        *macros: str,
    ) -> str:
        """Defines a function on vectors, and returns its name.

        Args:
          name: the name.
          result: its C type.
          parameters: their types and names.
          call: an expression of gcc's instructions; "" if there are none.
          alone: a statement of any compiler's.
          size: the bytes of its vectors.
          macros: what gcc defines for these instructions, beside that of the size.
        """
        if name not in self.values.helpers:
            body = f"  {alone}"
            if call and size in _MACROS:
                tests = " && ".join(
                    f"defined({macro})" for macro in (_MACROS[size], *macros) if macro
                )
                body = (
                    f"#if {tests} && !defined(__clang__)\n  return {call};\n#else\n{body}\n#endif"
                )
            self.values.helpers[name] = f"{INLINE} {result} {name}({parameters}) {{\n{body}\n}}"
        return name

    def by_size(self, size: int, *calls: str) -> str:
        """Returns the call for vectors of 64, 32 or 16 bytes; "" for others."""
        return dict(zip((64, 32, 16), calls, strict=True)).get(size, "")

    # Elements in memory.

    def some(self, dtype: str) -> str:
        """Returns the name of a function that loads neighbours in the lanes of a mask, else 0."""
        kind, element, mask = self.of(dtype), self.values.value_type(dtype), bytes_of(dtype)
        alone = (
            f"return {self.each()}<{kind}>([=](int lane, int{8 * mask}_t is_on) {{ "
            f"return is_on ? p[lane] : ({element})0; }}, on);"
        )
        call = self._moved("load", dtype, "(const {}*)p")
        parameters = f"const {element}* p, {self.mask(mask)} on"
        return self.define(
            self.name("some", dtype), kind, parameters, call and f"({kind}){call}", alone,
            self.size(dtype), *_FOR_NARROW.get(mask, ()),
        )  # fmt: skip

    def put(self, dtype: str) -> str:
        """Returns the name of a function that stores neighbours in the lanes of a mask."""
        kind, element, mask = self.of(dtype), self.values.value_type(dtype), bytes_of(dtype)
        alone = f"for (int i = 0; i < {self.lanes}; ++i) if (on[i]) p[i] = x[i];"
        call = self._moved("store", dtype, "({}*)p")
        parameters = f"{element}* p, {kind} x, {self.mask(mask)} on"
        return self.define(
            self.name("put", dtype), "void", parameters, call, alone, self.size(dtype),
            *_FOR_NARROW.get(mask, ()),
        )  # fmt: skip

    def _moved(self, way: str, dtype: str, place: str) -> str:
        """Returns a call that loads or stores some lanes; "" if there is no instruction."""
        bytes_, size = bytes_of(dtype), self.size(dtype)
        if size not in _MACROS:
            return ""
        if bytes_ in _FOR_NARROW:
            element, letters, mask = ("char", "qi", "b") if bytes_ == 1 else ("short", "hi", "w")
            kind = f"({element} __attribute__((vector_size({size}))))"
            on = f"__builtin_ia32_cvt{mask}2mask{8 * size}({kind}on)"
            rest = f"{kind}{{}}, {on}" if way == "load" else f"{kind}x, {on}"
            name = f"__builtin_ia32_{way}dqu{letters}{8 * size}_mask"
            return f"{name}({place.format(element)}, {rest})"
        element, integer, letters = (
            ("float", "int", "sd") if bytes_ == 4 else ("double", "long long", "dq")
        )
        kind = self._type(element, bytes_)
        on = f"({integer} __attribute__((vector_size({size}))))on"
        if size == 64:
            on = f"__builtin_ia32_ptestm{letters[1]}512({on}, {on}, -1)"
            rest = f"{kind}{{}}, {on}" if way == "load" else f"({kind})x, {on}"
            return f"__builtin_ia32_{way}up{letters[0]}512_mask({place.format(element)}, {rest})"
        name = f"__builtin_ia32_mask{way}p{letters[0]}{'256' if size == 32 else ''}"
        return f"{name}({place.format(kind)}, {on}{'' if way == 'load' else f', ({kind})x'})"

    def picked(self, dtype: str) -> str:
        """Returns the name of a function that loads elements at offsets in the lanes of a mask."""
        kind, element, bytes_ = self.of(dtype), self.values.value_type(dtype), bytes_of(dtype)
        call, size = "", self.size(dtype)
        if bytes_ in (4, 8):
            number, integer = ("float", "int") if bytes_ == 4 else ("double", "long long")
            floats = self._type(number, bytes_)
            on = f"({integer} __attribute__((vector_size({size}))))on"
            widest = f"__builtin_ia32_ptestm{'d' if bytes_ == 4 else 'q'}512({on}, {on}, -1)"
            ending = "sf" if bytes_ == 4 else "df"
            mask = widest if size == 64 else f"({floats})on"
            place = f"(const {number}*)p"
            name = f"__builtin_ia32_gathersiv{self.lanes}{ending}"
            if size in (64, 32) or (size == 16 and bytes_ == 4):
                call = f"({kind}){name}({floats}{{}}, {place}, at, {mask}, {bytes_})"
        alone = (
            f"return {self.each()}<{kind}>([=](int, int i, int{8 * bytes_}_t is_on) {{ "
            f"return is_on ? p[i] : ({element})0; }}, at, on);"
        )
        parameters = f"const {element}* p, {self.of('int32')} at, {self.mask(bytes_)} on"
        return self.define(
            self.name("picked", dtype), kind, parameters, call, alone, size, "__AVX2__"
        )

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
        kind, memory, lanes = self.of(dtype), self.in_memory(dtype), self.lanes
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
        kind, memory = self.of(dtype), self.in_memory(dtype)
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
        name, kind = self.name("turned", dtype), self.of(dtype)
        order = [*reversed(range(self.lanes))]
        alone = f"return {self._shuffled('x', 'x', dtype, order)};"
        return f"{self.define(name, kind, f'{kind} x', '', alone, 0)}({bare(value)})"

    def _shuffled(self, one: str, other: str, dtype: str, order: list[int]) -> str:
        """Returns lanes of two vectors in an order."""
        self._defined("ms_shuffle", _SHUFFLE.strip())
        numbers = ", ".join(map(str, order))
        return f"ms_shuffle({one}, {other}, {self.mask(bytes_of(dtype))}, {numbers})"

    # Reductions.

    def chosen(self, op: str, dtype: str) -> str:
        """Returns the name of `a < b ? a : b` ("min") or `a > b ? a : b` ("max") of floats.

        As instructions: gcc takes seconds to simplify a chain of choices.
        """
        kind, letter = self.of(dtype), "s" if bytes_of(dtype) == 4 else "d"
        sign, name = ("<", "least") if op == "min" else (">", "greatest")
        start = f"__builtin_ia32_{op}p{letter}"
        call = self.by_size(
            self.size(dtype),
            f"{start}512_mask(a, b, a, -1, 4)",
            f"{start}256(a, b)",
            f"{start}(a, b)",
        )
        alone = f"return a {sign} b ? a : b;"
        whole = self.name(name, dtype)
        return self.define(whole, kind, f"{kind} a, {kind} b", call, alone, self.size(dtype))

    def extreme(self, op: str, dtype: str) -> str:
        """Returns the name of the minimum or maximum of two vectors: NaN if one is.

        A minimum has the sign bit if one number has, a maximum if both have. The second number is
        tested, as the first one is the result of the step before in a chain.
        """
        kind, bits = self.of(dtype), self._type(f"uint{8 * bytes_of(dtype)}_t", bytes_of(dtype))
        ending = "f" if computed(dtype) == "float32" else ""
        sign = f"({bits}{{}} + {SIGN_BITS[computed(dtype)]})"
        joined = f"| (({bits})b & {sign})" if op == "min" else f"& (({bits})b | ~{sign})"
        inner = self.chosen(op, dtype)
        alone = (
            f'return b != b ? __builtin_nan{ending}("") : ({kind})(({bits}){inner}(b, a) {joined});'
        )
        size, name = self.size(dtype), self.name(op, dtype)
        call = self._extreme_of_bits(op, dtype, f"{inner}(b, a)", sign)
        macro = "__AVX512VL__" if size < 64 else ""
        return self.define(name, kind, f"{kind} a, {kind} b", call, alone, size, macro)

    def _extreme_of_bits(self, op: str, dtype: str, chosen: str, sign: str) -> str:
        """Returns a call that joins signs where `b` is no NaN, and leaves `b` where it is one."""
        letters, integer = ("sd", "int") if bytes_of(dtype) == 4 else ("dq", "long long")
        bits = f"({integer} __attribute__((vector_size({self.size(dtype)}))))"
        on = self.by_size(
            self.size(dtype),
            f"512_mask(b, b, {_ORDERED}, -1, 4)",
            f"256_mask(b, b, {_ORDERED}, -1)",
            f"128_mask(b, b, {_ORDERED}, -1)",
        )
        if not on:
            return ""
        name = f"__builtin_ia32_pternlog{letters[1]}{8 * self.size(dtype)}_mask"
        on = f"__builtin_ia32_cmpp{letters[0]}{on}"
        table = _OF_B_CHOSEN_SIGN[op]
        return f"({self.of(dtype)}){name}({bits}b, {bits}{chosen}, {bits}{sign}, {table}, {on})"

    def joined(self, op: str, dtype: str, one: str, other: str) -> str:
        """Returns an operation of a reduction on two vectors."""
        if op in ("add", "mul") and not is_float(dtype):
            kind, unsigned = self.of(dtype), self.unsigned(dtype)
            return f"({kind})(({unsigned}){one} {SIGNS[op]} ({unsigned}){other})"
        if op in SIGNS:
            # Of vectors of 0 and 1, `&&` would be one of 0 and -1.
            sign = {"land": "&", "lor": "|"}.get(op, SIGNS[op])
            return f"{one} {sign} {other}"
        name = self.extreme(op, dtype) if is_float(dtype) else self.helper(op, dtype)
        return f"{name}({bare(one)}, {bare(other)})"

    def joined_numbers(self, op: str, dtype: str, one: str, other: str) -> str:
        """Returns the same operation on two numbers."""
        if op in ("add", "mul") and not is_float(dtype):
            kind, unsigned = self.values.value_type(dtype), unsigned_type(dtype)
            return f"({kind})(({unsigned}){one} {SIGNS[op]} ({unsigned}){other})"
        if op in SIGNS:
            return f"{one} {SIGNS[op]} {other}"
        of_floats = is_float(dtype)
        helper = (
            self.values.extreme(op, computed(dtype)) if of_floats else self.values.helper(op, dtype)
        )
        return f"{helper}({bare(one)}, {bare(other)})"

    def quotient(self, op: str) -> str:
        """Returns the name of the quotient rounded down or the remainder of vectors of int32.

        By float64, which vectors divide. That is exact: the quotient of two integers of 32 bits is
        whole, or farther from a whole number than the rounding error. The divisor -1 has a case of
        its own, since the least integer would overflow.
        """
        kind, unsigned, wide = self.of("int32"), self.unsigned("int32"), self.of("float64")
        convert = "__builtin_convertvector"
        both = (
            f"const {kind} is_apart = (b == 0) | (b == -1), by = is_apart ? {kind}{{}} + 1 : b;\n"
            f"  const {kind} q = {convert}({convert}(a, {wide}) / {convert}(by, {wide}), {kind});\n"
            f"  const {kind} rest = ({kind})(({unsigned})a - ({unsigned})q * ({unsigned})by);\n"
            f"  const {kind} is_down = (rest != 0) & ((rest ^ by) < 0);\n  return "
        )
        negated = f"({kind})(0 - ({unsigned})a)"
        last = {
            "floordiv": f"b == 0 ? {kind}{{}} : b == -1 ? {negated} : q + is_down",
            "mod": "rest + (by & is_down)",
        }[op]
        name = self.name(op, "int32")
        return self.define(name, kind, f"{kind} a, {kind} b", "", f"{both}{last};", 0)

    def halves(self, value: str, dtype: str) -> tuple[str, str]:
        """Returns both halves of a vector that is a variable."""
        kind = VectorTypes(self.values, self.lanes // 2).of(dtype)
        return f"*(const {kind}*)&{value}", f"*((const {kind}*)&{value} + 1)"

    def total(self, op: str, dtype: str) -> str:
        """Returns the name of a function that brings all lanes together, half by half."""
        name = self.name(f"all_{op}", dtype)
        types, value, lines = self, "all", []
        while types.size(dtype) > processor.LEAST_VECTOR_BYTES and types.lanes > 2:
            halves = types.halves(value, dtype)
            types = VectorTypes(self.values, types.lanes // 2)
            value = f"of_{types.lanes}"
            joined = types.joined(op, dtype, *halves)
            lines.append(f"  const {types.of(dtype)} {value} = {joined};")
        texts = [f"{value}[{lane}]" for lane in range(types.lanes)]
        while len(texts) > 1:
            half = len(texts) // 2
            pairs = zip(texts[:half], texts[half:], strict=True)
            texts = [f"({self.joined_numbers(op, dtype, *pair)})" for pair in pairs]
        lines.append(f"  return {bare(texts[0])};")
        head = f"{INLINE} {self.values.value_type(dtype)} {name}({self.of(dtype)} all) {{"
        return self._defined(name, "\n".join([head, *lines, "}"]))
