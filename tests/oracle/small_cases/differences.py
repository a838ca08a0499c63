# Small cases in which msops may differ from MindSpore, for the porting page; "# %%" begins one.
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

x = Tensor([1.0, 2.0], ms.float32)


def infer(entry):
    return entry


def square_of_numpy(x):
    return x * x


def slope(x, out, dout):
    return (2 * x * dout,)


def custom(**options):
    return ops.Custom(square_of_numpy, infer, infer, func_type="pyfunc", **options)


differentiable = custom(bprop=slope)


def apply(x):
    return differentiable(x)


def square(x):
    return x * x


# %% the gradient by an integer
ms.grad(square)(Tensor([1, 2], ms.int32))

# %% the gradient of an operator
ms.grad(apply)(x)


# %% the gradient of a gradient of an operator
def once(x):
    return ms.grad(apply)(x)


ms.grad(once)(x)

# %% vmap of an operator
ms.vmap(apply)(Tensor([[1.0, 2.0], [3.0, 4.0]]))

# %% jvp of an operator with a bprop
ms.jvp(apply, x, Tensor([1.0, 10.0]))

# %% jacrev of an operator with a bprop
ms.jacrev(apply)(x)

# %% jacfwd of an operator with a bprop
ms.jacfwd(apply)(x)

# %% the gradient of an operator without bprop
plain = custom()


def without(x):
    return plain(x)


ms.grad(without)(x)


# %% vmap of a CellList
class Square(nn.Cell):
    def construct(self, x):
        return x * x


cells = nn.CellList([Square(), Square()])
ms.vmap(cells, in_axes=None)(x)

# %% an out_shape of ()
ops.Custom(lambda a: a.sum(), (), ms.float32, func_type="pyfunc")(x)

# %% one Tensor twice
ms.grad(lambda a, b: a * b, (0, 1))(x, x)


# %% an attribute that is set in construct
class Remembers(nn.Cell):
    def construct(self, x):
        self.last = x * 2
        return x


net = Remembers()
net(x)
net.last

# %% if on a Tensor
ms.jit(square)(x)


@ms.jit
def branches(x):
    if x.sum() > 0:
        return x
    return -x


branches(x)


# %% a loop over a Tensor's value
@ms.jit
def loops(x):
    while x.sum() < 10:
        x = x * 2
    return x


loops(x)

# %% a type of dtype
str(ms.float32), str(x.dtype)

# %% an int beside a Tensor
x + 1, Tensor([1]) + 1.5, Tensor([1], ms.int8) + 300

# %% a numpy array beside a Tensor
x + np.ones(2, np.float64)

# %% the wrong number of inputs
differentiable(x, x)

# %% a bprop that returns too few
wrong = custom(bprop=lambda x, out, dout: ())
ms.grad(lambda x: wrong(x))(x)

# %% a bprop of another shape
shapes = custom(bprop=lambda x, out, dout: (Tensor([1.0]),))
ms.grad(lambda x: shapes(x))(x)

# %% a pyfunc of another dtype
ops.Custom(lambda a: a.astype(np.float64), infer, infer, func_type="pyfunc")(x)


# %% a pyfunc that writes to its input
def writes(a):
    a[0] = 100
    return a


z = Tensor([1.0, 2.0])
ops.Custom(writes, infer, infer, func_type="pyfunc")(z), z

# %% a Parameter's gradient that is frozen
frozen = ms.Parameter(Tensor([2.0, 3.0]), name="f", requires_grad=False)
ms.grad(lambda x: x * frozen, None, (frozen,))(x)

# %% set_context of an unknown keyword
ms.set_context(nonsense=1)

# %% a mode that is unknown
ms.set_context(mode=7)

# %% a device_target that is unknown
ms.set_context(device_target="Abacus")
