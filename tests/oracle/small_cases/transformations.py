# Small cases of MindSpore's transformations of functions; "# %%" begins one.
import mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.common._grad_function import _Function

x = Tensor([1.0, 2.0], ms.float32)
y = Tensor([3.0, 5.0], ms.float32)
matrix = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], ms.float32)


def product(x, y):
    return x * y


def square(x):
    return x * x


def cubic(x, y):
    return x * x * y


def pair(x, y):
    return x * y, x + y


def with_aux(x, y):
    return x * y, x + y, x - y


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([2.0, 4.0], ms.float32), name="w")
        self.b = ms.Parameter(Tensor([1.0, 1.0], ms.float32), name="b")

    def construct(self, x):
        return x * self.w + self.b


net = Net()

# %% grad with the position
ms.grad(product, return_ids=True)(x, y)

# %% grad with one position in a tuple
ms.grad(product, (0,), return_ids=True)(x, y)

# %% grad with two positions
ms.grad(product, (1, 0), return_ids=True)(x, y)

# %% grad with the names of weights
ms.grad(net, None, net.trainable_params(), return_ids=True)(x)

# %% grad with the name of one weight
ms.grad(net, None, net.w, return_ids=True)(x)

# %% grad with positions and weights
ms.grad(net, 0, net.trainable_params(), return_ids=True)(x)

# %% grad with ids and aux
ms.grad(with_aux, (0, 1), has_aux=True, return_ids=True)(x, y)

# %% value and grad with ids
ms.value_and_grad(product, (0, 1), return_ids=True)(x, y)

# %% get_grad by position
ms.get_grad(ms.grad(product, (0, 1), return_ids=True)(x, y), 1)

# %% get_grad of one gradient
ms.get_grad(ms.grad(product, 1, return_ids=True)(x, y), 1)

# %% get_grad by parameter
ms.get_grad(ms.grad(net, 0, net.trainable_params(), return_ids=True)(x), net.b)

# %% get_grad that is not there
ms.get_grad(ms.grad(product, (0, 1), return_ids=True)(x, y), 2)

# %% get_grad by a string
ms.get_grad(ms.grad(product, (0, 1), return_ids=True)(x, y), "x")

# %% sens
ms.grad(product, (0, 1), sens_param=True)(x, y, Tensor([1.0, 10.0]))

# %% sens by keyword
ms.grad(product, sens_param=True)(x, y, sens=Tensor([1.0, 10.0]))

# %% sens of two outputs
ms.grad(pair, sens_param=True)(x, y, (Tensor([1.0, 10.0]), Tensor([100.0, 100.0])))

# %% sens with aux
ms.grad(with_aux, has_aux=True, sens_param=True)(x, y, Tensor([1.0, 10.0]))

# %% sens and weights
ms.grad(net, 0, net.trainable_params(), sens_param=True)(x, Tensor([1.0, 10.0]))

# %% sens of value_and_grad
ms.value_and_grad(product, sens_param=True)(x, y, Tensor([1.0, 10.0]))

# %% sens is missing
ms.grad(square, sens_param=True)()

# %% return_ids that is no bool
ms.grad(product, return_ids=1)(x, y)

# %% sens_param that is no bool
ms.grad(product, sens_param=1)(x, y, Tensor([1.0, 10.0]))

# %% grad without position and weights
ms.grad(product, None)

# %% grad by a string
ms.grad(product, "0")

# %% has_aux with one output
ms.grad(product, has_aux=True)(x, y)

# %% grad of a position that is not there
ms.grad(product, 5)(x, y)

# %% grad of no function
ms.grad(3)(x)

# %% vmap
ms.vmap(square)(matrix)

# %% vmap of the second argument alone
ms.vmap(product, in_axes=(None, 0))(Tensor([1.0, 2.0, 3.0]), matrix)

# %% vmap along axes
ms.vmap(product, in_axes=(1, 0), out_axes=1)(matrix, matrix.T)

# %% vmap with a negative axis
ms.vmap(square, in_axes=-1, out_axes=-1)(matrix)

# %% vmap of two outputs
ms.vmap(pair, in_axes=(0, None))(matrix, Tensor([1.0, 2.0, 3.0]))

