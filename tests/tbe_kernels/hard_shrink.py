"""Hard shrinkage by packed bits, and how many elements it keeps in each row."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from te import tvm

hard_shrink_op_info = (
    TBERegOp("HardShrink")
    .kernel_name("hard_shrink")
    .attr("limit", "required", "float", "all")
    .input(0, "x", None, "required", None)
    .output(0, "y", True, "required", "all")
    .output(1, "kept", True, "required", "all")
    .dtype_format(DataType.F32_Default, DataType.F32_Default, DataType.I32_Default)
    .get_op_info()
)


@op_info_register(hard_shrink_op_info)
def _hard_shrink_tbe():
    """Registers HardShrink."""
    return


def hard_shrink(x, y, kept, limit, kernel_name="hard_shrink"):
    """x where |x| > limit, else 0; and the number of the former by row."""
    data = tvm.placeholder(x.get("shape"), name="x", dtype=x.get("dtype"))
    size = te.lang.cce.vabs(data)
    bits = te.lang.cce.vcmp(size, limit, "gt", "bit")
    res = te.lang.cce.vsel(bits, data, 0.0)
    ones = te.lang.cce.vsel(te.lang.cce.vcmp(size, limit, "gt"), 1.0, 0.0)
    count = te.lang.cce.cast_to(te.lang.cce.sum(ones, -1), "int32")
    with tvm.target.cce():
        sch = generic.auto_schedule([res, count])
    te.lang.cce.cce_build_code(
        sch,
        {"name": kernel_name, "tensor_list": [data, res, count], "bool_storage_as_1bit": True},
    )
