"""Helper functions on vectors in generated C++: like those of `text.helpers`, which serve, too.

In a template, `$T` is the type of a vector, `$E` that of its elements, `$U` of unsigned integers as
wide, `$M` of a condition, `$m` of an element of that, `$F` of floats as wide. `$cast` casts a
vector for gcc's instructions, whose letters are `$s` and `$q`. See `vector_types.WORDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template


@dataclass(frozen=True)
class VectorHelper:
    """Templates of a function on vectors.

    Attributes:
      head: what stands before its body.
      text: its body for any compiler.
      calls: its result by gcc's instructions, for vectors of 64, 32 and 16 bytes.
      macros: what gcc defines for these instructions, beside that of the size.
      fewest_lanes: for which there are these instructions.
    """

    head: str
    text: str
    calls: tuple[str, str, str] = ("", "", "")
    macros: tuple[str, ...] = ()
    fewest_lanes: int = 2

    def template(self, lanes: int, bytes_: int) -> Template:
        """Returns the whole function, for vectors of elements of some bytes."""
        text, size = f"  {self.text.strip()}", lanes * bytes_
        known = dict(zip(_MACROS, self.calls, strict=True))
        has_them = bytes_ >= 4 or self.macros == _OF_NARROW
        if known.get(size) and has_them and lanes >= self.fewest_lanes:
            macros = " && ".join(f"defined({macro})" for macro in (_MACROS[size], *self.macros))
            call = f"#if {macros} && !defined(__clang__)\n  return {known[size]};"
            text = f"{call}\n#else\n{text}\n#endif"
        return Template(f"{self.head} {{\n{text}\n}}")


_MACROS = {64: "__AVX512F__", 32: "__AVX__", 16: "__SSE4_1__"}
"""By the bytes of a vector, what a compiler defines for processors with the instructions."""

_OF_NARROW = ("__AVX512BW__", "__AVX512VL__")
"""What a compiler defines besides if masks have instructions for bytes and 16 bits."""
_SIZES = (512, 256, 128)
_NARROW_ON = "__builtin_ia32_cvt${{b}}2mask{0}(${{cast}}on)"

_ONE = "$inline $T $name($T x)"
_TWO = "$inline $T $name($T a, $T b)"
_SIGNED = "$inline $T $name($T x, $T sign)"
_ON = "__builtin_ia32_ptestm${q}512(${cast}on, ${cast}on, -1)"
# Where gcc knows that all lanes are on, it leaves out what a gather starts from: each then waits
# for what its register held before. So it does not know.
_PICKED = (
    '({ __asm__("" : "+v"(on)); '
    "($T)__builtin_ia32_gathersiv$lanes${s}f($F{}, (const $number*)p, at, "
)
_HALF = "union { $half half; uint16_t bits; } u;"

# By float64, which vectors divide. That is exact: the quotient of two integers of 32 bits is whole,
# or farther from a whole number than the rounding error. The divisor -1 has a case of its own,
# since the least integer would overflow.
_QUOTIENT = """
const $T is_apart = (b == 0) | (b == -1), by = is_apart ? $T{} + 1 : b;
  const $T q = $convert($convert(a, $D) / $convert(by, $D), $T);
  const $T rest = ($T)(($U)a - ($U)q * ($U)by);
  const $T is_down = (rest != 0) & ((rest ^ by) < 0);
