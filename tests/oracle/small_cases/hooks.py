# Small cases of hooks of Cells and of HookBackward; "# %%" begins one.
import mindspore as ms
from mindspore import Tensor, nn, ops

x = Tensor([1.0, 2.0], ms.float32)
y = Tensor([3.0, 5.0], ms.float32)


class Square(nn.Cell):
    def construct(self, x):
        return x * x


class Product(nn.Cell):
    def construct(self, x, y):
        return x * y


class Pair(nn.Cell):
    def construct(self, x, y):
        return x * y, x + y


class Scaled(nn.Cell):
    def construct(self, x, factor=2.0):
        return x * factor


class Outer(nn.Cell):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def construct(self, x):
        return 3 * self.inner(x + 1)


class WithBprop(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (100 * dout,)


class Fails(nn.Cell):
    def construct(self, x):
        raise KeyError("construct")


class Weighted(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([2.0, 4.0]), name="w")

    def construct(self, x):
        return x * self.w


# %% a forward pre-hook gets cell and arguments
seen = []
net = Square()
handle = net.register_forward_pre_hook(lambda cell, args: seen.append((cell is net, args)))
net(x), seen

# %% it replaces the arguments
net = Product()
handle = net.register_forward_pre_hook(lambda cell, args: (args[0] + 1, args[1]))
net(x, y)

# %% one value replaces one argument
net = Square()
handle = net.register_forward_pre_hook(lambda cell, args: args[0] + 1)
net(x), ms.grad(net)(x)

# %% a list replaces the arguments
net = Square()
handle = net.register_forward_pre_hook(lambda cell, args: [args[0] + 1])
net(x)

# %% too many arguments
net = Square()
handle = net.register_forward_pre_hook(lambda cell, args: (args[0], args[0]))
net(x)

# %% forward pre-hooks run in order
seen = []
net = Square()
first = net.register_forward_pre_hook(lambda cell, args: seen.append(1))
second = net.register_forward_pre_hook(lambda cell, args: seen.append(2))
net(x), seen

# %% prepend
seen = []
net = Square()
first = net.register_forward_pre_hook(lambda cell, args: seen.append(1))
second = net.register_forward_pre_hook(lambda cell, args: seen.append(2), prepend=True)
net(x), seen

# %% with_kwargs
seen = []
net = Scaled()
handle = net.register_forward_pre_hook(
    lambda cell, args, kwargs: seen.append((len(args), kwargs)), with_kwargs=True
)
net(x, factor=3.0), seen

# %% with_kwargs that replaces both
net = Scaled()
handle = net.register_forward_pre_hook(
    lambda cell, args, kwargs: (args, {"factor": 10.0}), with_kwargs=True
)
net(x, factor=3.0)

# %% with_kwargs that returns one value
net = Scaled()
handle = net.register_forward_pre_hook(lambda cell, args, kwargs: args[0], with_kwargs=True)
net(x, factor=3.0)

# %% keywords without with_kwargs
seen = []
net = Scaled()
handle = net.register_forward_pre_hook(lambda cell, args: seen.append(len(args)))
net(x, factor=3.0), seen

# %% a forward hook gets cell, arguments and output
seen = []
net = Square()
handle = net.register_forward_hook(lambda cell, args, out: seen.append((cell is net, args, out)))
net(x), seen

# %% it replaces the output
net = Square()
handle = net.register_forward_hook(lambda cell, args, out: out + 10 * args[0])
net(x), ms.grad(net)(x)

# %% forward hooks run in order
net = Square()
first = net.register_forward_hook(lambda cell, args, out: out + 1)
second = net.register_forward_hook(lambda cell, args, out: out * 10)
net(x)

# %% a prepended forward hook
net = Square()
first = net.register_forward_hook(lambda cell, args, out: out + 1)
second = net.register_forward_hook(lambda cell, args, out: out * 10, prepend=True)
net(x)

# %% a forward hook with_kwargs
seen = []
net = Scaled()
handle = net.register_forward_hook(
    lambda cell, args, kwargs, out: seen.append((len(args), kwargs, out)), with_kwargs=True
)
net(x, factor=3.0), seen

# %% a forward hook sees what the pre-hook made
seen = []
net = Square()
first = net.register_forward_pre_hook(lambda cell, args: args[0] + 1)
second = net.register_forward_hook(lambda cell, args, out: seen.append(args))
net(x), seen

# %% remove
net = Square()
handle = net.register_forward_hook(lambda cell, args, out: out + 1)
before = net(x)
handle.remove()
before, net(x)

# %% remove twice
net = Square()
handle = net.register_forward_hook(lambda cell, args, out: out + 1)
handle.remove(), handle.remove(), net(x)

# %% remove one of two
net = Square()
first = net.register_forward_hook(lambda cell, args, out: out + 1)
second = net.register_forward_hook(lambda cell, args, out: out * 10)
first.remove()
net(x)

# %% always_call
seen = []
net = Fails()
handle = net.register_forward_hook(
    lambda cell, args, out: seen.append((args, out)), always_call=True
)
try:
    net(x)
except KeyError as error:
    seen.append(str(error))
seen

# %% without always_call
seen = []
net = Fails()
handle = net.register_forward_hook(lambda cell, args, out: seen.append(out))
try:
    net(x)
except KeyError as error:
    seen.append(str(error))
seen

# %% always_call is called once
seen = []
net = Square()
handle = net.register_forward_hook(lambda cell, args, out: seen.append(1), always_call=True)
net(x), seen


# %% always_call after another hook failed
def fails(cell, args, out):
    raise KeyError("hook")


seen = []
net = Square()
first = net.register_forward_hook(fails)
second = net.register_forward_hook(lambda cell, args, out: seen.append(out), always_call=True)
try:
    net(x)
except KeyError as error:
    seen.append(str(error))
seen

# %% an error of a hook keeps its class
net = Square()
handle = net.register_forward_hook(fails)
net(x)

# %% prepend by position
Square().register_forward_hook(lambda cell, args, out: None, True)

# %% a hook that is no function
Square().register_forward_hook(3)

# %% a pre-hook that is no function
Square().register_forward_pre_hook(None)

# %% a backward hook that is no function
Square().register_backward_hook("hook")

# %% a backward pre-hook that is no function
Square().register_backward_pre_hook(3)

# %% a backward hook gets cell, gradients of inputs and of outputs
seen = []
net = Square()
handle = net.register_backward_hook(
    lambda cell, grad_input, grad_output: seen.append((cell is net, grad_input, grad_output))
)
ms.grad(net)(x), seen

# %% it replaces the gradient
net = Square()
handle = net.register_backward_hook(lambda cell, grad_input, grad_output: (10 * grad_input[0],))
ms.grad(net)(x)

# %% it replaces the gradient by one value
net = Square()
handle = net.register_backward_hook(lambda cell, grad_input, grad_output: 10 * grad_input[0])
ms.grad(net)(x)

# %% a backward hook of two inputs
seen = []
net = Product()
handle = net.register_backward_hook(lambda cell, *grads: seen.append(grads))
ms.grad(net, (0, 1))(x, y), seen

# %% a backward hook of two inputs replaces both
net = Product()
handle = net.register_backward_hook(lambda cell, grad_input, grad_output: (x, 10 * y))
ms.grad(net, (0, 1))(x, y)

# %% a backward hook of two outputs
seen = []
net = Pair()
handle = net.register_backward_hook(lambda cell, *grads: seen.append(grads))
ms.grad(net, (0, 1))(x, y), seen

# %% a backward hook beside a number
seen = []
net = Scaled()
handle = net.register_backward_hook(lambda cell, *grads: seen.append(grads))
ms.grad(net)(x, 3.0), seen

# %% a backward hook in another Cell
seen = []
net = Outer(Square())
handle = net.inner.register_backward_hook(lambda cell, *grads: seen.append(grads))
ms.grad(net)(x), seen

# %% two backward hooks
net = Square()
first = net.register_backward_hook(lambda cell, grad_input, grad_output: grad_input[0] + 1)
second = net.register_backward_hook(lambda cell, grad_input, grad_output: grad_input[0] * 10)
ms.grad(net)(x)

# %% a backward hook is removed
net = Square()
handle = net.register_backward_hook(lambda cell, grad_input, grad_output: grad_input[0] + 1)
before = ms.grad(net)(x)
handle.remove()
before, ms.grad(net)(x)

# %% a backward hook without gradient
seen = []
net = Square()
handle = net.register_backward_hook(lambda cell, *grads: seen.append(grads))
net(x), seen

# %% a backward hook that returns too many
net = Square()
handle = net.register_backward_hook(lambda cell, grad_input, grad_output: (x, x))
ms.grad(net)(x)

# %% a backward hook that returns too few
net = Product()
handle = net.register_backward_hook(lambda cell, grad_input, grad_output: (x,))
ms.grad(net, (0, 1))(x, y)

# %% a backward hook that returns a number
net = Square()
handle = net.register_backward_hook(lambda cell, grad_input, grad_output: (3.0,))
ms.grad(net)(x)

# %% a backward hook of weights
seen = []
net = Weighted()
handle = net.register_backward_hook(lambda cell, *grads: seen.append(grads))
ms.grad(net, 0, net.trainable_params())(x), seen

# %% a backward pre-hook gets cell and gradients of outputs
seen = []
net = Square()
handle = net.register_backward_pre_hook(lambda cell, grads: seen.append((cell is net, grads)))
ms.grad(net)(x), seen

# %% it replaces the gradient of the output
net = Square()
handle = net.register_backward_pre_hook(lambda cell, grads: (10 * grads[0],))
ms.grad(net)(x)

# %% by one value
net = Square()
handle = net.register_backward_pre_hook(lambda cell, grads: 10 * grads[0])
ms.grad(net)(x)

# %% a backward pre-hook of two outputs
seen = []
net = Pair()
handle = net.register_backward_pre_hook(lambda cell, grads: seen.append(grads))
ms.grad(net, (0, 1))(x, y), seen

# %% two backward pre-hooks
net = Square()
first = net.register_backward_pre_hook(lambda cell, grads: grads[0] + 1)
second = net.register_backward_pre_hook(lambda cell, grads: grads[0] * 10)
ms.grad(net)(x)

# %% both backward hooks
seen = []
net = Square()
first = net.register_backward_pre_hook(lambda cell, grads: 10 * grads[0])
second = net.register_backward_hook(lambda cell, *grads: seen.append(grads))
ms.grad(net)(x), seen

# %% all four
seen = []
net = Outer(Square())
inner = net.inner
handles = [
    inner.register_forward_pre_hook(lambda cell, args: seen.append("pre")),
    inner.register_forward_hook(lambda cell, args, out: seen.append("forward")),
    inner.register_backward_pre_hook(lambda cell, grads: seen.append("backward pre")),
    inner.register_backward_hook(lambda cell, *grads: seen.append("backward")),
]
ms.grad(net)(x), seen

# %% forward hooks of a Cell with a bprop
net = WithBprop()
first = net.register_forward_pre_hook(lambda cell, args: args[0] + 1)
second = net.register_forward_hook(lambda cell, args, out: out + 1)
net(x), ms.grad(net)(x)

# %% a backward hook of a Cell with a bprop
seen = []
net = WithBprop()
handle = net.register_backward_hook(lambda cell, *grads: seen.append(grads))
ms.grad(net)(x), seen

# %% a backward pre-hook of a Cell with a bprop
seen = []
net = WithBprop()
handle = net.register_backward_pre_hook(lambda cell, grads: seen.append(grads))
ms.grad(net)(x), seen

# %% HookBackward
seen = []
hook = ops.HookBackward(lambda grad: seen.append(grad))


def hooked(x, y):
    return hook(x * y) * y


ms.grad(hooked, (0, 1))(x, y), seen

# %% HookBackward that replaces the gradient
twice = ops.HookBackward(lambda grad: 2 * grad[0])


def replaced(x):
    return twice(x * x)


ms.grad(replaced)(x), replaced(x)

# %% HookBackward that returns a tuple
tupled = ops.HookBackward(lambda grad: (2 * grad[0],))


def replaced(x):
    return tupled(x * x)


ms.grad(replaced)(x)

# %% HookBackward of two
seen = []
both = ops.HookBackward(lambda grad: seen.append(grad))


def of_two(x, y):
    a, b = both(x * y, x + y)
    return a * b


ms.grad(of_two, (0, 1))(x, y), seen

# %% HookBackward of two that replaces both
both = ops.HookBackward(lambda grad: (10 * grad[0], 0 * grad[1]))


def of_two(x, y):
    a, b = both(x * y, x + y)
    return a + b


ms.grad(of_two, (0, 1))(x, y)

# %% HookBackward of no function
ops.HookBackward(3)

# %% HookBackward of a number
ops.HookBackward(lambda grad: None)(3.0)

# %% HookBackward is a Primitive
hook = ops.HookBackward(lambda grad: None)
isinstance(hook, ops.Primitive), hook.name, ops.operations.HookBackward is ops.HookBackward

# %% a hook of a Tensor
seen = []


def with_hook(x):
    z = x * x
    z.register_hook(lambda grad: seen.append(grad))
    return z * 3


ms.grad(with_hook)(x), seen

# %% a backward hook where weights alone are differentiated
seen = []
net = Weighted()
handle = net.register_backward_hook(lambda cell, *grads: seen.append(grads))
ms.grad(net, None, net.trainable_params())(x), seen

# %% a backward hook where one of two inputs is differentiated
seen = []
net = Product()
handle = net.register_backward_hook(lambda cell, *grads: seen.append(grads))


def by_one(x):
    return net(x, y)


ms.grad(by_one)(x), seen

# %% the hooks of a Tensor
z = Tensor([1.0, 2.0])
first = z.register_hook(lambda grad: grad)
second = z.register_hook(lambda grad: grad * 2)
counts = [len(z.hooks())]
first.remove()
[*counts, len(z.hooks()), len(Tensor([1.0]).hooks()), z.hooks()[0](Tensor([1.0]))]


# %% the hooks of a Tensor that is computed
def counted(x):
    z = x * x
    handle = z.register_hook(lambda grad: grad * 2)
    seen.append(len(z.hooks()))
    handle.remove()
    seen.append(len(z.hooks()))
    return z


seen = []
ms.grad(counted)(x), seen

# %% a hook of a Parameter that requires no gradient
ms.Parameter(Tensor([1.0]), requires_grad=False).register_hook(lambda grad: grad)
