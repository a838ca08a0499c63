"""Loop IR as C: a function with MindSpore's aot signature, for the toolchain to compile."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from msops._loops.ir.nodes import Kernel
from msops._loops.ir.operators import size_bytes
from msops._loops.to_c.printing.dialect import C
from msops._loops.to_c.printing.library import declarations, libraries_of, words_in
from msops._loops.to_c.printing.printer import CPrinter
from msops._loops.to_c.printing.storage import Placement, Storage, place_buffers
from msops._loops.to_c.printing.thread_calls import PARALLEL_FOR
from msops._loops.to_c.printing.vectors_in_order import FLAG_OF_GCC, has_vectors_in_order
from msops._loops.to_c.text import Unproven, Values, indented
from msops._loops.to_c.text.names import plain_name

_LARGE_BYTES = 1 << 22
"""Bytes of an array for which numpy requests huge pages, too."""

HUGE_PAGES = """
// A result is new memory as a rule, and the system brings in a page at its first use: 512 times as
// often if the pages are small. Where it is not, or the system has no such pages, nothing changes.
static void ms_huge_pages(void* memory, uint64_t size) {
#ifdef __linux__
  const uint64_t page = 1 << 21;
  const uint64_t begin = ((uint64_t)memory + page - 1) / page * page;
  const uint64_t end = ((uint64_t)memory + size) / page * page;
  if (begin < end) madvise((void*)begin, end - begin, 14);  // MADV_HUGEPAGE
#endif
}"""

_LONG = 100
"""Lines of a body that stays a function of its own: inside of another one gcc keeps variables of
inner loops in memory, and a gradient of durbin takes twice as long. A call takes 1 ns."""
_SHARED_BYTES = 1 << 20
"""The fewest bytes of an array that are worth a thread where zeros or a copy fill it."""

_FILLS = {
    "ms_zero": """
static int ms_zero(void* to, int64_t begin, int64_t end) {
  memset((char*)to + begin, 0, end - begin);
  return 0;
}""",
    "ms_copy": """
