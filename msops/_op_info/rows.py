"""Reads the dtype_format rows of op info dicts, and the older form of a column per port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msops._base.dtypes import BY_NAME, DTYPES
from msops._op_info.fields import choice_of
from msops._op_info.model import Kind, Row
from msops.errors import OpInfoTypeError, OpInfoValueError

_CONTAINERS = ("tuple", "list")
_DTYPE_NAMES = {"": ""} | {name: name for name in BY_NAME} | {row.title: row.name for row in DTYPES}

RawEntry = tuple[str, ...]
RawRow = tuple[RawEntry, ...]


def read_rows(
    item: Mapping[str, Any],
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
    who: str,
) -> tuple[RawRow, ...]:
    """Returns the rows with their entries in the order of inputs and outputs."""
    rows = item.get("dtype_format") or _rows_of_columns((*inputs, *outputs), who)
    if not isinstance(rows, (list, tuple)) or not all(isinstance(r, (list, tuple)) for r in rows):
        raise OpInfoTypeError.explained(
            who,
            f"expected 'dtype_format' of the op info to be a list of rows; got {rows!r}",
            "Build the op info with CustomRegOp.",
        )
    for row in rows:
        if len(row) != len(inputs) + len(outputs):
            raise OpInfoValueError.explained(
                who,
                f"expected every dtype_format row to have {len(inputs) + len(outputs)} "
                f"entries, one per input and output; got {row!r}",
                "Give each row one entry per input and then one per output.",
            )
    return tuple(tuple(_read_row_entry(entry, who) for entry in row) for row in rows)


def _rows_of_columns(ports: Sequence[Mapping[str, Any]], who: str) -> list[list[tuple[Any, Any]]]:
    """Returns the rows of an op info without dtype_format, whose ports list dtypes and formats.

    Source: MindSpore 2.7.2, ``oplib.cc`` ``DecodeInputOutput``; hand-written op info uses it.
    """
    if not any("dtype" in port for port in ports):
        return []
    columns = []
    for port in ports:
        dtypes, formats = port.get("dtype"), port.get("format")
        if not isinstance(dtypes, (list, tuple)) or not isinstance(formats, (list, tuple)):
            raise _uneven_columns(who)
        if len(dtypes) != len(formats):
            raise _uneven_columns(who)
        columns.append(list(zip(dtypes, formats, strict=True)))
    if len({len(column) for column in columns}) != 1:
        raise _uneven_columns(who)
    return [list(row) for row in zip(*columns, strict=True)]


def _uneven_columns(who: str) -> OpInfoValueError:
    return OpInfoValueError.explained(
        who,
        "expected every input and output to list 'dtype' and 'format', all of one length; "
        "got lists that are missing or differ",
        "Complete the lists, or write rows with .dtype_format(...) of CustomRegOp.",
    )


def _read_row_entry(entry: Any, who: str) -> RawEntry:
    """Returns (dtype, format) or (dtype, format, container), the dtype by its one name."""
    remedy = "Use a constant such as DataType.F32_Default."
    is_entry = isinstance(entry, (list, tuple)) and len(entry) in (2, 3)
    if not is_entry or not all(isinstance(text, str) for text in entry):
        raise OpInfoTypeError.explained(
            who, f"expected a dtype_format entry to be two or three texts; got {entry!r}", remedy
        )
    dtype, *rest = entry
    if dtype not in _DTYPE_NAMES:
        choice_of(dtype, tuple(BY_NAME), "the dtype of a dtype_format entry", remedy, who)
    if len(entry) == 3:
        choice_of(entry[2], _CONTAINERS, "the third text of a dtype_format entry", remedy, who)
    return (_DTYPE_NAMES[dtype], *rest)


def kinds_of_rows(rows: Sequence[RawRow], count: int) -> list[Kind | None]:
    """Returns "dynamic" for each port that some row marks as a tuple or list of tensors."""
    return [
        "dynamic" if any(len(row[position]) == 3 for row in rows) else None
        for position in range(count)
    ]


def as_row(entries: RawRow, inputs: int) -> Row:
    pairs = tuple((dtype, layout) for dtype, layout, *_ in entries)
    return Row(pairs[:inputs], pairs[inputs:])
