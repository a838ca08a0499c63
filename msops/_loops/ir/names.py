"""Names of loops and buffers: fresh ones, and one for each."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msops._loops.ir.algebra import integer
from msops._loops.ir.nodes import Expr, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import map_bodies, map_expressions, rewrite, statements, with_body


@dataclass(eq=False)
class Names:
    """The names in use: those that are reserved, and those of a kernel."""

    kernel: Kernel | None = None
    reserved: Iterable[str] = ()

    @functools.cached_property
    def _used(self) -> set[str]:
        # When the first name is asked for: most passes find nothing to change.
        return {*self.reserved, *(declared_names(self.kernel) if self.kernel else ())}

    def fresh(self, base: str) -> str:
        """Returns `base`, numbered if it is in use, and takes it."""
        candidates = itertools.chain((base,), (f"{base}_{n}" for n in itertools.count(1)))
        name = next(name for name in candidates if name not in self._used)
        self._used.add(name)
        return name


def unique_names(kernel: Kernel, names: Names | None = None) -> Kernel:
    """Returns the kernel with each loop and local that repeats an earlier name numbered.

    Passes that copy statements end with it.

    Args:
      kernel: a kernel.
      names: gives names; None avoids those of the kernel.
    """
    declared = declared_names(kernel)
    if len(set(declared)) == len(declared):
        return kernel
    taken = {buffer.name for buffer in (*kernel.parameters, *kernel.buffers)}
    return with_body(kernel, _renamed(kernel.body, {}, names or Names(kernel), taken))


def declared_names(kernel: Kernel) -> list[str]:
    """Returns the names of the buffers, loops and locals of a kernel, as often as they appear."""
    names = [buffer.name for buffer in (*kernel.parameters, *kernel.buffers)]
    for stmt in statements(kernel.body):
        if isinstance(stmt, For):
            names.append(stmt.var)
        elif isinstance(stmt, Local):
            names.append(stmt.buffer.name)
    return names


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
        own = map_expressions(stmt, lambda expr: rewrite(expr, change)) if new else stmt
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


def over_box(
    spans: Sequence[tuple[int, int]],
    prefixes: Sequence[str],
    fresh: Callable[[str], str],
    inside: Callable[[tuple[Var, ...]], Stmt],
) -> Stmt:
    """Returns parallel loops over a box.

    Args:
      spans: the first position and the one after the last, for the outermost loop first.
      prefixes: of the names of the loops' variables.
      fresh: gives names.
      inside: returns what is done for the indices of an element.
    """
    at = tuple(Var(fresh(prefix)) for prefix in prefixes)
    stmt = inside(at)
    for var, (begin, end) in reversed([*zip(at, spans, strict=True)]):
        stmt = For(var.name, integer(begin), integer(end), (stmt,), "parallel")
    return stmt
