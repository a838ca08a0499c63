"""From tensors to one kernel: a stage per operation, in the order in which they were made."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence, Set

from msops._loops.frontends.tvm.tensor import Operation, PlaceholderOp, Tensor
from msops._loops.frontends.tvm.tracing import age, value_error
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Local,
    Location,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.walk import map_expressions, rewrite


def lower(
    results: Sequence[Tensor],
    parameters: Sequence[Tensor],
    name: str,
    location: Location | None = None,
) -> Kernel:
    """Returns the kernel that computes tensors from others.

    Args:
      results: what it returns: made from the parameters, or some of them.
      parameters: what it is given, in the order of the call; what makes these is not looked at.
      name: its name.
      location: where the author wrote it.
    """
    stages = _stages(results, {tensor.key for tensor in parameters})
    _refuse_strangers(stages)
    names = Names()
    known = {tensor.key: names.fresh(identifier(tensor.name)) for tensor in parameters}
    buffers: list[Buffer] = []
    body: list[Stmt] = []
    for op in stages:
        for tensor in map(op.output, range(op.num_outputs)):
            known[tensor.key] = names.fresh(identifier(tensor.name))
            buffers.append(_buffer(tensor, known))
        aliases = {alias: known[key] for alias, key in op.aliases.items()}
        body += _Readable(names, op).body(op.lowered(), {**known, **aliases})
    return Kernel(
        identifier(name),
        tuple(_buffer(tensor, known) for tensor in parameters),
        tuple(known[tensor.key] for tensor in results),
        tuple(buffers),
        tuple(body),
        location=location,
    )


def identifier(name: str) -> str:
    """Returns a name as the loop IR can hold it."""
    word = re.sub(r"\W", "_", name) or "_"
    return f"_{word}" if word[0].isdigit() or word in ("true", "false") else word


def _buffer(tensor: Tensor, known: dict[str, str]) -> Buffer:
    return Buffer(known[tensor.key], tuple(map(int, tensor.shape)), tensor.dtype)


def _stages(results: Iterable[Tensor], given: Set[str]) -> list[Operation]:
    """Returns what makes the results from what is given, each operation after those it reads."""
    found: dict[str, Operation] = {}
    waiting = list(results)
    while waiting:
        tensor = waiting.pop()
        if tensor.key not in given and tensor.op.keys[0] not in found:
            found[tensor.op.keys[0]] = tensor.op
            waiting += tensor.op.input_tensors
    # An operation reads only what was there when it was made.
    return sorted(found.values(), key=lambda op: age(op.keys[0]))


def _refuse_strangers(stages: Iterable[Operation]) -> None:
    for op in stages:
        if isinstance(op, PlaceholderOp):
            raise value_error(
                f"tvm.placeholder {op.name!r}",
                "it is not an input of the kernel",
                "Use the tensors that the kernel is called with.",
                location=op.location,
            )


class _Readable:
    """Replaces keys by names: of tensors known ones, of loops and locals fresh ones."""

    def __init__(self, names: Names, op: Operation):
        self._names = names
        self._op = op

    def body(self, body: tuple[Stmt, ...], known: dict[str, str]) -> tuple[Stmt, ...]:
        return tuple(self._statement(stmt, known) for stmt in body)

    def _statement(self, stmt: Stmt, known: dict[str, str]) -> Stmt:
        stmt = map_expressions(
            stmt, lambda expr: rewrite(expr, lambda part: self._named(part, known))
        )
        match stmt:
            case Store(buffer=key):
                return dataclasses.replace(stmt, buffer=self._name(key, known))
            case For(var=key, body=inner):
                name = self._fresh(key)
                inner = self.body(inner, {**known, key: name})
                return dataclasses.replace(stmt, var=name, body=inner)
            case Local(buffer=buffer, body=inner):
                name = self._fresh(buffer.name)
                inner = self.body(inner, {**known, buffer.name: name})
                held = dataclasses.replace(buffer, name=name)
                return dataclasses.replace(stmt, buffer=held, body=inner)
            case If(then=then, otherwise=otherwise):
                return dataclasses.replace(
                    stmt, then=self.body(then, known), otherwise=self.body(otherwise, known)
                )

    def _named(self, expr: Expr, known: dict[str, str]) -> Expr:
        match expr:
            case Load(buffer=key):
                return dataclasses.replace(expr, buffer=self._name(key, known))
            case Var(name=key):
                return Var(self._name(key, known))
        return expr

    def _name(self, key: str, known: dict[str, str]) -> str:
        if key in known:
            return known[key]
        raise value_error(
            f"tvm operation {self._op.name!r}",
            f"{key.partition('.')[0]!r} has no value here",
            "Use variables of loops and reduction axes inside them, buffers that were allocated "
            "after their allocation and in its scope, and inputs as they are passed in.",
            location=self._op.location,
        )

    def _fresh(self, key: str) -> str:
        return self._names.fresh(identifier(key.rpartition(".")[0] or key))