"""


def _extreme(op: str, joined: str, table: str) -> VectorHelper:
    """Returns the minimum or maximum of two vectors: NaN if one is.

    A minimum has the sign bit if one number has, a maximum if both have. The second number is
    tested, as the first one is the result of the step before in a chain. The instruction joins
    signs where it is no NaN, and leaves it where it is one.

    Args:
      op: the choice of one of them, see `_choice`.
      joined: how a sign is joined.
      table: the same as a table of the instruction.
    """

    def call(bits: int) -> str:
        return (
            f"($T)__builtin_ia32_pternlog${{q}}{bits}_mask("
            f"${{cast}}b, ${{cast}}${op}_of(b, a), ${{cast}}($U{{}} + $sign), {table}, "
            # 7 compares numbers: it holds if neither is NaN.
            f"__builtin_ia32_cmpp${{s}}{bits}_mask(b, b, 7, -1{', 4' * (bits == 512)}))"
        )

    text = f'return b != b ? __builtin_nan$f("") : ($T)(($U)${op}_of(b, a) {joined});'
    return VectorHelper(_TWO, text, (call(512), call(256), call(128)), ("__AVX512VL__",))


def _choice(op: str, sign: str) -> VectorHelper:
    """Returns a choice of two floats, as an instruction: gcc takes seconds for a chain of them."""
    start = f"__builtin_ia32_{op}p${{s}}"
    calls = (f"{start}512_mask(a, b, a, -1, 4)", f"{start}256(a, b)", f"{start}(a, b)")
    return VectorHelper(_TWO, f"return a {sign} b ? a : b;", calls)


def _rounding(function: str, mode: int) -> VectorHelper:
    """Returns a function to whole numbers, with the mode of the instruction that rounds."""
    return VectorHelper(
        _ONE,
        f"return $each<$T>([](int, auto a) {{ return __builtin_{function}$f(a); }}, x);",
        (
            f"__builtin_ia32_rndscalep${{s}}_mask(x, {mode}, x, -1, 4)",
            f"__builtin_ia32_roundp${{s}}256(x, {mode})",
            f"__builtin_ia32_roundp$s(x, {mode})",
        ),
    )


def _narrow(start: str) -> tuple[str, str, str]:
    """Returns moves of bytes and 16 bits in the lanes of a mask, for each size."""
    one, two, three = ((start + _NARROW_ON + ")").format(size) for size in _SIZES)
    return one, two, three


HELPERS = {
    "everywhere": VectorHelper("$inline $T $name($E x)", "return $T{} + x;"),
    # Neighbours in the lanes of a mask, else 0.
    "some": VectorHelper(
        "$inline $T $name(const $E* p, $M on)",
        "return $each<$T>([=](int lane, $m is_on) { return is_on ? p[lane] : ($E)0; }, on);",
        (
            f"($T)__builtin_ia32_loadup${{s}}512_mask((const $number*)p, $F{{}}, {_ON})",
            "($T)__builtin_ia32_maskloadp${s}256((const $F*)p, ${cast}on)",
            "($T)__builtin_ia32_maskloadp$s((const $F*)p, ${cast}on)",
        ),
    ),
    "put": VectorHelper(
        "$inline void $name($E* p, $T x, $M on)",
        "for (int i = 0; i < $lanes; ++i) if (on[i]) p[i] = x[i];",
        (
            f"__builtin_ia32_storeup${{s}}512_mask(($number*)p, ($F)x, {_ON})",
            "__builtin_ia32_maskstorep${s}256(($F*)p, ${cast}on, ($F)x)",
            "__builtin_ia32_maskstorep$s(($F*)p, ${cast}on, ($F)x)",
        ),
    ),
    "some__narrow": VectorHelper(
        "$inline $T $name(const $E* p, $M on)",
        "return $each<$T>([=](int lane, $m is_on) { return is_on ? p[lane] : ($E)0; }, on);",
        _narrow(
            "($T)__builtin_ia32_loaddqu${{qi}}{0}_mask((const $integer*)p, ${{cast}}{{}}, ",
        ),
        _OF_NARROW,
    ),
    "put__narrow": VectorHelper(
        "$inline void $name($E* p, $T x, $M on)",
        "for (int i = 0; i < $lanes; ++i) if (on[i]) p[i] = x[i];",
        _narrow("__builtin_ia32_storedqu${{qi}}{0}_mask(($integer*)p, ${{cast}}x, "),
        _OF_NARROW,
    ),
    # Integers of fewer bits, by an instruction: gcc loads an array lane by lane where nothing else
    # reads the vector.
    "wider": VectorHelper(
        "$inline $T $name($S x)",
        "return $convert(x, $T);",
        ("($T)__builtin_ia32_pmov${way}512_mask(($narrow)x, $wide{}, -1)", "", ""),
    ),
    # The nearest integers of fewer bits.
    "nearest": VectorHelper(
        "$inline $T $name($S x)",
        "x = x < $low ? $S{} + $low : x;\n  x = x > $high ? $S{} + $high : x;\n"
        "  return $convert(x, $T);",
    ),
    # Elements at offsets.
    "picked": VectorHelper(
        "$inline $T $name(const $E* p, $I at, $M on)",
        "return $each<$T>([=](int, int i, $m is_on) { return is_on ? p[i] : ($E)0; }, at, on);",
        (
            f"{_PICKED}{_ON}, $bytes); }})",
            *2 * (f"{_PICKED}($F)on, $bytes); }})",),
        ),
        ("__AVX2__",),
        fewest_lanes=4,
    ),
    "turned": VectorHelper(_ONE, "return $shuffle(x, x, $M, $back);"),
    "floordiv__signed": VectorHelper(
        _TWO,
        f"{_QUOTIENT}  return b == 0 ? $T{{}} : b == -1 ? ($T)(0 - ($U)a) : q + is_down;",
    ),
    "mod__signed": VectorHelper(_TWO, f"{_QUOTIENT}  return rest + (by & is_down);"),
    "least": _choice("min", "<"),
    "greatest": _choice("max", ">"),
    "min__float": _extreme("least", "| (($U)b & ($U{} + $sign))", "236"),
    "max__float": _extreme("greatest", "& (($U)b | ~($U{} + $sign))", "196"),
    "abs": VectorHelper(_ONE, "return ($T)(($M)x & $most);"),
    "abs__integer": VectorHelper(_ONE, "return x < 0 ? ($T)(0 - ($U)x) : x;"),
    # A comparison that holds is -1.
    "sign__integer": VectorHelper(_ONE, "return ($T)((x < 0) - (x > 0));"),
    # Sums of the bits in each 2, 4 and 8, then of all bytes.
    "popcount__integer": VectorHelper(
        _ONE,
        """
