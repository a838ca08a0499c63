"""Builders of op info for kernels of MindSpore's own back ends: CPU, AI CPU and AKG."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from msops._op_info.builders import RegOp


class _KernelRegOp(RegOp):
    """The base of the builders for kernels: inputs, and the kind of kernel."""

    _imply_type: ClassVar[str]

    def __init__(self, op_name: str):
        super().__init__(op_name)

    def input(
        self,
        index: int | None = None,
        name: str | None = None,
        param_type: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds an input.

        Args:
          index: int, its position among the inputs.
          name: str, its name.
          param_type: str, ``"required"``, ``"dynamic"`` (a list) or ``"optional"``.
          **kwargs: further keys of the input's dict.
        """
        return self._add("input", {"index": index, "name": name, "paramType": param_type}, kwargs)

    def get_op_info(self) -> dict[str, Any]:
        """Returns the op info as a plain dict."""
        return super().get_op_info() | {"imply_type": self._imply_type}


class CpuRegOp(_KernelRegOp):
    """Builds the op info of a CPU kernel.

    Corresponds to ``mindspore.ops.op_info_register.CpuRegOp``.

    Args:
      op_name: str, the op's name.

    Source: MindSpore 2.7.2, ``mindspore.ops.op_info_register.CpuRegOp``.
    """

    _imply_type = "CPU"

    def output(
        self,
        index: int | None = None,
        name: str | None = None,
        param_type: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds an output; arguments as those of `input`."""
        return self._add("output", {"index": index, "name": name, "paramType": param_type}, kwargs)

    def attr(
        self,
        name: str | None = None,
        value_type: str | None = None,
        value: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds an attribute.

        Args:
          name: str, its name.
          value_type: str, its type, e.g. ``"listInt"``.
          value: str, its fixed value as text.
          **kwargs: further keys of the attribute's dict.
        """
        return self._add("attr", {"name": name, "type": value_type, "value": value}, kwargs)


class AiCPURegOp(CpuRegOp):
    """Builds the op info of an AI CPU kernel.

    Corresponds to ``mindspore.ops.AiCPURegOp``.

    Args:
      op_name: str, the op type that the kernel is registered under.

    Example:
      >>> from msops.ops import AiCPURegOp, DataType
      >>> info = (AiCPURegOp("Stack").attr("axis", "int").input(0, "x", "dynamic")
      ...         .output(0, "y", "required")
      ...         .dtype_format(DataType.I8_Default, DataType.I8_Default).get_op_info())
      >>> info["attr"]
      [{'name': 'axis', 'type': 'int'}]

    Source: MindSpore 2.7.2, ``mindspore.ops.op_info_register.AiCPURegOp``.
    """

    _imply_type = "AiCPU"


class AkgRegOp(_KernelRegOp):
    """Builds the op info of an AKG kernel.

    Corresponds to ``mindspore.ops.op_info_register.AkgRegOp``.

    Args:
      op_name: str, the op's name.
      processor: str, ``"CPU"``, ``"CUDA"`` or ``"AiCore"``; `AkgCpuRegOp`, `AkgGpuRegOp` and
        `AkgAscendRegOp` set it.

    Source: MindSpore 2.7.2, ``mindspore.ops.op_info_register.AkgRegOp``.
    """

    _imply_type = "AKG"

    def __init__(self, op_name: str, processor: str):
        super().__init__(op_name)
        self._processor = processor

    def output(self, index: int | None = None, name: str | None = None, **kwargs: Any) -> Self:
        """Adds an output.

        Args:
          index: int, its position among the outputs.
          name: str, its name.
          **kwargs: further keys of the output's dict.
        """
        return self._add("output", {"index": index, "name": name}, kwargs)

    def attr(
        self,
        name: str | None = None,
        param_type: str | None = None,
        value_type: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds an attribute.

        Args:
          name: str, its name.
          param_type: str, ``"required"`` or ``"optional"``.
          value_type: str, its type, e.g. ``"listInt"``.
          **kwargs: further keys of the attribute's dict.
        """
        return self._add(
            "attr", {"name": name, "paramType": param_type, "type": value_type}, kwargs
        )

    def get_op_info(self) -> dict[str, Any]:
        """Returns the op info as a plain dict."""
        return super().get_op_info() | {"processor": self._processor}


class AkgGpuRegOp(AkgRegOp):
    """Builds the op info of an AKG kernel for a GPU: `AkgRegOp` with processor ``"CUDA"``."""

    def __init__(self, op_name: str):
        super().__init__(op_name, "CUDA")


class AkgAscendRegOp(AkgRegOp):
    """Builds the op info of an AKG kernel for an Ascend: `AkgRegOp` with processor ``"AiCore"``."""

    def __init__(self, op_name: str):
        super().__init__(op_name, "AiCore")


class AkgCpuRegOp(AkgRegOp):
    """Builds the op info of an AKG kernel for a CPU: `AkgRegOp` with processor ``"CPU"``."""

    def __init__(self, op_name: str):
        super().__init__(op_name, "CPU")
