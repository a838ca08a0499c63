"""The modules a kernel sees as `te`, `tbe`, `topi` and `impl`: tables of names, nothing more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from msops._ascend.tbe import (
    build,
    casting,
    comparison,
    cube,
    elementwise,
    para_check,
    platform,
    reduction,
    shape_util,
    shaping,
    util,
)
from msops._loops.frontends.tvm.kernel_module import KernelModule, functions_of, new_module
from msops._loops.frontends.tvm.modules import TOPI, TVM

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **casting.NAMES,
    **functions_of(comparison),
    **functions_of(cube),
    **elementwise.NAMES,
    **reduction.NAMES,
    **functions_of(shaping),
    "auto_schedule": build.auto_schedule,
    "build": build.build,
    "cce_build_code": build.build,
    "classify": shape_util.classify,
    "compute": build.SCOPE,
}
"""The DSL."""

_SCHEDULING = {"auto_schedule": build.auto_schedule}
_BUILD_CONFIG = {"build_config": build.SCOPE}
_REGISTER = {
    "register_op_compute": platform.register,
    "register_operator": platform.register,
    "register_op": platform.register,
    "register_param_generalization": platform.register,
}


def _topi(prefix: str) -> KernelModule:
    """Returns `topi` with what only TBE's has: checks and schedules."""
    return new_module(
        prefix,
        {
            **{name: value for name, value in vars(TOPI).items() if not name.startswith("__")},
            "cce": new_module(
                f"{prefix}.cce", {"util": new_module(f"{prefix}.cce.util", util.NAMES)}
            ),
            "generic": new_module(f"{prefix}.generic", _SCHEDULING),
        },
    )


def _tvm(prefix: str) -> KernelModule:
    """Returns `tvm` with TBE's targets and build."""
    return new_module(
        prefix,
        {
            **{name: value for name, value in vars(TVM).items() if not name.startswith("__")},
            "build": build.tvm_build,
            "target": new_module(f"{prefix}.target", {"cce": build.SCOPE, "create": build.SCOPE}),
            "topi": _topi(f"{prefix}.topi"),
        },
    )


def _dsl(prefix: str) -> KernelModule:
    names = {"shape_to_list": util.shape_to_list}
    return new_module(prefix, {**_FUNCTIONS, "util": new_module(f"{prefix}.util", names)})


def _common(prefix: str) -> KernelModule:
    soc = {
        "api_check_support": platform.api_check_support,
        "get_soc_spec": platform.get_soc_spec,
        "set_current_compile_soc_info": platform.te_set_version,
    }
    return new_module(
        prefix,
        {
            "buildcfg": new_module(f"{prefix}.buildcfg", _BUILD_CONFIG),
            "platform": new_module(
                f"{prefix}.platform",
                {
                    **soc,
                    **platform.CCE_PARAMS,
                    "CUBE_MKN": platform.CUBE_MKN,
                    "platform_info": new_module(f"{prefix}.platform.platform_info", soc),
                },
            ),
            "register": new_module(f"{prefix}.register", _REGISTER),
            "utils": _utils(f"{prefix}.utils"),
        },
    )


def _utils(prefix: str) -> KernelModule:
    checks = new_module(f"{prefix}.para_check", para_check.NAMES)
    shapes = new_module(f"{prefix}.shape_util", shape_util.NAMES)
    return new_module(
        prefix,
        {
            **para_check.NAMES,
            **shape_util.NAMES,
            "cce_context": contextlib.nullcontext,
            "check_para": checks,
            "op_utils": new_module(f"{prefix}.op_utils", {**para_check.NAMES, **shape_util.NAMES}),
            "para_check": checks,
            "shape_util": shapes,
        },
    )


