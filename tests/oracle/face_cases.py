"""What the comparison with MindSpore evaluates: expressions over ``ms``, ``np`` and `PRELUDE`.

`dump_face.py` evaluates them under MindSpore, the tests under msops.
"""

PRELUDE = """
ops = ms.ops
P = ops.operations
Tensor, Parameter = ms.Tensor, ms.Parameter
DTYPES = (
    "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 "
    "complex64 complex128"
).split()


def ones(name):
    return Tensor([1, 1], getattr(ms, name))


matrix = Tensor(np.arange(6).reshape(2, 3), ms.float32)
vector = Tensor([1.0, 2.0, 3.0])
integers = Tensor([0, 1])
scalar = Tensor(2.0)
x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])


def product(a, b):
    return a * a * b


def pair(a, b):
    return a * b, a + b


def with_aux(a, b):
    return a * b, a + b, 3


def square(a):
    return a * a


def cube(a):
    return a * a * a


class Net(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([2.0, 5.0]), name="w")
        self.z = Parameter(Tensor([7.0, 7.0]), name="z", requires_grad=False)
        self.v = Parameter(Tensor([1.0, 1.0]), name="v")

    def construct(self, a, b):
        return a * self.w * b + self.z * self.v


class PairNet(Net):
    def construct(self, a, b):
        return a * self.w, b * self.v


class Layer(ms.nn.Cell):
    def __init__(self, name=None):
        super().__init__()
        self.weight = Parameter(Tensor([2.0, 5.0]), name=name)
        self.bias = Parameter(Tensor(1.0), name="b", requires_grad=False)

    def construct(self, x):
        return x * self.weight + self.bias


class Nested(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.l1 = Layer()
        self.l2 = Layer("ww")
        self.seq = ms.nn.SequentialCell(Layer(), Layer())
        self.lst = ms.nn.CellList([Layer(), Layer()])
        self.p = Parameter(Tensor(1.0))

    def construct(self, x):
        x = self.seq(self.l2(self.l1(x)))
        for cell in self.lst:
            x = cell(x)
        return x * self.p


class Shared(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = Layer()
        self.b = self.a


def after_append():
    cell = Nested()
    cell.seq.append(Layer())
    return cell


net, pair_net, nested = Net(), PairNet(), Nested()
trainable = net.trainable_params()
"""

# repr and str, byte for byte.
_PRINTED = """
Tensor(1)
Tensor(1.0)
Tensor(6.0)
Tensor(True)
Tensor(-0.0)
Tensor(np.nan)
Tensor(1e-10)
Tensor(1234567.0, ms.float64)
Tensor(123456.0)
Tensor(0.1, ms.float16)
Tensor(np.float64(0.1))
Tensor(np.float64(1) / 3)
Tensor(2**40)
Tensor(1 - 2.5j, ms.complex64)
Tensor(1 + 2j)
Tensor(1.5, ms.bfloat16)
Tensor([])
Tensor(np.zeros((0, 3), np.float32))
Tensor(np.zeros((2, 0, 3)))
Tensor(np.zeros((0,), bool))
Tensor([1, 2, 3])
Tensor([1.5, 2, 3])
Tensor([True, False])
Tensor([1.5, -np.inf, np.nan])
Tensor(np.arange(-5, 5), ms.int8)
Tensor(np.array([1, 200, 30]), ms.uint8)
Tensor(np.array([1, 200, 30000]), ms.uint16)
Tensor([1 + 2j, -1.5 - 0.25j])
Tensor([[1 + 2j, -1.5 - 0.25j], [0, 10j]], ms.complex64)
Tensor(np.arange(-3, 7) * 1.5, ms.float16)
Tensor([1.1, 2.7], ms.bfloat16)
Tensor([[1.5, 20.25], [3, -4]], ms.bfloat16)
Tensor([1.5, np.nan, -np.inf, 1e10, 1e-10], ms.bfloat16)
Tensor(np.arange(2000), ms.bfloat16)
Tensor(np.arange(5))
Tensor(np.arange(12))
Tensor(np.arange(24))
Tensor(np.arange(25))
Tensor(np.arange(48))
Tensor(np.arange(49))
Tensor(np.arange(3), ms.float32)
Tensor(np.arange(12), ms.float32)
Tensor(np.arange(13), ms.float32)
Tensor(np.arange(24), ms.float32)
Tensor(np.arange(25), ms.float64)
Tensor(np.arange(12) > 3)
Tensor(np.arange(13) > 3)
Tensor(np.arange(30) * (1 - 1j))
Tensor(np.arange(30), ms.bfloat16)
Tensor(np.arange(1000))
Tensor(np.arange(1001))
Tensor(np.arange(1000) + 0.5)
Tensor(np.arange(1001) + 0.5)
Tensor(np.arange(1002) % 2 == 0)
Tensor(np.arange(1002) * (1 + 1j))
Tensor(np.arange(3000).reshape(1500, 2))
Tensor([[1.5, 2, 3], [4, 5, 6]])
Tensor(np.zeros((2, 6)), ms.float32)
Tensor(np.zeros((2, 7)), ms.float32)
Tensor(np.zeros((6, 2)), ms.float32)
Tensor(np.zeros((7, 2)), ms.float16)
Tensor(np.zeros((7, 2, 2)), ms.int32)
Tensor(np.arange(2 * 9 * 3).reshape(2, 9, 3), ms.int16)
Tensor(np.arange(9 * 8 * 7).reshape(9, 8, 7), ms.uint32)
Tensor(np.arange(2 * 2 * 2 * 2).reshape(2, 2, 2, 2) % 3 == 0)
Tensor(np.ones((1, 1)))
Tensor(np.ones((1, 1, 1), bool))
Tensor(np.arange(30 * 40 * 50).reshape(30, 40, 50) / 7)
(Tensor(1), Tensor([1.0]))
[Tensor([[1.0, 2], [3, 4]])]
{"a": Tensor(6.0)}
Parameter(Tensor([1.0, 2.0]), name="p")
Parameter(Tensor(1), name="p", requires_grad=False)
Parameter(1.0, name="a")
Parameter(np.ones(2), name="a")
net.w
nested
nested.seq
Layer()
[str(getattr(ms, name)) for name in DTYPES]
[str(getattr(ms.dtype, n)) for n in ("int_", "float_", "uint", "number", "string", "tensor_type")]
"""
PRINTED = [line for line in _PRINTED.splitlines() if line]

