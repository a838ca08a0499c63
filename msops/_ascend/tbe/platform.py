"""`te.platform` and its neighbours: facts of the machine, registries, and TIK, which is refused.

The answers are those of the Ascend 910, whose table of dtypes the DSL follows. Kernels are called
by their functions, so registering one has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from msops._ascend.tbe.session import current_kernel
from msops._loops.frontends.tvm.kernel_module import KernelModule
from msops._loops.frontends.tvm.tracing import backend_error, current_op
from msops.errors import BackendError

CCE_PARAMS: dict[str, Any] = {
    "BLOCK_IN": 16,
    "BLOCK_OUT": 16,
    "BLOCK_REDUCE": 16,
    "BLOCK_REDUCE_INT8": 32,
    "BLOCK_VECTOR": 1,
    "C0_SIZE": 16,
    "ELEMENTS_VECTOR_OP_FP16": 128,
    "GLB_ELTWISE_DMA_BLOCK": 32,
    "VECTOR_INST_BLOCK_NUM": 8,
    "VECTOR_INST_BLOCK_WIDTH": 256,
    "VECTOR_INST_MAX_REPEAT_TIMES": 255,
    "scope_aicpu": "local_aicpu",
    "scope_ca": "local.L0A",
    "scope_cb": "local.L0B",
    "scope_cbuf": "local.L1",
    "scope_cc": "local.L0C",
    "scope_gm": "global",
    "scope_reg": "local.REG",
    "scope_ubuf": "local.UB",
}
"""The names of `te.platform.cce_params`."""

CUBE_MKN: dict[str, dict[str, list[int]]] = {
    dtype: {"mac": [16, 32 if dtype in ("int8", "uint8") else 16, 16]}
    for dtype in ("float16", "float32", "int8", "uint8", "int16", "int32", "uint32", "bfloat16")
}
"""The blocks of the matrix unit by dtype: rows, inner axis, columns."""

_SPECIFICATION: dict[str, Any] = {
    "AICORE_TYPE": "AiCore",
    "CORE_NUM": 32,
    "FULL_SOC_VERSION": "Ascend910A",
    "L0A_SIZE": 65536,
    "L0B_SIZE": 65536,
    "L0C_SIZE": 262144,
    "L1_SIZE": 1048576,
    "SHORT_SOC_VERSION": "Ascend910",
    "SOC_VERSION": "Ascend910A",
    "UB_SIZE": 262144,
}


def get_soc_spec(key: str) -> Any:
    """Returns a fact about the Ascend 910, such as ``"CORE_NUM"``."""
    if key not in _SPECIFICATION:
        raise backend_error(
            "get_soc_spec",
            f"expected one of {', '.join(_SPECIFICATION)}; got {key!r}",
            "Kernels here run as operations of XLA: take another way to decide.",
        )
    return _SPECIFICATION[key]


def api_check_support(intrinsic: str, dtype: str = "") -> bool:
    """Returns whether a function of the DSL takes a dtype; text such as ``"te.lang.cce.vadd"``."""
    from msops._ascend.tbe.elementwise import supports

    return supports(intrinsic.rpartition(".")[2], dtype)


def te_set_version(version: str = "", core_type: str = "", **options: Any) -> None:
    """Accepts the version of a chip; the DSL follows the Ascend 910 whatever it is."""


def register(*names: Any, **options: Any) -> Callable[[Any], Any]:
    """Returns a decorator that leaves the function as it is."""
    return lambda function: function


class FusionManager:
    """``fusion_manager``, as kernels import it. It fuses nothing: XLA does."""

    @staticmethod
    def register(*names: Any, **options: Any) -> Callable[[Any], Any]:
        """Returns a decorator that leaves the function as it is."""
        return lambda function: function

    @staticmethod
    def get_build_cfg() -> str:
        """Returns "enable": the kernel is built."""
        return "enable"


class OpPatternMode:
    """Names of the ways in which `classify` looks at shapes."""

    ELEWISE = "elewise"
    ELEWISE_WITH_BROADCAST = "broadcast"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    NORM = "norm"
    CONCAT = "concat"


def gen_param(
    classify: str = "", name: str = "", datatype: str = "", format: str = "", **options: Any
) -> dict[str, Any]:
    """Returns the description of one parameter for ``op_select_format``."""
    return {"classify": classify, "name": name, "dtype": datatype, "format": format, **options}


def get_dynamic_param_in_json(params: Any) -> str:
    """Returns descriptions of parameters as JSON text."""
    import json

    return json.dumps({one["classify"]: {k: one[k] for k in one} for one in params})


class Tik(KernelModule):
    """`te.tik`, as kernels import it: importing works, so that files with DSL kernels run."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise tik_refusal(name)


def tik_refusal(name: str) -> BackendError:
    """Returns the error for a kernel that is written in TIK.

    Args:
      name: what of TIK it asks for.
    """
    kernel = current_kernel()
    which = f"the kernel {kernel!r} is" if kernel and current_op() else "the kernel is"
    return backend_error(
        f"te.tik.{name}",
        f"TIK is not supported: {which} written in TIK, which programs the Ascend's buffers and "
        "instructions",
        "Write the kernel in the DSL (tbe.dsl, tvm.compute), as a loop nest (func_type 'akg' or "
        "'hybrid') or in C++ (func_type 'aot').",
    )
