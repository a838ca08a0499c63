"""Gives loops and locals names of their own after code has been copied."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Expr, For, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import map_bodies, map_expressions, rewrite


def rename_copies(body: tuple[Stmt, ...], names: Names, taken: set[str]) -> tuple[Stmt, ...]:
    """Returns statements in which each loop and local that repeats an earlier name is numbered.

    Args:
      body: the statements.
      names: gives names.
      taken: names declared before; those declared here are added.
    """
    return _renamed(body, {}, names, taken)


def _renamed(
    body: tuple[Stmt, ...], new: Mapping[str, str], names: Names, taken: set[str]
) -> tuple[Stmt, ...]:
    def change(part: Expr) -> Expr:
        match part:
            case Var(name=name) if name in new:
                return Var(new[name])
            case Load(buffer=buffer) if buffer in new:
                return dataclasses.replace(part, buffer=new[buffer])
        return part

    def declare(name: str) -> str:
        own = names.fresh(name) if name in taken else name
        taken.add(own)
        return own

    renamed: list[Stmt] = []
    for stmt in body:
        own = map_expressions(stmt, lambda expr: rewrite(expr, change))
        inner = new
        match own:
            case Store(buffer=buffer):
                own = dataclasses.replace(own, buffer=new.get(buffer, buffer))
            case For(var=var):
                own = dataclasses.replace(own, var=declare(var))
                inner = {**new, var: own.var}
            case Local(buffer=local):
                own = dataclasses.replace(
                    own, buffer=dataclasses.replace(local, name=declare(local.name))
                )
                inner = {**new, local.name: own.buffer.name}
        inside = functools.partial(_renamed, new=inner, names=names, taken=taken)
        renamed.append(map_bodies(own, inside))
    return tuple(renamed)
