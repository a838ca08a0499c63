"""Moving least and greatest value of a whole tensor, flattened."""

from functools import reduce as functools_reduce

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from tbe.tvm.topi.cce import util
from te import tvm

ema_range_op_info = (
    TBERegOp("EmaRange")
    .kernel_name("ema_range")
    .attr("decay", "optional", "float", "all")
    .input(0, "x", None, "required", None)
    .input(1, "low", None, "required", None)
    .input(2, "high", None, "required", None)
    .output(0, "low_up", True, "required", "all")
    .output(1, "high_up", True, "required", "all")
    .dtype_format(*[DataType.F32_5HD] * 5)
    .get_op_info()
)


@op_info_register(ema_range_op_info)
def _ema_range_tbe():
    """Registers EmaRange."""
    return


@util.check_input_type(dict, dict, dict, dict, dict, float, str)
def ema_range(x, low, high, low_up, high_up, decay=0.9, kernel_name="ema_range"):
    """Moves both ends of a range towards those of x; the range contains 0."""
    size = functools_reduce(lambda a, b: a * b, x.get("shape"))
    bounds = util.scalar2tensor_one(low.get("ori_shape"))
    util.check_shape_rule(bounds, 1, 1, 1)
    own, _, _ = util.produce_shapes(bounds, (size,))
    data = tvm.placeholder((size,), name="x", dtype="float32")
    ends = [tvm.placeholder(own, name=n, dtype="float32") for n in ("low", "high")]
    results = []
    for end, reduce, clamp in (
        (ends[0], te.lang.cce.reduce_min, te.lang.cce.vmins),
        (ends[1], te.lang.cce.reduce_max, te.lang.cce.vmaxs),
    ):
        found = te.lang.cce.broadcast(reduce(data, axis=0), own)
        moved = te.lang.cce.vadd(te.lang.cce.vmuls(end, decay), te.lang.cce.vmuls(found, 1 - decay))
        results.append(clamp(moved, 0))
    with tvm.target.cce():
        sch = generic.auto_schedule(results)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, *ends, *results]})