# %% vmap with axes of two outputs
ms.vmap(pair, in_axes=(0, None), out_axes=(1, 0))(matrix, Tensor([1.0, 2.0, 3.0]))

# %% vmap of a Cell
ms.vmap(net)(Tensor([[1.0, 2.0], [3.0, 4.0]]))

# %% vmap of vmap
ms.vmap(ms.vmap(square))(matrix)

# %% vmap of grad
ms.vmap(ms.grad(cubic, (0, 1)), in_axes=(0, None))(matrix, Tensor([1.0, 2.0, 3.0]))

# %% vmap in a list of axes
ms.vmap(product, in_axes=[0, None])(matrix, Tensor([1.0, 2.0, 3.0]))

# %% vmap without an axis
ms.vmap(product, in_axes=(None, None))(matrix, matrix)

# %% vmap with too few axes
ms.vmap(product, in_axes=(0,))(matrix, matrix)

# %% vmap of an axis that is not there
ms.vmap(square, in_axes=2)(matrix)

# %% vmap of different sizes
ms.vmap(ops.add)(matrix, Tensor([1.0, 2.0, 3.0]))

# %% vmap of an axis that is no int
ms.vmap(square, in_axes="0")(matrix)

# %% vmap of no function
ms.vmap(3)(matrix)

# %% vmap of a number
ms.vmap(square)(3.0)

# %% jvp
ms.jvp(square, x, Tensor([1.0, 1.0]))

# %% jvp of two inputs
ms.jvp(product, (x, y), (Tensor([1.0, 1.0]), Tensor([0.0, 10.0])))

# %% jvp of two outputs
ms.jvp(pair, (x, y), (Tensor([1.0, 1.0]), Tensor([0.0, 10.0])))

# %% jvp with aux
ms.jvp(with_aux, (x, y), (Tensor([1.0, 1.0]), Tensor([0.0, 10.0])), has_aux=True)

# %% jvp with one aux
ms.jvp(pair, (x, y), (Tensor([1.0, 1.0]), Tensor([0.0, 10.0])), has_aux=True)

# %% jvp of a list
ms.jvp(product, [x, y], [Tensor([1.0, 1.0]), Tensor([0.0, 10.0])])

# %% jvp with a vector of another shape
ms.jvp(square, x, Tensor([1.0, 1.0, 1.0]))

# %% jvp with a vector of another dtype
ms.jvp(square, x, Tensor([1, 1]))

# %% jvp without vectors enough
ms.jvp(product, (x, y), (Tensor([1.0, 1.0]),))

# %% jvp of a number
ms.jvp(square, 3.0, 1.0)

# %% jvp with aux of one output
ms.jvp(square, x, Tensor([1.0, 1.0]), has_aux=True)

# %% jvp with has_aux that is no bool
ms.jvp(square, x, Tensor([1.0, 1.0]), has_aux=1)

# %% vjp
value, pull_back = ms.vjp(square, x)
value, pull_back(Tensor([1.0, 10.0]))

# %% vjp of two inputs
value, pull_back = ms.vjp(product, x, y)
value, pull_back(Tensor([1.0, 10.0]))

# %% vjp of two outputs
value, pull_back = ms.vjp(pair, x, y)
value, pull_back(Tensor([1.0, 10.0]), Tensor([0.0, 100.0]))

# %% vjp of two outputs by a tuple
value, pull_back = ms.vjp(pair, x, y)
pull_back((Tensor([1.0, 10.0]), Tensor([0.0, 100.0])))

# %% vjp with aux
value, pull_back, aux = ms.vjp(with_aux, x, y, has_aux=True)
value, aux, pull_back(Tensor([1.0, 10.0]))

# %% vjp with one aux
value, pull_back, aux = ms.vjp(pair, x, y, has_aux=True)
value, aux

# %% vjp with weights
value, pull_back = ms.vjp(net, x, weights=net.trainable_params())
value, pull_back(Tensor([1.0, 10.0]))

# %% vjp with one weight
value, pull_back = ms.vjp(net, x, weights=net.w)
pull_back(Tensor([1.0, 10.0]))

