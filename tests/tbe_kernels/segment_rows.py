"""Means of rows by segment; the segment of each row is an attribute."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from te import tvm

segment_rows_op_info = (
    TBERegOp("SegmentRows")
    .kernel_name("segment_rows")
    .attr("ids", "required", "listInt", "all")
    .input(0, "x", None, "required", None)
    .output(0, "y", True, "required", "all")
    .dtype_format(DataType.F32_Default, DataType.F32_Default)
    .get_op_info()
)


@op_info_register(segment_rows_op_info)
def _segment_rows_tbe():
    """Registers SegmentRows."""
    return


def segment_rows(x, y, ids, kernel_name="segment_rows"):
    """Returns one row per segment, and the rows of -1 in none."""
    data = tvm.placeholder(x.get("shape"), name="x", dtype=x.get("dtype"))
    means = te.lang.cce.unsorted_segment_mean(data, ids, y.get("shape")[0] - 1)
    res = te.lang.cce.concat([means, te.lang.cce.reduce_max(data, 0, keepdims=True)], 0)
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, res]})
