import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


def square_bprop(x, out, dout):
    return (2 * x * dout,)


class Layer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.array([[1.0, -2.0], [0.5, 3.0]]), ms.float32), name="w")
        self.square = ops.Custom(
            lambda x: x * x,
            lambda x: x,
            lambda x: x,
            bprop=square_bprop,
            func_type="pyfunc",
        )
        self.matmul = ops.MatMul()
        self.sum = ops.ReduceSum()

    def construct(self, x):
        return self.sum(self.square(self.matmul(x, self.weight)))


x = Tensor(np.array([[1.0, 2.0]]), ms.float32)
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
net = Layer()
step = ms.value_and_grad(net, grad_position=None, weights=net.trainable_params())
for _ in range(3):
    loss, gradients = step(x)
    print(np.round(loss.asnumpy(), 4), np.round(gradients[0].asnumpy(), 4))
    net.weight.set_data(net.weight - 0.01 * gradients[0])
print([parameter.name for parameter in net.trainable_params()])
