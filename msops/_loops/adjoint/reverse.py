"""The forward sweep with its tapes, and the backward sweep, by a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msops._loops.adjoint.ascend import mirror
from msops._loops.adjoint.contributions import widened
from msops._loops.adjoint.emit import reversal
from msops._loops.adjoint.ends import over
from msops._loops.adjoint.plan import Plan
from msops._loops.adjoint.relations import Derivative, rebuilt, touched
from msops._loops.adjoint.tapes import Tape, ranges_of, tape_for
from msops._loops.adjoint.tree import Body, Node, Tree
from msops._loops.ir import Buffer, Expr, For, Load, Local, Stmt, Store, Var
from msops._loops.walk import rewrite_all


@dataclass(frozen=True)
class Sweeps:
    """Makes both sweeps.

    Attributes:
      tree: the kernel.
      plan: what runs again and what is on the tape.
      derivatives: of the active stores.
      adjoints: the adjoint of each active buffer.
      tapes: of the stores that save what they overwrite, and of the locals that are saved.
      fresh: gives names.
      mirrored: the variables of loops that count down, as far as they have been made.
    """

    tree: Tree
    plan: Plan
    derivatives: Mapping[Node, Derivative]
    adjoints: Mapping[str, Buffer]
    tapes: Mapping[Node, Tape]
    fresh: Callable[[str], str]
    mirrored: set[str] = field(default_factory=set)

    def kernel_tapes(self) -> list[Buffer]:
        """Returns the tapes of the whole kernel."""
        return self._tapes_of(None)

    def forward(self) -> tuple[Stmt, ...]:
        """Returns the forward sweep: what later uses may see, and saving what goes on the tape."""
        return self._rerun(self.tree.body, None)

    def backward(self) -> tuple[Stmt, ...]:
        """Returns the backward sweep."""
        return self._reversed(self.tree.body)

    # Forward.

    def _rerun(self, body: Body, home: Node | None) -> tuple[Stmt, ...]:
        return tuple(stmt for node in body for stmt in self._again(node, home))

    def _again(self, node: Node, home: Node | None) -> tuple[Stmt, ...]:
        stmt = node.stmt
        if isinstance(stmt, Store):
            if node not in self.plan.rerun.get(home, ()):
                return ()
            if node in self.tapes and self.plan.home(stmt.buffer) is home:
                return (self.tapes[node].save(_element(stmt)), stmt)
            return (stmt,)
        inner = tuple(self._rerun(part, home) for part in node.bodies)
        if not any(inner):
            return ()
        if isinstance(stmt, Local):
            if node in self.tapes and self.plan.home(stmt.buffer.name) is home:
                inner = ((*inner[0], self._copy_out(stmt.buffer, self.tapes[node])),)
            elif not stmt.buffer.name in touched(inner[0]):
                return inner[0]
        return (rebuilt(node, *inner),)

    # Backward.

    def _reversed(self, body: Body) -> tuple[Stmt, ...]:
        return tuple(stmt for node in reversed(body) for stmt in self._reversal(node))

    def _reversal(self, node: Node) -> tuple[Stmt, ...]:
        stmt = node.stmt
        if isinstance(stmt, Store):
            return self._store(node, stmt)
        inner = tuple(map(self._reversed, node.bodies))
        if isinstance(stmt, Local):
            return self._local(node, stmt, inner[0])
        if not any(inner):
            return ()
        if isinstance(stmt, For):
            return (self._mirrored(stmt, inner[0]),)
        return (rebuilt(node, *inner),)

    def _store(self, node: Node, store: Store) -> tuple[Stmt, ...]:
        restore: tuple[Stmt, ...] = ()
        if node in self.tapes:
            restore = (Store(store.buffer, store.indices, self.tapes[node].saved()),)
        derivative = self.derivatives.get(node)
        if derivative is None:
            return restore
        clears = node in self.plan.cleared
        ranges = ranges_of(node.loops)
        stmts = reversal(store, derivative, self.adjoints, clears, ranges, self.fresh)
        if derivative.result is None:
            return (*restore, *stmts)
        result = _element(store)
        if not restore:
            return _replaced(stmts, derivative.result, widened(result))
        scalar = Buffer(self.fresh("y"), (), result.dtype)
        kept = Load(scalar.name, (), scalar.dtype)
        stmts = _replaced(stmts, derivative.result, widened(kept))
        return (Local(scalar, (Store(scalar.name, (), result), *restore, *stmts)),)

    def _local(self, node: Node, local: Local, inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        if not inner:
            return ()
        name = local.buffer.name
        stmts = (*self._rerun(node.bodies[0], node), *inner)
        if node in self.tapes:
            stmts = (self._copy_in(local.buffer, self.tapes[node]), *stmts)
        buffers = [*self._tapes_of(node), local.buffer]
        if name in self.adjoints:
            buffers.append(self.adjoints[name])
        for buffer in buffers:
            if buffer.name in touched(stmts):
                stmts = (Local(buffer, stmts),)
        return stmts

    def _tapes_of(self, home: Node | None) -> list[Buffer]:
        return [
            tape.buffer
            for node, tape in self.tapes.items()
            if self.plan.home(_saved_buffer(node)) is home
        ]

    def _mirrored(self, loop: For, body: tuple[Stmt, ...]) -> For:
        """Returns a loop over the same iterations from the last to the first."""
        var = self.fresh(loop.var)
        self.mirrored.add(var)
        body = rewrite_all(body, lambda part: mirror(loop, var) if part == Var(loop.var) else part)
        return For(var, loop.begin, loop.end, body, location=loop.location)

    # Whole buffers.

    def _copy_out(self, buffer: Buffer, tape: Tape) -> Stmt:
        return over(buffer, self.fresh, lambda at: tape.save(Load(buffer.name, at, buffer.dtype), at))

    def _copy_in(self, buffer: Buffer, tape: Tape) -> Stmt:
        return over(buffer, self.fresh, lambda at: Store(buffer.name, at, tape.saved(at)))


def make_tapes(tree: Tree, plan: Plan, fresh: Callable[[str], str]) -> dict[Node, Tape]:
    """Returns the tapes of a plan."""
    buffers = {b.name: b for b in (*tree.kernel.parameters, *tree.kernel.buffers)}
    declared = tree.locals()
    buffers |= {name: node.stmt.buffer for name, node in declared.items()}
    tapes: dict[Node, Tape] = {}
    for node in tree.nodes():
        name = _saved_buffer(node)
        home = plan.home(name)
        if node in plan.saved:
            saved = Buffer(name, (), buffers[name].dtype)
        elif isinstance(node.stmt, Local) and name in plan.homes and home is not node:
            saved = buffers[name]
        else:
            continue
        between = [loop.stmt for loop in node.ancestors
                   if isinstance(loop.stmt, For) and loop.is_in(home)]  # fmt: skip
        tapes[node] = tape_for(fresh(f"{name}_tape"), saved, between, ranges_of(node.loops))
    return tapes


def _saved_buffer(node: Node) -> str:
    match node.stmt:
        case Store(buffer=name):
            return name
        case Local(buffer=buffer):
            return buffer.name
    return ""


def _element(store: Store) -> Load:
    return Load(store.buffer, store.indices, store.value.dtype)


def _replaced(body: tuple[Stmt, ...], old: Expr, new: Expr) -> tuple[Stmt, ...]:
    return rewrite_all(body, lambda part: new if part == old else part)