static int ms_copy(void* arrays, int64_t begin, int64_t end) {
  char* const* const to_and_source = (char* const*)arrays;
  memcpy(to_and_source[0] + begin, to_and_source[1] + begin, end - begin);
  return 0;
}""",
}
"""By name, the tasks of threads that share filling an array."""


@dataclass(frozen=True)
class CSource:
    """A kernel as C.

    Attributes:
      text: the translation unit.
      symbol: the function in it; `<symbol>Message` returns the meaning of its error codes.
      workspaces: sizes of the memory it wants beside inputs and outputs, in bytes.
      libraries: the names of those that it calls, beside the C library.
    """

    text: str
    symbol: str
    workspaces: tuple[int, ...]
    libraries: tuple[str, ...]


def c_source(
    kernel: Kernel,
    unproven: Unproven | None = None,
    overwritten: Collection[str] = (),
    *,
    check_bounds: bool = False,
    symbol: str | None = None,
) -> CSource:
    """Returns a kernel as C.

    Args:
      kernel: after `pipeline.STAGES_TO_C`.
      unproven: the indices that may be out of range; None if that was not analysed: then the
        ranges of loops decide.
      overwritten: names of buffers and locals that need not be zero at the start.
      check_bounds: an index out of range is an error of the run; else loads take the nearest
        element, and stores are dropped.
      symbol: name of the function; None takes the kernel's name with an ending.
    """
    symbol = symbol or f"{plain_name(kernel.name)}_kernel"
    storage = place_buffers(kernel, overwritten)
    values = Values(kernel, C, unproven, overwritten, check_bounds)
    printer = CPrinter(kernel, values)
    body = printer.block(kernel.body)
    workspaces = (*storage.workspaces, *map(size_bytes, printer.large_locals))
    first = len(kernel.parameters) + len(kernel.results) + len(storage.workspaces)
    pointers = {
        **{p.buffer.name: p.position for p in storage.placements},
        **{buffer.name: first + i for i, buffer in enumerate(printer.large_locals)},
    }
    body_function = _body_function(printer, list(pointers), body)
    large = _large_results(kernel, storage)
    arguments = [
        f"({printer.capture_type(name).removesuffix(' __restrict')})params[{position}]"
        for name, position in pointers.items()
    ]
    entry = _entry(symbol, storage, large, arguments, is_shared=bool(printer.tasks))
    parts = [
        *([HUGE_PAGES.strip()] if large else []),
        *values.helpers.values(),
        *([PARALLEL_FOR.strip()] if printer.tasks else []),
        *(function.strip() for name, function in _FILLS.items() if f", {name}, " in entry),
        *printer.tasks,
        body_function,
        entry,
        *([_messages(symbol, values.checks)] if values.checks else []),
    ]
    text = "\n\n".join(parts)
    flag = FLAG_OF_GCC if has_vectors_in_order(kernel) else ""
    words = words_in(text)
    whole = f"{flag}{declarations(words)}\n\n{text}\n"
    return CSource(whole, symbol, workspaces, libraries_of(words))


def _body_function(printer: CPrinter, names: list[str], body: list[str]) -> str:
    """Returns the function that runs the kernel; `__restrict` counts on parameters only."""
    parameters = ", ".join(
        f"{printer.capture_type(name)} {printer.values.names[name]}" for name in names
    )
    lines = indented(printer.function_body(body))
    apart = "__attribute__((noinline)) " if len(lines) > _LONG else ""
    return "\n".join([f"static {apart}int ms_body({parameters}) {{", *lines, "}"])


def _large_results(kernel: Kernel, storage: Storage) -> list[Placement]:
    """Returns the placements of large results; workspaces do not count, for they are reused."""
    first = len(kernel.parameters)
    results = range(first, first + len(kernel.results))
    return [
        placement
        for placement in storage.placements
        if placement.position in results and size_bytes(placement.buffer) >= _LARGE_BYTES
    ]


def _entry(
    symbol: str,
    storage: Storage,
    large: list[Placement],
    arguments: list[str],
    *,
    is_shared: bool,
) -> str:
    """Returns the function that is called: it fills buffers, runs the body, copies results.

    Args:
      symbol: its name.
      storage: the place of each buffer.
      large: the placements of large results.
      arguments: those of the body.
      is_shared: threads share the loops of the kernel, and so the filling of arrays.
    """
    lines = [
        *(f"ms_huge_pages(params[{p.position}], {size_bytes(p.buffer)});" for p in large),
        *(line for p in storage.placements for line in _preparation(p, is_shared=is_shared)),
        f"const int code = ms_body({', '.join(arguments)});",
        *(_copy(*repeat, is_shared=is_shared) for repeat in storage.repeats),
        "return code;",
    ]
    head = f'extern "C" int {symbol}('
    return "\n".join(
        [
            f"{head}int nparam, void** params, int* ndims, int64_t** shapes,",
            f"{' ' * len(head)}const char** dtypes, void* stream, void* extra) {{",
            *indented(lines),
            "}",
        ]
    )


def _preparation(placement: Placement, *, is_shared: bool) -> list[str]:
    """Returns the lines that prepare a buffer before the body runs."""
    if placement.start not in ("copy", "zero"):
        return []
    size = size_bytes(placement.buffer)
    if size == 0:
        return []
    if placement.start == "copy":
        # A result that is also a parameter may have the parameter's buffer.
        copy = _copy(placement.position, placement.source, size, is_shared=is_shared)
        return [f"if (params[{placement.position}] != params[{placement.source}]) {copy}"]
    to = f"params[{placement.position}]"
    if is_shared and size > _SHARED_BYTES:
        return [f"ms_parallel_for(0, {size}, {_SHARED_BYTES}, ms_zero, {to});"]
    return [f"memset({to}, 0, {size});"]


def _copy(to: int, source: int, size: int, *, is_shared: bool) -> str:
    if is_shared and size > _SHARED_BYTES:
        arrays = f"void* ms_arrays[] = {{params[{to}], params[{source}]}};"
        call = f"ms_parallel_for(0, {size}, {_SHARED_BYTES}, ms_copy, ms_arrays);"
        return f"{{ {arrays} {call} }}"
    return f"memcpy(params[{to}], params[{source}], {size});"


def _messages(symbol: str, checks: list[str]) -> str:
    """Returns the function from an error code to its meaning."""
    texts = [f"  {_literal(text)}," for text in checks]
    return "\n".join(
        [
            "static const char* const ms_messages[] = {",
            *texts,
            "};",
            "",
            f'extern "C" const char* {symbol}Message(int code) {{',
            f"  return code > 0 && code <= {len(checks)} ? ms_messages[code - 1] : 0;",
            "}",
        ]
    )


def _literal(text: str) -> str:
    """Returns a text as a C string; bytes beyond ASCII in octal, which ends after three digits."""
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "replace")
    )
    return f'"{escaped}"'
