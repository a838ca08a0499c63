# Small cases of ms.jit, of operators as objects, and of Tensors; "# %%" begins one.
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

x = Tensor([1.0, 2.0], ms.float32)


def square(x):
    return x * x


# %% jit
ms.jit(square)(x)


# %% jit as a decorator
@ms.jit
def decorated(x):
    return x + 1


decorated(x)


# %% jit with keywords
@ms.jit(capture_mode="ast", jit_level="O1", backend="ms_backend", fullgraph=True, dynamic=0)
def configured(x):
    return x + 1


configured(x)

# %% jit with an unknown backend
ms.jit(backend="nope")(square)(x)

# %% it is found out at once
callable(ms.jit(square, backend="nope"))

# %% jit with an unknown level
ms.jit(jit_level="O9")(square)(x)

# %% jit level 2
ms.jit(jit_level="O2")(square)(x)

# %% jit with an empty level
ms.jit(jit_level="")(square)(x)

# %% jit with an unknown capture_mode
ms.jit(capture_mode="nope")(square)(x)

# %% jit with fullgraph that is no bool
ms.jit(fullgraph=1)(square)(x)

# %% jit with dynamic 2
ms.jit(dynamic=2)(square)(x)

# %% jit with dynamic that is no int
ms.jit(dynamic="1")(square)(x)

# %% jit with a level that is no string
ms.jit(jit_level=1)(square)(x)

# %% jit with a backend that is no string
ms.jit(backend=1)(square)(x)

# %% jit with an empty backend
ms.jit(backend="")(square)(x)

# %% jit for GE
callable(ms.jit(backend="GE")(square))

# %% jit with an unknown option
ms.jit(nonsense=1)(square)(x)

# %% jit with exec_order
ms.jit(exec_order="dfs")(square)(x)

# %% jit with an unknown exec_order
ms.jit(exec_order="nope")(square)(x)

# %% jit with infer_boost
ms.jit(infer_boost="nope")(square)(x)

# %% jit with disable_format_transform
ms.jit(disable_format_transform=1)(square)(x)

# %% jit of no function
ms.jit(3)

# %% jit level by position
ms.jit(square, "O0")

# %% a Custom is a Primitive
op = ops.Custom(lambda a: a * a, lambda s: s, lambda d: d, func_type="pyfunc")
isinstance(op, ops.Primitive), isinstance(op, nn.Cell)

# %% the name of a Custom
op.name

# %% attrs of a Custom
type(op.attrs).__name__

# %% a primitive is a Primitive
isinstance(ops.Add(), ops.Primitive), ops.Add().name

# %% the class of a primitive
issubclass(ops.Custom, ops.Primitive), issubclass(ops.Add, ops.Primitive)

# %% add_prim_attr
op = ops.Custom(lambda a: a * a, lambda s: s, lambda d: d, func_type="pyfunc")
op.add_prim_attr("note", 3) is op, op.attrs["note"]

# %% del_prim_attr
op.del_prim_attr("note") is op, "note" in op.attrs


# %% an error of a pyfunc keeps its class
def fails(a):
    raise KeyError("here")


ops.Custom(fails, lambda s: s, lambda d: d, func_type="pyfunc")(x)


# %% a ValueError of a pyfunc
def fails(a):
    raise ValueError("here")


ops.Custom(fails, lambda s: s, lambda d: d, func_type="pyfunc")(x)


# %% an error class of its own
class Own(Exception):
    pass


def fails(a):
    raise Own("here")


ops.Custom(fails, lambda s: s, lambda d: d, func_type="pyfunc")(x)

# %% an error of out_shape
ops.Custom(lambda a: a, lambda s: s[9], lambda d: d, func_type="pyfunc")(x)


# %% an error of bprop
def fails(x, out, dout):
    raise KeyError("here")


op = ops.Custom(lambda a: a, lambda s: s, lambda d: d, func_type="pyfunc", bprop=fails)
ms.grad(lambda x: op(x))(x)


# %% an error of construct
class Fails(nn.Cell):
    def construct(self, x):
        raise KeyError("here")


Fails()(x)

# %% tensor
ms.tensor([1, 2]), ms.tensor([1.0, 2.0]), ms.tensor(3), ms.tensor(True)

