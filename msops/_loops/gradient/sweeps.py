"""The forward sweep with its tapes, and the backward sweep, by a plan."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

from msops._loops.gradient.boundary import over
from msops._loops.gradient.contributions import widened
from msops._loops.gradient.emit import reversal
from msops._loops.gradient.plan import Plan
from msops._loops.gradient.recording import Saved, Tape, homes_around, in_order_of_memory, tape_for
from msops._loops.gradient.relations import Derivative, rebuilt
from msops._loops.gradient.tree import Body, Node, Tree
from msops._loops.ir.algebra import element_of
from msops._loops.ir.mirror import mirror
from msops._loops.ir.nodes import Buffer, Expr, For, Load, Local, Stmt, Store, Var
from msops._loops.ir.ranges import nested_ranges
from msops._loops.ir.walk import buffers_of, replaced, touched_in, within_locals
from msops._loops.passes.elements import exists


@dataclass(frozen=True)
class _Again:
    """One run of a part of the kernel again.

    Attributes:
      stores: runs these.
      homes: whose stores these are.
      recorder: saves what this one records; `homes` being empty, nothing.
    """

    stores: Set[Node]
    homes: tuple[Node | None, ...]
    recorder: Node | None


@dataclass(frozen=True)
class Sweeps:
    """Makes both sweeps.

    Attributes:
      tree: the kernel.
      plan: what runs again and what is on the tape.
      derivatives: of the active stores.
      adjoints: the adjoint of each active buffer.
      tapes: of all that is saved.
      fresh: gives names.
    """

    tree: Tree
    plan: Plan
    derivatives: Mapping[Node, Derivative]
    adjoints: Mapping[str, Buffer]
    tapes: Mapping[Saved, Tape]
    fresh: Callable[[str], str]

    @functools.cached_property
    def _buffers(self) -> Mapping[str, Buffer]:
        return buffers_of(self.tree.kernel)

    def forward(self) -> tuple[Stmt, ...]:
        """Returns the forward sweep: what later uses may see, and saving what goes on the tape."""
        return self._rerun(self.tree.body, self._in_home(None))

    def backward(self) -> tuple[Stmt, ...]:
        """Returns the backward sweep."""
        return self._reversed(self.tree.body)

    def tapes_of(self, recorder: Node | None) -> list[Buffer]:
        """Returns the tapes that a home or restarted loop records; None is the kernel."""
        recorders = self.plan.recording.recorders
        return [tape.buffer for saved, tape in self.tapes.items() if recorders[saved] is recorder]

    # Running again.

    def _in_home(self, home: Node | None) -> _Again:
        return _Again(self.plan.rerun.get(home, set()), (home,), home)

    def _rerun(self, body: Body, how: _Again) -> tuple[Stmt, ...]:
        return tuple(stmt for node in body for stmt in self._again(node, how))

    def _again(self, node: Node, how: _Again) -> Iterator[Stmt]:
        stmt = node.stmt
        if isinstance(stmt, Store):
            if node in how.stores:
                tape = self._recorded(node, stmt.buffer, how)
                yield from (tape.save(element_of(stmt)),) if tape else ()
                yield stmt
            return
        if isinstance(stmt, For):
            # Also where nothing in the loop runs now: in its reversal it does, of other homes.
            for name in sorted(self.plan.recording.restarted.get(node, ())):
                tape = self._recorded(node, name, how)
                yield from (self._copy_out(name, tape),) if tape else ()
        inner = [self._rerun(part, how) for part in node.bodies]
        if not any(inner):
            return
        if isinstance(stmt, Local):
            tape = self._recorded(node, node.local.name, how)
            if tape:
                inner = [(*inner[0], self._copy_out(node.local.name, tape))]
            elif node.local.name not in touched_in(inner[0]):
                yield from inner[0]
                return
        yield rebuilt(node, *inner)

    def _recorded(self, node: Node, name: str, how: _Again) -> Tape | None:
        """Returns the tape that a run saves a buffer on at a statement, if it does."""
        tape = self.tapes.get((node, name))
        if tape is None or self.plan.home(name) not in how.homes:
            return None
        return tape if self.plan.recording.recorders[node, name] is how.recorder else None

    # Going back.

    def _reversed(self, body: Body) -> tuple[Stmt, ...]:
        return tuple(stmt for node in reversed(body) for stmt in self._reversal(node))

    def _reversal(self, node: Node) -> tuple[Stmt, ...]:
        stmt = node.stmt
        if isinstance(stmt, Store):
            return self._store(node, stmt)
        inner = tuple(map(self._reversed, node.bodies))
        if not any(inner):
            return ()
        if isinstance(stmt, Local):
            return self._local(node, inner[0])
        if isinstance(stmt, For):
            if node in self.plan.recording.restarted:
                return self._restarted(node, stmt, inner[0])
            return (self._mirrored(stmt, inner[0]),)
        return (rebuilt(node, *inner),)

    def _store(self, node: Node, store: Store) -> tuple[Stmt, ...]:
        tape = self.tapes.get((node, store.buffer))
        restore = (Store(store.buffer, store.indices, tape.saved()),) if tape else ()
        derivative = self.derivatives.get(node)
        if derivative is None:
            return restore
        ranges = nested_ranges(node.loops, {})

        def is_in_range(load: Load) -> bool:
            # Besides buffers of the kernel, adjoints of its elements are read, and the tape.
            return load.buffer not in self._buffers or exists(load, ranges, self._buffers)

        clears = node in self.plan.cleared
        stmts = reversal(store, derivative, self.adjoints, clears, is_in_range, self.fresh)
        if derivative.result is None:
            return (*restore, *stmts)
        result = element_of(store)
        if not restore:
            return replaced(stmts, derivative.result, widened(result))
        # The result is read before the old value replaces it.
        scalar = Buffer(self.fresh("y"), (), result.dtype)
        kept = Load(scalar.name, (), scalar.dtype)
        stmts = replaced(stmts, derivative.result, widened(kept))
        return (Local(scalar, (Store(scalar.name, (), result), *restore, *stmts)),)

    def _local(self, node: Node, inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        name = node.local.name
        again = self._rerun(node.bodies[0], self._in_home(node))
        # What runs again starts from 0, and may store to the local: the last values come after it.
        tape = self.tapes.get((node, name))
        last = (self._copy_in(name, tape),) if tape else ()
        stmts = (*again, *last, *inner)
        buffers = [*self.tapes_of(node), node.local]
        if name in self.adjoints:
            buffers.append(self.adjoints[name])
        return within_locals(buffers, stmts)

    def _mirrored(self, loop: For, body: tuple[Stmt, ...]) -> For:
        """Returns a loop over the same iterations from the last to the first."""
        var = self.fresh(loop.var)
        body = replaced(body, Var(loop.var), mirror(loop, var))
        return For(var, loop.begin, loop.end, body, location=loop.location)

    def _restarted(self, node: Node, loop: For, inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Returns the reversal of a loop that is run again up to each iteration.

        The values that it starts with are put back after the last one too: statements before the
        loop find what they left.
        """
        homes = tuple(homes_around(node, self.plan.rerun))
        stores = set().union(*(self.plan.rerun[home] for home in homes))
        starts = tuple(
            self._copy_in(name, self.tapes[node, name])
            for name in sorted(self.plan.recording.restarted[node])
        )
        var = self.fresh(loop.var)
        before = self._rerun(node.bodies[0], _Again(stores, (), None))
        up_to = For(var, loop.begin, Var(loop.var), replaced(before, Var(loop.var), Var(var)))
        again = self._rerun(node.bodies[0], _Again(stores, homes, node))
        iteration = within_locals(self.tapes_of(node), (*again, *inner))
        return (self._mirrored(loop, (*starts, up_to, *iteration)), *starts)

    # Whole buffers.

    def _copy_out(self, name: str, tape: Tape) -> Stmt:
        def save(at: tuple[Expr, ...]) -> Stmt:
            return tape.save(Load(name, at, tape.buffer.dtype), at)

        return over(tape.entry, self.fresh, save)

    def _copy_in(self, name: str, tape: Tape) -> Stmt:
        return over(tape.entry, self.fresh, lambda at: Store(name, at, tape.saved(at)))


def make_tapes(tree: Tree, plan: Plan, fresh: Callable[[str], str]) -> dict[Saved, Tape]:
    """Returns the tapes of a plan."""
    buffers = buffers_of(tree.kernel)
    recorders = plan.recording.recorders
    tapes: dict[Saved, Tape] = {}
    for node in tree.nodes():
        for name in sorted(name for other, name in recorders if other is node):
            entry = buffers[name]
            if isinstance(node.stmt, Store):
                entry = dataclasses.replace(entry, shape=())
            recorder = recorders[node, name]
            around = [
                outer.stmt
                for outer in node.ancestors
                if isinstance(outer.stmt, For) and outer.is_in(recorder)
            ]
            if not entry.shape:
                around = in_order_of_memory(around, node.loops[-1:])
            tapes[node, name] = tape_for(fresh(f"{name}_tape"), entry, around, node.loops)
    return tapes