# Values that are not tensors.
_PLAIN = """
[(a, p.name) for a, p in nested.parameters_and_names()]
[(a, p.name) for a, p in nested.parameters_and_names(expand=False)]
[(a, p.name) for a, p in nested.parameters_and_names(name_prefix="pre")]
[p.name for p in nested.trainable_params()]
[p.name for p in nested.untrainable_params()]
[p.name for p in nested.get_parameters()]
[(a, p.name) for a, p in after_append().parameters_and_names()]
[(a, p.name) for a, p in Shared().parameters_and_names()]
[(a, p.name) for a, p in net.parameters_and_names()]
list(nested.parameters_dict())
list(nested.name_cells())
len(nested.cells())
[(a, type(c).__name__) for a, c in nested.cells_and_names()]
(len(nested.seq), len(nested.lst))
(Nested().training, Nested().set_train().l1.training, Nested().set_train(False).l1.training)
nested.cls_name
len(vector)
int(scalar)
float(scalar)
bool(scalar)
[1, 2, 3][Tensor(1)]
scalar.item()
matrix.tolist()
matrix.shape
matrix.size
matrix.ndim
matrix.itemsize
matrix.nbytes
matrix.strides
Tensor(np.zeros((2, 3, 4), np.int16)).strides
matrix.dim()
matrix.numel()
matrix.is_floating_point()
vector == None
vector != None
vector == "a"
vector == [1, 2, 3]
f"{vector}"
scalar.dtype is ms.float32
matrix.dtype == ms.float32
vector.asnumpy().flags.writeable
ms.GRAPH_MODE, ms.PYNATIVE_MODE
ms.dtype.pytype_to_dtype(float) == ms.float64
ms.dtype.pytype_to_dtype(int) == ms.int64
ms.dtype.pytype_to_dtype(np.float32) == ms.float32
ms.dtype.dtype_to_nptype(ms.int8) == np.int8
ms.dtype.dtype_to_pytype(ms.float16) == float
ms.dtype.dtype_to_pytype(ms.uint8) == int
"""
PLAIN = [line for line in _PLAIN.splitlines() if line]

