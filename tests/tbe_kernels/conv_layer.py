"""A convolution in Ascend's blocks: data in NC1HWC0, filters in FRACTAL_Z."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from te import tvm

conv_layer_op_info = (
    TBERegOp("ConvLayer")
    .kernel_name("conv_layer")
    .attr("stride", "required", "int", "all")
    .attr("pad", "required", "int", "all")
    .input(0, "x", None, "required", None)
    .input(1, "w", None, "required", None)
    .output(0, "y", True, "required", "all")
    .dtype_format(DataType.F16_5HD, DataType.F16_FracZ, DataType.F16_5HD)
    .dtype_format(*[DataType.F32_Default] * 3)
    .get_op_info()
)


@op_info_register(conv_layer_op_info)
def _conv_layer_tbe():
    """Registers ConvLayer."""
    return


def conv_layer(x, w, y, stride, pad, kernel_name="conv_layer"):
    """Convolves images with filters."""
    te.lang.cce.check_conv_shape(x.get("ori_shape"), w.get("ori_shape"), pad, pad, stride, stride)
    data = tvm.placeholder(x.get("shape"), name="x", dtype=x.get("dtype"))
    filters = tvm.placeholder(w.get("shape"), name="w", dtype=w.get("dtype"))
    parameters = {
        "pad_h": pad,
        "pad_w": pad,
        "stride_h": stride,
        "stride_w": stride,
        "filter_h": w.get("ori_shape")[2],
        "filter_w": w.get("ori_shape")[3],
    }
    res = te.lang.cce.conv(data, filters, parameters)
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, filters, res]})
