"""The text form of the loop IR; parse.py reads it back.

    kernel row_sum(a: float32[4, 8]) -> (s) {
      buffer s: float32[4]
      parallel i in 0 .. 4 {
        reduction j in 0 .. 8 @reduce {
          s[i] = s[i] + a[i, j]
        }
      }
    }

- A loop starts with its kind; ``@word`` is the author's keyword, ``@threads(16)`` its grain,
  ``@vector(simd)`` the form of one that runs in vectors, ``@grid`` that the threads of a launch
  run it.
  ``local t: float32[] { ... }`` is `Local`, ``if (c) { ... } else { ... }`` is `If`;
  its ``@usual`` says that only wrong data get to the other branch.
- Every operation has parentheses, so there are no precedences; `pow`, `min`, `max`,
  `truncdiv`, `truncmod` and functions are written as calls: ``max(a[i], 0.0:float32)``.
- A number carries its dtype (``1:int32``), but for int32 in whole numbers and bool. A load and an
  operation do not: the buffers and operands have it. A cast is ``float32(x)``, a `Select` is
  ``(c ? x : y)``, a `Within` is ``within(i, 0, 8)``. A scalar buffer is read as ``t[]``.
- The sign of an operation has blanks around it; the minus of a number has none: ``i - -1``.
"""

from __future__ import annotations

import math

from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Location,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    Within,
)
from msops._loops.ir.operators import BINARY

UNARY_SIGNS = {"neg": "-", "not": "!", "invert": "~", "bits": "bits"}


def kernel_text(kernel: Kernel) -> str:
    """Returns the text of a kernel, without a final line break."""
    parameters = ", ".join(map(buffer_text, kernel.parameters))
    head = f"kernel {kernel.name}({parameters}) -> ({', '.join(kernel.results)}) {{"
    buffers = [f"  buffer {buffer_text(buffer)}" for buffer in kernel.buffers]
    return "\n".join([head, *buffers, *_indented(kernel.body), "}"])


def buffer_text(buffer: Buffer) -> str:
    """Returns ``name: dtype[shape]``."""
    return f"{buffer.name}: {buffer.dtype}[{', '.join(map(str, buffer.shape))}]"


def body_text(body: tuple[Stmt, ...]) -> str:
    """Returns the text of statements."""
    return "\n".join(line for stmt in body for line in _lines(stmt))


def _lines(stmt: Stmt) -> list[str]:
    match stmt:
        case Store(buffer=buffer, indices=indices, value=value):
            return [f"{buffer}[{_listed(indices)}] = {expr_text(value, outermost=True)}"]
        case For(var=var, begin=begin, end=end, body=body, kind=kind):
            bounds = f"{expr_text(begin)} .. {expr_text(end)}"
            return [f"{kind} {var} in {bounds}{_marks(stmt)} {{", *_indented(body), "}"]
        case If(condition=condition, then=then, otherwise=otherwise, is_usual=is_usual):
            mark = " @usual" if is_usual else ""
            head = f"if ({expr_text(condition, outermost=True)}){mark} {{"
            rest = ["} else {", *_indented(otherwise)] if otherwise else []
            return [head, *_indented(then), *rest, "}"]
        case Local(buffer=buffer, body=body, storage=storage):
            mark = f" @{storage}" if storage else ""
            return [f"local {buffer_text(buffer)}{mark} {{", *_indented(body), "}"]


def _marks(loop: For) -> str:
    marks: list[str] = [loop.hint] if loop.hint else []
    marks += [f"threads({loop.grain})"] if loop.grain else []
    marks += [f"vector({loop.vector})"] if loop.vector else []
    marks += ["grid"] if loop.in_grid else []
    return "".join(f" @{mark}" for mark in marks)


def _indented(body: tuple[Stmt, ...]) -> list[str]:
    return [f"  {line}" for stmt in body for line in _lines(stmt)]


def _listed(exprs: tuple[Expr, ...]) -> str:
    return ", ".join(expr_text(expr, outermost=True) for expr in exprs)


def expr_text(expr: Expr, outermost: bool = False) -> str:
    """Returns the text of an expression; `outermost` leaves out parentheses around the whole."""
    match expr:
        case Const(value=value, dtype=dtype):
            return _const_text(value, dtype)
        case Var(name=name):
            return name
        case Load(buffer=buffer, indices=indices):
            return f"{buffer}[{_listed(indices)}]"
        case Unary(op=op, operand=operand):
            return f"{UNARY_SIGNS[op]}({expr_text(operand, outermost=True)})"
        case Binary(op=op, left=left, right=right):
            sign = BINARY[op][0]
            if sign.isalpha():
                return f"{sign}({_listed((left, right))})"
            text = f"{expr_text(left)} {sign} {expr_text(right)}"
        case FunctionCall(function=function, args=args):
            return f"{function}({_listed(args)})"
        case Cast(operand=operand, dtype=dtype):
            return f"{dtype}({expr_text(operand, outermost=True)})"
        case Within(operand=operand, low=low, high=high):
            return f"within({expr_text(operand, outermost=True)}, {low}, {high})"
        case Select(condition=condition, then=then, otherwise=otherwise):
            text = f"{expr_text(condition)} ? {expr_text(then)} : {expr_text(otherwise)}"
    return text if outermost else f"({text})"


def _const_text(value: bool | int | float, dtype: str) -> str:
    if dtype == "bool":
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        number = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    else:
        number = repr(value)
    return number if dtype == "int32" else f"{number}:{dtype}"


def point(location: Location | None) -> list[str]:
    """Returns the lines of a message that show a location: file and line, the source, a caret.

    Args:
      location: the location; None, for nodes without a source, gives no lines.
    """
    if location is None:
        return []
    start = len(location.text) - len(location.text.lstrip())
    text = location.text.strip()
    caret = " " * (location.column - start) + "^" * max(
        1, min(location.end_column, start + len(text)) - location.column
    )
    return [f"{location.file}:{location.line}", f"  {text}", f"  {caret}"]
