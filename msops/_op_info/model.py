"""Op info as frozen values: what one op accepts on one target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["required", "dynamic", "optional"]
Target = Literal["CPU", "GPU", "Ascend"]

# The only format a tensor has on CPU and GPU; a row with another one matches there through "".
DEFAULT_FORMAT = "DefaultFormat"


@dataclass(frozen=True)
class Port:
    """One input or output: a tensor, a list of tensors (dynamic), or one that may be absent."""

    name: str
    kind: Kind = "required"


@dataclass(frozen=True)
class Attribute:
    """One attribute of an op.

    Attributes:
      name: the name a kernel asks for.
      required: whether a call must give it when it has no default.
      type: a key of `attributes.TYPES`, such as ``"listInt"``.
      default: the default as text, decoded by `type` when it is used.
      value: the fixed value, decoded; such an attribute is never given by a call.
    """

    name: str
    required: bool
    type: str
    default: str | None = None
    value: object | None = None


@dataclass(frozen=True)
class Row:
    """One accepted combination: a (dtype, format) pair per port; ``""`` accepts anything."""

    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class OpInfo:
    """The inputs, dtypes and attributes that one op accepts on one target.

    No inputs listed means that their number is undetermined; no rows, that every dtype is accepted.
    `by_name`: a call gives attributes by their names only. No target: the attributes of an op
    without op info of its author; it guards nothing.
    """

    op_name: str
    target: Target | Literal[""]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    attributes: tuple[Attribute, ...]
    rows: tuple[Row, ...]
    by_name: bool = False
