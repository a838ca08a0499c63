"""This tree's loop compiler beside that of another tree: kernels, compile time, memory."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
from pass_kernels import SOURCES, Case, cases
from program_times import in_turns
from report import Report, Table, judge
from settings import Settings
from tree_programs import Program, programs_of, python_of

METHOD = (
    "Every kernel of `loops`, `nests`, `everyday`, the tests' corpus, and of the folders that "
    "MSOPS_TEST_LOOPS and MSOPS_TEST_AKG name, and their gradients, compiled by this tree and by "
    "another (--tree FOLDER, {other}), each in a process of its own. Time: of a call of the C on "
    "one thread over that of the other tree's, both libraries in one process, in turns, the least"
    " of many rounds; once more and for longer where they differ by {again} %. Programs of equal "
    "instructions count as 1.00. Passes: processor time from the kernel to its C. Compiler: "
    "processor time of the C compiler. Peak: of a new process that compiles the kernel with the "
    "longest C"
)
_AGAIN, _LONGER_S = 1.06, 2.0
_TREES = ("this", "other")
_WORST = 10


@dataclass(frozen=True)
class Compared:
    """One kernel in both trees.

    Attributes:
      programs: by tree.
      is_same: whether both trees make the same program of it.
      seconds: of a call by tree; empty where the programs are the same.
      agree: whether both compute the same.
    """

    programs: Mapping[str, Program]
    is_same: bool
    seconds: Mapping[str, float]
    agree: bool

    @property
    def label(self) -> str:
        """The kernel's source and name."""
        return self.programs["this"].label

    @property
    def source(self) -> str:
        """The kernel's source, of `SOURCES`."""
        return self.label.partition(":")[0]

    @property
    def ratio(self) -> float:
        """Time of this tree's program over that of the other's."""
        return 1.0 if self.is_same else self.seconds["this"] / self.seconds["other"]


def run(settings: Settings) -> Report:
    """Compares this tree with that of the settings."""
    jax.config.update("jax_enable_x64", True)
    assert settings.tree is not None, "run.py asks for it"
    pythons = {"this": sys.executable, "other": python_of(settings.tree)}
    found = programs_of(pythons)
    compared = [
        _compare(case, {tree: found[tree][case.label] for tree in _TREES})
        for case in cases()
        if all(case.label in found[tree] for tree in _TREES)
    ]
    largest = max(compared, key=lambda each: each.programs["other"].length).label
    peaks = _peaks(pythons, largest)
    return Report(
        name="against",
        title="The loop compiler beside that of an earlier tree",
        method=METHOD.format(other=_commit(settings.tree), again=round(100 * (_AGAIN - 1))),
        tables=[
            _times_table(compared),
            _extremes_table("The slowest beside the other tree", compared, slowest=True),
            _extremes_table("The quickest beside the other tree", compared, slowest=False),
            _compile_table(compared),
            _peak_table(largest, peaks),
        ],
        verdicts=verdicts(compared, peaks),
    )


def _compare(case: Case, programs: Mapping[str, Program]) -> Compared:
    if len({program.code for program in programs.values()}) == 1:
        return Compared(programs, True, {}, True)
    turns = in_turns(programs, case.inputs())
    found = Compared(programs, False, turns.seconds, turns.agree)
    if max(found.ratio, 1 / found.ratio) < _AGAIN:
        return found
    longer = in_turns(programs, case.inputs(), _LONGER_S).seconds
    best = {tree: min(seconds, longer[tree]) for tree, seconds in turns.seconds.items()}
    return Compared(programs, False, best, turns.agree)


def _peaks(pythons: Mapping[str, str], label: str) -> dict[str, float]:
    """Returns by tree the MiB of a new process that compiles a kernel."""
    alone = programs_of(pythons, [label])
    return {tree: alone[tree][label].peak_mib for tree in _TREES}


