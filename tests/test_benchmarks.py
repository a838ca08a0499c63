"""The timing code of the benchmarks, and one short run of each that takes no time."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from four_ways import assert_values_agree
from hypothesis import given
from hypothesis import strategies as st
from quick_cases import one_in

import msops

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"

needs_bench_extras = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="pip install .[bench]"
)


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


timing = load("timing")
report = load("report")
page = load("page")
load("nest_kernels")
NESTS = load("nest_cases").NESTS
load("everyday_kernels")
EVERYDAY = load("everyday_cases").EVERYDAY


def run_benchmarks(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "run.py"), *args, "--results", str(folder)]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=300)


def test_every_contender_has_one_turn_a_round():
    log: list[str] = []

    def contender(name):
        def call():
            log.append(name)
            time.sleep(1.3e-2)  # longer than a batch, so that one call of a turn is timed

        return call

    times = timing.take_turns({name: contender(name) for name in "abc"}, rounds=8)
    untimed, turns = log[-8 * 6 :: 2], log[-8 * 6 + 1 :: 2]
    assert untimed == turns
    rounds = [tuple(turns[i : i + 3]) for i in range(0, 24, 3)]
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)
    assert len(set(rounds)) > 1  # the order changes
    assert all(len(times[name].seconds) == 8 for name in "abc")
    assert all(min(times[name].seconds) >= 1.3e-2 for name in "abc")


def test_seconds_are_those_of_one_call_however_many_make_a_batch():
    times = timing.take_turns({"nap": lambda: time.sleep(2e-4)}, rounds=9)["nap"]
    assert 2e-4 <= times.microseconds.low * 1e-6 < 1e-3


def test_ratios_are_taken_round_by_round():
    # A machine that slows down to a tenth in the second round leaves the ratio alone.
    ours, baseline = timing.Times((2.0, 20.0, 2.0)), timing.Times((1.0, 10.0, 1.0))
    assert ours.over(baseline) == timing.Spread(2.0, 2.0, 2.0)


@given(st.lists(st.floats(1e-9, 1e3), min_size=2, max_size=50))
def test_spread_is_numpys_median_and_quartiles(values):
    spread = timing.spread_of(values)
    expected = np.percentile(values, [50, 25, 75])
    np.testing.assert_allclose([spread.median, spread.low, spread.high], expected, rtol=1e-12)


def test_a_verdict_names_what_missed_its_target():
    assert report.judge("fast", {"here": 1.0, "there": 1.2}, 1.05).endswith(
        "**missed: 1.200 at there**"
    )
    assert report.judge("fast", {"here": 1.0, "there": 1.05}, 1.05).endswith(
        "**met (at most 1.050)**"
    )


def write_report(folder: Path, name: str, day: str, *verdicts: str, plot: bool = False) -> str:
    """Writes a report as a benchmark does; returns its text."""
    table = report.Table("Calls", ["elements", "us"], [["20", name]])
    made = report.Report(name, f"Cost of {name}, x/y", "Turns.", [table], verdicts)
    if plot:
        (folder / f"{name}.png").touch()
    return report.write_report(made, [f"Measured: {day} 10:00 UTC"], folder).read_text()


def test_the_page_holds_every_report_with_its_plot_in_the_order_of_the_runs(tmp_path):
    met = report.judge("fast", {"here": 1.0}, 2.0)
    missed = report.judge("faster", {"here": 1.0}, 0.5)
    late = write_report(tmp_path, "late", "2026-02-03", plot=True)
    early = write_report(tmp_path, "early", "2026-01-02", met, missed, met)
    write_report(tmp_path, "unknown", "2026-01-02")
    text = page.write_page(tmp_path, ["early", "never_run", "late"]).read_text()
    assert text.index(early) < text.index(late) < text.index("](late.png)")
    assert "early.png" not in text
    assert "unknown" not in text
    rows = [line for line in text.partition("## ")[0].splitlines() if line.startswith("| [")]
    assert rows == [
        "| [Cost of early, x/y](#cost-of-early-xy) | 2026-01-02 | 2 met, 1 missed |",
        "| [Cost of late, x/y](#cost-of-late-xy) | 2026-02-03 | none |",
    ]


def test_a_later_run_of_one_benchmark_changes_its_section_alone(tmp_path):
    order = ["first", "second"]
    stays = write_report(tmp_path, "first", "2026-01-02")
    old = write_report(tmp_path, "second", "2026-01-02")
    assert old in page.write_page(tmp_path, order).read_text()
    new = write_report(tmp_path, "second", "2026-03-04")
    text = page.write_page(tmp_path, order).read_text()
    assert stays in text
    assert new in text
    assert old not in text


def test_a_report_without_a_day_says_so(tmp_path):
    (tmp_path / "old.md").write_text("## Older\n\n- Machine: a machine\n")
    assert "| not recorded | none |" in page.write_page(tmp_path, ["old"]).read_text()


PLOTTED = ("aicpu", "aot_call", "pyfunc_call")
UNPLOTTED = ("tensor_face", "parallel_for", "host_memory")


@pytest.mark.slow
@needs_bench_extras
@pytest.mark.parametrize(
    "benchmarks",
    [("aot_call", "tensor_face"), (*PLOTTED, *UNPLOTTED)],
    ids=["two", "six"],
)
def test_a_run_prints_its_tables_and_writes_them_with_a_plot(tmp_path, benchmarks):
    result = run_benchmarks(tmp_path, *benchmarks, "--rounds", "2", "--counts", "20", "1024")
    assert result.returncode == 0, result.stderr
    names = [f"{name}.md" for name in benchmarks] + ["README.md"]
    names += [f"{name}.png" for name in PLOTTED if name in benchmarks]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    written = (tmp_path / "aot_call.md").read_text()
    assert written in result.stdout
    assert written in (tmp_path / "README.md").read_text()
    assert re.search(r"^- Measured: \d{4}-\d\d-\d\d \d\d:\d\d UTC$", written, re.M)
    assert re.search(r"^- Machine: .+ cores", written, re.M)
    for table in written.split("### ")[1:]:
        rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")]
        assert [row[0].strip() for row in rows[2:]] == ["20", "1 Ki"]
        assert len({len(row) for row in rows}) == 1
        assert all(re.fullmatch(r" +[\d,.]+ \([\d,.]+-[\d,.]+\) ", cell) for cell in rows[2][1:])


def test_committed_plots_have_twice_the_width_of_a_page() -> None:
    plots = list((BENCHMARKS / "results").glob("*.png"))
    assert {path.stem for path in plots} >= {"aot_call", "pyfunc_call"}
    for path in plots:
        # Bytes 16 to 20 of a PNG are its width; a page's text is some 730 pixels wide.
        assert int.from_bytes(path.read_bytes()[16:20], "big") >= 1460, path.name


@needs_bench_extras
def test_creation_runs_before_all_others_and_once(tmp_path):
    # What benchmarks measure takes time, their order none.
    code = f"""
