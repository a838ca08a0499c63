"""`continue`, `break` and an early `return` as conditions around what they skip.

    for i in range(n):                   stopped = False
        if x[i] < 0.0:                   for i in range(n):
            break                  ->        if not stopped:
        s += x[i]                                if x[i] < 0.0:
                                                     stopped = True
                                                 else:
                                                     s += x[i]

A flag is made only where the structure of the statements does not say what is skipped. The
iterations after a `break` are still counted; they do nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from msops._loops.frontends.hybrid.syntax import load, negated, placed, store


@dataclass(eq=False)
class _Exit:
    """Where a kind of jump leads: out of an iteration, a loop or the function.

    Attributes:
      name: what its flag, which is true after the jump, is called.
      is_read: whether a condition reads the flag.
      jumps: the statements that set it.
    """

    name: str
    flag: str = ""
    is_read: bool = False
    jumps: list[ast.stmt] = field(default_factory=list)


_Exits: TypeAlias = Mapping[type[ast.stmt], _Exit]

Results: TypeAlias = Callable[[ast.Return], list[ast.stmt]]
"""Returns the statements that keep the values of a return."""

_JUMPS = (ast.Break, ast.Continue, ast.Return)


def without_jumps(
    body: list[ast.stmt], fresh: Callable[[str], str], results: Results
) -> list[ast.stmt]:
    """Returns the statements of a function, none of which is a jump.

    Args:
      body: the statements; a `return` among them leads to their end.
      fresh: returns a name that is not in use.
      results: keeps the values of a return.
    """
    structure = _Structure(fresh, results)
    end = _Exit("returned")
    return _with_flag(end, structure.block(body, {ast.Return: end}))


def always_jumps(body: list[ast.stmt]) -> bool:
    """Returns whether what follows some statements is never reached."""
    return any(
        isinstance(statement, _JUMPS)
        or (isinstance(statement, ast.With) and always_jumps(statement.body))
        or (
            isinstance(statement, ast.If)
            and always_jumps(statement.body)
            and always_jumps(statement.orelse)
        )
        for statement in body
    )


def _leaving(*body: ast.stmt) -> set[type[ast.stmt]]:
    """Returns the kinds of jumps that lead out of statements."""
    found: set[type[ast.stmt]] = set()
    for statement in body:
        if isinstance(statement, _JUMPS):
            found.add(type(statement))
        elif isinstance(statement, ast.For):
            found |= _leaving(*statement.body) & {ast.Return}
        elif isinstance(statement, (ast.If, ast.With)):
            found |= _leaving(*statement.body, *getattr(statement, "orelse", []))
    return found


@dataclass
class _Structure:
    fresh: Callable[[str], str]
    results: Results

    def block(self, body: list[ast.stmt], exits: _Exits) -> list[ast.stmt]:
        """Returns statements whose jumps are conditions around those that follow."""
        made: list[ast.stmt] = []
        for index, statement in enumerate(body):
            if isinstance(statement, _JUMPS):
                # What follows a jump is never reached.
                return [*made, *self.jump(statement, exits[type(statement)])]
            leaving = _leaving(statement)
            if not leaving:
                made += self.statement(statement, exits)
                continue
            rest = body[index + 1 :]
            if isinstance(statement, ast.If):
                statement, rest = _with_rest(statement, rest)
            made += self.statement(statement, exits)
            if rest:
                skipping = [exits[kind] for kind in sorted(leaving, key=lambda kind: kind.__name__)]
                made.append(_unless(skipping, self.block(rest, exits), rest[0]))
            return made
        return made

    def statement(self, node: ast.stmt, exits: _Exits) -> list[ast.stmt]:
        if isinstance(node, ast.For):
            return self.loop(node, exits)
        if isinstance(node, ast.If):
            parts = self.block(node.body, exits), self.block(node.orelse, exits)
            return [placed(ast.If(node.test, *parts), node)]
        if isinstance(node, ast.With):
            return [placed(ast.With(node.items, self.block(node.body, exits)), node)]
        return [node]

    def loop(self, node: ast.For, exits: _Exits) -> list[ast.stmt]:
        next_iteration, after = _Exit("skipped"), _Exit("stopped")
        inner = {**exits, ast.Continue: next_iteration, ast.Break: after}
        body = _with_flag(next_iteration, self.block(node.body, inner))
        stops = [after] if after.jumps else []
        if ast.Return in _leaving(node):
            stops.append(exits[ast.Return])
        if stops:
            body = [_unless(stops, body, node)]
        loop = placed(ast.For(node.target, node.iter, body, []), node)
        return _with_flag(after, [loop])

    def jump(self, node: ast.stmt, exit_: _Exit) -> list[ast.stmt]:
        kept = self.results(node) if isinstance(node, ast.Return) else []
        exit_.flag = exit_.flag or self.fresh(exit_.name)
        exit_.jumps.append(store(exit_.flag, ast.Constant(True), node))
        return [*kept, exit_.jumps[-1]]


def _with_rest(node: ast.If, rest: list[ast.stmt]) -> tuple[ast.If, list[ast.stmt]]:
    """Returns a branch with the statements after it in the arm that goes on to them, if one does.

    The second value is what is left after the branch.
    """
    then, otherwise = node.body, node.orelse
    if always_jumps(then) and always_jumps(otherwise):
        rest = []
    elif always_jumps(then):
        otherwise, rest = otherwise + rest, []
    elif always_jumps(otherwise):
        then, rest = then + rest, []
    return placed(ast.If(node.test, then, otherwise), node), rest


def _unless(exits: list[_Exit], body: list[ast.stmt], like: ast.AST) -> ast.If:
    """Returns statements that run unless a jump was made."""
    for each in exits:
        each.is_read = True
    return placed(ast.If(negated((load(each.flag) for each in exits), like), body, []), like)


def _with_flag(exit_: _Exit, body: list[ast.stmt]) -> list[ast.stmt]:
    """Returns statements after the start of their flag; without a flag that nothing reads."""
    if not exit_.jumps:
        return body
    if exit_.is_read:
        return [store(exit_.flag, ast.Constant(False), exit_.jumps[0]), *body]
    return _pruned(body, set(map(id, exit_.jumps)))


def _pruned(body: list[ast.stmt], dead: set[int]) -> list[ast.stmt]:
    for statement in body:
        for part in ("body", "orelse"):
            if hasattr(statement, part):
                setattr(statement, part, _pruned(getattr(statement, part), dead))
    return [statement for statement in body if id(statement) not in dead]
