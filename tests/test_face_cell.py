"""Cell and jit: registration, eager and compiled calls, Parameters as inputs and outputs."""

from __future__ import annotations

import copy
import pickle

import jax
import numpy as np
import pytest
from face_namespace import ms

from msops import JitConfig, ops
from msops.errors import ArgumentTypeError, ArgumentValueError, KernelError

Tensor, Parameter, Cell = ms.Tensor, ms.Parameter, ms.nn.Cell


@pytest.fixture
def graph_mode():
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.fixture
def compilations(caplog):
    """Counts what JAX compiles: one line of its log each."""

    def count(name):
        return len([r for r in caplog.records if f"Compiling jit({name})" in r.getMessage()])

    with jax.log_compiles(True):
        yield count


class Scale(Cell):
    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = Parameter(Tensor(factor))
        self.traces = []

    def construct(self, x, power=1):
        self.traces.append(1)
        return x * self.factor**power


class Counter(Cell):
    """Assigns to a Parameter inside construct."""

    def __init__(self):
        super().__init__()
        self.count = Parameter(Tensor(0), requires_grad=False)

    def construct(self, x):
        self.count = self.count + 1
        return x + self.count


def test_graph_mode_compiles_once_per_signature(graph_mode):
    net = Scale()
    for _ in range(3):
        assert net(Tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert len(net.traces) == 1
    net(Tensor([1.0, 2.0, 3.0]))
    net(Tensor([1.0, 2.0], ms.float64))
    net(Tensor([1.0, 2.0]), 2)
    net(Tensor([1.0, 2.0]), power=2)
    net(Tensor([1.0, 2.0]), 2.0)
    assert len(net.traces) == 6
    net(Tensor([5.0, 2.0]), 2)
    assert len(net.traces) == 6


def test_parameters_are_inputs_of_the_compiled_program(graph_mode):
    net = Scale()
    x = Tensor([1.0])
    assert net(x).tolist() == [2.0]
    net.factor.set_data(Tensor(10.0))
    assert net(x).tolist() == [10.0]
    assert len(net.traces) == 1


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_assigned_parameters_come_back_out(mode):
    net = Counter()
    ms.set_context(mode=mode)
    try:
        assert [net(Tensor(10)).item() for _ in range(3)] == [11, 12, 13]
        assert net.count.item() == 3
        ms.grad(lambda x: net(x) * 1.0)(Tensor(1.0))
        assert net.count.item() == 4
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_nested_cells_compile_as_one(graph_mode, compilations):
    net = ms.nn.SequentialCell(Scale(2.0), ms.nn.SequentialCell(Scale(3.0), Scale(4.0)))
    assert net(Tensor([1.0])).tolist() == [24.0]
    assert compilations("construct") == 1


def test_attributes_are_part_of_the_signature(graph_mode):
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.offset = 1.0

        def construct(self, x):
            return x + self.offset if not self.training else x

    net = Net()
    x = Tensor([1.0])
    assert net(x).tolist() == [2.0]
    net.offset = 5.0
    assert net(x).tolist() == [6.0]
    assert net.set_train()(x).tolist() == [1.0]


def test_graph_mode_takes_and_returns_trees(graph_mode):
    class Net(Cell):
        def construct(self, pair, table, flag, none, text):
            assert isinstance(pair[0], Tensor)
            return (pair[0] + table["k"], [pair[1], 3, None]), {text: flag, "none": none}

    (total, listed), table = Net()((Tensor(1.0), Tensor(2)), {"k": Tensor(5.0)}, True, None, "t")
    assert (total.item(), listed[0].item(), listed[1:]) == (6.0, 2, [3, None])
    assert table == {"t": True, "none": None}


def test_a_parameter_as_argument_and_as_result(graph_mode):
    class Net(Cell):
        def construct(self, parameter):
            ops.assign(parameter, parameter + 1)
            return parameter

    p = Parameter(Tensor(1.0), name="p")
    net = Net()
    assert net(p).item() == 2.0
    result = net(p)
    assert (type(result), result.item(), p.item()) == (Tensor, 3.0, 3.0)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_modes_agree(mode):
    net = ms.nn.CellList([Scale(), Scale(3.0)])

    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.parts = net

        def construct(self, x):
            for part in self.parts:
                x = ops.tanh(part(x))
            return x, x.sum()

    x = np.array([0.1, 0.2], np.float32)
    ms.set_context(mode=mode)
    try:
        y, total = Net()(Tensor(x))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    expected = np.tanh(3 * np.tanh(2 * x))
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(total.asnumpy(), expected.sum(), rtol=1e-6)


def test_a_training_loop_lowers_the_loss_in_both_modes():
    x, y = Tensor([[1.0], [2.0], [3.0]]), Tensor([[3.0], [5.0], [7.0]])
    finals = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = ms.nn.SequentialCell(Scale(0.5))
        offset = Parameter(Tensor(0.0), name="offset")
        weights = [*net.trainable_params(), offset]

        def loss(a, b, net=net, offset=offset):
            return ((net(a) + offset - b) ** 2).mean()

        step = ms.value_and_grad(loss, None, weights)
        for _ in range(200):
            _, gradients = step(x, y)
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.set_data(weight - 0.1 * gradient)
        finals.append([weight.item() for weight in weights])
    ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_allclose(finals, [[2.0, 1.0]] * 2, atol=2e-2)


def test_jit_compiles_functions_and_methods(compilations):
    calls = []

    @ms.jit
    def scaled(x, factor):
        calls.append(1)
        return x * factor

    assert scaled(Tensor([1.0]), 2).tolist() == [2.0]
    assert scaled(Tensor([3.0]), 2).tolist() == [6.0]
    assert str(scaled(Tensor([3]), 2.0).dtype) == "Float32"
    assert len(calls) == 2
    assert scaled.__name__ == "scaled"

    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(2.0))

        @ms.jit(capture_mode="ast", jit_level="O0")
        def construct(self, x):
            return x * self.w

    net = Net()
    assert net(Tensor(3.0)).item() == 6.0
    net.w.set_data(5.0)
    assert net(Tensor(3.0)).item() == 15.0
    assert (compilations("scaled"), compilations("construct")) == (2, 1)


