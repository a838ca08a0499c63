"""Functions on vectors in generated C++: instructions, those of float32_c.py, glibc's library."""

from __future__ import annotations

import re

from msops._base import processor
from msops._loops.ir import float32_c
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.ranges import dtype_range
from msops._loops.to_c.printing.vector_types import INLINE, VectorTypes, bytes_of
from msops._loops.to_c.text.names import library_name
from msops._loops.to_c.text.syntax import computed, short_name, width

_ROUNDING = {"floor": 9, "ceil": 10, "trunc": 11, "nearbyint": 8}
"""Functions to whole numbers, with the mode of the instruction that rounds."""
_POW_SINCE = (2, 22)
"""Version of glibc since which its vector library has `pow`, an operation of the IR."""
_LETTERS = {64: "e", 32: "d", 16: "b"}
"""In the names of glibc's functions, by the bytes of a vector."""


class VectorFunctions(VectorTypes):
    """Vectors of some lanes, and functions on them."""

    def function(self, function: str, arity: int, dtype: str) -> str:
        """Returns the name of a function on vectors; "" if there is none.

        Args:
          function: its name in the IR, or "pow".
          arity: the number of its arguments.
          dtype: "float32" or "float64".
        """
        row = FUNCTIONS.get(function)
        if function == "sqrt" or function in _ROUNDING:
            return self._instruction(function, dtype)
        if function in ("abs", "copysign"):
            return self._bits(function, dtype)
        if dtype == "float32" and row and row.c_float32:
            return self._own(f"ms_{function}_f32", row.c_float32)
        since = row.glibc if row else _POW_SINCE
        return "" if since is None else self._of_library(function, arity, dtype, since)

    def fused(self, dtype: str) -> str:
        """Returns the name of a function that adds a product, in one rounding if there is one."""
        kind, number, size = self.of(dtype), self.values.value_type(dtype), self.size(dtype)
        single = computed(dtype) == "float32"
        name, ending = f"ms_fma_{self.lanes}" if single else self.name("fma", dtype), "f" * single
        letter = "s" if single else "d"
        start = f"__builtin_ia32_vfmaddp{letter}"
        call = self.by_size(
            size, f"{start}512_mask(a, b, c, -1, 4)", f"{start}256(a, b, c)", f"{start}(a, b, c)"
        )
        alone = (
            f"return {self.each()}<{kind}>([](int, {number} x, {number} y, {number} z) {{\n"
            f"#ifdef __FP_FAST_FMA{ending.upper()}\n  return __builtin_fma{ending}(x, y, z);\n"
            "#else\n  return x * y + z;\n#endif\n  }, a, b, c);"
        )
        if size in _LETTERS:
            # For clang, which has none of gcc's names for it.
            alone = (
                f"\n#if defined({'__AVX512F__' if size == 64 else '__FMA__'})\n"
                f'  __asm__("vfmadd231p{letter} %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));\n'
                f"  return c;\n#else\n  {alone}\n#endif"
            )
        parameters = f"{kind} a, {kind} b, {kind} c"
        inner = self.define(f"{name}_of_vectors", kind, parameters, call, alone, size, "__FMA__")
        broadcast = ", ".join(f"{x} - {kind}{{}}" for x in ("one", "other", "sum"))
        return self._defined(
            name,
            "template <class A, class B, class C>\n"
            f"{INLINE} {kind} {name}(A one, B other, C sum) {{\n  return {inner}({broadcast});\n}}",
        )

    def _instruction(self, function: str, dtype: str) -> str:
        kind, size = self.of(dtype), self.size(dtype)
        letter = "s" if dtype == "float32" else "d"
        mode = _ROUNDING.get(function)
        if mode is None:
            start, rest = f"__builtin_ia32_sqrtp{letter}", "(x)"
            widest = f"{start}512_mask(x, x, -1, 4)"
        else:
            start, rest = f"__builtin_ia32_roundp{letter}", f"(x, {mode})"
            widest = f"__builtin_ia32_rndscalep{letter}_mask(x, {mode}, x, -1, 4)"
        call = self.by_size(size, widest, f"{start}256{rest}", f"{start}{rest}")
        of_number = f"__builtin_{library_name(function)}{'f' if dtype == 'float32' else ''}(a)"
        alone = f"return {self.each()}<{kind}>([](int, auto a) {{ return {of_number}; }}, x);"
        return self.define(self.name(function, dtype), kind, f"{kind} x", call, alone, size)

    def _bits(self, function: str, dtype: str) -> str:
        kind, bits = self.of(dtype), self.mask(bytes_of(dtype))
        most = f"{2 ** (width(dtype) - 1) - 1}{'l' if width(dtype) == 64 else ''}"
        size, parameters = f"(({bits})x & {most})", f"{kind} x"
        if function == "copysign":
            size, parameters = f"({size} | (({bits})sign & ~{most}))", f"{kind} x, {kind} sign"
        alone = f"return ({kind}){size};"
        return self.define(self.name(function, dtype), kind, parameters, "", alone, 0)

    def _own(self, name: str, code: str) -> str:
        """Returns the name of a function of float32_c.py on vectors."""
        whole = f"{name}_{self.lanes}"
        if whole in self.values.helpers:
            return whole
        for part in re.findall(r"\bms_\w+|\bfabsf|\bcopysignf", code):
            if part == "ms_fma":
                self.fused("float32")
            elif part in ("fabsf", "copysignf"):
                used = self._bits({"fabsf": "abs", "copysignf": "copysign"}[part], "float32")
                code = re.sub(rf"\b{part}\b", used.removesuffix(f"_{self.lanes}"), code)
            elif part != name:
                self._own(part, float32_c.PARTS[part])
        code = re.sub(r"\bms_\w+", rf"\g<0>_{self.lanes}", code)
        code = re.sub(r"\(float\)(\w+)", r"__builtin_convertvector(\1, float)", code)
        code = re.sub(r"\bfloat\b", self.of("float32"), code)
        code = re.sub(r"\b(int32_t|int)\b", self.of("int32"), code)
        return self._defined(whole, code.strip())

    def _of_library(self, function: str, arity: int, dtype: str, since: tuple[int, int]) -> str:
        """Returns the name of a function of glibc's vector library."""
        letter = _LETTERS.get(self.size(dtype))
        if letter is None or self.size(dtype) > processor.vector_bytes():
            return ""
        of_library = f"{library_name(function)}{'f' if dtype == 'float32' else ''}"
        name, kind, known = f"ms_{of_library}_{self.lanes}", self.of(dtype), "ab"[:arity]
        symbol = f"_ZGV{letter}N{self.lanes}{'v' * arity}_{of_library}"
        numbers, letters = ", ".join(f"auto {x}" for x in known), ", ".join(known)
        parameters = ", ".join(f"{kind} {x}" for x in known)
        alone = (
            f"return {self.each()}<{kind}>([](int, {numbers}) {{ "
            f"return __builtin_{of_library}({letters}); }}, {letters});"
        )
        text = (
            "#if defined(__x86_64__) && defined(__GLIBC_PREREQ)\n"
            f"#if __GLIBC_PREREQ({since[0]}, {since[1]})\n"
            f"#define {name}_exists\n#endif\n#endif\n"
            f"#ifdef {name}_exists\n"
            f'extern "C" __attribute__((const)) {kind} {name}({parameters}) __asm__("{symbol}");\n'
            f"#else\n{INLINE} {kind} {name}({parameters}) {{\n  {alone}\n}}\n#endif"
        )
        return self._defined(name, text)

    # Conversions.

    def saturating(self, source: str, dtype: str) -> str:
        """Returns the name of a function from floats to signed integers of their width."""
        name = f"{self.name('saturate', dtype)}_{short_name(source)}"
        own, kind, most = self.of(dtype), self.of(source), 2 ** (width(dtype) - 1)
        above, below = (self.values.constant(float(x), source) for x in (most, -most))
        greatest, least = (
            f"{own}{{}} + {self.values.constant(x, dtype)}" for x in (most - 1, -most)
        )
        whole = f"__builtin_convertvector({self.values.truncated()}, {own})"
        alone = (
            f"const {own} low = x < {above} ? {whole} : {greatest};\n"
            f"  return (x > {below} ? low : {least}) & (x == x);"
        )
        return self.define(name, own, f"{kind} x", "", alone, 0)

    def clamping(self, source: str, dtype: str) -> str:
        """Returns the name of a function from integers to the nearest ones of fewer bits."""
        least, greatest = (self.values.constant(x, source) for x in dtype_range(dtype))
        kind, own = self.of(source), self.of(dtype)
        alone = (
            f"x = x < {least} ? {kind}{{}} + {least} : x;\n"
            f"  x = x > {greatest} ? {kind}{{}} + {greatest} : x;\n"
            f"  return __builtin_convertvector(x, {own});"
        )
        name = f"{self.name('clamp', dtype)}_{short_name(source)}"
        return self.define(name, own, f"{kind} x", "", alone, 0)

    def from_storage(self, dtype: str) -> str:
        """Returns the name of a function from elements of float16 or bfloat16 to their values."""
        name, kind, stored = self.name("from", dtype), self.of("float32"), self.of("uint16")
        call = ""
        if dtype == "bfloat16":
            alone = f"return ({kind})(__builtin_convertvector(x, {self.of('uint32')}) << 16);"
        else:
            half = f"(short __attribute__((vector_size({2 * self.lanes}))))x"
            of_16 = f"__builtin_ia32_vcvtph2ps512_mask({half}, {kind}{{}}, -1, 4)"
            call = self.by_size(4 * self.lanes, of_16, f"__builtin_ia32_vcvtph2ps256({half})", "")
            value = self.values.from_storage("u.half", "float16")
            alone = self._halves("uint16_t", f"u.bits = x; return {value};", kind)
        return self.define(name, kind, f"{stored} x", call, alone, 4 * self.lanes, "__F16C__")

    def to_storage(self, dtype: str) -> str:
        """Returns the name of a function from values to elements of float16 or bfloat16."""
        name, kind, stored = self.name("to", dtype), self.of("float32"), self.of("uint16")
        call = ""
        if dtype == "bfloat16":
            bits = self.of("uint32")
            alone = (
                f"const {bits} bits = ({bits})x, nan = (bits >> 16) | 0x40u;\n"
                f"  const {bits} rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;\n"
                f"  return __builtin_convertvector(x != x ? nan : rounded, {stored});"
            )
        else:
            none = "(short __attribute__((vector_size(32)))){}"
            of_16 = f"({stored})__builtin_ia32_vcvtps2ph512_mask(x, 0, {none}, -1)"
            of_8 = f"({stored})__builtin_ia32_vcvtps2ph256(x, 0)"
            call = self.by_size(4 * self.lanes, of_16, of_8, "")
            half = self.values.to_storage("x", "float16")
            alone = self._halves("float", f"u.half = {half}; return u.bits;", stored)
        return self.define(name, stored, f"{kind} x", call, alone, 4 * self.lanes, "__F16C__")

    def _halves(self, source: str, inside: str, kind: str) -> str:
        """Returns the conversion of each lane from or to float16."""
        half = self.values.storage_type("float16")
        union = f"union {{ {half} half; uint16_t bits; }} u;"
        return f"return {self.each()}<{kind}>([](int, {source} x) {{ {union} {inside} }}, x);"
