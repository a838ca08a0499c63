"""Custom ops through both faces in one process: MindSpore's Tensors, and JAX's arrays."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aot, first, multiply_bprop, scale_sum_info
from support_table import OPS

import msops as ms
from msops import Custom, Tensor, errors, nn
from msops.ops import CustomRegOp, DataType

X = jnp.array([1.0, 2.0])
MODES = [ms.PYNATIVE_MODE, ms.GRAPH_MODE]


@pytest.fixture(params=MODES, ids=["pynative", "graph"])
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    """A Cell around one op and one Parameter."""

    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op
        self.weight = ms.Parameter(Tensor([2.0, 3.0]), name="weight")

    def construct(self, x: Any) -> Any:
        return self.op(x, self.weight)


def test_tensor_in_tensor_out_array_in_array_out() -> None:
    op = aot("Multiply")
    x = np.array([1.0, 2.0], np.float32)
    assert type(op(Tensor(x), Tensor(x))) is Tensor
    assert type(op(Tensor(x), x)) is Tensor
    assert type(op(jnp.asarray(x), Tensor(x))) is Tensor
    assert isinstance(op(x, x), jax.Array)
    both = aot("SumAndMax", lambda x, y: (x, y), lambda x, y: (x, y))
    assert [type(part) for part in both(Tensor(x), Tensor(x))] == [Tensor, Tensor]
    listed = aot("AddAll", lambda xs: xs[0], lambda xs: xs[0])
    assert type(listed([Tensor(x), Tensor(x)])) is Tensor


def test_both_faces_keep_their_own_width_in_one_process() -> None:
    op = Custom(lambda x: x + 1, first, first)
    assert not jax.config.jax_enable_x64
    wide = op(Tensor([1, 2]))
    assert wide.dtype is ms.int64
    np.testing.assert_array_equal(wide.asnumpy(), [2, 3])
    assert op(Tensor(1.0, ms.float64)).dtype is ms.float64
    with pytest.raises(errors.InferenceTypeError, match="64-bit types are off"):
        op(np.array([1, 2]))
    assert op(np.array([1, 2], np.int32)).dtype == np.int32
    copied = aot("Copy")(Tensor([2**40]))
    assert int(copied) == 2**40
    assert not jax.config.jax_enable_x64


def test_gradient_of_a_wide_op_stays_wide() -> None:
    op = Custom(np.multiply, first, first, bprop=multiply_bprop)
    x = Tensor(np.array([1 / 3]))
    gradient = ms.grad(lambda x: op(x, x))(x)
    assert gradient.dtype is ms.float64
    np.testing.assert_allclose(gradient.asnumpy(), [2 / 3], rtol=1e-15)


def test_pyfunc_gets_writable_private_copies_of_tensors() -> None:
    def clear(x: Any) -> Any:
        assert x.flags.writeable
        x[...] = 0
        return x

    x = Tensor([1.0, 2.0])
    np.testing.assert_array_equal(Custom(clear, first, first)(x).asnumpy(), [0.0, 0.0])
    np.testing.assert_array_equal(x.asnumpy(), [1.0, 2.0])


def test_op_without_output_gives_what_mindspore_gives() -> None:
    seen: list[float] = []
    op = Custom(lambda x: seen.append(float(x[0])), (), ())
    nothing = op(Tensor([3.0]))
    jax.effects_barrier()
    assert seen == [3.0]
    assert repr(nothing) == repr(Tensor([0], ms.int32))
    assert op(np.float32([4])) is None


def test_infer_functions_get_mindspores_dtypes_and_lists() -> None:
    seen = []

    def shape(x: Any, y: Any) -> Any:
        added = (x + [1], x + (1,))  # noqa: RUF005
        seen.append((x, x == (2,), *added, [*x, 1]))
        return x

    def dtype(x: Any, y: Any) -> Any:
        seen.append((x is ms.float32, x == jnp.float32, str(x)))
        return x

    x = Tensor([1.0, 2.0])
    aot("Multiply", shape, dtype)(x, x)
    assert seen[0] == ([2], True, [2, 1], [2, 1], [2, 1])
    assert (True, True, "Float32") in seen


def test_cell_with_an_op_runs_and_differentiates_in_both_modes(mode: int) -> None:
    net = Net(aot("Multiply", bprop=multiply_bprop))
    x = Tensor([5.0, 7.0])
    np.testing.assert_array_equal(net(x).asnumpy(), [10.0, 21.0])
    value, (dx, dw) = ms.value_and_grad(net, 0, net.trainable_params())(x)
    np.testing.assert_array_equal(value.asnumpy(), [10.0, 21.0])
    np.testing.assert_array_equal(dx.asnumpy(), [2.0, 3.0])
    np.testing.assert_array_equal(dw[0].asnumpy(), [5.0, 7.0])


def test_copied_cell_keeps_its_op_and_gets_own_parameters(mode: int) -> None:
    net = Net(aot("Multiply", bprop=multiply_bprop))
    x = Tensor([5.0, 7.0])
    net(x)
    twin = copy.deepcopy(net)
    twin.weight.set_data(Tensor([1.0, 1.0]))
    np.testing.assert_array_equal(twin(x).asnumpy(), [5.0, 7.0])
    np.testing.assert_array_equal(net(x).asnumpy(), [10.0, 21.0])


def test_attributes_added_to_a_copy_are_its_own() -> None:
    op = aot("ScaleSum", lambda x: x[:1], first).add_prim_attr("scale", 2.0)
    x = np.ones((1, 2), np.float32)
    assert op(x)[0] == 4
    twin = copy.deepcopy(op).add_prim_attr("scale", 3.0)
    assert (twin(x)[0], op(x)[0]) == (6, 4)


@pytest.mark.parametrize("attribute", ["side_effect_mem", "side_effect_io", "side_effect_hidden"])
def test_a_kernel_with_a_side_effect_runs_though_its_result_is_dropped(
    mode: int, attribute: str
) -> None:
    class Logging(nn.Cell):
        def __init__(self, op: Any) -> None:
            super().__init__()
            self.op = op

        def construct(self, x: Any) -> Any:
            self.op(x)
            self.op(x)
            return x + 1

    def runs(value: bool) -> int:
        seen: list[int] = []
        log = lambda x: seen.append(1) or x  # noqa: E731
        net = Logging(Custom(log, first, first).add_prim_attr(attribute, value))
        np.testing.assert_array_equal(net(Tensor([1.0, 2.0])).asnumpy(), [2.0, 3.0])
        jax.effects_barrier()
        return len(seen)

    assert runs(True) == 2
    assert runs(False) == (0 if mode == ms.GRAPH_MODE else 2)


def test_side_effects_are_in_the_order_of_the_calls(mode: int) -> None:
    seen: list[str] = []

    class Steps(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(Tensor([1.0, 2.0]), name="weight")
            self.fixed = Tensor([5.0, 5.0])
            self.first, self.then = (
                Custom(lambda x, name=name: seen.append(name) or x, first, first).add_prim_attr(
                    "side_effect_mem", True
                )
                for name in ("first", "then")
            )

        def construct(self, x: Any) -> Any:
            self.first(self.weight)
            y = self.then(x)
            self.first(self.fixed)
            self.then(x)
            self.weight = self.weight + y
            return self.weight * 2

    net = Steps()
    for call in range(1, 4):
        y = net(Tensor([1.0, 1.0]))
        np.testing.assert_array_equal(y.asnumpy(), [2 + 2 * call, 4 + 2 * call])
        assert seen == ["first", "then"] * 2 * call


def test_one_side_effect_stays_in_a_compiled_cell_and_happens_in_each_call() -> None:
    seen: list[int] = []
    traced: list[int] = []

    class Logging(nn.Cell):
        def __init__(self, value: Any) -> None:
            super().__init__()
            self.value = value
            self.op = Custom(lambda x: seen.append(1) or x, first, first)
            self.op.add_prim_attr("side_effect_io", True)

        def construct(self, x: Any) -> Any:
            traced.append(1)
            self.op(x if self.value is None else self.value)
            return x + 1

    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net, constant = Logging(None), Logging(Tensor([5.0, 5.0]))
        for _ in range(3):
            net(Tensor([1.0, 2.0])).asnumpy()
        assert (len(seen), len(traced)) == (3, 1)
        # What a program knows when it is compiled would be written once.
        for _ in range(3):
            constant(Tensor([1.0, 2.0])).asnumpy()
        assert len(seen) == 6
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_side_effect_is_nothing_to_a_loop_kernel() -> None:
    def twice(x):  # type: ignore[no-untyped-def]
        y = output_tensor(x.shape, x.dtype)  # type: ignore[name-defined]  # noqa: F821
        for i in range(x.shape[0]):
            y[i] = x[i] * 2.0
        return y

    op = Custom(twice, func_type="akg").add_prim_attr("side_effect_mem", True)
    recomputed = jax.grad(jax.checkpoint(lambda x: op(x).sum()))(jnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(recomputed, [2.0, 2.0])


def test_rows_of_the_platform_guard_whatever_the_device_target() -> None:
    def rows(target: str, dtype: Any) -> dict[str, Any]:
        info = CustomRegOp().input(0, "x").input(1, "y").output(0, "out").target(target)
        return info.dtype_format(dtype, dtype, dtype).get_op_info()

    infos = [rows(target, DataType.F32_Default) for target in ("CPU", "GPU")]
    infos.append(rows("Ascend", DataType.F16_Default))
    op = aot("Multiply", reg_info=infos)
    pyfunc = Custom(np.multiply, first, first, reg_info=infos)
    narrow = np.array([1.0], np.float16)
    ms.set_context(device_target="Ascend")
    try:
        for guarded in (op, pyfunc):
            assert guarded(np.float32([2]), np.float32([3]))[0] == 6
            with pytest.raises(errors.OpInfoTypeError, match=r"on CPU: input dtypes \(float16"):
                guarded(narrow, narrow)
    finally:
        ms.set_context(device_target="CPU")
    for guarded, target in ((op, "GPU"), (pyfunc, "CPU")):
        traced = jax.jit(guarded).trace(narrow, narrow)
        with pytest.raises(errors.OpInfoTypeError, match=rf"on {target}: input dtypes \(float16"):
            traced.lower(lowering_platforms=("cuda",))


def test_bprop_gets_tensors_and_may_use_ops_and_attributes(mode: int) -> None:
    kinds = []

    def bprop(x: Any, scale: Any, out: Any, dout: Any) -> Any:
        kinds.append((type(x), scale, type(out), type(dout)))
        return ms.ops.mul(ms.ops.ones_like(x), dout.reshape(-1, 1) * scale), ms.ops.zeros_like(
            scale
        )

    op = aot("ScaleSum", lambda x, s: x[:1], first, bprop=bprop, reg_info=scale_sum_info())
    gradient = ms.grad(lambda x: op(x, 3.0))(Tensor(np.ones((2, 3), np.float32)))
    np.testing.assert_array_equal(gradient.asnumpy(), np.full((2, 3), 3.0))
    assert kinds[0] == (Tensor, 3.0, Tensor, Tensor)


def test_gradients_of_gradients_on_tensors(mode: int) -> None:
    multiply = Custom(
        np.multiply,
        first,
        first,
        bprop=lambda x, y, out, dout: (multiply(dout, y), multiply(dout, x)),
    )
    cube = lambda x: multiply(x, multiply(x, x))  # noqa: E731
    second = ms.grad(ms.grad(cube))(Tensor([2.0, 3.0]))
    np.testing.assert_array_equal(second.asnumpy(), [12.0, 18.0])


def test_error_of_a_kernel_is_the_same_on_tensors(mode: int) -> None:
    class Failing(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.op = aot("Fails")

        def construct(self, x: Any) -> Any:
            return self.op(x)

    with pytest.raises(RuntimeError, match="kernel returned 42, expected 0"):
        Failing()(Tensor([1.0])).asnumpy()


def test_tensors_of_tracers_pass_through_jax_transformations() -> None:
    op = aot("Multiply", bprop=multiply_bprop)
    x = jnp.array([1.0, 2.0])

    def through_tensor(x: Any) -> Any:
        return op(Tensor(x), Tensor(x)).value

    np.testing.assert_array_equal(jax.jit(through_tensor)(x), x * x)
    np.testing.assert_array_equal(jax.grad(lambda x: through_tensor(x).sum())(x), 2 * x)
    np.testing.assert_array_equal(jax.vmap(through_tensor)(x), x * x)


# Seen with MindSpore 2.7.2 in both modes: how a number is named, what a pyfunc gets for it, and a
# bprop. A float has gone through 32 bits on its way to a kernel.
NUMBERS = [
    (0.5, "Float32", 0.5),
    (0.1, "Float32", 0.10000000149011612),
    (1e300, "Float32", float("inf")),
    (np.float64(0.1), "Float32", 0.10000000149011612),
    (np.float32(0.1), "Float32", 0.10000000149011612),
    (3, "Int64", 3),
    (2**40, "Int64", 2**40),
    (True, "Bool", True),
    (False, "Bool", False),
]


class WithNumber(nn.Cell):
    """An op on a Tensor and a number."""

    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op

    def construct(self, x: Any, number: Any) -> Any:
        return self.op(x, number)


class Holding(nn.Cell):
    """An op on a Tensor and a number of its own."""

    def __init__(self, op: Any, number: Any) -> None:
        super().__init__()
        self.op, self.number = op, number

    def construct(self, x: Any) -> Any:
        return self.op(x, self.number)


@pytest.mark.parametrize(("number", "dtype", "received"), NUMBERS, ids=repr)
def test_a_number_beside_tensors_is_what_mindspore_makes_of_it(
    mode: int, number: Any, dtype: str, received: Any
) -> None:
    seen: list[Any] = []
    asked: list[tuple[Any, Any]] = []

    def out_shape(x: Any, n: Any) -> Any:
        asked.append(("shape", n))
        return x

    def out_dtype(x: Any, n: Any) -> Any:
        asked.append(("dtype", str(n)))
        return x

    op = Custom(lambda x, n: seen.append(n) or x, out_shape, out_dtype)
    Holding(op, number)(Tensor([1.0, 2.0])).asnumpy()
    assert asked == [("shape", []), ("dtype", dtype)]
    assert [(type(entry), entry) for entry in seen] == [(type(received), received)]
    guarded = Custom(
        lambda x, n: x,
        first,
        first,
        reg_info=CustomRegOp("guarded")
        .input(0, "x")
        .input(1, "n")
        .output(0, "y")
        .dtype_format(DataType.F32_Default, getattr(DataType, SHORT[dtype]), DataType.F32_Default)
        .target("CPU")
        .get_op_info(),
    )
    Holding(guarded, number)(Tensor([1.0, 2.0]))


@pytest.mark.parametrize(("number", "dtype", "received"), NUMBERS, ids=repr)
def test_a_number_that_is_an_argument_of_the_cell_is_the_same(
    mode: int, number: Any, dtype: str, received: Any
) -> None:
    seen: list[Any] = []
    net = WithNumber(Custom(lambda x, n: seen.append(n) or x, first, first))
    net(Tensor([1.0, 2.0]), number).asnumpy()
    assert [(type(entry), entry) for entry in seen] == [(type(received), received)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_of_numpy_keep_their_sign(mode: int, dtype: Any) -> None:
    net = WithNumber(Custom(lambda x, n: np.copysign(x, n), first, first))
    for number in (0.0, -0.0):
        result = net(Tensor([1.0, 2.0]), dtype(number)).asnumpy()
        np.testing.assert_array_equal(result, np.copysign([1.0, 2.0], number))


SHORT = {"Float32": "F32_Default", "Int64": "I64_Default", "Bool": "BOOL_Default"}


def test_an_aot_kernel_gets_a_float_as_float32(mode: int, tmp_path: Path) -> None:
    source = tmp_path / "scale.cc"
    source.write_text(
        "#include <cstdint>\n#include <cstring>\n"
        'extern "C" int Scale(int n, void **p, int *ndims, int64_t **shapes, const char **dtypes,'
        " void *, void *) {\n"
        '  if (std::strcmp(dtypes[1], "float32") != 0 || ndims[1] != 0) return 1;\n'
        "  for (int64_t i = 0; i < shapes[0][0]; ++i)\n"
        "    ((float *)p[2])[i] = ((float *)p[0])[i] * *(float *)p[1];\n"
        "  return 0;\n}\n"
    )
    net = WithNumber(Custom(f"{source}:Scale", first, first, func_type="aot"))
    for number in (0.5, 0.25):
        np.testing.assert_array_equal(net(Tensor([2.0, 4.0]), number), [2 * number, 4 * number])


def test_another_number_is_no_other_program_of_an_eager_op() -> None:
    op = Custom(lambda x, n: x * np.float32(n), first, first, bprop=lambda x, n, out, dout: (n, 0))
    x = Tensor([1.0, 2.0])
    for n in range(5):
        np.testing.assert_array_equal(op(x, float(n)).asnumpy(), [n, 2 * n])
    assert op._resolve().compiled.cache_info().currsize == 1


def test_a_tuple_of_numbers_stays_one(mode: int) -> None:
    # MindSpore 2.7.2 makes one array of it in PYNATIVE_MODE and refuses it in GRAPH_MODE; its
    # bprop gets the tuple. A function that indexes it or hands it to numpy sees no difference.
    seen: list[Any] = []
    shapes: list[Any] = []

    def pad(x: Any, widths: Any, value: Any) -> Any:
        seen.append((widths, value))
        return np.pad(x, widths, constant_values=value)

    def out_shape(x: Any, widths: Any, value: Any) -> Any:
        shapes.append(widths)
        return [x[0] + 3]

    def bprop(x: Any, widths: Any, value: Any, out: Any, dout: Any) -> Any:
        assert widths == (1, 2)
        return dout[widths[0] : -widths[1]], 0, 0

    op = Custom(pad, out_shape, first, bprop=bprop)
    net = WithNumber(lambda x, widths: op(x, widths, 7.0))
    x = Tensor([1.0, 2.0])
    np.testing.assert_array_equal(net(x, (1, 2)).asnumpy(), [7.0, 1.0, 2.0, 7.0, 7.0])
    assert seen == [((1, 2), 7.0)]
    assert type(seen[0][0]) is tuple
    assert [type(entry) for entry in seen[0][0]] == [int, int]
    assert shapes == [([], [])]
    weights = Tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    gradient = ms.grad(lambda x: net(x, (1, 2)) * weights)(x)
    np.testing.assert_array_equal(gradient.asnumpy(), [2.0, 3.0])


# MindSpore 2.10.0 prints these, in PYNATIVE_MODE.
@pytest.mark.parametrize(
    ("numbers", "dtype"),
    [
        ([1, 2], "int64"),
        ((1, 2), "int64"),
        ([2**40], "int64"),
        ([1.5, 2.5, 3.5], "float32"),
        ([True, False], "bool"),
        ([np.float32(1)], "float32"),
    ],
)
def test_a_kernel_in_c_gets_a_list_of_numbers_as_one_array(
    mode: int, tmp_path: Path, numbers: Any, dtype: str
) -> None:
    source = tmp_path / "copy.cc"
    source.write_text(
        "#include <cstdint>\n#include <cstring>\n"
        'extern "C" int Copy(int n, void **p, int *ndims, int64_t **shapes, const char **dtypes,'
        " void *, void *) {\n"
        f'  if (n != 3 || std::strcmp(dtypes[1], "{dtype}") != 0 || ndims[1] != 1) return 1;\n'
        f"  std::memcpy(p[2], p[1], shapes[1][0] * {np.dtype(dtype).itemsize});\n"
        "  return 0;\n}\n"
    )
    asked: list[Any] = []

    def out_shape(x: Any, numbers: Any) -> Any:
        asked.append(numbers)
        return [len(numbers)]

    def out_dtype(x: Any, numbers: Any) -> Any:
        asked.append(numbers)
        return numbers[0]

    def bprop(x: Any, numbers: Any, out: Any, dout: Any) -> Any:
        return x * numbers[-1], numbers

    net = WithNumber(Custom(f"{source}:Copy", out_shape, out_dtype, func_type="aot", bprop=bprop))
    result = net(Tensor([1.0, 2.0]), numbers).asnumpy()
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, numbers)
    # It asks about each number.
    assert asked == [
        [[]] * len(numbers),
        [getattr(ms, dtype.replace("bool", "bool_"))] * len(numbers),
    ]
    if dtype == "float32":
        gradient = ms.grad(lambda x: net(x, numbers))(Tensor([1.0, 2.0])).asnumpy()
        np.testing.assert_array_equal(gradient, np.float32([1, 2]) * numbers[-1])


def test_a_list_of_numbers_beside_arrays_of_jax_is_one_array() -> None:
    np.testing.assert_array_equal(aot("Multiply")(jnp.float32([1, 2]), [3.0, 4.0]), [3.0, 8.0])
    copy = aot("Copy")
    for numbers in ([1, 2], [1.5, 2], (True, False), [1]):
        result = jax.jit(lambda numbers=numbers: copy(numbers))()
        assert result.dtype == jnp.asarray(numbers).dtype
        np.testing.assert_array_equal(result, numbers)
    received = Custom(lambda x: x, lambda x: x, lambda x: x)([1, 2])
    np.testing.assert_array_equal(received, [1, 2])


@pytest.mark.parametrize("kind", OPS)
def test_every_kind_of_kernel_takes_a_list_of_numbers(kind: str) -> None:
    op = OPS[kind]()
    for call in (op, jax.jit(lambda x, op=op: op(x, [1.0, 2.0]))):
        numbers = [[1.0, 2.0]] if call is op else []
        np.testing.assert_array_equal(call(jnp.float32([3, 4]), *numbers), [3, 8])
    np.testing.assert_array_equal(op(Tensor([3.0, 4.0]), [1.0, 2.0]).asnumpy(), [3, 8])


@pytest.mark.parametrize("number", [2, 0.1, True, -0.0, 0.0], ids=repr)
def test_bprop_gets_a_number_as_it_was_given(mode: int, number: Any) -> None:
    seen: list[Any] = []

    def bprop(x: Any, n: Any, out: Any, dout: Any) -> Any:
        seen.append(n)
        return dout * n * 10, dout.sum() * 5

    net = WithNumber(Custom(lambda x, n: x, first, first, bprop=bprop))
    gradient = ms.grad(net)(Tensor([1.0, 2.0]), number)
    np.testing.assert_allclose(gradient.asnumpy(), [10 * number] * 2, rtol=1e-6)
    assert [(type(entry), repr(entry)) for entry in seen] == [(type(number), repr(number))]


def test_bprop_may_slice_by_an_int(mode: int) -> None:
    op = Custom(
        np.pad,
        lambda x, pad: [x[0] + 2],
        first,
        bprop=lambda x, pad, out, dout: (dout[pad:-pad], 0),
    )
    gradient = ms.grad(lambda x: op(x, 1) * Tensor([1.0, 2.0, 3.0, 4.0]))(Tensor([5.0, 6.0]))
    np.testing.assert_array_equal(gradient.asnumpy(), [2.0, 3.0])


def test_rules_of_forward_mode_get_numbers_as_they_are(mode: int) -> None:
    power = lambda x, n: np.power(x, n)  # noqa: E731

    def bprop(x: Any, n: Any, out: Any, dout: Any) -> Any:
        assert type(n) is int
        return dout * n * x ** (n - 1), 0

    def jvp(primals: Any, tangents: Any, out: Any) -> Any:
        (x, n), dx = primals, tangents[0]
        assert type(n) is int
        return dx * n * x ** (n - 1)

    for rules in ({"bprop": bprop, "forward": True}, {"jvp": jvp}):
        op = Custom(power, first, first, **rules)
        np.testing.assert_array_equal(
            ms.grad(lambda x, op=op: op(x, 3))(Tensor([1.0, 2.0])).asnumpy(), [3.0, 12.0]
        )


def test_an_int_beside_tensors_that_is_too_wide_is_refused(mode: int) -> None:
    op = Custom(lambda x, n: x, first, first)
    with pytest.raises(
        errors.ArgumentValueError,
        match=r"Custom '<lambda>': expected input 1 to fit 64 bits; got 1180591620717411303424",
    ):
        op(Tensor([1.0]), 2**70)


def test_a_number_under_vmap_stays_a_number() -> None:
    seen = []
    op = Custom(lambda x, n: seen.append(n) or x * n, first, first)
    x = jnp.arange(6, dtype=jnp.float32).reshape(3, 2)
    doubled = jax.vmap(lambda row: op(Tensor(row), 2).value)(x)
    np.testing.assert_array_equal(doubled, 2 * x)
    assert [type(n) for n in seen] == [int] * 3


def test_a_tensor_is_handed_over_by_dlpack() -> None:
    tensor = Tensor(np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(np.from_dlpack(tensor), tensor.asnumpy())
    np.testing.assert_array_equal(jnp.from_dlpack(tensor), tensor.value)
    with pytest.raises(errors.ArgumentTypeError, match="DLPack of a Tensor"):
        jax.jit(lambda x: np.from_dlpack(Tensor(x)))(X)


def test_functions_of_jax_numpy_take_tensors_in_and_outside_jit() -> None:
    def total(x: Any) -> Any:
        return jnp.concatenate([jnp.sin(Tensor(x)), x]).sum() + (x * Tensor(x)).sum()

    expected = np.sin([1.0, 2.0]).sum() + 3.0 + 5.0
    np.testing.assert_allclose(total(X), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(total)(X), expected, rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "use",
    [
        lambda x, t: x[t],
        lambda x, t: x.at[t].set(0.0),
        lambda x, t: jax.lax.neg(t),
        lambda x, t: jax.grad(lambda x: Tensor(x).sum())(x),
        lambda x, t: jax.value_and_grad(lambda x: (Tensor(x) * 2).sum())(x),
        lambda x, t: jax.grad(lambda t: (t * 2.0).sum())(Tensor(x)),
    ],
    ids=["index", "at", "lax", "grad", "value_and_grad", "grad_of_tensor"],
)
def test_where_jax_takes_arrays_only_the_error_says_to_pass_the_value(use: Any, wrap: Any) -> None:
    index = jnp.array([1, 0])
    with pytest.raises(errors.ArgumentValueError, match=r"Pass its array: x\[t\.value\]"):
        wrap(lambda x, index: use(x, Tensor(index)))(X, index)
    np.testing.assert_array_equal(X[Tensor(index).value], X[index])