# %% vjp with a cotangent of another shape
value, pull_back = ms.vjp(square, x)
pull_back(Tensor([1.0, 10.0, 100.0]))

# %% vjp without a cotangent
value, pull_back = ms.vjp(square, x)
pull_back()

# %% vjp of a number
ms.vjp(square, 3.0)

# %% vjp with aux of one output
ms.vjp(square, x, has_aux=True)

# %% vjp with has_aux that is no bool
ms.vjp(square, x, has_aux=1)

# %% jacrev
ms.jacrev(square)(x)

# %% jacrev of a matrix
ms.jacrev(square)(matrix).shape

# %% jacrev of two positions
ms.jacrev(cubic, (0, 1))(x, y)

# %% jacrev of two outputs
ms.jacrev(pair)(x, y)

# %% jacrev of two outputs and positions
ms.jacrev(pair, (0, 1))(x, y)

# %% jacrev with aux
ms.jacrev(with_aux, has_aux=True)(x, y)

# %% jacrev with one aux
ms.jacrev(pair, has_aux=True)(x, y)

# %% jacrev of one position in a tuple
ms.jacrev(cubic, (0,))(x, y)

# %% jacrev of a Cell
ms.jacrev(net)(x)

# %% jacrev of a position that is not there
ms.jacrev(square, 1)(x)

# %% jacrev by a string
ms.jacrev(square, "0")(x)

# %% jacrev by True
ms.jacrev(square, True)(x)

# %% jacrev by a negative position
ms.jacrev(cubic, -1)(x, y)

# %% jacrev by a position twice
ms.jacrev(cubic, (0, 0))(x, y)

# %% jacrev with has_aux that is no bool
ms.jacrev(square, has_aux=1)

# %% jacfwd
ms.jacfwd(square)(x)

# %% jacfwd of two positions
ms.jacfwd(cubic, (0, 1))(x, y)

# %% jacfwd of two outputs
ms.jacfwd(pair)(x, y)

# %% jacfwd of two outputs and positions
ms.jacfwd(pair, (0, 1))(x, y)

# %% jacfwd with aux
ms.jacfwd(with_aux, has_aux=True)(x, y)

# %% jacfwd of a position that is not there
ms.jacfwd(square, 1)(x)

# %% jacfwd by a string
ms.jacfwd(square, "0")(x)

# %% recompute
ms.grad(lambda x: ms.recompute(net, x))(x)

# %% value of recompute
ms.recompute(net, x)

# %% recompute of a function
ms.recompute(square, x)

# %% recompute of a function without reentrance
ms.recompute(square, x, use_reentrant=False)

# %% recompute and weights
ms.grad(lambda x: ms.recompute(net, x), None, net.trainable_params())(x)


# %% recompute runs it again
class Counts(nn.Cell):
    def construct(self, x):
        seen.append(1)
        return x * x


seen = []
ms.grad(lambda x: ms.recompute(Counts(), x))(x), len(seen)

# %% recompute with context_fn
ms.recompute(net, x, context_fn=lambda: (None, None))


# %% saved_tensors_hooks
def pack(saved):
    seen.append("pack")
    return saved + 1


def unpack(packed):
    seen.append("unpack")
    return packed


def hooked(x, y):
    with ms.saved_tensors_hooks(pack, unpack):
        return x * y


def kept_of(function, pack=pack, unpack=unpack):
    """Returns a function in a block of hooks."""

    def call(*args):
        with ms.saved_tensors_hooks(pack, unpack):
            return function(*args)

    return call


seen = []
ms.grad(hooked, (0, 1))(x, y), seen

# %% saved_tensors_hooks without a gradient
seen = []
hooked(x, y), seen


# %% saved_tensors_hooks that change nothing
def same(saved):
    return saved


def unchanged(x, y):
    with ms.saved_tensors_hooks(same, same):
        return ops.exp(x) * y


ms.grad(unchanged, (0, 1))(x, y)

# %% saved_tensors_hooks of operations that keep nothing
seen = []
ms.grad(kept_of(lambda x: (x + 1).sum()))(x), seen

# %% saved_tensors_hooks of a result
seen = []
ms.grad(kept_of(ops.exp))(Tensor(0.0)), seen

