"""Parallel loops in generated C, split into blocks that threads run.

A loop becomes a task: a function over a range of its iterations. A struct holds the buffers and
variables of its surroundings. The program that opens the library fills the slot that
`ms_parallel_for` calls. With an empty slot, or little to do, the calling thread runs the whole
range at once.

The loops of a block are a function that gcc does not inline: inlined, it multiplies its guesses of
how often nested loops run until they overflow, and leaves in loops what it takes to be seldom run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msops._loops.to_c.text import indented

SLOT = "msops_parallel_for_slot"
"""Symbol of the slot, to which the program that opens the library writes a function pointer."""

PARALLEL_FOR = f"""
typedef int ms_task(void* argument, int64_t begin, int64_t end);
extern "C" {{
int (*{SLOT})(int64_t begin, int64_t end, int64_t grain, ms_task* task, void* argument);
}}

static int ms_parallel_for(int64_t begin, int64_t end, int64_t grain, ms_task* task,
                           void* argument) {{
  if (end - begin <= grain || !{SLOT}) return task(argument, begin, end);
  return {SLOT}(begin, end, grain, task, argument);
}}"""


@dataclass(frozen=True)
class Captured:
    """A buffer or variable that a task uses of its surroundings: its type in C, and its name."""

    kind: str
    name: str


def task_call(
    number: int, captured: Sequence[Captured], begin: str, end: str, grain: int
) -> list[str]:
    """Returns the lines that run a task.

    Args:
      number: the number of the task.
      captured: the buffers and variables that it uses of its surroundings.
      begin: the first iteration.
      end: the iteration after the last.
      grain: the fewest iterations that are worth a thread.
    """
    names = ", ".join(c.name for c in captured)
    return [
        "{",
        f"  struct ms_context_{number} ms_context = {{{names}}};",
        f"  const int ms_code = ms_parallel_for({begin}, {end}, {grain}, ms_task_{number}, "
        "&ms_context);",
        "  if (ms_code != 0) return ms_code;",
        "}",
    ]


def task_text(number: int, captured: Sequence[Captured], body: list[str]) -> str:
    """Returns the struct and the functions of a task whose lines are `body`."""
    fields = [f"{c.kind.removesuffix(' __restrict')} {c.name};" for c in captured]
    parameters = "".join(f"{c.kind} {c.name}, " for c in captured)
    arguments = "".join(f"ms_context->{c.name}, " for c in captured)
    return "\n".join(
        [
            f"struct ms_context_{number} {{",
            *indented(fields),
            "};",
            "",
            f"static __attribute__((noinline)) int ms_block_{number}({parameters}int64_t ms_begin, "
            "int64_t ms_end) {",
            *indented(body),
            "}",
            "",
            f"static int ms_task_{number}(void* argument, int64_t ms_begin, int64_t ms_end) {{",
            f"  const struct ms_context_{number}* const ms_context = "
            f"(const struct ms_context_{number}*)argument;",
            f"  return ms_block_{number}({arguments}ms_begin, ms_end);",
            "}",
        ]
    )
