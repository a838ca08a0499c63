"""Decides what the backward sweep finds again by running code again, and what by the tape.

The values of the forward sweep come back in three ways:

- A store that overwrites what an earlier statement's derivative still needs saves the old value on
  a tape, and the backward sweep puts it back (Griewank & Walther, section 4.2; "to be recorded":
  Hascoet, Naumann and Pascual, TBR analysis in reverse-mode AD, FGCS 21, 2005).
- A local buffer is gone at the end of its scope. Its values are computed again at the start of the
  scope's reversal, if what they are computed from is still there. The statement that declares it
  is its *home*.
- Otherwise an enclosing local, or in the end the kernel, is its home: where that runs, the last
  values of the local are saved on a tape.

What runs again in a home is only what some use may see. In the kernel this is the forward sweep,
which is empty where the derivatives need nothing but unchanged parameters.

Two choices are left, and made one after the other by an estimate of the whole plan (costs.py):
whether the derivative of a quotient, an exponential and the like uses the value that was stored, or
computes it again; and whether a local is computed again in its own scope, or together with the one
around it, as sums that one loop adds up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from msops._loops.gradient.costs import cost
from msops._loops.gradient.recording import Recording, Saved, homes_around, recording_of
from msops._loops.gradient.relations import (
    Derivative,
    Relations,
    Role,
    Use,
    derivative_reads,
    relations,
)
from msops._loops.gradient.tree import Node, Tree
from msops._loops.ir.nodes import For, If, Local
from msops._loops.ir.walk import loads, read_by


@dataclass
class Plan:
    """A plan of a gradient: the statements that run again, and the values on the tape.

    Attributes:
      homes: for each local needed, the statement where its values are computed again; None is the
        whole kernel.
      rerun: the stores to run again in each home.
      recording: who records what is saved.
      cleared: the stores whose element's adjoint matters before them.
      by_result: the stores whose derivative uses what they stored.
    """

    by_result: frozenset[Node] = frozenset()
    homes: dict[str, Node | None] = field(default_factory=dict)
    rerun: dict[Node | None, set[Node]] = field(default_factory=dict)
    recording: Recording = field(default_factory=lambda: Recording({}, {}))
    cleared: set[Node] = field(default_factory=set)

    def home(self, buffer: str) -> Node | None:
        """Returns where a buffer's values are computed again."""
        return self.homes.get(buffer)

    def chosen(self, derivatives: Mapping[Node, Derivative]) -> dict[Node, Derivative]:
        """Returns the derivatives with the stored value where the plan uses it."""
        return {
            node: derivative if node in self.by_result else derivative.without_result()
            for node, derivative in derivatives.items()
        }


def make_plan(tree: Tree, derivatives: Mapping[Node, Derivative]) -> Plan:
    """Returns the plan for the derivatives of a kernel's active stores."""
    found = relations(tree, derivatives)

    def planned(by_result: frozenset[Node], least: dict[str, Node]) -> tuple[float, Plan]:
        plan = _Planner(tree, derivatives, found, by_result, least).run()
        chosen = plan.chosen(derivatives)
        return cost(tree, plan.rerun.values(), plan.recording, chosen), plan

    by_result = frozenset(node for node, d in derivatives.items() if d.result)
    best = planned(by_result, {})
    for node in [node for node in derivatives if node in by_result]:
        best = min(best, planned(best[1].by_result - {node}, {}), key=itemgetter(0))
    together: dict[str, Node] = {}
    for name, node in tree.locals().items():
        outer = _home_beside(node, best[1])
        if outer is not None:
            other = planned(best[1].by_result, together | {name: outer})
            if other[0] < best[0]:
                best, together = other, together | {name: outer}
    return best[1]


def _home_beside(node: Node, plan: Plan) -> Node | None:
    """Returns the home around a local's own that starts as often as that does, if there is one."""
    if plan.homes.get(node.local.name) is not node:
        return None
    for outer in reversed(node.ancestors):
        if not isinstance(outer.stmt, Local):
            return None
        if outer in plan.rerun:
            return outer
    return None