# %% saved_tensors_hooks around a gradient
seen = []
with ms.saved_tensors_hooks(pack, unpack):
    gradient = ms.grad(product, (0, 1))(x, y)
gradient, seen


# %% saved_tensors_hooks in each other
def nested(x, y):
    with ms.saved_tensors_hooks(pack, unpack):
        z = x * y
        with ms.saved_tensors_hooks(same, same):
            z = z * y
        return z * x


seen = []
ms.grad(nested, (0, 1))(x, y), seen

# %% saved_tensors_hooks, and vjp called twice
seen = []
result, pull_back = ms.vjp(hooked, x, y)
pull_back(x), pull_back(y), seen

# %% saved_tensors_hooks of an operator with a bprop
custom = ops.Custom(
    lambda a: a * a, lambda a: a, lambda a: a, "pyfunc", lambda x, out, d: (2 * out,)
)
seen = []
ms.grad(kept_of(custom))(x), seen


# %% saved_tensors_hooks of a _Function
class Product(_Function):
    @staticmethod
    def forward(ctx, x, y):
        z = x * y
        ctx.save_for_backward(x, None, z)
        ctx.other = y
        return z

    @staticmethod
    def backward(ctx, dout):
        x, _, z = ctx.saved_tensors
        return dout * z, dout * x


seen = []
ms.grad(kept_of(Product.apply), (0, 1))(x, y), seen

# %% saved_tensors_hooks with a Parameter
factor = ms.Parameter(Tensor([2.0, 3.0]), name="factor")
ms.grad(kept_of(lambda x: x * factor), 0, factor)(x)

# %% saved_tensors_hooks, and a pack that changes what it got
ms.grad(kept_of(ops.exp, lambda t: t.add_(1.0)))(Tensor([0.0]))


# %% saved_tensors_hooks, and a Tensor that changes afterwards
def changes(x):
    z = x * 1
    square = kept_of(lambda z: z * z)(z)
    z.add_(1.0)
    return square + z


ms.grad(changes)(x)

# %% saved_tensors_hooks that hide the Tensor
ms.grad(kept_of(lambda x: x * x, lambda t: {"t": t.asnumpy()}, lambda d: Tensor(d["t"])))(x)

# %% saved_tensors_hooks that give back a number
ms.grad(kept_of(lambda x: x * x, same, lambda packed: 3))(x)

# %% saved_tensors_hooks that give back nothing
ms.grad(kept_of(lambda x: x * x, same, lambda packed: None))(x)

# %% saved_tensors_hooks that give back another shape
ms.grad(kept_of(lambda x: x * x, same, lambda packed: Tensor([1.0, 2.0, 3.0])))(x)

# %% saved_tensors_hooks that give back another dtype
ms.grad(kept_of(lambda x: x * x, same, lambda packed: packed.astype(ms.float16)))(x)

# %% saved_tensors_hooks, and an error in pack
ms.grad(kept_of(lambda x: x * x, lambda t: {}[1]))(x)

# %% saved_tensors_hooks, and an error in unpack
ms.grad(kept_of(lambda x: x * x, same, lambda t: {}[1]))(x)

# %% saved_tensors_hooks that cannot be called
kept_of(lambda x: x * x, 1, 2)(x)

# %% saved_tensors_hooks that are not entered
type(ms.saved_tensors_hooks(1, 2)).__name__


# %% saved_tensors_hooks in ms.jit
@ms.jit
def compiled(x):
    with ms.saved_tensors_hooks(same, same):
        return x * x


ms.grad(compiled)(x)

# %% saved_tensors_hooks of one position
seen = []
ms.grad(kept_of(lambda x, y: x * y))(x, y), seen

# %% saved_tensors_hooks of a sine
seen = []
ms.grad(kept_of(ops.sin))(x), seen

# %% ops has the transformations, too
ops.vmap is ms.vmap, ops.jvp is ms.jvp, ops.vjp is ms.vjp, ops.jacrev is ms.jacrev

# %% and these
ops.jacfwd is ms.jacfwd, ops.grad is ms.grad, ops.get_grad is ms.get_grad

# %% recompute of ops
ops.recompute is ms.recompute
