"""Reads the text form of the loop IR, which text.py describes and prints.

Only tests read bodies and expressions alone, `parse_body` and `parse_expr`.

Dtypes that the text leaves out are inferred from buffers and operands. Whether the nodes are legal
is not asked here (verify.py does), so tests can write kernels that are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from loop_oracle.tokens import Reader, Token, unexpected
from msops._loops.ir.algebra import binary
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
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
    LocalStorage,
    LoopHint,
    LoopKind,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    VectorForm,
    Within,
)
from msops._loops.ir.operators import BINARY, BITS, DTYPES, is_float
from msops._loops.ir.text import UNARY_SIGNS

_KINDS = get_args(LoopKind)
_HINTS = get_args(LoopHint)
_VECTORS = get_args(VectorForm)
_STORAGES = get_args(LocalStorage)
_UNARY = {sign: op for op, sign in UNARY_SIGNS.items()}
_INFIX = {sign: op for op, (sign, _) in BINARY.items() if not sign.isalpha()}
_PREFIX = {sign: op for op, (sign, _) in BINARY.items() if sign.isalpha()}


def parse_kernel(text: str) -> Kernel:
    """Returns the kernel that a text describes; the inverse of `kernel_text`.

    Locations of the nodes are locations in the text.

    Raises:
      TextError: the text is malformed, or reads a buffer that is not declared.
    """
    parser = _Parser(text, {})
    return parser.whole(parser.kernel)


def parse_body(text: str, buffers: Iterable[Buffer]) -> tuple[Stmt, ...]:
    """Returns the statements that a text describes; the inverse of `body_text`.

    Args:
      text: statements, one a line.
      buffers: what they may read besides their own locals.

    Raises:
      TextError: as in `parse_kernel`.
    """
    parser = _Parser(text, {buffer.name: buffer.dtype for buffer in buffers})
    return parser.whole(lambda: parser.statements_until("end"))


def parse_expr(text: str, buffers: Iterable[Buffer] = ()) -> Expr:
    """Returns the expression that a text describes; the inverse of `expr_text`.

    Args:
      text: the expression, with or without parentheses around the whole.
      buffers: what it may read.

    Raises:
      TextError: as in `parse_kernel`.
    """
    parser = _Parser(text, {buffer.name: buffer.dtype for buffer in buffers})
    return parser.whole(parser.expression)


class _Parser(Reader):
    """Reads nodes; knows the dtypes of the buffers in scope at its position."""

    def __init__(self, text: str, dtypes: dict[str, str]):
        super().__init__(text)
        self._dtypes = dtypes

    # Declarations.

    def kernel(self) -> Kernel:
        first = self.expect("kernel")
        name = self.name("the kernel's name")
        self.expect("(")
        parameters = self.list_of(self._declared, ")")
        self.expect("->")
        self.expect("(")
        results = self.list_of(lambda: self.name("the name of a result"), ")")
        location = self.since(first)
        self.expect("{")
        buffers = []
        while self.at("buffer") and self.following.kind == "name":
            self.take()
            buffers.append(self._declared())
        body = self.statements_until("}")
        self.expect("}")
        return Kernel(name, parameters, results, tuple(buffers), body, location=location)

    def _declared(self) -> Buffer:
        buffer = self._buffer()
        self._dtypes[buffer.name] = buffer.dtype
        return buffer

    def _buffer(self) -> Buffer:
        name = self.name("the name of a buffer")
        self.expect(":")
        dtype = self._dtype()
        self.expect("[")
        return Buffer(
            name, self.list_of(lambda: self._natural("the size of a dimension"), "]"), dtype
        )

    def _dtype(self) -> str:
        if not self.at(*DTYPES):
            raise self.expected("a dtype")
        return self.take().text

    def _natural(self, what: str) -> int:
        if not (self.next.kind == "number" and self.next.text.isdigit()):
            raise self.expected(what)
        return int(self.take().text)

    # Statements.

    def statements_until(self, close: str) -> tuple[Stmt, ...]:
        """Reads statements up to what closes them, which stays: a sign, or "end"."""
        body = []
        while not (self.next.kind == "end" if close == "end" else self.at(close)):
            body.append(self._statement())
        return tuple(body)

    def _statement(self) -> Stmt:
        first = self.next
        if first.kind != "name":
            raise self.expected("a statement")
        # What follows distinguishes a keyword from a buffer of that name.
        if self.following.text == "[":
            return self._store()
        if first.text == "if":
            return self._if()
        if first.text == "local":
            return self._local()
        if first.text in _KINDS:
            return self._for()
        raise self.expected("a statement")

    def _block(self) -> tuple[Stmt, ...]:
        self.expect("{")
        body = self.statements_until("}")
        self.expect("}")
        return body

    def _store(self) -> Store:
        first = self.take()
        self.expect("[")
        indices = self.list_of(self.expression, "]")
        self.expect("=")
        value = self.expression()
        return Store(first.text, indices, value, location=self.since(first))

    def _if(self) -> If:
        first = self.take()
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        is_usual = self.accept("@")
        if is_usual:
            self.expect("usual")
        location = self.since(first)
        then = self._block()
        otherwise = self._block() if self.accept("else") else ()
        return If(condition, then, otherwise, location=location, is_usual=is_usual)

    def _local(self) -> Local:
        first = self.take()
        buffer = self._buffer()
        storage = self._one_of(_STORAGES) if self.accept("@") else ""
        location = self.since(first)
        outer = self._dtypes
        self._dtypes = {**outer, buffer.name: buffer.dtype}
        body = self._block()
        self._dtypes = outer
        return Local(buffer, body, location=location, storage=storage)  # type: ignore[arg-type]

    def _for(self) -> For:
        first = self.take()
        var = self.name("a loop variable")
        self.expect("in")
        begin = self._operand()
        self.expect("..")
        end = self._operand()
        marks: dict[str, Any] = {}
        while self.accept("@"):
            if self.accept("threads"):
                self.expect("(")
                marks["grain"] = self._natural("the fewest iterations of a thread")
                self.expect(")")
            elif self.accept("vector"):
                self.expect("(")
                marks["vector"] = self._one_of(_VECTORS)
                self.expect(")")
            elif self.accept("grid"):
                marks["in_grid"] = True
            else:
                marks["hint"] = self._one_of(_HINTS)
        location = self.since(first)
        body = self._block()
        return For(var, begin, end, body, first.text, **marks, location=location)  # type: ignore[arg-type]

    def _one_of(self, words: tuple[str, ...]) -> str:
        if not self.at(*filter(None, words)):
            raise self.expected(f"one of {', '.join(filter(None, words))}")
        return self.take().text

    # Expressions.

    def expression(self) -> Expr:
        """Reads an operand, or the operation that begins with it."""
        left = self._operand()
        if self.accept("?"):
            then = self._operand()
            self.expect(":")
            return Select(left, then, self._operand(), then.dtype)
        if self.at(*_INFIX):
            return binary(_INFIX[self.take().text], left, self._operand())  # type: ignore[arg-type]
        return left

    def _operand(self) -> Expr:
        first = self.next
        if first.kind == "number":
            return self._number()
        if first.kind == "name":
            return self._named()
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self.at(*_UNARY):
            self.take()
            self.expect("(")
            inner = self.expression()
            self.expect(")")
            return Unary(_UNARY[first.text], inner, inner.dtype)  # type: ignore[arg-type]
        raise self.expected("an expression")

    def _number(self) -> Const:
        token = self.take()
        number, _, dtype = token.text.partition(":")
        dtype = dtype or "int32"
        if is_float(dtype):
            return Const(float(number), dtype)
        try:
            return Const(int(number), dtype)
        except ValueError:
            raise unexpected(token.location, f"{number} is not a number of dtype {dtype}") from None

    def _named(self) -> Expr:
        first = self.take()
        if self.accept("["):
            indices = self.list_of(self.expression, "]")
            if first.text not in self._dtypes:
                raise unexpected(first.location, f"no buffer in scope has the name {first.text!r}")
            dtype = self._dtypes[first.text]
            return Load(first.text, indices, dtype, location=self.since(first))
        if self.accept("("):
            args = self.list_of(self.expression, ")")
            match first.text, args:
                case "within", (index, Const(value=low), Const(value=high)):
                    return Within(index, int(low), int(high))
            return self._applied(first, args)
        if first.text in ("true", "false"):
            return Const(first.text == "true", "bool")
        return Var(first.text)

    def _applied(self, first: Token, args: tuple[Expr, ...]) -> Expr:
        """Returns what a word with arguments is: a cast, an operation or a function."""
        name = first.text
        if name == "bits" and [arg.dtype for arg in args if arg.dtype in BITS]:
            return Unary("bits", args[0], BITS[args[0].dtype])
        function = FUNCTIONS.get(name)
        arity = function.arity if function else 2 if name in _PREFIX else 1
        if function is None and name not in (*_PREFIX, *DTYPES):
            raise unexpected(first.location, f"{name!r} is neither a function nor a dtype")
        if len(args) != arity:
            raise unexpected(
                first.location, f"expected {arity} argument(s) of {name!r}, got {len(args)}"
            )
        if name in DTYPES:
            return Cast(args[0], name)
        if function is None:
            return binary(_PREFIX[name], *args)  # type: ignore[arg-type]
        return FunctionCall(name, args, "bool" if function.to_bool else args[0].dtype)