# %% tensor with a dtype
ms.tensor([1, 2], ms.float16), ms.tensor([1, 2], dtype=ms.int8)

# %% tensor of numpy
ms.tensor(np.ones((2, 1), np.float64))

# %% tensor of a Tensor
ms.tensor(x)

# %% tensor is a Tensor
type(ms.tensor(1)) is Tensor, ms.tensor is Tensor

# %% tensor of a string
ms.tensor("a")

# %% tensor with a shape
ms.tensor(shape=(2,), dtype=ms.float32).shape

# %% tensor with const_arg
ms.tensor([1], const_arg=True)

# %% device
x.device

# %% type of device
type(x.device).__name__

# %% is_contiguous
x.is_contiguous(), Tensor(np.ones((2, 3))).is_contiguous()

# %% is_contiguous of a transposed
Tensor(np.ones((2, 3), np.float32)).T.is_contiguous()

# %% is_contiguous of a permuted
Tensor(np.ones((2, 3), np.float32)).permute(1, 0).is_contiguous()

# %% is_contiguous of a slice
Tensor(np.ones((4, 3), np.float32))[::2].is_contiguous()

# %% contiguous
Tensor(np.ones((2, 3), np.float32)).T.contiguous().is_contiguous()

# %% strides and stride
Tensor(np.ones((2, 3), np.float32)).stride(), Tensor(np.ones((2, 3), np.float32)).strides

# %% stride of an axis
Tensor(np.ones((2, 3), np.float32)).stride(0)

# %% storage_offset
Tensor(np.ones((2, 3), np.float32)).storage_offset()

# %% is_meta
x.is_meta

# %% set_
z = Tensor([1.0, 2.0])
z.set_(Tensor([3.0, 4.0, 5.0]))
z

# %% add_
z = Tensor([1.0, 2.0])
z.add_(1.0), z

# %% add_ of another shape
Tensor(1.0).add_(Tensor([1.0, 2.0]))

# %% exp_ of integers
Tensor([1, 2]).exp_()

# %% copy_
z = Tensor([1, 2], ms.int32)
z.copy_(Tensor([7.9])), z

# %% a gradient through a Tensor that is changed in place
ms.grad(lambda x: (x * x).mul_(3.0) * x)(x)

# %% assigning to a slice
z = Tensor([1.0, 2.0])
y = z[0:1]
y[0] = 9.0
y, z

# %% AddN
ops.AddN()((x, x, x)), ops.addn([x, x]), ms.grad(lambda x: ops.addn((x, x)))(x)

# %% addn of shapes that differ
ops.addn((x, Tensor([1.0])))

# %% addn of dtypes that differ
ops.addn((x, Tensor([1, 2], ms.int32)))

# %% addn of nothing
ops.addn(())

# %% requires_grad
x.requires_grad

# %% element_size
x.element_size()

# %% data_ptr
type(x.data_ptr()).__name__

# %% is_floating_point
x.is_floating_point()

# %% size of a Tensor
x.size, x.shape, x.ndim, x.dim()

# %% to
x.to(ms.float16)


# %% a Cell in half precision
class Doubles(nn.Cell):
    def construct(self, x):
        return x + x


Doubles().to_float(ms.float16)(x)

# %% to_float of nothing
Doubles().to_float(3)

# %% Cell.to with a dtype
Doubles().to(ms.float16)

# %% device_target
ms.get_context("device_target")

# %% an unknown attribute
x.nonsense

# %% the first operand by a string
x + "a"

# %% an index out of range
x[5]

# %% a bad reshape
x.reshape(3)

# %% a bad cast
x.astype("nope")

# %% addition of shapes that do not fit
(x + Tensor([1.0, 2.0, 3.0])).asnumpy()

# %% bool of two entries
bool(x)

# %% int of two entries
int(x)

# %% len of a number
len(Tensor(3.0))

# %% iteration of a number
list(Tensor(3.0))

# %% out_dtype as a string
ops.Custom(lambda a: a, lambda s: s, "float32", func_type="pyfunc")(x)

# %% a func_type that is unknown
ops.Custom(lambda a: a, lambda s: s, lambda d: d, func_type="nope")

# %% no function
ops.Custom(3, lambda s: s, lambda d: d, func_type="pyfunc")
