"""A step of gradient descent with momentum and weight decay: two outputs from three inputs."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from te import tvm

momentum_op_info = (
    TBERegOp("MomentumStep")
    .kernel_name("momentum")
    .attr("rate", "required", "float", "all")
    .attr("decay", "optional", "float", "all", "0.0")
    .input(0, "w", None, "required", None)
    .input(1, "speed", None, "required", None)
    .input(2, "slope", None, "required", None)
    .output(0, "w_up", True, "required", "all")
    .output(1, "speed_up", True, "required", "all")
    .dtype_format(*[DataType.F32_Default] * 5)
    .get_op_info()
)


@op_info_register(momentum_op_info)
def _momentum_tbe():
    """Registers MomentumStep."""
    return


def momentum(w, speed, slope, w_up, speed_up, rate, decay=0.0, kernel_name="momentum"):
    """speed = 0.9 speed + slope + decay w; w = w - rate speed."""
    data = [
        tvm.placeholder(one.get("shape"), name=name, dtype=one.get("dtype"))
        for one, name in ((w, "w"), (speed, "speed"), (slope, "slope"))
    ]
    pull = te.lang.cce.vaxpy(data[0], data[2], decay)
    faster = te.lang.cce.vaxpy(data[1], pull, 0.9)
    moved = te.lang.cce.vaxpy(faster, data[0], -rate)
    with tvm.target.cce():
        sch = generic.auto_schedule([moved, faster])
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [*data, moved, faster]})
