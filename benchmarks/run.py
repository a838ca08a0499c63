"""Runs the benchmarks; `make bench` does.

    python benchmarks/run.py [name ...] [--long] [--rounds N] [--counts N ...] [--results FOLDER]
        [--no-times] [--tree FOLDER]

Prints each report, writes it with its plot to the results folder, and joins all that lie there to
one page, README.md. They run in an order of their own, whatever order they are named in.
MSOPS_BENCH_MINDSPORE names a Python with MindSpore (or several, separated as in PATH) whose times
become columns of their own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import against
import aicpu
import aot_call
import creation
import extension
import flat_memory
import host_memory
import loops
import loops_choice
import nests
import nests_threads
import parallel_for
import passes
import pyfunc_call
import tbe
import tensor_face
from machine import describe_machine
from page import write_page
from report import write_report
from settings import Settings

BENCHMARKS = {
    # Runs first, while the process is fresh: it times first calls and watches memory.
    "creation": creation.run,
    "aot_call": aot_call.run,
    "aicpu": aicpu.run,
    "pyfunc_call": pyfunc_call.run,
    "tensor_face": tensor_face.run,
    "parallel_for": parallel_for.run,
    "host_memory": host_memory.run,
    "loops": loops.run,
    "loops_choice": loops_choice.run,
    "nests": nests.run,
    "nests_threads": nests_threads.run,
    "tbe": tbe.run,
    "extension": extension.run,
}
LONG_BENCHMARKS = {"passes": passes.run, "flat_memory": flat_memory.run}
# Beside another tree, which --tree names.
TREE_BENCHMARKS = {"against": against.run}
ALL = {**BENCHMARKS, **LONG_BENCHMARKS, **TREE_BENCHMARKS}


def main() -> None:
    """Runs what the command line names, or all that do not take long."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ALL)}; the default is all of them")
    parser.add_argument("--long", action="store_true", help="run passes and flat_memory, too")
    parser.add_argument("--rounds", type=int, default=60, help="turns of each contender")
    parser.add_argument(
        "--counts",
        type=int,
        nargs="+",
        default=[20, 2**10, 2**20, 2**24],
        help="numbers of float32 elements",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder of tables and plots",
    )
    parser.add_argument(
        "--no-times", action="store_true", help="of passes: which kernels each changes, no more"
    )
    parser.add_argument(
        "--tree", type=Path, help="of against: another tree of msops, with it in its .venv"
    )
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in ALL]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
    if options.rounds < 2:
        parser.error(f"--rounds must be at least 2, to have a spread; got {options.rounds}")
    if options.tree is None and TREE_BENCHMARKS.keys() & options.names:
        parser.error("against needs --tree FOLDER, another tree of msops to compare with")
    settings = Settings(
        tuple(options.counts), options.rounds, options.results, not options.no_times, options.tree
    )
    longer = {**BENCHMARKS, **LONG_BENCHMARKS}
    wanted = options.names or (longer if options.long else BENCHMARKS)
    names = [name for name in ALL if name in wanted]
    for number, name in enumerate(names):
        if sys.stderr.isatty():
            print(f"{name}; then {', '.join(names[number + 1 :]) or 'done'}", file=sys.stderr)
        machine = describe_machine()
        report = ALL[name](settings)
        print(report.text(machine))
        print(f"Written to {write_report(report, machine, settings.results)}\n", flush=True)
        # After each: what an interrupted run has measured is on the page, too.
        page = write_page(settings.results, list(ALL))
    print(f"All results: {page}")


if __name__ == "__main__":
    main()
