"""Graph operators in GRAPH_MODE, in ms.jit, in place and differentiated."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.ops import CustomOpBuilder
from mindspore.ops._grad_experimental.grad_base import bprop_getters

# MindSpore's own options for the linker lose the libraries that infer classes need.
LIBRARIES = ("core", "ops", "hardware_abstract", "common")
ldflags = " ".join(["-Wl,--no-as-needed", *(f"-lmindspore_{name}" for name in LIBRARIES)])
ops = CustomOpBuilder(
    "scripts_graph_operators",
    ["graph_operators.cpp"],
    backend="CPU",
    ldflags=ldflags if ms.__name__ == "mindspore" else None,
    op_def=["graph_operators.yaml"],
).load()


@bprop_getters.register("Custom_scale")
def get_scale_bprop(self):
    def bprop(x, factor, times, out, dout):
        return (ops.scale(dout, factor, times), factor, times)

    return bprop


class Net(nn.Cell):
    def construct(self, x):
        return ops.scale(x, times=2, factor=3.0) + ops.scale(x)


@ms.jit
def accumulate(x, y):
    ops.accumulate(x, y)
    return ops.accumulate(x, y) + x


@ms.jit
def scale_by_int(x):
    return ops.scale(x, 3)


def fresh():
    return Tensor(np.array([1.0, 2.0, -3.0], np.float32))


def show(name, function, *arguments):
    try:
        result = function(*arguments)
        print(name, result.dtype, result.asnumpy().tolist())
    except (TypeError, ValueError) as error:
        print(name, "TypeError" if isinstance(error, TypeError) else "ValueError")


for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
    ms.set_context(mode=mode)
    if mode == ms.GRAPH_MODE:
        show("cell", Net(), fresh())
        show("gradient", ms.grad(Net()), fresh())
    show("compiled", ms.jit(Net()), fresh())
    show("gradient of compiled", ms.grad(ms.jit(Net())), fresh())
    x, y = fresh(), fresh()
    show("in place", accumulate, x, y)
    print("its arguments", x.asnumpy().tolist(), y.asnumpy().tolist())
    show("an int for a float", scale_by_int, fresh())
try:
    ops.absent(fresh())
except AttributeError as error:
    print("absent", "absent" in str(error))
