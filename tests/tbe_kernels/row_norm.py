"""Rows divided by their length: a loop of tvm.compute between functions of the DSL."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm import topi
from tbe.tvm.topi import generic
from te import tvm

row_norm_op_info = (
    TBERegOp("RowNorm")
    .kernel_name("row_norm")
    .input(0, "x", None, "required", None)
    .input(1, "weight", None, "required", None)
    .output(0, "y", True, "required", "all")
    .dtype_format(*[DataType.F32_Default] * 3)
    .get_op_info()
)


@op_info_register(row_norm_op_info)
def _row_norm_tbe():
    """Registers RowNorm."""
    return


def row_norm(x, weight, y, kernel_name="row_norm"):
    """tanh(weight * x / |x|)."""
    shape = x.get("shape")
    data = tvm.placeholder(shape, name="x", dtype=x.get("dtype"))
    scale = tvm.placeholder(weight.get("shape"), name="weight", dtype=weight.get("dtype"))
    squares = te.lang.cce.vmul(data, data)
    k = tvm.reduce_axis((0, shape[1]), name="k")
    total = tvm.compute((shape[0],), lambda i: tvm.sum(squares[i, k], axis=k), name="total")
    scaled = tvm.compute(
        shape, lambda i, j: data[i, j] * scale[j] / tvm.sqrt(total[i] + 1e-6), name="scaled"
    )
    res = te.lang.cce.vadds(topi.tanh(scaled), 0.0)
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, scale, res]})
