"""Helper functions of generated C and CUDA C, printed where a kernel uses them.

They give the IR's operations the one meaning they have everywhere (`_loops/README.md`): C leaves
undefined, or defines otherwise, what signed integers, shifts, casts and NaN do. Each is a template,
filled in for a dtype: `$T` its C type, `$U` the unsigned one of its width, `$bits` its width,
`$least` and `$greatest` its range, `$f` the suffix of the C library's functions, `$sqrt` the one of
square roots, `$name` and `$inline`. What follows two underscores in a key distinguishes variants
and is no part of the function's name.
"""

from __future__ import annotations

from string import Template

TEMPLATES: dict[str, Template] = {
    name: Template(text.strip())
    for name, text in {
        # By 0 they are 0, and the least integer by -1 wraps. Sizes without signs are divided, since
        # gcc 12 takes (-a) / b for -(a / b) where it knows b > 0, also of the least a.
        **{
            f"{name}__signed": f"""
$inline $T $name($T a, $T b) {{
  if (b == 0) return 0;
  const $U over = ($U)(a < 0 ? 0 - ($U)a : ($U)a), by = ($U)(b < 0 ? 0 - ($U)b : ($U)b);
  {result}
}}"""
            for name, result in {
                "truncdiv": "return ($T)((a < 0) != (b < 0) ? 0 - over / by : over / by);",
                "truncmod": "return ($T)(a < 0 ? 0 - over % by : over % by);",
                "floordiv": "return ($T)((a < 0) != (b < 0) "
                "? 0 - (over / by + (over % by != 0)) : over / by);",
                "mod": "const $T r = ($T)(a < 0 ? 0 - over % by : over % by);\n"
                "  return ($T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);",
            }.items()
        },
        # Of a positive divisor. These have no branch, so that gcc moves them out of loops.
        "floordiv_positive__signed": """
$inline $T $name($T a, $T b) {
  const $T sign = ($T)(a >> ($bits - 1));
  return ($T)(((a ^ sign) / b) ^ sign);
}""",
        "mod_positive__signed": """
$inline $T $name($T a, $T b) {
  const $T sign = ($T)(a >> ($bits - 1));
  return ($T)((((a ^ sign) % b) ^ sign) + (b & sign));
}""",
        # Of a dividend from -b to b - 1.
        "mod_around__signed": """
$inline $T $name($T a, $T b) {
  return ($T)(a + (b & (a >> ($bits - 1))));
}""",
        "truncdiv__unsigned": """
$inline $T $name($T a, $T b) {
  return b == 0 ? 0 : ($T)(a / b);
}""",
        "mod__unsigned": """
$inline $T $name($T a, $T b) {
  return b == 0 ? 0 : ($T)(a % b);
}""",
        # As Python's and numpy's: the remainder has the divisor's sign.
        "mod__float": """
$inline $T $name($T a, $T b) {
  const $T r = fmod$f(a, b);
  if (r == 0) return copysign$f(($T)0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}""",
        "floordiv__float": """
$inline $T $name($T a, $T b) {
  if (b == 0) return a / b;
  $T r = fmod$f(a, b), q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  if (q == 0) return copysign$f(($T)0, a / b);
  const $T whole = floor$f(q);
  return q - whole > ($T)0.5 ? whole + 1 : whole;
}""",
        "shl": """
$inline $T $name($T a, $T b) {
  return ($U)b < $bits ? ($T)(($U)a << ($U)b) : 0;
}""",
        "shr__signed": """
$inline $T $name($T a, $T b) {
  return ($T)(a >> (($U)b < $bits ? b : $bits - 1));
}""",
        "shr__unsigned": """
$inline $T $name($T a, $T b) {
  return b < $bits ? ($T)(a >> b) : 0;
}""",
        # The last two are of a constant and a float. Of two zeros they give the float.
        **{
            name: f"""
$inline $T $name($T a, $T b) {{
  return a {sign} b ? a : b;
}}"""
            for name, sign in {"min": "<", "max": ">", "least": "<", "greatest": ">"}.items()
        },
        # NaN if one is, and -0 is less than 0. Outside vectors two zeros of different signs are a
        # case of their own; a number and its negative take its time, too.
        "min__float": """
$inline $T $name($T a, $T b) {
  const $T least = b < a ? b : a;
  if ($is_opposite) return a == 0 ? -($T)0 : least;
  return $is_nan ? $nan : least;
}""",
        "max__float": """
$inline $T $name($T a, $T b) {
  const $T greatest = b > a ? b : a;
  if ($is_opposite) return a == 0 ? 0 : greatest;
  return $is_nan ? $nan : greatest;
}""",
        "bits_of": """
$inline $B $name($T x) {
  union { $T value; $B bits; } u;
  u.value = x;
  return u.bits;
}""",
        "of_bits": """
$inline $T $name($B x) {
  union { $B bits; $T value; } u;
  u.bits = x;
  return u.value;
}""",
        # Evaluates both; vector units and registers prefer that to a branch.
        "select": """
$inline $T $name(int condition, $T a, $T b) {
  return condition ? a : b;
}""",
        "pow__signed": """
$inline $T $name($T a, $T b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  $U base = ($U)a, result = 1;
  for ($U left = ($U)b; left != 0; left = ($U)(left >> 1)) {
    if (left & 1) result = ($U)((uint64_t)result * base);
    base = ($U)((uint64_t)base * base);
  }
  return ($T)result;
}""",
        "pow__unsigned": """
$inline $T $name($T a, $T b) {
  $T result = 1;
  for (; b != 0; b = ($T)(b >> 1)) {
    if (b & 1) result = ($T)((uint64_t)result * a);
    a = ($T)((uint64_t)a * a);
  }
  return result;
}""",
        "same": """
$inline $T $name($T a) {
  return a;
}""",
        # A power of 1/2 is no square root of -inf, nor of -0.
        "root": """
$inline $T $name($T a) {
  return a < $least ? -a : $sqrt(a) + 0;
}""",
        "square": """
$inline $T $name($T a) {
  return a * a;
}""",
        **{
            f"power{exponent}": f"""
$inline $T $name($T a) {{
  const $T square = a * a;
  return {product};
}}"""
            for exponent, product in {
                3: "square * a",
                4: "square * square",
                5: "square * square * a",
                6: "square * square * square",
                7: "square * square * square * a",
                8: "(square * square) * (square * square)",
            }.items()
        },
        "reciprocal": """
$inline $T $name($T a) {
  return 1 / a;
}""",
        # From a float of C type $S; $above is the least value that is too large, $below the least
        # that is not too small, and $x is x where it matters.
        "saturate": """
$inline $T $name($S x) {
  return x != x ? 0 : x >= $above ? $greatest : x <= $below ? $least : ($T)$x;
}""",
        # The same of a number that is in range, or NaN.
        "whole": """
$inline $T $name($S x) {
  return x != x ? 0 : ($T)$x;
}""",
        # An index as the nearest int64_t.
        "signed": """
$inline int64_t $name(uint64_t i) {
  return (int64_t)(i < 0x7fffffffffffffff ? i : 0x7fffffffffffffff);
}""",
        # Nearest element, for indices that were not proven to be in range.
        "clamp": """
$inline $T $name($T i, $T size) {
  return i < 0 ? 0 : i >= size ? size - 1 : i;
}""",
        # The same outside vectors: what waits for the element does not wait for the comparisons.
        "near": """
$inline $T $name($T i, $T size) {
  return $is_outside ? i < 0 ? 0 : size - 1 : i;
}""",
        "clamp_checked": """
$inline int64_t $name(int64_t i, int64_t size, int code, int* failed) {
  if (i >= 0 && i < size) return i;
  if (*failed == 0) *failed = code;
  return i < 0 ? 0 : size - 1;
}""",
        "inside_checked": """
$inline int $name(int64_t i, int64_t size, int code, int* failed) {
  if (i >= 0 && i < size) return 1;
  if (*failed == 0) *failed = code;
  return 0;
}""",
        "from_bf16": """
$inline float $name(uint16_t x) {
  union { uint32_t bits; float value; } u;
  u.bits = (uint32_t)x << 16;
  return u.value;
}""",
        # The neighbour with an odd last bit if there is none equal: rounded once more, to fewer
        # bits, that gives what rounding once would have given.
        "round_to_odd": """
$inline float $name(double x) {
  union { float value; uint32_t bits; } u;
  u.value = (float)x;
  if (u.value != x && x == x && (u.bits & 1u) == 0) u.bits += fabs(u.value) < fabs(x) ? 1u : -1u;
  return u.value;
}""",
        # To nearest, halves to even; NaN stays NaN.
        "to_bf16": """
$inline uint16_t $name(float x) {
  union { float value; uint32_t bits; } u;
  u.value = x;
  const uint32_t rounded = (u.bits + 0x7fffu + ((u.bits >> 16) & 1u)) >> 16;
  return (uint16_t)(x != x ? (u.bits >> 16) | 0x40u : rounded);
}""",
    }.items()
}


def words_of(dtype: str) -> dict[str, str]:
    """Returns what templates may name of a dtype; float16 and bfloat16 are computed in float."""
    if dtype in ("float16", "bfloat16", "float32"):
        return {
            "T": "float",
            "B": "uint32_t",
            "f": "f",
            "sqrt": "sqrtf",
            "least": "-3.40282347e+38f",
        }
    if dtype == "float64":
        return {
            "T": "double",
            "B": "uint64_t",
            "f": "",
            "sqrt": "sqrt",
            "least": "-1.7976931348623157e+308",
        }
    bits = 8 if dtype == "bool" else int(dtype.lstrip("uint"))
    unsigned = dtype == "bool" or dtype.startswith("u")
    greatest = 2 ** (bits - (not unsigned)) - 1
    return {
        "T": f"uint{bits}_t" if unsigned else f"int{bits}_t",
        "U": f"uint{bits}_t",
        "bits": str(bits),
        "least": "0" if unsigned else f"(-{greatest}{'ll' if bits == 64 else ''} - 1)",
        "greatest": f"{greatest}{'u' if unsigned else ''}{'ll' if bits == 64 else ''}",
    }
