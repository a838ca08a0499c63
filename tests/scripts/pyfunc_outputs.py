import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops


def split(x, y):
    x += 1
    return x * y, (x > y), (x + y).astype(np.int32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.op = ops.Custom(
            split,
            lambda x, _: (x, x, x),
            lambda x, _: (x, ms.bool_, ms.int32),
            func_type="pyfunc",
        )

    def construct(self, x, y):
        return self.op(x, y)


for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
    ms.set_context(mode=mode, device_target="CPU")
    x = Tensor(np.array([[0.0, 1.0], [2.0, 3.0]]), ms.float64)
    y = Tensor(np.array([[4.0, 1.0], [0.5, 2.0]]), ms.float64)
    for result in Net()(x, y):
        print(result.dtype, result.shape)
        print(result)
    print(x)