@dataclass
class _Planner:
    """Finds the smallest plan: an empty one grows by all that it implies, until nothing is new.

    Attributes:
      tree: the kernel.
      derivatives: of its active stores.
      relations: of the reads of all these.
      by_result: the stores whose derivative uses what they stored.
      least: for some locals, the innermost statement that may be their home.
    """

    tree: Tree
    derivatives: Mapping[Node, Derivative]
    relations: Relations
    by_result: frozenset[Node]
    least: Mapping[str, Node]
    plan: Plan = field(default_factory=Plan)
    uses: set[Use] = field(default_factory=set)
    saving: set[Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.declared = self.tree.locals()
        self.reads = {node: read_by(node.stmt) for node in self.tree.nodes()}
        self.plan.by_result = self.by_result
        for node, derivative in self.plan.chosen(self.derivatives).items():
            is_alone = derivative.result is None and self.derivatives[node].result is not None
            role: Role = "alone" if is_alone else "derivative"
            self.uses |= {(node, role, name) for name in derivative_reads(derivative)}
            if derivative.result:
                self.uses.add((node, "result", node.store.buffer))

    def run(self) -> Plan:
        """Returns the plan."""
        state = None
        while state != (state := (len(self.uses), frozenset(self.saving), self._restarting())):
            self.grow()
        self.plan.cleared = {node for node in self.derivatives if self.matters_before(node)}
        return self.plan

    def grow(self) -> None:
        """Adds what the present plan implies."""
        for node in {*self.derivatives, *self.saving}:
            self.uses |= set(self._uses(node))
        plan = self.plan
        # A buffer that is found here gets its home in the next round.
        known = frozenset(self.uses)
        needed = sorted({name for _, _, name in known if name in self.declared})
        plan.homes = {name: self._home(name) for name in needed}
        plan.rerun = {}
        for region in dict.fromkeys((None, *plan.homes.values())):
            own = [use for use in known if self._belongs(use[2], region)]
            plan.rerun[region], outside = self._slice(region, own)
            self.uses |= outside
        self.saving = {
            store
            for use in known
            for store in self.relations.killed[use]
            if self._overwrites(store, use, self._run_beside(store, plan.home(use[2])))
        }
        plan.recording = recording_of(set(self._saved()), plan.homes, plan.rerun, self.declared)
        for loop, changed in plan.recording.restarted.items():
            self.uses |= {use for use in self._restart(loop) if use[2] not in changed}

    def _restarting(self) -> frozenset[Node]:
        return frozenset(self.plan.recording.restarted)

    def _run_beside(self, store: Node, home: Node | None) -> set[Node]:
        """Returns what runs again in a home, with what restarted loops around a store run in it."""
        found = self.plan.rerun.get(home, set())
        for loop in self._restarting():
            if store.is_in(loop):
                regions = homes_around(loop, self.plan.rerun)
                found = found | {each for region in regions for each in self.plan.rerun[region]
                                 if each.is_in(loop)}  # fmt: skip
        return found

    def _overwrites(self, store: Node, use: Use, rerun: set[Node]) -> bool:
        """Returns whether a store that is run again may be the first to overwrite what a use saw.

        What the others overwrite is not needed: the first one puts the right value back.
        """
        return store in rerun and rerun.isdisjoint(self.relations.hidden[use, store])

    def matters_before(self, node: Node) -> bool:
        """Returns whether the adjoint of a store's element is used before the store."""
        name = node.store.buffer
        if any(name == buffer.name for buffer in self.tree.kernel.parameters):
            return True
        if any(other in self.derivatives for other in self.relations.overwritten[node]):
            return True
        return any(
            node in self.relations.killed[other, "forward", name] for other in self.derivatives
        )

    def _belongs(self, name: str, region: Node | None) -> bool:
        if name in self.declared:
            return self.plan.homes[name] is region
        return region is None

    def _saved(self) -> Iterator[Saved]:
        """Yields what is saved: by stores, and at the end of locals whose home is another one."""
        yield from ((node, node.store.buffer) for node in self.saving)
        for name, home in self.plan.homes.items():
            if home is not self.declared[name]:
                yield self.declared[name], name

    def _uses(self, node: Node) -> Iterator[Use]:
        """Yields what decides over the iterations and elements of the reversal of a store."""
        for outer in node.ancestors:
            if isinstance(outer.stmt, For | If):
                yield from self._read_by(outer)
        for index in node.store.indices:
            yield from ((node, "forward", load.buffer) for load in loads(index))

    def _restart(self, loop: Node) -> Iterator[Use]:
        """Yields what is read from outside when a loop runs again in its own reversal."""
        for home in homes_around(loop, self.plan.rerun):
            for store in self.plan.rerun[home]:
                if store.is_in(loop):
                    for node in (store, *(o for o in store.ancestors if o.is_in(loop))):
                        yield from (use for use in self._read_by(node)
                                    if not self._is_declared_in(use[2], loop))  # fmt: skip

    def _read_by(self, node: Node) -> Iterator[Use]:
        return ((node, "forward", name) for name in self.reads[node])

    def _home(self, name: str) -> Node | None:
        """Returns the innermost statement whose start has all that a local is computed from."""
        node = self.declared[name]
        uses = [use for use in self.uses if use[2] == name]
        around = [outer for outer in (*node.ancestors, node) if isinstance(outer.stmt, Local)]
        least = self.least.get(name, node)
        for region in reversed(around[: around.index(least) + 1]):
            outside = {use[2] for use in self._slice(region, uses)[1]}
            if not any(store.store.buffer in outside for store in self.tree.stores(region)):
                return region
        return None

    def _slice(self, region: Node | None, uses: list[Use]) -> tuple[set[Node], set[Use]]:
        """Returns the stores in a region that uses may see, and what these read from outside."""
        stores: set[Node] = set()
        outside: set[Use] = set()
        work = list(uses)
        while work:
            use = work.pop()
            if region is not None and not self._is_declared_in(use[2], region):
                outside.add(use)
                continue
            for store in self.relations.seen[use] - stores:
                stores.add(store)
                around = [outer for outer in store.ancestors if outer.is_in(region)]
                for node in (store, *around):
                    work += self._read_by(node)
        return stores, outside

    def _is_declared_in(self, name: str, region: Node) -> bool:
        node = self.declared.get(name)
        return node is not None and (node is region or node.is_in(region))