# Tensors: dtype and shape exactly, values within rounding.
_COMPUTED = """
Tensor(vector, ms.int32)
Tensor((1, 2))
Tensor(np.int32(1))
Tensor(1, ms.float32)
Tensor(1.5, ms.int32)
Tensor([vector, vector])
Tensor([Tensor(1.0), Tensor(2.0)])
Tensor([1, 2.5])
Tensor([True, 1])
Tensor(np.arange(6)[::2])
Tensor(np.float64(1))
list(vector)
matrix[0]
matrix[-1]
matrix[0, 1]
matrix[:, 1]
matrix[..., 0]
matrix[None]
matrix[integers]
matrix[[0, 1]]
matrix[matrix > 2]
matrix[True]
matrix[0:5]
matrix[Tensor(1)]
matrix[1][Tensor([True, False, True])]
matrix.T
matrix.sum()
matrix.sum(0)
matrix.sum(axis=1, keepdims=True)
matrix.sum(dtype=ms.float64)
matrix.sum([0, 1])
matrix.sum((0,))
integers.sum()
Tensor([True, True]).sum()
matrix.mean()
matrix.mean((0, 1))
integers.mean()
matrix.max()
matrix.max(1)
matrix.max(axis=0)
matrix.max(axis=0, keepdims=True)
matrix.min(axis=0)
matrix.min(1)
matrix.abs()
matrix.reshape(3, 2)
matrix.reshape((3, 2))
matrix.reshape(-1)
matrix.view(3, 2)
matrix.transpose()
matrix.transpose(1, 0)
matrix.transpose((1, 0))
matrix.permute(1, 0)
matrix.swapaxes(0, 1)
matrix.flatten()
matrix.ravel()
matrix.squeeze()
matrix.expand_dims(0)
matrix.unsqueeze(0)
matrix.astype(ms.int32)
matrix.astype("int32")
matrix.astype(np.int32)
matrix.to(ms.float16)
matrix.float()
matrix.int()
matrix.half()
matrix.bool()
matrix.long()
matrix.double()
matrix.argmax()
matrix.argmax(axis=1)
matrix.all()
(matrix > 4).any()
matrix.prod()
matrix.std()
matrix.var()
matrix.var(0)
matrix.cumsum(0)
matrix.clip(1, 3)
matrix.clamp(1, 3)
matrix.exp()
matrix.log()
matrix.sqrt()
matrix.square()
matrix.pow(2)
matrix.sin()
matrix.cos()
matrix.tanh()
matrix.sigmoid()
matrix.neg()
matrix.add(1)
matrix.sub(1)
matrix.mul(2)
matrix.div(2)
matrix.matmul(vector)
matrix @ vector
vector @ vector
matrix.fill(1.0)
matrix.tile((2, 1))
matrix.broadcast_to((2, 2, 3))
matrix.expand_as(matrix)
matrix.isnan()
matrix.maximum(vector)
matrix.eq(vector)
matrix.ge(vector)
matrix.round()
matrix.floor()
matrix.ceil()
matrix.split(1)
-matrix
+matrix
abs(matrix)
round(scalar)
~Tensor([True])
~integers
integers & 1
integers ^ 1
Tensor([True]) & Tensor([False])
vector + [1, 2, 3]
[1, 2, 3] + vector
(1, 2, 3) * vector
2**vector
vector**2
vector**-1
vector // 2
Tensor([True, True, False, False]) - Tensor([True, False, True, False])
vector % 2
Tensor([-7.0, 7.0]) % 3
Tensor([-7, 7]) // 3
Tensor([-7, 7]) % 3
7 // vector
vector < 2
integers.exp()
ops.add(x, y)
ops.Add()(x, y)
ops.Sub()(x, y)
ops.Mul()(x, 2)
ops.Div()(x, y)
ops.RealDiv()(x, y)
ops.Neg()(x)
ops.MatMul()(matrix, matrix.T)
ops.MatMul(transpose_b=True)(matrix, matrix)
ops.BatchMatMul()(Tensor(np.ones((2, 2, 3))), Tensor(np.ones((2, 3, 2))))
ops.Pow()(x, 3)
ops.Pow()(x, y)
ops.ReLU()(Tensor([-1.0, 2.0]))
ops.Exp()(x)
ops.Log()(x)
ops.Sqrt()(x)
ops.Square()(x)
ops.ReduceSum()(matrix)
ops.ReduceSum()(matrix, 1)
ops.ReduceSum(keep_dims=True)(matrix, (0, 1))
ops.ReduceSum(True)(matrix, 0)
ops.ReduceMean()(matrix, 0)
ops.ReduceMax()(matrix, 1)
ops.ReduceMin(True)(matrix)
ops.ReduceAll()(Tensor([True, False]))
ops.ReduceAny()(Tensor([True, False]))
ops.Cast()(matrix, ms.int32)
ops.Reshape()(matrix, (3, 2))
ops.Transpose()(matrix, (1, 0))
ops.ZerosLike()(matrix)
ops.OnesLike()(integers)
ops.Sin()(x)
ops.Tanh()(x)
ops.Sigmoid()(x)
ops.Abs()(Tensor([-1.0]))
ops.Maximum()(x, 1.5)
ops.Minimum()(x, y)
ops.Concat()((x, y))
ops.Concat(axis=1)((matrix, matrix))
ops.Stack(axis=1)((x, y))
ops.ExpandDims()(x, 0)
ops.Squeeze()(Tensor([[1.0]]))
ops.Squeeze(0)(Tensor([[1.0]]))
ops.Softmax()(x)
ops.Tile()(x, (2,))
ops.BroadcastTo((3, 2))(x)
ops.Gather()(matrix, integers, 1)
ops.Select()(Tensor([True, False]), x, y)
ops.Equal()(x, y)
ops.LessEqual()(x, y)
ops.LogicalAnd()(Tensor([True]), Tensor([False]))
ops.LogicalNot()(Tensor([True]))
ops.Split(0, 2)(matrix)
ops.FloorDiv()(y, x)
ops.Zeros()((2, 2), ms.float32)
ops.Ones()((2,), ms.int32)
ops.relu(Tensor([-1.0, 2.0]))
ops.matmul(matrix, vector)
ops.cast(matrix, ms.float16)
ops.zeros_like(matrix)
ops.ones_like(matrix)
ops.zeros((2, 2))
ops.ones((2,), ms.int32)
ops.full((2,), 3)
ops.reshape(matrix, (3, 2))
ops.transpose(matrix, (1, 0))
ops.concat((x, y))
ops.cat((x, y))
ops.stack((x, y))
ops.exp(x)
ops.square(x)
ops.pow(x, 2)
ops.maximum(x, 1.5)
ops.softmax(x)
ops.where(Tensor([True, False]), x, y)
ops.expand_dims(x, 0)
ops.squeeze(Tensor([[1.0]]))
ops.clip(matrix, 1, 3)
ops.split(matrix, 1)
ops.sum(matrix, 1)
ops.mean(matrix, 1)
nested(Tensor([1.0, 2.0]))
net(x, y)
ops.slice(matrix, (0, 1), (2, 2))
ops.slice(matrix, (0, 1), (-1, 1))
P.Slice()(matrix, (0, 0), (1, 2))
ops.sort(matrix)
ops.sort(matrix, 0, True)
ops.sort(Tensor([3, 1, 2]))
P.Sort(0, True)(matrix)
ops.arange(5)
ops.arange(0, 1, 0.25)
ops.arange(1, 10, 3)
ops.arange(5.0)
ops.arange(3, dtype=ms.float16)
ops.flatten(Tensor(np.ones((2, 3, 4), np.float32)))
ops.flatten(Tensor(np.ones((2, 3, 4), np.float32)), start_dim=0)
ops.flatten(Tensor(np.ones((2, 3, 4), np.float32)), start_dim=0, end_dim=1)
ops.flatten(matrix, order="F", start_dim=0)
ops.flatten(Tensor([1, 2]))
ops.flatten(Tensor(1))
P.Flatten()(Tensor(np.ones((2, 3, 4), np.float32)))
ops.var(matrix)
ops.var(matrix, 1, 1, True)
ops.var(matrix, (0, 1))
ops.count_nonzero(matrix)
ops.count_nonzero(Tensor([[0, 1], [0, 0]]), 1, True)
ops.count_nonzero(matrix, dtype=ms.int64)
ops.topk(matrix, 2)
ops.topk(matrix, 2, 0, False)
ops.topk(matrix, 1, 1, largest=False)
P.TopK(sorted=True)(matrix, 2)
P.TopK(True)(Tensor([3, 1, 2]), 2)
P.Pad(((1, 0), (0, 2)))(matrix)
P.TensorShape()(matrix)
P.PyFunc(np.negative, [ms.float32], [(2, 3)], [ms.float32], [(2, 3)])(matrix)
P._grad_ops.AbsGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.ACosGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.AsinGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.AtanGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.AcoshGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.AsinhGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.ReciprocalGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.InvGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.ReluGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.ReLU6Grad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.RsqrtGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.SigmoidGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.SoftplusGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.SqrtGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
P._grad_ops.TanhGrad()(Tensor([0.3, 0.5], ms.float32), Tensor([1.0, 2.0], ms.float32))
"""
COMPUTED = [line for line in _COMPUTED.splitlines() if line]

