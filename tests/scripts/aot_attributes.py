import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.ops import CustomRegOp, DataType

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")

info = (
    CustomRegOp("scale")
    .input(0, "x")
    .output(0, "y")
    .attr("scale", "required", "float")
    .attr("sizes", "required", "listInt")
    .attr("name", "required", "str")
    .attr("flag", "required", "bool")
    .dtype_format(DataType.F32_Default, DataType.F32_Default)
    .target("CPU")
    .get_op_info()
)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.op = ops.Custom(
            "./attributes.cc:Attributes",
            out_shape=lambda x, *_: x,
            out_dtype=lambda x, *_: x,
            func_type="aot",
            reg_info=info,
        )

    def construct(self, x):
        return self.op(x, 0.5, (2, 3), "four", True)


print(Net()(Tensor(np.array([1.0, 2.0, 3.0], np.float32))))