def test_jit_tells_signed_zeros_and_equal_numbers_apart():
    f = ms.jit(lambda x, c: x / c)
    assert f(Tensor(1.0), 0.0).item() == np.inf
    assert f(Tensor(1.0), -0.0).item() == -np.inf
    g = ms.jit(lambda x, c: x + c)
    assert [str(g(Tensor(1), c).dtype) for c in (1, 1.0, True)] == ["Int64", "Float32", "Int64"]


def test_a_jit_function_sees_parameters_it_closes_over():
    p = Parameter(Tensor(1.0), name="p")
    f = ms.jit(lambda x: x * p)
    assert f(Tensor(3.0)).item() == 3.0
    p.set_data(2.0)
    assert f(Tensor(3.0)).item() == 6.0

    @ms.jit
    def bump(x):
        p.set_data(p + x)
        return p * 10

    assert bump(Tensor(1.0)).item() == 30.0
    assert p.item() == 3.0
    assert ms.grad(f, None, p)(Tensor(3.0)).item() == 3.0


def test_64_bit_arguments_keep_their_width_in_compiled_code(graph_mode):
    class Net(Cell):
        def construct(self, x):
            return x + Tensor(1)

    assert Net()(Tensor(2**40)).item() == 2**40 + 1


def test_copies_of_a_compiled_cell_are_separate(graph_mode):
    net = Scale()
    x = Tensor([1.0])
    net(x)
    other = copy.deepcopy(net)
    other.factor.set_data(7.0)
    assert (net(x).tolist(), other(x).tolist()) == ([2.0], [7.0])
    restored = pickle.loads(pickle.dumps(net))
    restored.factor.set_data(8.0)
    assert (net(x).tolist(), restored(x).tolist()) == ([2.0], [8.0])


