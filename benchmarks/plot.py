"""Plots of costs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from timing import Spread

try:
    import matplotlib
except ImportError as error:
    sys.exit(f"benchmarks: {error}.\nInstall what they need: pip install matplotlib")

matplotlib.use("Agg")
from matplotlib import pyplot


def plot_costs(path: Path, title: str, series: Mapping[str, Mapping[int, Spread]]) -> None:
    """Draws microseconds a call over the number of elements, with quartiles as a band."""
    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for label, points in series.items():
        counts, spreads = list(points), list(points.values())
        (line,) = axes.plot(
            counts,
            [spread.median for spread in spreads],
            marker="o",
            label=label,
            linestyle="--" if "eager" in label else "-",
        )
        axes.fill_between(
            counts,
            [spread.low for spread in spreads],
            [spread.high for spread in spreads],
            color=line.get_color(),
            alpha=0.2,
        )
    axes.set(xscale="log", yscale="log", xlabel="elements", ylabel="microseconds a call")
    _save(figure, axes, path, title)


def plot_memory(path: Path, title: str, series: Mapping[str, Sequence[tuple[int, float]]]) -> None:
    """Draws resident memory, in MiB over the start, over the number of calls."""
    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for label, points in series.items():
        axes.plot([calls for calls, _ in points], [mib for _, mib in points], label=label)
    axes.set(xlabel="calls", ylabel="MiB over the start")
    _save(figure, axes, path, title)


def plot_ratios(path: Path, title: str, series: Mapping[str, Mapping[str, float]]) -> None:
    """Draws ratios by case: a row for each case, a marker for each contender that runs it."""
    cases = list(dict.fromkeys(case for points in series.values() for case in points))
    figure, axes = pyplot.subplots(figsize=(7, 0.2 * len(cases) + 1.5), layout="constrained")
    for label, points in sorted(series.items()):
        rows = [cases.index(case) for case in points]
        axes.plot(list(points.values()), rows, linestyle="", marker="o", label=label)
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="ratio of times, less is better", ylim=(len(cases), -1))
    axes.set_yticks(range(len(cases)), cases, fontsize=7)
    _save(figure, axes, path, title)


def _save(figure, axes, path: Path, title: str) -> None:
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Twice the width of a page's text, for screens of twice the resolution.
    figure.savefig(path, dpi=210)
    pyplot.close(figure)
