"""Functions on vectors in generated C++: instructions, those of float32_c.py, glibc's library."""

from __future__ import annotations

import re

from msops._base import processor
from msops._loops.ir import float32_c
from msops._loops.ir.formulas import is_name
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.to_c.printing.vector_helpers import HELPERS
from msops._loops.to_c.printing.vector_types import INLINE, UnprintableError, VectorTypes
from msops._loops.to_c.text import bare
from msops._loops.to_c.text.names import library_name

_HELPERS = {"ms_fma": "fma", "fabsf": "abs", "copysignf": "copysign"}
"""By the functions that float32_c.py calls, those on vectors."""
_POW_SINCE = (2, 22)
"""Version of glibc since which its vector library has `pow`, an operation of the IR."""
_LETTERS = {64: "e", 32: "d", 16: "b"}
"""In the names of glibc's functions, by the bytes of a vector."""


class VectorFunctions(VectorTypes):
    """Vectors of some lanes, and functions on them."""

    def math(self, function: str, args: tuple[str, ...], dtype: str) -> str:
        """Returns a function, or `pow`, of vectors of float32 or float64."""
        name = self._function(function, len(args), dtype)
        if name:
            return f"{name}({', '.join(map(bare, args))})"
        row = FUNCTIONS.get(function)
        if row is None or not row.c or is_name(row.c):
            raise UnprintableError
        return self.formula(row.c, dict(zip(row.arguments, args, strict=True)), dtype)

    def _function(self, function: str, arity: int, dtype: str) -> str:
        """Returns the name of a function on vectors; "" if there is none."""
        row = FUNCTIONS.get(function)
        if function in HELPERS:
            return self.helper(function, dtype)
        if dtype == "float32" and row and row.c_float32:
            return self._own(f"ms_{function}_f32", row.c_float32)
        since = row.glibc if row else _POW_SINCE
        return "" if since is None else self._of_library(function, arity, dtype, since)

    def _own(self, name: str, code: str) -> str:
        """Returns the name of a function of float32_c.py on vectors."""
        whole = f"{name}_{self.lanes}"
        if whole in self.values.helpers:
            return whole
        for part in re.findall(r"\bms_\w+|\bfabsf|\bcopysignf", code):
            if part in _HELPERS:
                used = self.helper(_HELPERS[part], "float32")
                code = re.sub(rf"\b{part}\b", used.removesuffix(f"_{self.lanes}"), code)
            elif part != name:
                self._own(part, float32_c.PARTS[part])
        code = re.sub(r"\bms_\w+", rf"\g<0>_{self.lanes}", code)
        code = re.sub(r"\(float\)(\w+)", r"__builtin_convertvector(\1, float)", code)
        code = re.sub(r"\bfloat\b", self.value_type("float32"), code)
        code = re.sub(r"\b(int32_t|int)\b", self.value_type("int32"), code)
        return self._defined(whole, code.strip())

    def _of_library(self, function: str, arity: int, dtype: str, since: tuple[int, int]) -> str:
        """Returns the name of a function of glibc's vector library."""
        letter = _LETTERS.get(self.size(dtype))
        if letter is None or self.size(dtype) > processor.vector_bytes():
            return ""
        of_library = f"{library_name(function)}{'f' if dtype == 'float32' else ''}"
        name, kind, known = f"ms_{of_library}_{self.lanes}", self.value_type(dtype), "ab"[:arity]
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
