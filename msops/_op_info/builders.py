"""Builders of op info dicts: one chainable setter call per fact about an op.

A setter passes `RegOp._add` the values under their keys in the dict; `_TYPES` has the type of
each key. The values of texts (a param_type, a value_type, a target) are not checked here, as in
MindSpore, where op infos for other back ends use the same classes: `parse` checks them when an op
is made.
"""

from __future__ import annotations

from typing import Any, Self

from msops.errors import OpInfoTypeError, OpInfoValueError

# Keys not listed here hold text.
_TYPES: dict[str, type] = {"index": int, "needCompile": bool, "need_compile": bool}


class RegOp:
    """Holds what every kind of op info has: name, inputs, outputs, attributes and rows.

    Corresponds to ``mindspore.ops.op_info_register.RegOp``; use `CustomRegOp` for a custom op.

    Args:
      op_name: str, the op's name, not blank.

    Raises:
      OpInfoValueError: `op_name` is no str, or blank.

    Source: MindSpore 2.7.2, ``mindspore.ops.op_info_register.RegOp``.
    """

    def __init__(self, op_name: str = ""):
        if not isinstance(op_name, str) or not op_name.strip():
            raise OpInfoValueError.explained(
                type(self).__name__,
                f"expected op_name to be a str that is not blank; got {op_name!r}",
                f"Name the op, e.g. {type(self).__name__}('Add').",
            )
        self._op_name = op_name
        # By the method that adds them.
        self._entries: dict[str, list[dict[str, Any]]] = {"input": [], "output": [], "attr": []}
        self._fusion_type = ""
        self._rows: list[tuple[tuple[str, ...], ...]] = []

    def fusion_type(self, fusion_type: str) -> Self:
        """Sets the fusion type, text that back ends with fusion read, e.g. ``"ELEMWISE"``."""
        self._fusion_type = self._checked("fusion_type", "fusion_type", fusion_type, str)
        return self

    def dtype_format(self, *args: tuple[str, ...]) -> Self:
        """Adds a row: one accepted combination of dtypes and formats.

        Args:
          *args: one `DataType` constant, or tuple (dtype, format), per input and then per output;
            so all of these must have been added before.

        Raises:
          OpInfoValueError: the number of `args` is not that of inputs and outputs, or one is no
            tuple of 2 or 3 elements.
          OpInfoTypeError: an element of a tuple is no str.
        """
        who = self._who("dtype_format")
        inputs, outputs = len(self._entries["input"]), len(self._entries["output"])
        expected = inputs + outputs
        if len(args) != expected:
            entries = "entry" if expected == 1 else "entries"
            raise OpInfoValueError.explained(
                who,
                f"expected {expected} {entries}, one per input ({inputs}) and "
                f"output ({outputs}); got {len(args)}",
                "Call .dtype_format after all of .input and .output, with one entry for each.",
            )
        for position, entry in enumerate(args):
            if not isinstance(entry, tuple) or len(entry) not in (2, 3):
                raise OpInfoValueError.explained(
                    who,
                    f"expected entry {position} to be a tuple of two or three elements; "
                    f"got {entry!r}",
                    "Pass a constant such as DataType.F32_Default, "
                    "or a tuple such as ('float32', 'DefaultFormat').",
                )
            for element in entry:
                self._checked("dtype_format", f"each element of entry {position}", element, str)
        self._rows.append(args)
        return self

    def get_op_info(self) -> dict[str, Any]:
        """Returns the op info as a plain dict, with MindSpore's keys in MindSpore's order.

        The dict is the caller's own: MindSpore's shares its lists with the builder, so that setters
        called later change a dict returned before.
        """
        return {
            "op_name": self._op_name,
            "inputs": list(map(dict, self._entries["input"])),
            "outputs": list(map(dict, self._entries["output"])),
            "attr": list(map(dict, self._entries["attr"])),
            "fusion_type": self._fusion_type,
            "dtype_format": list(self._rows),
        }

    def _add(self, method: str, values: dict[str, Any], extra: dict[str, Any]) -> Self:
        """Adds the dict of one input, output or attribute: what is not None, then `extra`."""
        given = {
            key: self._checked(method, key, value, _TYPES.get(key, str))
            for key, value in values.items()
            if value is not None
        }
        self._entries[method].append(given | extra)
        return self

    def _checked(self, method: str, what: str, value: Any, expected: type) -> Any:
        """Returns `value`, which must be an `expected`; a bool passes for an int, as there."""
        if isinstance(value, expected):
            return value
        raise OpInfoTypeError.explained(
            self._who(method),
            f"expected {what} to be {_article(expected)}; got {value!r} ({type(value).__name__})",
            f"Pass {_article(expected)}.",
        )

    def _who(self, method: str) -> str:
        return f"{type(self).__name__}('{self._op_name}').{method}"


