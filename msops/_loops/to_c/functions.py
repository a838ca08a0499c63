"""Mathematical functions in generated C, in a form that compilers vectorise.

The common ones on float are printed as functions without branches (ir/float32_c.py), within 2 ulp;
of the others, glibc's vector library has most, within 4 ulp, and a declaration lets gcc use it.
"""

from __future__ import annotations

import re
from typing import ClassVar

from msops._loops.ir import float32_c
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import Buffer
from msops._loops.to_c.halves import HALVES
from msops._loops.to_c.text.names import library_name
from msops._loops.to_c.threads import CThreads

_NAME = re.compile(r"\bms_\w+")

_POW_SINCE = (2, 22)
"""The glibc from which its vector library has `pow`, an operation of the IR."""


class CMath(CThreads):
    """Prints C: `CThreads` with functions that vectorise, and float16."""

    storage_types: ClassVar[dict[str, str]] = CThreads.storage_types | {"float16": "ms_half"}

    def storage_type(self, buffer: Buffer) -> str:
        """Returns the C type of an array's elements, declared from now on."""
        if buffer.dtype == "float16":
            self._need_halves()
        return super().storage_type(buffer)

    def from_storage(self, text: str, dtype: str) -> str:
        """Returns the value that an element of an array stands for."""
        if dtype != "float16":
            return super().from_storage(text, dtype)
        self._need_halves()
        return f"ms_from_half({text})"

    def to_storage(self, text: str, dtype: str) -> str:
        """Returns what is written into an array for a value."""
        if dtype != "float16":
            return super().to_storage(text, dtype)
        self._need_halves()
        return f"ms_to_half({text})"

    def _need_halves(self) -> None:
        self.helpers.setdefault("ms_half", HALVES.strip())

    def math(self, function: str, args: tuple[str, ...], dtype: str) -> str:
        """Returns a function, or `pow`, of float32 or float64 values."""
        row = FUNCTIONS.get(function)
        if dtype == "float32" and row and row.c_float32:
            name = f"ms_{function}_f32"
            self._need(name, row.c_float32)
            return f"{name}({', '.join(args)})"
        since = row.glibc if row else _POW_SINCE
        if since is not None:
            self._declare_vector(library_name(function), since, len(args), dtype)
        return super().math(function, args, dtype)

    def _need(self, name: str, code: str) -> None:
        """Prints a function of float32_c.py, after those that it uses."""
        for part in _NAME.findall(code):
            if part != name and part not in self.helpers:
                self._need(part, float32_c.PARTS[part])
        self.helpers.setdefault(name, code.strip())

    def _declare_vector(
        self, function: str, since: tuple[int, int], arity: int, dtype: str
    ) -> None:
        """Lets gcc replace calls in loops by the vector library's, where there is one."""
        major, minor = since
        kind = self.value_types[dtype]
        name = function if dtype == "float64" else f"{function}f"
        self.helpers.setdefault(
            name,
            "#if defined(__x86_64__) && defined(__GLIBC_PREREQ)\n"
            f"#if __GLIBC_PREREQ({major}, {minor})\n"
            f'__attribute__((simd("notinbranch"), const)) {kind} {name}'
            f"({', '.join([kind] * arity)});\n"
            "#endif\n#endif",
        )
