"""Sums of x and of its squares over each channel, in one pass over blocks."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from tbe.tvm.topi.cce import util
from te import tvm

channel_moments_op_info = (
    TBERegOp("ChannelMoments")
    .kernel_name("channel_moments")
    .input(0, "x", None, "required", None)
    .output(0, "total", True, "required", "all")
    .output(1, "squares", True, "required", "all")
    .dtype_format(*[DataType.F32_5HD] * 3)
    .get_op_info()
)


@op_info_register(channel_moments_op_info)
def _channel_moments_tbe():
    """Registers ChannelMoments."""
    return


@util.check_input_type(dict, dict, dict, str)
def channel_moments(x, total, squares, kernel_name="channel_moments"):
    """Sums over all but the channel."""
    if x.get("format") != "NC1HWC0" or len(x.get("shape")) != 5:
        raise RuntimeError("channel_moments takes NC1HWC0 only")
    data = tvm.placeholder(x.get("shape"), name="x", dtype=x.get("dtype"))
    results = te.lang.cce.tuple_sum([data, te.lang.cce.vmul(data, data)], [0, 2, 3], True)
    with tvm.target.cce():
        sch = generic.auto_schedule(list(results))
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, *list(results)]})