def _article(kind: type) -> str:
    return f"{'an' if kind is int else 'a'} {kind.__name__}"


class CustomRegOp(RegOp):
    """Builds the op info of a custom op, for one target.

    Corresponds to ``mindspore.ops.CustomRegOp``.

    Args:
      op_name: str, the op's name; for aicpu the name of the kernel.

    Raises:
      OpInfoValueError: `op_name` is no str, or blank.

    Example:
      >>> from msops.ops import CustomRegOp, DataType
      >>> info = (CustomRegOp("add").input(0, "x1").input(1, "x2").output(0, "y")
      ...         .dtype_format(*[DataType.F32_Default] * 3).target("CPU").get_op_info())
      >>> info["inputs"][1]
      {'index': 1, 'name': 'x2', 'paramType': 'required'}

    Source: MindSpore 2.7.2, ``mindspore.ops.op_info_register.CustomRegOp``.
    """

    def __init__(self, op_name: str = "Custom"):
        super().__init__(op_name)
        self._target: str | None = "UnKnown"

    def input(
        self,
        index: int | None = None,
        name: str | None = None,
        param_type: str | None = "required",
        **kwargs: Any,
    ) -> Self:
        """Adds an input; inputs are in the order of these calls.

        Args:
          index: int, its position among the inputs.
          name: str, its name.
          param_type: str, ``"required"``, ``"dynamic"`` (a list of tensors) or ``"optional"``.
          **kwargs: further keys of the input's dict.

        Raises:
          OpInfoTypeError: an argument has another type; so for all setters.
        """
        return self._add("input", {"index": index, "name": name, "paramType": param_type}, kwargs)

    def output(
        self,
        index: int | None = None,
        name: str | None = None,
        param_type: str | None = "required",
        **kwargs: Any,
    ) -> Self:
        """Adds an output; arguments as those of `input`."""
        return self._add("output", {"index": index, "name": name, "paramType": param_type}, kwargs)

    def attr(
        self,
        name: str | None = None,
        param_type: str | None = None,
        value_type: str | None = None,
        default_value: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds an attribute; a call gives attributes after the tensors, in this order.

        Args:
          name: str, its name.
          param_type: str, ``"required"`` or ``"optional"``.
          value_type: str, one of ``int float str bool listInt listFloat listStr listBool
            listListInt listListFloat double number``; ``tensor`` for a tensor that an operator of
            Ascend takes behind numbers.
          default_value: str, the default as text: ``"1.0"``, ``"true"``, ``"1,2,3"``,
            ``"[[1, 2], [3]]"``.
          **kwargs: further keys of the attribute's dict; ``value=`` fixes the value, and a call
            then does not give it.
        """
        values = {
            "name": name,
            "paramType": param_type,
            "type": value_type,
            "defaultValue": default_value,
        }
        return self._add("attr", values, kwargs)

    def target(self, target: str | None = None) -> Self:
        """Sets the target, ``"CPU"``, ``"GPU"`` or ``"Ascend"``; None: as the func_type implies."""
        self._target = None if target is None else self._checked("target", "target", target, str)
        return self

    def get_op_info(self) -> dict[str, Any]:
        """Returns the op info as a plain dict."""
        return super().get_op_info() | {"target": self._target}
