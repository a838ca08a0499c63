"""Products added to vectors in one rounding: C for the sums of tiles and of lanes.

Generated C is compiled with ``-ffp-contract=off``, so that an expression means the same everywhere.
Only the sums of tiles and of lanes, whose order is free, use the fused operations of the processor:
they are more exact, and half as many. For vector types gcc offers them in assembly alone.
"""

from __future__ import annotations

from string import Template

from msops._loops.to_c.text.dialect import Declaration

_TEXT = Template("""
static inline __attribute__((always_inline)) $kind $name($kind a, $kind b, $kind sum) {
#if defined($macro)
  __asm__("$instruction %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
#else
  return sum $sign a * b;
#endif
}""")


def fused(kind: str, dtype: str, bytes_: int, *, is_negated: bool) -> Declaration:
    """Returns a function that adds a product to a vector.

    Args:
      kind: the C type of the vector.
      dtype: of its elements: "float32" or "float64".
      bytes_: the size of the vector, 16 or more. Code for a processor without the instruction
        multiplies and adds.
      is_negated: whether the product is subtracted.
    """
    name = f"ms_{'fnma' if is_negated else 'fma'}_{kind.removeprefix('ms_vector_')}"
    letter = {"float32": "s", "float64": "d"}[dtype]
    text = _TEXT.substitute(
        kind=kind,
        name=name,
        # AVX-512 includes fused operations on 64 bytes.
        macro="__AVX512F__" if bytes_ == 64 else "__FMA__",
        instruction=f"vf{'n' if is_negated else ''}madd231p{letter}",
        sign="-" if is_negated else "+",
    )
    return Declaration(name, {name: text.strip()})