# Gradients, in the same way.
GRADIENTS = [
    *(f"ms.grad(product, {p})(x, y)" for p in ("0", "1", "(0,)", "(0, 1)", "(1, 0)")),
    *(
        f"ms.{function}(net, {position}, {weights})(x, y)"
        for function in ("grad", "value_and_grad")
        for position in ("0", "(0,)", "(0, 1)", "None")
        for weights in ("net.w", "(net.w,)", "[net.w, net.v]", "trainable", "net.z")
    ),
    *(
        f"ms.{function}({name}, {position}, {weights}, {has_aux})(x, y)"
        for function in ("grad", "value_and_grad")
        for name, weights, has_aux in (
            ("pair", None, False),
            ("pair", None, True),
            ("with_aux", None, True),
            ("pair_net", "pair_net.w", False),
            ("pair_net", "pair_net.trainable_params()", True),
        )
        for position in ("0", "(0, 1)")
    ),
    *(
        f"ops.GradOperation({get_all}, {by_list}, {sens})"
        f"({name}{weights})(x, y{', x' if sens else ''})"
        for name in ("net", "product")
        for get_all in (False, True)
        for by_list in (False, True)
        for sens in (False, True)
        for weights in ((", net.w", ", trainable", ", [net.w]") if by_list else ("",))
    ),
    "ops.GradOperation(get_by_list=True)(net)(x, y)",
    "ops.GradOperation(get_all=True, sens_param=True)(pair_net)(x, y, (x, y))",
    "ops.GradOperation(get_all=True)(pair)(x, y)",
    "ops.GradOperation(get_all=True)(square)(x)",
    "ops.GradOperation(get_all=True)(product)(x, 2.0)",
    "ops.GradOperation(sens_param=True)(square)(x, y)",
    "ops.GradOperation(sens_param=True)(square)(x, 3.0)",
    "ms.grad(ms.grad(cube))(x)",
    "ops.GradOperation()(ops.GradOperation()(cube))(x)",
    "ms.grad(product)(x, 2.0)",
    "ms.grad(product)(x, b=y)",
    "ms.grad(lambda a, b: a, 1)(x, y)",
    "ms.grad(lambda a: 3.0)(x)",
    "ms.grad(lambda a: a, None, net.w)(x)",
    "ms.grad(square)(Tensor([1.0, 2.0], ms.float16))",
    "ms.grad(square)(Tensor([1.0, 2.0], ms.float64))",
    "ms.grad(lambda a, b: a * b, (0, 1))(Tensor([1.0, 2.0], ms.float16), x)",
    "ms.grad(lambda a: ops.stop_gradient(a) * a)(x)",
    'ms.grad(lambda a: (a * a, None, "s", [a, a]), has_aux=True)(x)',
    'ms.grad(lambda a: {"k": a * a})(x)',
    "ms.grad(lambda a: ops.relu(a))(Tensor([-1.0, 0.0, 2.0]))",
    "ms.grad(lambda a: ops.abs(a))(Tensor([-1.0, 2.0]))",
    "ms.grad(lambda a: a**2)(Tensor([-1.0, 0.0, 2.0]))",
    "ms.grad(lambda a: ops.sqrt(a))(Tensor([1.0, 4.0]))",
    "ms.grad(lambda a: ops.matmul(a, a))(matrix[:, :2])",
    "ms.grad(lambda a: a[0])(x)",
    "ms.grad(lambda a: ops.reduce_sum(a) if hasattr(ops, 'reduce_sum') else a.sum())(x)",
    "ms.grad(lambda a: ops.concat((a, a * 2)))(x)",
    "ms.grad(lambda a: a.astype(ms.float16) * 2)(x)",
]

_SCALARS = ("True", "2", "2.0")
_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<", "==")
DTYPE_NAMES = [
    *("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16", "complex64", "complex128"),
]

# Which dtype comes out; only the dtype is kept. Quotients and remainders of complex numbers are
# MindSpore's own invention and left out.
PROMOTED = [
    case
    for op in _OPERATORS
    for a in DTYPE_NAMES
    for case in (
        *(f"ones({a!r}) {op} ones({b!r})" for b in DTYPE_NAMES),
        *(f"ones({a!r}) {op} {scalar}" for scalar in _SCALARS),
        *(f"{scalar} {op} ones({a!r})" for scalar in _SCALARS),
    )
    if op not in ("//", "%") or "complex" not in case
]