def test_set_inputs_accepts_placeholders(graph_mode):
    net = Scale()
    net.set_inputs(Tensor(shape=[None], dtype=ms.float32))
    assert net(Tensor([1.0])).shape == (1,)
    assert net(Tensor([1.0, 2.0])).shape == (2,)
    with pytest.raises(ArgumentTypeError, match="set_inputs expected Tensors; got object"):
        net.set_inputs(object())


def test_a_jit_config_is_accepted_and_its_values_are_checked(graph_mode):
    net = Scale()
    net.set_jit_config(JitConfig(jit_level="O0", exc_mode="no_sink", topo_order="dfs"))
    assert net(Tensor([1.0])).tolist() == [2.0]
    with pytest.raises(ArgumentTypeError, match="set_jit_config expected a JitConfig; got str"):
        net.set_jit_config("O0")
    with pytest.raises(ArgumentValueError, match="expected jit_level to be one of '', 'O0', 'O1'"):
        JitConfig(jit_level="O9")


def test_deleted_and_replaced_attributes():
    net = Scale()
    net.factor = None
    assert list(net.get_parameters()) == []
    net.factor = Parameter(Tensor(1.0))
    assert [p.name for p in net.get_parameters()] == ["factor"]
    del net.factor
    with pytest.raises(AttributeError, match="'Scale' has no attribute 'factor'"):
        _ = net.factor


class NoSuper(Cell):
    def __init__(self):
        self.p = Parameter(Tensor(1.0))


@pytest.mark.parametrize(
    ("do", "error", "text"),
    [
        (lambda: Cell()(Tensor(1.0)), AttributeError, "Define construct"),
        (NoSuper, AttributeError, r"Call super\(\).__init__\(\) first"),
        (lambda: setattr(Scale(), "factor", 3.0), TypeError, "'factor' is a Parameter; got float"),
        (
            lambda: setattr(ms.nn.SequentialCell(Scale()), "0", 3),
            TypeError,
            "'0' is a Cell; got int",
        ),
        (lambda: Scale().insert_param_to_cell("a.b", None), ValueError, "without dots"),
        (lambda: Scale().insert_param_to_cell(3, None), TypeError, "a str"),
        (lambda: Scale().insert_param_to_cell("a", 3), TypeError, "expected a Parameter"),
        (lambda: ms.nn.CellList([1]), TypeError, "expected Cells; got int"),
        (lambda: ms.jit(3), TypeError, "expected a function; got int"),
        (lambda: ms.jit(lambda x: x, fast=True), TypeError, "unknown option"),
    ],
)
def test_bad_use_is_explained(do, error, text):
    with pytest.raises(error, match=text):
        do()


READS = {
    "bool(Tensor)": lambda x: x if x.sum() > 0 else -x,
    "int(Tensor)": lambda x: x * int(x.sum()),
    "float(Tensor)": lambda x: x * float(x.sum()),
    "complex(Tensor)": lambda x: x * complex(x.sum()).real,
    "index of a list or range": lambda x: x[: x.sum().astype(ms.int32)],
    "Tensor.asnumpy": lambda x: x * Tensor(x.asnumpy()),
    "Tensor.item": lambda x: x * x.sum().item(),
    "Tensor.tolist": lambda x: x * x.tolist()[0],
    "format(Tensor)": lambda x: x * float(f"{x.sum():.3f}"),
    "numpy array of a Tensor": lambda x: x * Tensor(np.asarray(x)),
    "Tensor indexed by a mask": lambda x: x[x > 0],
}


