"""What each optional pass of the loop compiler earns, over all kernels that there are."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import jax
from pass_kernels import SOURCES, Case, cases, kernel_of
from pass_lines import lines_only_for
from pass_trace import OPTIONAL, is_needed, times, trace
from report import Report, Table
from settings import Settings

from msops._loops import pipeline
from msops._loops.to_c.cost import native_seconds

METHOD = (
    "Every kernel of `loops`, `nests`, `everyday`, the tests' corpus, and of the folders that "
    "MSOPS_TEST_LOOPS and MSOPS_TEST_AKG name, and their gradients, compiled with all passes and "
    "without one: those whose C differs count. Lines: of modules and definitions that nothing "
    "else needs. Share: of the processor's time from the kernel to its C. Without: time of a "
    "kernel without the pass over that with it, on one thread, in turns in one process, the least"
    " of many rounds; of one kernel of each source, the longest that by estimate takes at most "
    "{most_ms} ms, if it takes {least_us} us. Passes that serve threads alone look useless here"
)
WITNESSES = Path(__file__).parent / "results" / "passes.json"
_MOST_S, _LEAST_S = 2e-2, 5e-6
_WITNESSES_OF_ONE = 3


@dataclass(frozen=True)
class _Changed:
    """A kernel whose C differs without a pass.

    Attributes:
      case: the kernel.
      compile_seconds: from the kernel to its C.
      seconds: of a call, by estimate.
    """

    case: Case
    compile_seconds: float
    seconds: float


@dataclass
class _Rent:
    """What is found of one pass.

    Attributes:
      changed: by label, the kernels whose C differs without it.
      seconds: what it took of compiling all kernels.
      factors: by label, time without it over time with it.
    """

    changed: dict[str, _Changed] = field(default_factory=dict)
    seconds: float = 0.0
    factors: dict[str, float] = field(default_factory=dict)


def run(settings: Settings) -> Report:
    """Measures what each pass earns, and records kernels that show it."""
    jax.config.update("jax_enable_x64", True)
    rents = {name: _Rent() for name in OPTIONAL}
    counts: Counter[str] = Counter()
    whole = 0.0
    for case in cases():
        kernel = kernel_of(case)
        if kernel is None:
            continue
        found = trace(kernel)
        counts[case.source] += 1
        whole += found.whole_seconds
        for name, seconds in found.seconds.items():
            rents[name].seconds += seconds
        seconds = native_seconds(found.stages.arranged)
        for name in found.changed:
            if is_needed(found, name):
                rents[name].changed[case.label] = _Changed(case, found.whole_seconds, seconds)
    WITNESSES.write_text(json.dumps({n: _witnesses(r) for n, r in rents.items()}, indent=1) + "\n")
    if settings.times:
        for name, rent in rents.items():
            _time(name, rent)
    kernels = ", ".join(f"{counts[source]} {source}" for source in SOURCES)
    return Report(
        name="passes",
        title="What each pass of the loop compiler earns",
        method=METHOD.format(most_ms=round(_MOST_S * 1e3), least_us=round(_LEAST_S * 1e6))
        + f". Kernels: {kernels}; together {whole:.1f} s to C",
        tables=[_table(rents, whole)],
    )


def _time(name: str, rent: _Rent) -> None:
    """Times one kernel of each source without a pass."""
    for source in SOURCES:
        of_source = [
            each
            for each in rent.changed.values()
            if each.case.source == source and each.seconds <= _MOST_S
        ]
        if not of_source:
            continue
        case = max(of_source, key=lambda each: each.seconds).case
        found = trace(case.make())
        try:
            other = found.without(name)
        except Exception:  # There is no C without it.
            continue
        if other is not None:
            both = {"with": (found.stages.arranged, found.stages.c), "without": other}
            seconds = times(both, case.inputs)
            if seconds["with"] >= _LEAST_S:
                rent.factors[case.label] = seconds["without"] / seconds["with"]


def _witnesses(rent: _Rent) -> list[str]:
    """Returns three kernels that a pass changes, of two sources if it can.

    Those of this repository come first, then those that compile quickly.
    """
    ranked = sorted(
        rent.changed.values(), key=lambda each: (not each.case.is_ours, each.compile_seconds)
    )
    first: dict[str, str] = {}
    for each in ranked:
        first.setdefault(each.case.source, each.case.label)
    chosen = [*list(first.values())[:2], *(each.case.label for each in ranked)]
    return list(dict.fromkeys(chosen))[:_WITNESSES_OF_ONE]


def _table(rents: Mapping[str, _Rent], whole: float) -> Table:
    columns = [
        "pass",
        "lines",
        "kernels",
        *SOURCES,
        "share, %",
        "without",
        "least",
        "most",
        "timed",
    ]
    rows = [_row(name, rent, whole) for name, rent in rents.items()]
    return Table("In the order of the pipeline", columns, rows)


def _row(name: str, rent: _Rent, whole: float) -> Sequence[str]:
    of_sources = Counter(label.partition(":")[0] for label in rent.changed)
    return [
        name,
        str(_lines(name)),
        str(len(rent.changed)),
        *(str(of_sources[source]) for source in SOURCES),
        f"{100 * rent.seconds / whole:.1f}",
        *_factors(rent.factors),
        str(len(rent.factors)),
    ]


def _factors(factors: Mapping[str, float]) -> Sequence[str]:
    """Returns the mean, where the pass does least good, and where it does most."""
    if not factors:
        return ["", "", ""]
    least, most = (pick(factors, key=factors.__getitem__) for pick in (min, max))
    mean = statistics.geometric_mean(factors.values())
    shown = (f"{factors[label]:.2f} {label}" for label in (least, most))
    return [f"{mean:.2f}", *shown]


def _lines(name: str) -> int:
    change = dict((*pipeline.PASSES_COMMON, *pipeline.PASSES_TO_C))[name]
    function: Callable[..., object] = change.func if isinstance(change, partial) else change
    return lines_only_for(function.__module__, function.__qualname__)