def _te() -> KernelModule:
    fusion = {"fusion_manager": platform.FusionManager, "fusion_op": platform.register}
    configuration = {
        "api_check_support": platform.api_check_support,
        "get_soc_spec": platform.get_soc_spec,
        "te_set_version": platform.te_set_version,
    }
    return new_module(
        "te",
        {
            "lang": new_module(
                "te.lang", {"cce": _dsl("te.lang.cce"), "base": _dsl("te.lang.base")}
            ),
            "platform": new_module(
                "te.platform",
                {
                    **platform.CCE_PARAMS,
                    **configuration,
                    **_BUILD_CONFIG,
                    "CUBE_MKN": platform.CUBE_MKN,
                    "cce_build": new_module("te.platform.cce_build", _BUILD_CONFIG),
                    "cce_conf": new_module("te.platform.cce_conf", configuration),
                    "cce_params": new_module(
                        "te.platform.cce_params",
                        {**platform.CCE_PARAMS, "CUBE_MKN": platform.CUBE_MKN},
                    ),
                    "fusion_manager": new_module("te.platform.fusion_manager", fusion),
                },
            ),
            "tik": platform.Tik("te.tik"),
            "tvm": _tvm("te.tvm"),
            "utils": _utils("te.utils"),
        },
    )


def _tbe() -> KernelModule:
    return new_module(
        "tbe",
        {
            "common": _common("tbe.common"),
            "dsl": _dsl("tbe.dsl"),
            "tik": platform.Tik("tbe.tik"),
            "tvm": _tvm("tbe.tvm"),
        },
    )


def _matmul_vector_cce(
    shape_a: Any,
    shape_b: Any,
    src_dtype: str,
    trans_a: bool = False,
    trans_b: bool = False,
    shape_bias: Any = (),
    kernel_name: str = "matmul_vector",
) -> None:
    """Builds the kernel of a product of plain matrices."""
    names = [("a", shape_a), ("b", shape_b), *([("bias", shape_bias)] if shape_bias else [])]
    inputs = [TVM.placeholder(shape, src_dtype, name) for name, shape in names]
    a, b, *bias = inputs
    result = cube.matmul(a, b, trans_a, trans_b, tensor_bias=bias[0] if bias else None)
    config = {"name": kernel_name, "tensor_list": [*inputs, result]}
    build.build(build.auto_schedule(result), config)


def _impl() -> KernelModule:
    adapter = {
        "OpPatternMode": platform.OpPatternMode,
        "build": build.build,
        "classify": shape_util.classify,
        "error_manager_vector": new_module("impl.util.platform_adapter.error_manager_vector", {}),
        "operation": new_module("impl.util.platform_adapter.operation", _REGISTER),
        "para_check": new_module("impl.util.platform_adapter.para_check", para_check.NAMES),
        "register_operator": platform.register,
        "register_operator_compute": platform.register,
        "shape_util": new_module("impl.util.platform_adapter.shape_util", shape_util.NAMES),
        "tbe": _dsl("impl.util.platform_adapter.tbe"),
        "tbe_build": new_module("impl.util.platform_adapter.tbe_build", _BUILD_CONFIG),
        "tbe_platform": _common("tbe.common").platform,
        "tbe_register": new_module("impl.util.platform_adapter.tbe_register", _REGISTER),
        "tvm": _tvm("impl.util.platform_adapter.tvm"),
    }
    select = {
        "gen_param": platform.gen_param,
        "get_dynamic_param_in_json": platform.get_dynamic_param_in_json,
    }
    return new_module(
        "impl",
        {
            "bn_training_reduce": new_module(
                "impl.bn_training_reduce",
                {"bn_training_reduce_schedule_nd": build.schedule_of_results},
            ),
            "matmul_vector": new_module(
                "impl.matmul_vector", {"matmul_vector_cce": _matmul_vector_cce}
            ),
            "util": new_module(
                "impl.util",
                {
                    "platform_adapter": new_module("impl.util.platform_adapter", adapter),
                    "util_select_op_base": new_module("impl.util.util_select_op_base", select),
                },
            ),
        },
    )


MODULES: dict[str, KernelModule] = {
    "impl": _impl(),
    "tbe": _tbe(),
    "te": _te(),
    "topi": _topi("topi"),
}
"""The modules that resolve inside a kernel, by name; others are attributes of these."""
