"""The modules a kernel sees as `tvm`, `topi` and `akg`: tables of names, nothing more."""

from __future__ import annotations

from msops._loops.frontends.tvm import (
    akg_utils,
    arithmetic,
    buffer,
    compute,
    differentiate,
    expr,
    extern,
    intrin,
    ir_builder,
    marks,
    reduce,
    script,
    tensor,
    topi,
)
from msops._loops.frontends.tvm.kernel_module import KernelModule, functions_of, new_module

_EXPR = {
    **marks.KINDS,
    "Call": expr.ScalarExpr,
    "ConstExpr": expr.ConstExpr,
    "Expr": expr.ScalarExpr,
    "FloatImm": expr.FloatImm,
    "IntImm": expr.IntImm,
    "IterVar": expr.IterVar,
    "PrimExpr": expr.ScalarExpr,
    "Reduce": reduce.ReduceExpr,
    "Select": arithmetic.select,
    "StringImm": str,
    "UIntImm": expr.UIntImm,
    "Var": expr.FreeVar,
}

_INTRIN = {
    **intrin.CALLS,
    "call_extern": intrin.refuse_call("call_extern"),
    "call_intrin": intrin.call_pure_intrin,
    "call_llvm_intrin": intrin.refuse_call("call_llvm_intrin"),
    "call_packed": intrin.refuse_call("call_packed"),
    "call_pure_extern": intrin.refuse_call("call_pure_extern"),
    "call_pure_intrin": intrin.call_pure_intrin,
    "ceildiv": intrin.ceildiv,
    "div": intrin.div,
    "floordiv": intrin.floordiv,
    "floormod": intrin.floormod,
    "if_then_else": intrin.if_then_else,
    "indexdiv": intrin.floordiv,
    "indexmod": intrin.floormod,
    "likely": intrin.likely,
    "max_value": intrin.max_value,
    "min_value": intrin.min_value,
    "pow": intrin.power,
    "power": intrin.power,
    "reinterpret": lambda dtype, value: intrin.reinterpret(value, dtype),
    "truncdiv": intrin.truncdiv,
    "truncmod": intrin.truncmod,
}

_SCHEDULE = {"IterVar": expr.IterVar, "Buffer": buffer.DeclaredBuffer}

_TENSOR = {
    "ComputeOp": compute.ComputeOp,
    "ExternOp": extern.ExternOp,
    "Operation": tensor.Operation,
    "PlaceholderOp": tensor.PlaceholderOp,
    "Tensor": tensor.Tensor,
    "TensorSlice": tensor.TensorSlice,
}

_API = {
    **_INTRIN,
    "Tensor": tensor.Tensor,
    "all": intrin.all_of,
    "any": intrin.any_of,
    "comm_reducer": reduce.comm_reducer,
    "compute": compute.compute,
    "const": expr.const,
    "convert": marks.convert,
    "decl_buffer": buffer.decl_buffer,
    "extern": extern.extern,
    "get_global_func": marks.get_global_func,
    "max": reduce.max_of,
    "min": reduce.min_of,
    "placeholder": tensor.placeholder,
    "prod": reduce.product_of,
    "reduce_axis": reduce.reduce_axis,
    "register_func": marks.register_func,
    "select": arithmetic.select,
    "sum": reduce.sum_of,
    "tag_scope": marks.tag_scope,
    "thread_axis": marks.thread_axis,
    "var": expr.FreeVar,
}

TOPI = new_module(
    "topi",
    {
        **topi.NAMES,
        "get_const_tuple": marks.as_plain_tuple,
        "nn": new_module("topi.nn", topi.NN_NAMES),
        "tag": new_module("topi.tag", marks.TAGS),
        "util": new_module("topi.util", marks.TOPI_UTIL),
    },
)
"""The module that kernels import as `topi`."""

tensor.bind_operators(
    {
        "add": TOPI.add,
        "sub": TOPI.subtract,
        "mul": TOPI.multiply,
        "truediv": TOPI.divide,
        "floordiv": TOPI.floor_divide,
        "mod": TOPI.floor_mod,
        "lshift": TOPI.left_shift,
        "rshift": TOPI.right_shift,
        "and": TOPI.bitwise_and,
        "or": TOPI.bitwise_or,
        "xor": TOPI.bitwise_xor,
    },
    TOPI.negative,
    TOPI.cast,
)

TVM = new_module(
    "tvm",
    {
        **_API,
        "api": new_module("tvm.api", _API),
        "container": new_module("tvm.container", {"Array": marks.Array}),
        "expr": new_module("tvm.expr", _EXPR),
        "hybrid": new_module("tvm.hybrid", {"script": script.script}),
        "intrin": new_module("tvm.intrin", _INTRIN),
        "ir_builder": new_module(
            "tvm.ir_builder",
            {"IRBuilder": ir_builder.IRBuilder, "create": ir_builder.create},
        ),
        "ir_pass": new_module(
            "tvm.ir_pass", {"CanonicalSimplify": marks.simplify, "Simplify": marks.simplify}
        ),
        "schedule": new_module("tvm.schedule", _SCHEDULE),
        "tag": new_module("tvm.tag", marks.TAGS),
        "tensor": new_module("tvm.tensor", _TENSOR),
    },
)
"""The module that kernels import as `tvm`."""

_UTILS = {**akg_utils.CONSTANTS, **akg_utils.KERNEL_EXEC, **functions_of(akg_utils)}

AKG = new_module(
    "akg",
    {
        "topi": TOPI,
        "tvm": TVM,
        "differentiate": differentiate.differentiate,
        "get_variables": differentiate.get_variables,
        "register_variables": differentiate.register_variables,
        "utils": new_module(
            "akg.utils",
            {
                **_UTILS,
                "custom_tiling": new_module("akg.utils.custom_tiling", marks.CUSTOM_TILING),
                "dynamic_shape": new_module("akg.utils.dynamic_shape", marks.DYNAMIC_SHAPE),
                "format_transform": new_module(
                    "akg.utils.format_transform", akg_utils.FORMAT_TRANSFORM
                ),
                "kernel_exec": new_module("akg.utils.kernel_exec", akg_utils.KERNEL_EXEC),
                "validation_check": new_module("akg.utils.validation_check", _UTILS),
            },
        ),
    },
)
"""The module that kernels import as `akg`."""

MODULES: dict[str, KernelModule] = {"akg": AKG, "topi": TOPI, "tvm": TVM}
"""The modules that resolve inside a kernel, by name; others are attributes of these."""