def verdicts(compared: Sequence[Compared], peaks: Mapping[str, float]) -> Sequence[str]:
    """Returns what is aimed at, and what was found."""
    ratios = {each.label: each.ratio for each in compared}
    sources = ("loops", "akg")
    first = {each.label: each.ratio for each in compared if each.source in sources}
    passes = statistics.median(_ratios(compared, lambda program: program.pass_seconds))
    memory = {"all": peaks["this"] / peaks["other"]}
    wrong = [each.label for each in compared if not each.agree]
    return [
        judge(
            "geometric mean at most 1.00", {"all": statistics.geometric_mean(ratios.values())}, 1
        ),
        *([judge("none of loops and AKG above 1.10", first, 1.10)] if first else []),
        judge("none at all above 1.25", ratios, 1.25),
        judge("passes at most 0.35 in the median", {"all": passes}, 0.35),
        judge("memory at most the other tree's", memory, 1.0),
        f"Results that differ: {', '.join(wrong) or 'none'}",
    ]


def _ratios(compared: Sequence[Compared], what: Callable[[Program], float]) -> list[float]:
    return [what(each.programs["this"]) / what(each.programs["other"]) for each in compared]


def _times_table(compared: Sequence[Compared]) -> Table:
    columns = ["source", "kernels", "same program", "geometric mean", "median", "least", "most"]
    rows = []
    for source, of_source in _by_source(compared):
        ratios = [each.ratio for each in of_source]
        rows.append(
            [
                source,
                str(len(of_source)),
                str(sum(each.is_same for each in of_source)),
                *(f"{of(ratios):.2f}" for of in (statistics.geometric_mean, statistics.median)),
                *(f"{of(ratios):.2f}" for of in (min, max)),
                *(str(sum(ratio > limit for ratio in ratios)) for limit in (1.10, 1.25)),
            ]
        )
    return Table("Time of a call, this tree / other", [*columns, "above 1.10", "above 1.25"], rows)


def _extremes_table(heading: str, compared: Sequence[Compared], *, slowest: bool) -> Table:
    timed = (each for each in compared if not each.is_same)
    ranked = sorted(timed, key=lambda each: each.ratio, reverse=slowest)[:_WORST]
    rows = [
        [
            each.label,
            *(f"{each.seconds[tree] * 1e6:,.2f}" for tree in _TREES),
            f"{each.ratio:.2f}",
        ]
        for each in ranked
    ]
    return Table(heading, ["kernel", "this tree, us", "other, us", "this / other"], rows)


def _compile_table(compared: Sequence[Compared]) -> Table:
    measures: Mapping[str, Callable[[Program], float]] = {
        "passes": lambda program: program.pass_seconds,
        "compiler": lambda program: program.compiler_seconds,
    }
    endings = ("this, s", "other, s", "ratio, median", "ratio, most")
    columns = ["source", *(f"{name}: {ending}" for name in measures for ending in endings)]
    rows = []
    for source, of_source in _by_source(compared):
        row = [source]
        for what in measures.values():
            ratios = _ratios(of_source, what)
            sums = (sum(what(each.programs[tree]) for each in of_source) for tree in _TREES)
            row += [*(f"{total:.2f}" for total in sums), f"{statistics.median(ratios):.2f}"]
            row += [f"{max(ratios):.2f}"]
        rows.append(row)
    return Table("Processor time of compiling", columns, rows)


def _by_source(compared: Sequence[Compared]) -> list[tuple[str, list[Compared]]]:
    found = [(source, [c for c in compared if c.source == source]) for source in SOURCES]
    return [*((source, kernels) for source, kernels in found if kernels), ("all", [*compared])]


def _peak_table(label: str, peaks: Mapping[str, float]) -> Table:
    row = [label, *(f"{peaks[tree]:.0f}" for tree in _TREES)]
    return Table("Peak of compiling, MiB", ["kernel", "this tree", "other"], [row])


def _commit(tree: Path) -> str:
    """Returns the commit that a tree is at, as git names it."""
    shown = subprocess.run(
        ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return shown.stdout.strip() or "of no commit"
