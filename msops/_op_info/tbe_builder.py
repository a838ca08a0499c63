"""The builder of op info for TBE kernels."""

from __future__ import annotations

from typing import Any, Self

from msops._op_info.builders import RegOp
from msops.errors import OpInfoValueError

_VALUE_DEPENDS = ("ignored", "optional", "required")

# The keys that only TBE has, in MindSpore's order, with what they hold when never set.
_INITIAL: dict[str, Any] = {
    "imply_type": "TBE",
    "async_flag": False,
    "binfile": "",
    "compute_cost": 10,
    "kernel": "",
    "partial_flag": False,
    "reshape_type": "",
    "dynamicRankSupport": False,
    "dynamicShapeSupport": False,
    "dynamicCompileStatic": False,
    "needCheckSupport": False,
    "dynamicFormat": False,
    "op_pattern": "",
    "real_input_index": [],
    "input_to_attr_index": [],
    "unknown_shape_formats": [],
}


class TBERegOp(RegOp):
    """Builds the op info of a TBE kernel.

    Corresponds to ``mindspore.ops.TBERegOp``. What only Ascend's compiler reads (all but inputs,
    outputs, attributes and rows) is carried in the dict and has no effect here.

    Args:
      op_name: str, the op's name.

    Raises:
      OpInfoValueError: `op_name` is no str, or blank.

    Example:
      >>> from msops.ops import DataType, TBERegOp
      >>> info = (TBERegOp("Abs").kernel_name("abs").op_pattern("formatAgnostic")
      ...         .input(0, "x", None, "required", None).output(0, "y", True, "required", "all")
      ...         .dtype_format(DataType.F16_None, DataType.F16_None).get_op_info())
      >>> info["outputs"]
      [{'index': 0, 'name': 'y', 'need_compile': True, 'paramType': 'required', 'shape': 'all'}]

    Source: MindSpore 2.7.2, ``mindspore.ops.op_info_register.TBERegOp``.
    """

    def __init__(self, op_name: str):
        super().__init__(op_name)
        self._fields = dict(_INITIAL)

    def input(
        self,
        index: int | None = None,
        name: str | None = None,
        need_compile: bool | None = None,
        param_type: str | None = None,
        shape: str | None = None,
        value_depend: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds an input.

        Args:
          index: int, its position among the inputs.
          name: str, its name.
          need_compile: bool, whether it is compiled.
          param_type: str, ``"required"``, ``"dynamic"`` (a list) or ``"optional"``.
          shape: str, its shape, ``"all"`` for any.
          value_depend: str, ``"ignored"``, ``"optional"`` or ``"required"``, in any case: whether
            the kernel depends on its value.
          **kwargs: further keys of the input's dict.

        Raises:
          OpInfoTypeError: an argument has another type; so for all setters.
          OpInfoValueError: `value_depend` is another text.
        """
        values = {
            "index": index,
            "name": name,
            "needCompile": need_compile,
            "paramType": param_type,
            "shape": shape,
            "valueDepend": value_depend,
        }
        self._checked("input", "valueDepend", value_depend or "", str)
        if value_depend and value_depend.lower() not in _VALUE_DEPENDS:
            raise OpInfoValueError.explained(
                self._who("input"),
                f"expected value_depend to be one of {', '.join(_VALUE_DEPENDS)}; "
                f"got {value_depend!r}",
                "Pass one of these, or leave it out.",
            )
        return self._add("input", values, kwargs)

    def output(
        self,
        index: int | None = None,
        name: str | None = None,
        need_compile: bool | None = None,
        param_type: str | None = None,
        shape: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds an output; arguments as those of `input`."""
        # need_compile, where inputs have needCompile: 2.7.2's own keys differ.
        values = {
            "index": index,
            "name": name,
            "need_compile": need_compile,
            "paramType": param_type,
            "shape": shape,
        }
        return self._add("output", values, kwargs)

    def attr(
        self,
        name: str | None = None,
        param_type: str | None = None,
        value_type: str | None = None,
        value: str | None = None,
        default_value: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds an attribute.

        Args:
          name: str, its name.
          param_type: str, ``"required"`` or ``"optional"``.
          value_type: str, its type, e.g. ``"listInt"``.
          value: str, the values the kernel supports, ``"all"`` for any.
          default_value: str, the default as text.
          **kwargs: further keys of the attribute's dict.
        """
        values = {
            "name": name,
            "paramType": param_type,
            "type": value_type,
            "value": value,
            "defaultValue": default_value,
        }
        return self._add("attr", values, kwargs)

    def async_flag(self, async_flag: bool = False) -> Self:
        """Sets whether the kernel may run asynchronously."""
        return self._set("async_flag", "async_flag", async_flag, bool)

    def binfile_name(self, binfile_name: str) -> Self:
        """Sets the name of the kernel's binary file."""
        return self._set("binfile_name", "binfile", binfile_name, str)

    def compute_cost(self, compute_cost: int = 10) -> Self:
        """Sets the cost that tiling assumes."""
        return self._set("compute_cost", "compute_cost", compute_cost, int)

    def kernel_name(self, kernel_name: str) -> Self:
        """Sets the name of the kernel."""
        return self._set("kernel_name", "kernel", kernel_name, str)

    def partial_flag(self, partial_flag: bool = True) -> Self:
        """Sets whether a part of the op may be computed alone."""
        return self._set("partial_flag", "partial_flag", partial_flag, bool)

    def reshape_type(self, reshape_type: str) -> Self:
        """Sets the axes that a tensor of fewer dimensions has, e.g. ``"NC"``."""
        return self._set("reshape_type", "reshape_type", reshape_type, str)

    def dynamic_shape(self, dynamic_shape: bool = False) -> Self:
        """Sets whether shapes may be known only at run time."""
        return self._set("dynamic_shape", "dynamicShapeSupport", dynamic_shape, bool)

    def dynamic_rank_support(self, dynamic_rank_support: bool) -> Self:
        """Sets whether ranks may be known only at run time."""
        return self._set("dynamic_rank_support", "dynamicRankSupport", dynamic_rank_support, bool)

    def dynamic_compile_static(self, dynamic_compile_static: bool = False) -> Self:
        """Sets whether a kernel for static shapes is compiled as one for dynamic shapes."""
        return self._set(
            "dynamic_compile_static", "dynamicCompileStatic", dynamic_compile_static, bool
        )

    def need_check_supported(self, need_check_supported: bool = False) -> Self:
        """Sets whether the kernel has a function that says what it supports."""
        return self._set("need_check_supported", "needCheckSupport", need_check_supported, bool)

    def is_dynamic_format(self, is_dynamic_format: bool = False) -> Self:
        """Sets whether the kernel has a function that selects formats."""
        return self._set("is_dynamic_format", "dynamicFormat", is_dynamic_format, bool)

    def op_pattern(self, pattern: str | None = None) -> Self:
        """Sets how formats follow, e.g. ``"broadcast"`` or ``"reduce"``; None leaves it."""
        return self if pattern is None else self._set("op_pattern", "op_pattern", pattern, str)

    def real_input_index(self, real_input_index: list[int]) -> Self:
        """Sets which input of the graph each input of the kernel is."""
        return self._set("real_input_index", "real_input_index", real_input_index, list)

    def input_to_attr_index(self, input_to_attr_index: list[int]) -> Self:
        """Sets the inputs that become attributes."""
        return self._set("input_to_attr_index", "input_to_attr_index", input_to_attr_index, list)

    def unknown_shape_formats(self, unknown_shape_formats: list[str]) -> Self:
        """Adds the formats that inputs and outputs have while shapes are unknown."""
        key = "unknown_shape_formats"
        formats = self._checked(key, key, unknown_shape_formats, list)
        self._fields[key] = [*self._fields[key], formats]
        return self

    def get_op_info(self) -> dict[str, Any]:
        """Returns the op info as a plain dict."""
        fields = {k: list(v) if isinstance(v, list) else v for k, v in self._fields.items()}
        return super().get_op_info() | fields

    def _set(self, method: str, key: str, value: Any, expected: type) -> Self:
        self._fields[key] = self._checked(method, "its argument", value, expected)
        return self