const $U every = ~$U{}, pairs = ($U)x - (($U)x >> 1 & every / 3);
  const $U fours = (pairs & every / 5) + (pairs >> 2 & every / 5);
  return ($T)(((fours + (fours >> 4)) & every / 17) * (every / 255) >> (8 * $bytes - 8));
""",
    ),
    "copysign": VectorHelper(_SIGNED, "return ($T)((($M)x & $most) | (($M)sign & ~$most));"),
    "sqrt": VectorHelper(
        _ONE,
        "return $each<$T>([](int, auto a) { return __builtin_sqrt$f(a); }, x);",
        (
            "__builtin_ia32_sqrtp${s}512_mask(x, x, -1, 4)",
            "__builtin_ia32_sqrtp${s}256(x)",
            "__builtin_ia32_sqrtp$s(x)",
        ),
    ),
    "floor": _rounding("floor", 9),
    "ceil": _rounding("ceil", 10),
    "trunc": _rounding("trunc", 11),
    "nearbyint": _rounding("rint", 8),
    # The sum of a product and a number, in one rounding if there is such an instruction. Its
    # operands may be numbers, too.
    "fma": VectorHelper(
        "template <class A, class B, class C>\n$inline $T $name(A one, B other, C sum)",
        "return $fused(one - $T{}, other - $T{}, sum - $T{});",
    ),
    # clang has none of gcc's names for it.
    "fused": VectorHelper(
        "$inline $T $name($T a, $T b, $T c)",
        """
#if $has_fused
  __asm__("vfmadd231p$s %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
  return c;
#else
  return $each<$T>([](int, $E x, $E y, $E z) {
#ifdef $fast
  return __builtin_fma$f(x, y, z);
#else
  return x * y + z;
#endif
  }, a, b, c);
#endif""",
        (
            "__builtin_ia32_vfmaddp${s}512_mask(a, b, c, -1, 4)",
            "__builtin_ia32_vfmaddp${s}256(a, b, c)",
            "__builtin_ia32_vfmaddp$s(a, b, c)",
        ),
        ("__FMA__",),
    ),
    # From floats to signed integers as wide.
    "saturate": VectorHelper(
        "$inline $T $name($F x)",
        "const $T low = x < $above ? $convert($x, $T) : $T{} + $greatest;\n"
        "  return (x > $below ? low : $T{} + $least) & (x == x);",
    ),
    # From elements of float16 and bfloat16 to their values, and back.
    "from__bfloat16": VectorHelper("$inline $T $name($H x)", "return ($T)($convert(x, $U) << 16);"),
    "from__float16": VectorHelper(
        "$inline $T $name($H x)",
        f"return $each<$T>([](int, uint16_t x) {{ {_HALF} u.bits = x; "
        "return ms_from_half(u.half); }, x);",
        (
            "__builtin_ia32_vcvtph2ps512_mask("
            "(short __attribute__((vector_size(32))))x, $T{}, -1, 4)",
            "__builtin_ia32_vcvtph2ps256((short __attribute__((vector_size(16))))x)",
            "",
        ),
        ("__F16C__",),
    ),
    "to__bfloat16": VectorHelper(
        "$inline $H $name($T x)",
        "const $U bits = ($U)x, nan = (bits >> 16) | 0x40u;\n"
        "  const $U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;\n"
        "  return $convert(x != x ? nan : rounded, $H);",
    ),
    "to__float16": VectorHelper(
        "$inline $H $name($T x)",
        f"return $each<$H>([](int, float x) {{ {_HALF} u.half = ms_to_half(x); "
        "return u.bits; }, x);",
        (
            "($H)__builtin_ia32_vcvtps2ph512_mask("
            "x, 0, (short __attribute__((vector_size(32)))){}, -1)",
            "($H)__builtin_ia32_vcvtps2ph256(x, 0)",
            "",
        ),
        ("__F16C__",),
    ),
}
"""By name; what follows two underscores distinguishes variants."""