@pytest.mark.parametrize("who", READS)
def test_data_cannot_be_read_while_compiling(who):
    function, x = READS[who], Tensor([2.0, 3.0])

    class Reads(Cell):
        def construct(self, x):
            return function(x)

    # PYNATIVE_MODE reads it, also while it differentiates.
    expected = Reads()(x)
    assert ms.grad(Reads())(x).shape == x.shape
    for call in (lambda: ms.jit(function)(x), lambda: ms.jit(ms.grad(function))(x)):
        with pytest.raises(ArgumentTypeError, match="is not known while construct") as caught:
            call()
        first, remedy = str(caught.value).splitlines()
        assert first.startswith(f"{who}: the value of a Tensor of shape [")
        assert "ops.where or ops.select" in remedy
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for call in (lambda: Reads()(x), lambda: ms.grad(Reads())(x)):
            with pytest.raises(ArgumentTypeError, match=r"PYNATIVE_MODE without msops\.jit"):
                call()
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert Reads()(x).tolist() == expected.tolist()


def test_printing_while_compiling_shows_shape_and_dtype(graph_mode, capsys):
    class Prints(Cell):
        def construct(self, x):
            print(x)
            return x

    assert Prints()(Tensor([2.0, 3.0])).tolist() == [2.0, 3.0]
    assert capsys.readouterr().out == "Tensor(shape=[2], dtype=Float32, value= <traced>)\n"


def test_prints_the_cells_below_as_mindspore():
    class Leaf(Cell):
        pass

    class Described(Leaf):
        def __init__(self, text):
            super().__init__()
            self.text = text

        def extend_repr(self):
            return self.text

    class Tree(Described):
        def __init__(self, text=""):
            super().__init__(text)
            self.a = Described("n=2")
            self.cells_below = ms.nn.CellList([Leaf(), ms.nn.SequentialCell(Leaf())])
            self.empty = ms.nn.CellList()
            self.gone = Leaf()
            self.gone = None

    # The text MindSpore 2.7.2 gives for the same classes.
    below = """\
  (a): Described(n=2)
  (cells_below): CellList(
    (0): Leaf()
    (1): SequentialCell(
      (0): Leaf()
    )
  )
  (empty): CellList()
  (gone): None
)"""
    assert repr(Leaf()) == "Leaf()"
    assert str(Tree()) == "Tree(\n" + below
    assert str(Tree("n=1")) == "Tree(\n  n=1\n" + below
    assert repr(Described("n=1\nm=2")) == "Described(\n  n=1\n  m=2\n)"


def test_bad_use_of_compiled_code_is_explained(graph_mode):
    class Keeps(Cell):
        def construct(self, x):
            self.kept = x + 1
            return x

    class Makes(Cell):
        def construct(self, x):
            return x * Parameter(Tensor(1.0))

    with pytest.raises(ArgumentValueError, match="'kept' cannot keep a Tensor"):
        Keeps()(Tensor(1.0))
    with pytest.raises(ArgumentValueError, match="cannot be made inside a compiled function"):
        Makes()(Tensor(1.0))
    with pytest.raises(ArgumentTypeError, match="must be hashable; got set"):
        Scale()(Tensor(1.0), {1})


def refuses(x):
    raise ValueError("refused")


BAD = ops.Custom(refuses, lambda x: x, lambda x: x, "pyfunc", bprop=lambda x, out, dout: (dout,))


class Bad(Cell):
    def construct(self, x):
        return BAD(x) * 2


class Late(Cell):
    def construct(self, x):
        for _ in range(8):
            x = ms.ops.matmul(x, x) / 400
        return BAD(x)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: BAD(x),
        lambda x: Bad()(x),
        lambda x: ms.jit(lambda x: BAD(x))(x),
        lambda x: ms.grad(BAD)(x),
        lambda x: ms.value_and_grad(Bad())(x),
        # The call returns before its kernel runs, and reading the result raises.
        lambda x: Late()(Tensor(np.ones((400, 400), np.float32))).asnumpy(),
        lambda x: repr(Late()(Tensor(np.ones((400, 400), np.float32)))),
    ],
)
def test_an_error_of_a_kernel_is_one_class_however_it_is_called(call, mode):
    ms.set_context(mode=mode)
    try:
        for _ in range(2):
            with pytest.raises(KernelError, match=r"^Custom 'refuses' on CPU: its function"):
                call(Tensor([1.0, 2.0]))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
