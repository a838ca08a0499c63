"""What an operator of op_def is: its arguments and results, read from a mapping and checked.

Source: MindSpore 2.10.0, mindspore/ops_generate/common/op_proto.py, OpProto.load_from_yaml.
"""

from __future__ import annotations

import ast
import dataclasses
import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any

from msops._base.dtypes import DTYPES
from msops._extension.graph.handlers import HANDLERS
from msops._extension.graph.kinds import WORDS, ArgumentKind, kind_of
from msops.errors import BuildError

REQUIRED = object()
"""The default of an argument that has none."""

_KEYS = {
    "operator": (
        *("args", "args_signature", "returns", "function", "class", "view", "graph_view"),
        *("dispatch", "labels", "bprop_expander", "non-differentiable", "composite", "gen_opapi"),
    ),
    "argument": (
        *("dtype", "default", "prim_init", "type_cast", "arg_handler"),
        "disable_tensor_to_scalar",
    ),
    "result": ("dtype", "inplace", "type_cast"),
    "args_signature": ("rw_write", "rw_read", "rw_ref", "dtype_group"),
    "class": ("name", "disable"),
    "function": ("name", "disable"),
    "dispatch": ("enable", "is_comm_op", "Ascend", "InternalOpAscend", "GPU", "CPU", "meta"),
}


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of an operator.

    Attributes:
      name: its name.
      kind: what it may be.
      default: its default value; `REQUIRED` if it has none. With None it may be absent.
      casts: kinds that it may be as well, and is converted from.
      handler: name of the function in `HANDLERS` that converts it, or "".
      reads_tensor: whether a tensor without axes may stand for a number.
    """

    name: str
    kind: ArgumentKind
    default: Any
    casts: tuple[ArgumentKind, ...]
    handler: str
    reads_tensor: bool

    @property
    def is_optional(self) -> bool:
        """Whether it may be None."""
        return self.default is None


@dataclasses.dataclass(frozen=True)
class OperatorDefinition:
    """An operator of op_def.

    Attributes:
      name: the operator's name.
      arguments: its arguments, in order.
      results: for each result the position of the argument that it is, changed in place, or -1.
      written: positions of the arguments that the kernel changes.
      groups: positions of arguments that are converted to one dtype.
      function: name of its function in Python, "" if it has none.
      labels: its attributes.
    """

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[int, ...]
    written: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    function: str
    labels: tuple[tuple[str, Any], ...]

    @property
    def only_written(self) -> tuple[int, ...]:
        """Positions of the arguments that the kernel changes and that are no results."""
        return tuple(position for position in self.written if position not in self.results)


def read_definition(name: Any, entry: Any, path: str) -> OperatorDefinition:
    """Returns the operator that an entry of a file defines.

    Raises:
      BuildError: the entry is malformed.
    """
    return _Reader(name, path).read(entry)


class _Reader:
    """Reads one operator; errors name it and its file."""

    def __init__(self, name: Any, path: str):
        self._name = name
        self._who = f"op_def {path}, operator {name!r}"

    def _refuse(self, problem: str, remedy: str) -> BuildError:
        return BuildError.explained(self._who, problem, remedy)

    def read(self, entry: Any) -> OperatorDefinition:
        """Returns the definition."""
        self._check_identifier(self._name, "the operator's name")
        entry = self._mapping(entry, "operator", "the operator")
        for key in ("args", "returns"):
            if key not in entry:
                raise self._refuse(
                    f"expected the keys args and returns; {key} is missing",
                    "Every operator has at least one argument and one result.",
                )
        arguments = self._arguments(entry["args"])
        names = [argument.name for argument in arguments]
        signature = self._mapping(
            entry.get("args_signature") or {}, "args_signature", "args_signature"
        )
        self._check_ignored_keys(entry)
        return OperatorDefinition(
            name=self._name,
            arguments=arguments,
            results=self._results(entry["returns"], arguments),
            written=self._written(signature, names),
            groups=self._groups(signature.get("dtype_group"), names),
            function=self._function(entry.get("function") or {}),
            labels=self._labels(entry.get("labels")),
        )

    def _mapping(self, value: Any, what: str, where: str) -> Mapping[str, Any]:
        """Checks a mapping and its keys."""
        if not isinstance(value, dict):
            raise self._refuse(
                f"expected {where} to be a mapping; got {type(value).__name__}",
                "Write its keys below it, indented.",
            )
        wrong = [str(key) for key in value if key not in _KEYS[what]]
        if wrong:
            raise self._refuse(
                f"expected the keys {', '.join(_KEYS[what])} of {where}; got {', '.join(wrong)}",
                "Correct the spelling, or take them out.",
            )
        return value

    def _named(self, value: Any, where: str) -> Mapping[str, Any]:
        """Checks a mapping whose keys are names, at least one."""
        if not isinstance(value, dict) or not value:
            raise self._refuse(
                f"expected {where} to map at least one name to what it is; got {value!r}",
                "Write 'x:' and below it 'dtype: tensor', say.",
            )
        for name in value:
            self._check_identifier(name, f"a name in {where}")
        return value

    def _check_identifier(self, name: Any, what: str) -> None:
        good = isinstance(name, str) and name.isidentifier() and name.isascii()
        if not good or keyword.iskeyword(name):
            raise self._refuse(
                f"expected {what} to be an identifier; got {name!r}",
                "It becomes a name in Python and C++: use letters, digits and underscores.",
            )

    def _flag(self, value: Any, what: str) -> bool:
        if isinstance(value, bool):
            return value
        raise self._refuse(f"expected {what} true or false; got {value!r}", "Write True or False.")

    def _word(self, value: Any, what: str) -> str:
        if value in WORDS:
            return str(value)
        raise self._refuse(
            f"expected {what} {', '.join(WORDS)}; got {value!r}", "Correct the spelling."
        )

    def _arguments(self, entry: Any) -> tuple[Argument, ...]:
        arguments: list[Argument] = []
        for name, description in self._named(entry, "args").items():
            arguments.append(self._argument(name, description))
            if len(arguments) > 1 and arguments[-1].default is REQUIRED:
                before = arguments[-2]
                if before.default is not REQUIRED:
                    raise self._refuse(
                        f"argument {before.name!r} has a default and argument {name!r} behind it "
                        "has none",
                        "Put arguments with defaults last.",
                    )
        return tuple(arguments)

    def _argument(self, name: str, entry: Any) -> Argument:
        where = f"argument {name!r}"
        entry = self._mapping(entry, "argument", where)
        word = self._word(entry.get("dtype"), f"dtype of {where}")
        kind = kind_of(word)
        if self._flag(entry.get("prim_init", False), f"prim_init of {where}"):
            raise self._refuse(
                f"{where} has prim_init: True, which operators of op_def do not take",
                "Take it out: the argument is passed in each call.",
            )
        handler = entry.get("arg_handler", "")
        if handler and handler not in HANDLERS:
            raise self._refuse(
                f"expected arg_handler of {where} {', '.join(HANDLERS)}; got {handler!r}",
                "Name one of these, or take it out.",
            )
        casts = (
            tuple(
                kind_of(self._word(cast.strip(), f"type_cast of {where}"))
                for cast in str(entry["type_cast"]).split(",")
            )
            if "type_cast" in entry
            else ()
        )
        keeps = self._flag(
            entry.get("disable_tensor_to_scalar", False), f"disable_tensor_to_scalar of {where}"
        )
        return Argument(
            name=name,
            kind=kind,
            default=self._default(entry["default"], where) if "default" in entry else REQUIRED,
            casts=casts,
            handler=handler,
            reads_tensor=kind.element in ("int", "float", "number") and not (keeps or handler),
        )

    def _default(self, text: Any, where: str) -> Any:
        """Returns a default, which is the text of a Python value."""
        if not isinstance(text, str):
            return text
        if text.startswith("mstype."):
            named = text.removeprefix("mstype.").removesuffix("_")
            for dtype in DTYPES:
                if dtype.name == named:
                    return dtype
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise self._refuse(
                f"expected the default of {where} as the text of a Python value; got {text!r}",
                "Write 1, 1.0, True, (0, 1), None or mstype.float32; a string needs quotes within "
                "quotes: \"'sum'\".",
            ) from error

    def _results(self, entry: Any, arguments: tuple[Argument, ...]) -> tuple[int, ...]:
        names = [argument.name for argument in arguments if argument.kind.is_tensor]
        positions = {argument.name: position for position, argument in enumerate(arguments)}
        results = []
        for name, raw in self._named(entry, "returns").items():
            where = f"result {name!r}"
            description = self._mapping(raw, "result", where)
            if self._word(description.get("dtype"), f"dtype of {where}") != "tensor":
                raise self._refuse(
                    f"expected dtype tensor of {where}; got {description['dtype']}",
                    "List each tensor that the operator returns as a result of its own.",
                )
            source = description.get("inplace")
            if source is not None and source not in names:
                raise self._refuse(
                    f"expected inplace of {where} to name a tensor of args; got {source!r}",
                    f"These are {', '.join(names) or 'none'}.",
                )
            results.append(-1 if source is None else positions[source])
        return tuple(results)

    def _written(self, signature: Mapping[str, Any], names: list[str]) -> tuple[int, ...]:
        for key in ("rw_read", "rw_ref"):
            self._positions(str(signature.get(key) or ""), key, names)
        return self._positions(str(signature.get("rw_write") or ""), "rw_write", names)

    def _groups(self, text: Any, names: list[str]) -> tuple[tuple[int, ...], ...]:
        groups = [] if text is None else re.findall(r"\(([^()]*)\)", str(text))
        if text is not None and (not groups or re.sub(r"\([^()]*\)|[,\s]", "", str(text))):
            raise self._refuse(
                f"expected dtype_group as names in parentheses; got {text!r}",
                "Write (a, b), (c, d).",
            )
        return tuple(self._positions(group, "dtype_group", names) for group in groups)

    def _positions(self, text: str, key: str, names: list[str]) -> tuple[int, ...]:
        listed = [name.strip() for name in text.split(",") if name.strip()]
        for name in listed:
            if name not in names:
                raise self._refuse(
                    f"expected {key} to name arguments; there is no argument {name!r}",
                    f"These are {', '.join(names)}.",
                )
        return tuple(names.index(name) for name in listed)

    def _function(self, entry: Any) -> str:
        entry = self._mapping(entry, "function", "function")
        name = entry.get("name", self._name)
        self._check_identifier(name, "the name of function")
        return "" if self._flag(entry.get("disable", False), "disable of function") else name

    def _check_ignored_keys(self, entry: Mapping[str, Any]) -> None:
        """Checks the keys that have no effect here, and refuses those that would need one."""
        described = self._mapping(entry.get("class") or {}, "class", "class")
        self._flag(described.get("disable", False), "disable of class")
        dispatch = self._mapping(entry.get("dispatch") or {}, "dispatch", "dispatch")
        self._flag(dispatch.get("enable", False), "enable of dispatch")
        for key in ("view", "graph_view"):
            if self._flag(entry.get(key, False), key):
                raise self._refuse(
                    f"{key}: True says that the result is the argument's own memory, which "
                    "arrays of JAX never share",
                    "Take it out, and let the kernel write its result.",
                )

    def _labels(self, entry: Any) -> tuple[tuple[str, Any], ...]:
        items: Iterable[tuple[Any, Any]] = (
            (entry or {}).items() if isinstance(entry or {}, dict) else [(entry, entry)]
        )
        labels = tuple(items)
        for name, value in labels:
            if not isinstance(name, str) or type(value) not in (bool, int, float, str):
                raise self._refuse(
                    f"expected labels to map names to flags, numbers or text; got {name!r}: "
                    f"{value!r}",
                    "Write side_effect_mem: True, say.",
                )
        return labels