import sys
sys.path.insert(0, {str(BENCHMARKS)!r})
import run
from report import Report
for name in run.ALL:
    run.ALL[name] = lambda settings, name=name: Report(name, name, "Turns.", [], ())
run.main()
"""
    command = [sys.executable, "-c", code, "tensor_face", "creation", "creation"]
    result = subprocess.run(
        [*command, "--results", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    written = re.findall(r"^Written to .*/(\w+)\.md$", result.stdout, re.M)
    assert written == ["creation", "tensor_face"]


@pytest.mark.slow
@needs_bench_extras
@pytest.mark.parametrize(
    "python",
    ["/no/such/python", sys.executable],
    ids=["missing", "without"],
)
def test_a_python_without_mindspore_is_named(tmp_path, python):
    result = run_benchmarks(
        tmp_path, "aot_call", "--rounds", "2", "--counts", "20", MSOPS_BENCH_MINDSPORE=python
    )
    assert result.returncode == 1
    assert f"MSOPS_BENCH_MINDSPORE: cannot run {python}" in result.stderr or (
        f"MSOPS_BENCH_MINDSPORE: {python} failed with status 1" in result.stderr
        and "No module named 'mindspore'" in result.stderr
    )


@needs_bench_extras
@pytest.mark.slow
def test_an_unknown_benchmark_is_answered_with_those_there_are(tmp_path):
    result = run_benchmarks(tmp_path, "no_such")
    assert result.returncode == 2
    assert "no benchmark 'no_such'; there are creation, aot_call" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
@pytest.mark.parametrize("form", ["native", "xla"])
def test_loop_nests_compute_what_jax_numpy_does(nest, form):
    inputs = nest.inputs(40)
    op = msops.Custom(nest.kernel, func_type="akg", compile_attrs={"lower": form})
    found, expected = (jax.tree.leaves(function(*inputs)) for function in (op, nest.by_hand))
    for one, other in zip(found, expected, strict=True):
        scale = 1e-4 * np.abs(other).max()
        # Whether a point leaves the Mandelbrot set may depend on a rounding.
        assert np.isclose(one, other, 1e-4, scale).mean() > 0.99


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("each", one_in(4, EVERYDAY), ids=lambda each: each.name)
def test_everyday_kernels_compute_what_python_does(each):
    # Rows in lanes come in groups of 16 and 32, and the rest.
    assert_values_agree(each.kernel, *each.inputs(53), rtol=1e-3)
