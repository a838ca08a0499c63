# Small cases of `_Function`: a value or an error each; "# %%" begins one.
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.common._grad_function import _Function

x = Tensor([1.0, 2.0], ms.float32)
y = Tensor([3.0, 5.0], ms.float32)


class Square(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dout):
        (x,) = ctx.saved_tensors
        return 10 * x * dout


class Product(_Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, dout):
        x, y = ctx.saved_tensors
        return y * dout, x * dout


def square(ctx, x):
    return x * x


def product(ctx, x, y):
    return x * y


def same(ctx, dout):
    return dout


def made_of(forward, backward=same):
    """Returns apply of a class of these two."""
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Made", (_Function,), body).apply


# %% value
Square.apply(x)

# %% gradient is that of backward
ms.grad(Square.apply)(x)

# %% two inputs
ms.grad(Product.apply, (0, 1))(x, y)

# %% value and gradient
ms.value_and_grad(Product.apply, (0, 1))(x, y)

# %% inside other code
ms.grad(lambda x: 3 * Square.apply(x + 1))(x)


# %% several outputs come as a tuple
class Two(_Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1, x * 2

    @staticmethod
    def backward(ctx, d1, d2):
        return d1 + 20 * d2


Two.apply(x), ms.grad(Two.apply)(x), ms.grad(lambda x: Two.apply(x)[1])(x)


# %% outputs in a list
class Listed(_Function):
    @staticmethod
    def forward(ctx, x):
        return [x + 1, x * 2]

    @staticmethod
    def backward(ctx, d1, d2):
        return d1 + 20 * d2


Listed.apply(x)


# %% an output that is not used has zeros as its gradient
class Unused(_Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1, x * 2

    @staticmethod
    def backward(ctx, d1, d2):
        seen.append((d1, d2))
        return d1


seen = []
ms.grad(lambda x: Unused.apply(x)[0])(x), seen


# %% without materialised gradients it is None
class Lazy(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x + 1, x * 2

    @staticmethod
    def backward(ctx, d1, d2):
        seen.append(d2)
        return d1


seen = []
ms.grad(lambda x: Lazy.apply(x)[0])(x), seen


# %% needs_input_grad
class Needs(_Function):
    @staticmethod
    def forward(ctx, x, factor, y):
        return x * factor * y

    @staticmethod
    def backward(ctx, dout):
        seen.append(tuple(ctx.needs_input_grad))
        return dout, None, dout


seen = []
ms.grad(Needs.apply)(x, 2.0, y), seen


# %% needs_input_grad in forward
class Early(_Function):
    @staticmethod
    def forward(ctx, x, y):
        seen.append(tuple(ctx.needs_input_grad))
        return x * y

    @staticmethod
    def backward(ctx, dout):
        return dout, dout


seen = []
Early.apply(x, y), ms.grad(Early.apply, 1)(x, y), seen


# %% None is no gradient
ms.grad(made_of(product, lambda ctx, dout: (dout, None)), (0, 1))(x, y)


# %% attributes of ctx
class Attributes(_Function):
    @staticmethod
    def forward(ctx, x, power):
        ctx.power = power
        ctx.x = x
        return x**power

    @staticmethod
    def backward(ctx, dout):
        return ctx.power * ctx.x * dout, None


ms.grad(Attributes.apply)(x, 3)


# %% saved None
class Nothing(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(None, x)
        return x * x

    @staticmethod
    def backward(ctx, dout):
        nothing, x = ctx.saved_tensors
        seen.append(nothing)
        return x * dout


seen = []
ms.grad(Nothing.apply)(x), seen


# %% saved twice, the last counts
class Again(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x + 1)
        return x * x

    @staticmethod
    def backward(ctx, dout):
        seen.append(len(ctx.saved_tensors))
        return ctx.saved_tensors[0] * dout


seen = []
ms.grad(Again.apply)(x), seen


# %% an output that is saved
class Saved(_Function):
    @staticmethod
    def forward(ctx, x):
        y = ops.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dout):
        return ctx.saved_tensors[0] * dout


ms.grad(Saved.apply)(Tensor(0.0))


# %% too few gradients
ms.grad(made_of(product), (0, 1))(x, y)

# %% too many gradients that are None
ms.grad(made_of(square, lambda ctx, dout: (dout, None)))(x)


# %% gradient for what is no Tensor
class Scalar(_Function):
    @staticmethod
    def forward(ctx, x, factor):
        return x * factor

    @staticmethod
    def backward(ctx, dout):
        return dout, dout


ms.grad(Scalar.apply)(x, 2.0)


# %% a number as gradient
ms.grad(made_of(square, lambda ctx, dout: 1.0))(x)

# %% gradient of another shape
ms.grad(made_of(square, lambda ctx, dout: Tensor([1.0, 2.0, 3.0])))(x)

# %% gradient of a shape to broadcast
ms.grad(made_of(square, lambda ctx, dout: Tensor([[1.0, 2.0], [3.0, 4.0]])))(x)

# %% gradient of another dtype
ms.grad(made_of(square, lambda ctx, dout: Tensor([1.0, 2.0], ms.float64)))(x)

# %% a list of gradients
ms.grad(made_of(product, lambda ctx, dout: [dout, 2 * dout]), (0, 1))(x, y)


# %% no backward
class Forward(_Function):
    @staticmethod
    def forward(ctx, x):
        return x * x


Forward.apply(x)


# %% no backward and a gradient
class Forward2(_Function):
    @staticmethod
    def forward(ctx, x):
        return x * x


ms.grad(Forward2.apply)(x)


# %% no forward
class Backward(_Function):
    pass


Backward.apply(x)


# %% an error in forward keeps its class
class Fails(_Function):
    @staticmethod
    def forward(ctx, x):
        raise KeyError("here")


Fails.apply(x)


# %% an error in backward keeps its class
class FailsBack(_Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, dout):
        raise KeyError("here")


ms.grad(FailsBack.apply)(x)


# %% a result that is no Tensor
class Plain(_Function):
    @staticmethod
    def forward(ctx, x):
        return x * x, 3

    @staticmethod
    def backward(ctx, dout, other):
        seen.append(other)
        return dout


seen = []
Plain.apply(x), ms.grad(lambda x: Plain.apply(x)[0])(x), seen


# %% a result that is one number
class One(_Function):
    @staticmethod
    def forward(ctx, x):
        return 3


One.apply(x)


# %% an empty result
class Empty(_Function):
    @staticmethod
    def forward(ctx, x):
        return ()


Empty.apply(x)


# %% keyword arguments
class Keywords(_Function):
    @staticmethod
    def forward(ctx, x, factor=2.0):
        return x * factor

    @staticmethod
    def backward(ctx, dout):
        return dout, None


Keywords.apply(x, factor=3.0)

# %% a default is no argument
ms.grad(Keywords.apply)(x)


# %% setup_context
class Context(_Function):
    @staticmethod
    def forward(x, factor=2.0):
        return x * x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, factor = inputs
        ctx.save_for_backward(x, output)
        ctx.factor = factor

    @staticmethod
    def backward(ctx, dout):
        x, _ = ctx.saved_tensors
        return x * ctx.factor * dout, None


Context.apply(x), ms.grad(Context.apply)(x), ms.grad(Context.apply)(x, factor=7.0)


# %% an input that is changed in place
class Dirty(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x[:] = x + 1
        return x

    @staticmethod
    def backward(ctx, dout):
        return 10 * dout


def inside(x):
    z = x * 2
    w = Dirty.apply(z)
    return z * w


z = Tensor([1.0, 2.0])
Dirty.apply(z), z, ms.grad(inside)(x)


# %% a leaf that is changed in place
class DirtyLeaf(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x[:] = x + 1
        return x

    @staticmethod
    def backward(ctx, dout):
        return 10 * dout


ms.grad(DirtyLeaf.apply)(Tensor([1.0, 2.0]))


# %% an input that is returned
class Identity(_Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, dout):
        return 10 * dout


Identity.apply(x), ms.grad(Identity.apply)(x)


# %% an output without gradient
class Constant(_Function):
    @staticmethod
    def forward(ctx, x):
        y = x + 1
        ctx.mark_non_differentiable(y)
        return x * x, y

    @staticmethod
    def backward(ctx, d1, d2):
        seen.append(d2)
        return d1


seen = []
ms.grad(lambda x: Constant.apply(x)[1])(x), ms.grad(Constant.apply)(x), seen


# %% an integer input
class Integer(_Function):
    @staticmethod
    def forward(ctx, x, n):
        return x * n

    @staticmethod
    def backward(ctx, dout):
        return dout, None


ms.grad(Integer.apply)(x, Tensor([2, 3], ms.int32))


# %% grad twice
def once(x):
    return ms.grad(lambda x: Product.apply(x, x))(x)


ms.grad(once)(x)

# %% in a Cell


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([2.0, 4.0]), name="w")

    def construct(self, x):
        return Product.apply(x, self.w)


net = Net()
ms.grad(net, 0, net.trainable_params())(x)


# %% in ms.jit
@ms.jit
def compiled(x):
    return Square.apply(x) + 1


compiled(x)


# %% forward is a plain function, too
Square.forward(Square(), x)


# %% no arguments
class Source(_Function):
    @staticmethod
    def forward(ctx):
        return Tensor([1.0])

    @staticmethod
    def backward(ctx, dout):
        return None


Source.apply()

# %% a wrong number of arguments
Square.apply(x, x)


# %% names of ctx
class Names(_Function):
    @staticmethod
    def forward(ctx, x):
        seen.append(type(ctx) is Names)
        seen.append(isinstance(ctx, _Function))
        return x * x

    @staticmethod
    def backward(ctx, dout):
        return dout


seen = []
Names.apply(x), seen


# %% numpy in forward
class Numpy(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return Tensor(np.sin(x.asnumpy()))

    @staticmethod
    def backward(ctx, dout):
        return Tensor(np.cos(ctx.saved_tensors[0].asnumpy()) * dout.asnumpy())


Numpy.apply(x), ms.grad(Numpy.apply)(x)


# %% Tensors in a tuple that is a result
class Inner(_Function):
    @staticmethod
    def forward(ctx, x):
        return (x + 1, x * 2), x * 3

    @staticmethod
    def backward(ctx, inner, dout):
        seen.append(inner)
        return dout


seen = []
Inner.apply(x), ms.grad(Inner.apply)(x), seen


# %% None is a result
class NoResult(_Function):
    @staticmethod
    def forward(ctx, x):
        return None


NoResult.apply(x)


# %% save_for_backward of a number
ms.grad(made_of(lambda ctx, x: ctx.save_for_backward(3) or x * x))(x)

# %% mark_dirty of a number
ms.grad(made_of(lambda ctx, x: ctx.mark_dirty(3) or x * x))(x)

# %% set_materialize_grads of a string
ms.grad(made_of(lambda ctx, x: ctx.set_materialize_grads("yes") or x * x))(x)

# %% nothing was saved
ms.grad(made_of(square, lambda ctx, dout: dout * len(ctx.saved_tensors)))(x)

# %% backward returns an empty tuple
ms.grad(made_of(square, lambda ctx, dout: ()))(x)

# %% backward returns None
ms.grad(made_of(square, lambda ctx, dout: None))(x)


# %% an array of numpy is no Tensor
class TakesNumpy(_Function):
    @staticmethod
    def forward(ctx, x):
        return Tensor(x) * 2


TakesNumpy.apply(np.ones(2, np.float32))

# %% apply of an object
Square().apply(x)

# %% an object cannot be called
Square()(x)


# %% a tuple of Tensors as argument
class Tupled(_Function):
    @staticmethod
    def forward(ctx, pair):
        return pair[0] * pair[1]

    @staticmethod
    def backward(ctx, dout):
        return dout


Tupled.apply((x, y)), ms.grad(lambda x: Tupled.apply((x, y)))(x)


# %% a changed input that is not returned
class DirtyLost(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x[:] = x + 1
        return x * 2

    @staticmethod
    def backward(ctx, dout):
        return dout


ms.grad(lambda x: DirtyLost.apply(x * 1))(x)

# %% a changed input that is not returned, without gradient
DirtyLost.apply(Tensor([1.0, 2.0]))


# %% mark_dirty of what is no input
class DirtyOther(_Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    @staticmethod
    def backward(ctx, dout):
        return dout


ms.grad(lambda x: DirtyOther.apply(x * 1))(x)
