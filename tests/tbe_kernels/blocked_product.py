"""A product of matrices in FRACTAL_NZ, as Ascend's matrix unit takes them."""

import te.lang.cce
import te.platform.cce_params as cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from te import tvm
from te.platform import CUBE_MKN

blocked_product_op_info = (
    TBERegOp("BlockedProduct")
    .kernel_name("blocked_product")
    .input(0, "a", None, "required", None)
    .input(1, "b", None, "required", None)
    .output(0, "y", True, "required", "all")
    .dtype_format(DataType.F16_FracNZ, DataType.F16_FracNZ, DataType.F32_FracNZ)
    .get_op_info()
)


@op_info_register(blocked_product_op_info)
def _blocked_product_tbe():
    """Registers BlockedProduct."""
    return


def blocked_product(a, b, y, kernel_name="blocked_product"):
    """a @ b."""
    rows, inner, columns = CUBE_MKN[a.get("dtype")]["mac"]
    assert (rows, inner, columns) == (cce.BLOCK_IN, cce.BLOCK_REDUCE, cce.BLOCK_OUT)
    assert a.get("format") == "FRACTAL_NZ"
    data = [
        tvm.placeholder(one.get("shape"), name=name, dtype=one.get("dtype"))
        for one, name in ((a, "a"), (b, "b"))
    ]
    # Blocks stored by columns count as transposed.
    res = te.lang.cce.matmul(
        data[0],
        data[1],
        True,
        True,
        format_a="FRACTAL_NZ",
        format_b="FRACTAL_NZ",
        dst_dtype=y.get("dtype"),
    )
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [*data, res]})
