"""Kernels of MindSpore 2.10's API, which has no runner, and operators as functions of C++."""

import mindspore as ms
import numpy as np
from mindspore import ops

source = "extension_dispatch.cpp"
module = ops.CustomOpBuilder("extension_dispatch", [source], backend="CPU").load()


def show(what, function, *args):
    """Prints results, or class and first line of an error."""
    try:
        results = function(*args)
        for result in results if isinstance(results, (tuple, list)) else [results]:
            dtype = getattr(result, "dtype", None)
            print(what, str(dtype).split(".")[-1], dtype and result.asnumpy().tolist())
    except Exception as error:
        print(what, type(error).__name__, error.args[0].split("\n")[0])


x = ms.Tensor(np.arange(6).reshape(2, 3), ms.float32)
y = ms.Tensor(np.ones((2, 3)), ms.float32)
show("axpy", module.axpy, x, y, 2.0)
show("named", module.named, x, y, 3.0)
show("both", module.sum_and_difference, x, y)
show("one", module.sum_and_difference, x, None)
show("count", module.axpy, x, y)
show("shapes", module.axpy, x, ms.Tensor([1.0]), 1.0)
show("results", module.wrong_count, x)
show("unnamed", module.unnamed, x)
show("nested", module.nested, x)
for turn_x, turn_y in ((False, True), (True, False)):
    show("product", module.product, x, y, turn_x, turn_y)
for name in ("add", "sub", "mul", "div", "maximum"):
    show(name, module.binary, name, x, y)
show("matmul_ext", module.binary, "matmul_ext", x, y[0])
show("bmm_ext", module.binary, "bmm_ext", x.reshape(2, 1, 3), y.reshape(2, 3, 1))
show("shaped", module.shaped, x)
