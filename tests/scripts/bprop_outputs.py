import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops


def sin_cos(x):
    return np.sin(x), np.cos(x)


def sin_cos_grad(x, dsin, dcos):
    return dsin * np.cos(x) - dcos * np.sin(x)


def bprop():
    op = ops.Custom(sin_cos_grad, lambda x, *_: x, lambda x, *_: x, func_type="pyfunc")

    def custom_bprop(x, out, dout):
        return (op(x, dout[0], dout[1]),)

    return custom_bprop


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.op = ops.Custom(
            sin_cos, lambda x: (x, x), lambda x: (x, x), bprop=bprop(), func_type="pyfunc"
        )
        self.mul = ops.Mul()

    def construct(self, x):
        sin, cos = self.op(x)
        return self.mul(sin, cos)


x = Tensor(np.array([0.0, 0.5, 1.0]), ms.float32)
for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
    ms.set_context(mode=mode, device_target="CPU")
    print(np.round(ms.grad(Net())(x).asnumpy(), 4))
    sens = Tensor(np.array([1.0, 2.0, 3.0]), ms.float32)
    print(np.round(ops.GradOperation(sens_param=True)(Net())(x, sens).asnumpy(), 4))
    value, gradient = ms.value_and_grad(Net())(x)
    print(np.round(value.asnumpy(), 4), np.round(gradient.asnumpy(), 4))
