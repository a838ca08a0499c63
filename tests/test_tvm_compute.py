"""TVM compute: expressions, stages and the modules a kernel sees, run by the interpreter."""

from __future__ import annotations

import re
import sys
import threading
import types

import numpy as np
import pytest
from loop_ir import TVM_MODULES as MODULES
from loop_ir import Kernel, Spec, Store, interpret, kernel_text, loads, statements, verify
from loop_ir import lower_tvm as lower
from loop_ir import specialise_tvm as specialise
from tvm_corpus import specialised_tvm
from tvm_kernels import computed

from msops.errors import ArgumentTypeError, ArgumentValueError, BackendError, MsopsError

tvm = MODULES["tvm"]

ROW = Spec((6,), "float32")
MATRIX = Spec((3, 4), "float32")


def compiled(func, *inputs, **attributes) -> Kernel:
    kernel = specialise(func, inputs, attributes, "Custom 'op'")
    verify(kernel)
    return kernel


def run(func, *arrays: np.ndarray, **attributes) -> list[np.ndarray]:
    specs = [Spec(array.shape, array.dtype.name) for array in arrays]
    return interpret(compiled(func, *specs, **attributes), arrays, check_bounds=True)


@pytest.mark.parametrize("size", [3, 8])
@pytest.mark.parametrize("case", computed.CASES, ids=lambda case: case.name)
def test_corpus_agrees_with_numpy(case, size):
    inputs = case.inputs(np.random.default_rng(size), size)
    kernel = specialised_tvm(case, inputs)
    verify(kernel)
    case.check(inputs, interpret(kernel, inputs, check_bounds=True))


# Expressions. The dtypes are those that the TVM of MindSpore 2.0.0 prints.

_DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "float16", "float32")
_SUMS = """
bool    bool    int8    int16   int32   int64   uint8   uint32  float16 float32
int8    int8    int8    int16   int32   int64   int8    int32   float16 float32
int16   int16   int16   int16   int32   int64   int16   int32   float16 float32
int32   int32   int32   int32   int32   int64   int32   int32   float16 float32
int64   int64   int64   int64   int64   int64   int64   int64   float16 float32
uint8   uint8   int8    int16   int32   int64   uint8   uint32  float16 float32
uint32  uint32  int32   int32   int32   int64   uint32  uint32  float16 float32
float16 float16 float16 float16 float16 float16 float16 float16 float16 -
float32 float32 float32 float32 float32 float32 float32 float32 -       float32
"""


@pytest.mark.parametrize("line", _SUMS.strip().splitlines())
def test_operands_match_as_in_tvm(line):
    left, *expected = line.split()
    for right, dtype in zip(_DTYPES, expected, strict=True):
        x, y = tvm.var("x", left), tvm.var("y", right)
        if dtype == "-":
            with pytest.raises(ArgumentValueError, match=f"cannot match type {left} vs {right}"):
                x * y
        else:
            # TVM adds bools as bools, which has no arithmetic in the loop IR.
            assert (x | y if left == right == "bool" else x * y).dtype == (dtype)
            assert (x > y).dtype == "bool"


@pytest.mark.parametrize(
    ("expr", "dtype"),
    [
        (lambda: tvm.var("x", "float16") + 1, "float16"),
        (lambda: 1.5 * tvm.var("x", "float64"), "float64"),
        (lambda: tvm.var("x", "int64") - 1, "int64"),
        (lambda: 1 - tvm.var("x", "int8"), "int32"),
        (lambda: tvm.var("x") * 0.5, "float32"),
        (lambda: tvm.var("x", "float32") * np.sqrt(2.0), "float32"),
        (lambda: tvm.var("x", "float32") * np.float32(2), "float32"),
        (lambda: -tvm.var("x", "bool"), "int32"),
        (lambda: ~(tvm.var("x") > 1), "bool"),
        (lambda: (tvm.var("x") > 1) & (tvm.var("y") < 3), "bool"),
        (lambda: tvm.var("x").equal(3), "bool"),
        (lambda: tvm.var("x") != 3, "bool"),
        (lambda: tvm.var("x", "float32") / 2, "float32"),
        (lambda: 2 / tvm.var("x", "float32"), "float32"),
        (lambda: abs(tvm.var("x", "float32")), "float32"),
        (lambda: tvm.if_then_else(tvm.var("c") > 0, tvm.var("x", "float32"), 0), "float32"),
        (lambda: tvm.isnan(tvm.var("x")), "bool"),
        (lambda: tvm.round(tvm.var("x")), "int32"),
        (lambda: tvm.likely(tvm.var("x") > 0), "bool"),
        (lambda: tvm.const(True), "bool"),
        (lambda: tvm.const(1), "int32"),
        (lambda: tvm.const(2**40), "int64"),
        (lambda: tvm.const(1.5), "float32"),
        (lambda: tvm.const(1.5, "float16"), "float16"),
        (lambda: tvm.const(np.int8(3)), "int8"),
    ],
)
def test_dtype_of_expression(expr, dtype):
    assert expr().dtype == dtype


def test_numbers_are_known_while_the_kernel_is_built():
    seven = tvm.const(3) + tvm.const(4)
    assert (seven.value, int(seven), float(seven)) == (7, 7, 7.0)
    assert list(range(tvm.const(3) * 2 - 4)) == [0, 1]
    assert (tvm.const(-7) // 2).value == -4
    assert tvm.truncdiv(tvm.const(-7), 2).value == -3
    assert tvm.truncmod(tvm.const(-7), 2).value == -1
    assert bool(tvm.const(3) > 2)
    assert not tvm.all(tvm.const(3) > 2, tvm.const(3) > 5)
    assert tvm.const(2.7, "int32").value == 2
    assert tvm.const(300, "uint8").value == 44
    assert tvm.const(float("nan"), "int32").value == 0
    assert isinstance(tvm.const(1), tvm.expr.IntImm)
    assert isinstance(tvm.const(1.0), tvm.expr.FloatImm)
    # Folding leaves alone what wraps or is undefined.
    assert not isinstance(tvm.const(2**31 - 1) + 1, tvm.expr.ConstExpr)
    assert not isinstance(tvm.const(1) // 0, tvm.expr.ConstExpr)


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (lambda: tvm.min_value("int8"), -128),
        (lambda: tvm.max_value("int64"), 2**63 - 1),
        (lambda: tvm.max_value("float16"), 65504.0),
        (lambda: tvm.min_value("float32"), float(np.finfo(np.float32).min)),
        (lambda: tvm.max_value("bfloat16"), 3.3895313892515355e38),
        (lambda: tvm.min_value("bool"), False),
    ],
)
def test_limits(expr, value):
    assert expr().value == value


def test_scalar_functions_agree_with_numpy():
    x = np.array([-2.5, -0.5, 0.0, 0.3, 1.5, 2.5], np.float32)
    y = np.array([1.0, -2.0, 0.7, 3.0, -1.5, 2.0], np.float32)

    def kernel(x, y):
        n = x.shape[0]
        return (
            tvm.compute((n,), lambda i: tvm.fmod(x(i), y(i))),
            tvm.compute((n,), lambda i: tvm.atan2(x(i), y(i))),
            tvm.compute((n,), lambda i: tvm.power(tvm.abs(x(i)), 2)),
            tvm.compute((n,), lambda i: tvm.max(x(i), y(i)) - tvm.min(x(i), 1.0)),
            tvm.compute((n,), lambda i: tvm.floordiv(i, 2) * 10 + tvm.indexmod(i, 4)),
            tvm.compute((n,), lambda i: tvm.ceildiv(i, 4) + tvm.div(0 - i, 2)),
            tvm.compute((n,), lambda i: tvm.call_pure_intrin("float32", "sigmoid", x(i))),
            tvm.compute((n,), lambda i: tvm.select(x(i) > 0.0, x(i), y(i)).astype("int32")),
        )

    i = np.arange(6)
    expected = (
        np.fmod(x, y),
        np.arctan2(x, y),
        x * x,
        np.maximum(x, y) - np.minimum(x, 1),
        i // 2 * 10 + i % 4,
        -(-i // 4) - i // 2,
        1 / (1 + np.exp(-x)),
        np.where(x > 0, x, y).astype(np.int32),
    )
    for output, wanted in zip(run(kernel, x, y), expected, strict=True):
        np.testing.assert_allclose(output, wanted, rtol=1e-5)


def test_a_guarded_load_is_not_evaluated():
    def kernel(x):
        return tvm.compute(x.shape, lambda i: tvm.if_then_else(i > 0, x(i - 1), 9.0))

    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(run(kernel, x)[0], [9, 0, 1, 2, 3, 4])


# Tensors and compute.


def test_elements_are_written_in_three_ways():
    def kernel(x):
        return tvm.compute(x.shape, lambda i, j: x(i, j) + x[i, j] * 10.0 + x[i][j] * 100.0)

    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(kernel, x)[0], 111 * x)


def test_shapes_are_ints_and_constants():
    x = tvm.placeholder((3, tvm.const(4)), "float16", "x")
    assert x.shape == (3, 4)
    assert x.shape[1].value == 4
    assert list(range(x.shape[0])) == [0, 1, 2]
    assert (x.shape[0] * tvm.var("i")).dtype == "int32"
    assert x.shape[0].astype("float32").value == 3.0
    assert (x.ndim, x.dtype, x.op.name, len(x)) == (2, "float16", "x", 3)
    assert tvm.placeholder((1,), attrs={"ori_shape": (1,)}).op.attrs["ori_shape"] == (1,)


def test_a_formula_may_take_all_indices_or_have_defaults():
    def kernel(x):
        scaled = tvm.compute(x.shape, lambda *at: x(*at) * 2.0)
        moved = tvm.compute(x.shape, lambda i, *rest: scaled(i, *rest) + 1.0)
        return tvm.compute(x.shape, lambda i, j, step=3.0: moved(i, j) * step)

    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(kernel, x)[0], 9 * x)


def test_a_tensor_without_dimensions_is_a_scalar():
    def kernel(x):
        k = tvm.reduce_axis((0, 6), "k")
        total = tvm.compute((), lambda: tvm.sum(x(k), axis=k))
        return tvm.compute(x.shape, lambda i: x(i) + tvm.exp(total) * 0.0), total

    x = np.arange(6, dtype=np.float32)
    moved, total = run(kernel, x)
    np.testing.assert_array_equal(moved, x)
    assert total.shape == ()
    assert total == 15


def test_a_tuple_of_formulas_gives_a_tensor_each():
    def kernel(x):
        whole, index = tvm.compute(x.shape, lambda i: (tvm.floor(x(i)), i), name="parts")
        return index, whole

    kernel_ir = compiled(kernel, ROW)
    assert kernel_ir.results == ("parts_v1", "parts_v0")
    index, whole = interpret(kernel_ir, [np.full(6, 2.5, np.float32)])
    np.testing.assert_array_equal(index, np.arange(6))
    np.testing.assert_array_equal(whole, np.full(6, 2))


@pytest.mark.parametrize("end", [0, 4])
def test_reductions_start_from_their_identity(end):
    def kernel(x):
        k = tvm.reduce_axis((0, end), "k")
        one = (1,)
        return (
            tvm.compute(one, lambda i: tvm.sum(x(k), axis=k)),
            tvm.compute(one, lambda i: tvm.prod(x(k), axis=[k])),
            tvm.compute(one, lambda i: tvm.max(x(k), axis=k)),
            tvm.compute(one, lambda i: tvm.min(x(k).astype("int32"), axis=k)),
            tvm.compute(one, lambda i: tvm.max(x(k), axis=k, where=x(k) < -1.0)),
            tvm.compute(one, lambda i: tvm.sum(x(k), axis=k, init=100.0)),
        )

    x = np.array([-2.0, -3.0, 5.0, 1.0, 9.0, 9.0], np.float32)
    part = x[:end]
    expected = [
        part.sum(),
        part.prod(),
        part.max(initial=-np.inf),
        part.astype(np.int32).min(initial=2**31 - 1),
        part[part < -1].max(initial=-np.inf),
        100 + part.sum(),
    ]
    np.testing.assert_array_equal(np.concatenate(run(kernel, x)), expected)


def test_a_reduction_axis_runs_from_begin_to_end():
    def kernel(x):
        k = tvm.reduce_axis((2, 5), "k")
        first = tvm.compute((1,), lambda i: tvm.sum(x(k), axis=k), name="first")
        # The same axis in two stages is two loops.
        return first, tvm.compute((1,), lambda i: tvm.max(x(k), axis=k), name="second")

    total, largest = run(kernel, np.arange(6, dtype=np.float32))
    assert (total[0], largest[0]) == (9, 4)


def test_a_reducer_of_the_author_reduces_or_combines():
    def kernel(x):
        xor = tvm.comm_reducer(lambda a, b: a ^ b, lambda dtype: tvm.const(0, dtype), name="xor")
        k = tvm.reduce_axis((0, 6), "k")
        together = tvm.compute((1,), lambda i: xor(x(k), k))
        return together, tvm.compute((1,), lambda i: xor(x(0), x(1), x(2)))

    x = np.array([1, 2, 4, 8, 3, 9], np.int32)
    both = run(kernel, x)
    assert both[0][0] == np.bitwise_xor.reduce(x)
    assert both[1][0] == 7


def test_a_tuple_reducer_of_selections_is_lowered_to_a_branch():
    kernel = specialised_tvm(
        next(case for case in computed.CASES if case.name == "argmax_reducer"),
        [np.zeros((3, 4), np.float32)],
    )
    text = kernel_text(kernel)
    assert "if (x[i, k] > best_v1[i]) {" in text
    assert "local" not in text


# One kernel.


def test_names_are_the_authors_and_unique():
    def kernel(x, y):
        first = tvm.compute(x.shape, lambda row: x(row) + 1.0, name="1 st-stage")
        second = tvm.compute(x.shape, lambda row: first(row) * y(row), name="x")
        return second

    text = kernel_text(compiled(kernel, ROW, ROW))
    assert text == (
        "kernel kernel(x: float32[6], y: float32[6]) -> (x_1) {\n"
        "  buffer _1_st_stage: float32[6]\n"
        "  buffer x_1: float32[6]\n"
        "  serial row in 0 .. 6 {\n"
        "    _1_st_stage[row] = x[row] + 1.0:float32\n"
        "  }\n"
        "  serial row_1 in 0 .. 6 {\n"
        "    x_1[row_1] = _1_st_stage[row_1] * y[row_1]\n"
        "  }\n"
        "}"
    )


def test_a_kernel_is_the_same_every_time():
    case = next(case for case in computed.CASES if case.name == "layer_norm_topi")
    inputs = case.inputs(np.random.default_rng(0), 4)
    assert specialised_tvm(case, inputs) == specialised_tvm(case, inputs)


def test_stages_that_no_result_needs_are_left_out():
    def kernel(x):
        tvm.compute(x.shape, lambda i: tvm.exp(x(i)), name="unused")
        return tvm.compute(x.shape, lambda i: x(i), name="used")

    assert "unused" not in kernel_text(compiled(kernel, ROW))


def test_inputs_may_be_results():
    def kernel(x):
        y = tvm.compute(x.shape, lambda i: x(i) * 2.0)
        return [y, x, y]

    x = np.arange(6, dtype=np.float32)
    for output, wanted in zip(run(kernel, x), (2 * x, x, 2 * x), strict=True):
        np.testing.assert_array_equal(output, wanted)


def test_loads_know_their_place_in_the_source():
    def kernel(x):
        return tvm.compute(x.shape, lambda i: x(i) + 1.0)

    (store,) = (s for s in statements(compiled(kernel, ROW).body) if isinstance(s, Store))
    (load,) = loads(store.value)
    for location, text in ((load.location, "x(i)"), (store.location, "tvm.compute(")):
        assert location is not None
        assert location.file == __file__
        assert location.text[location.column :].startswith(text)
    assert load.location.text[load.location.column : load.location.end_column] == "x(i)"


# Modules.


def test_names_resolve_however_they_are_imported():
    def kernel(x):
        import akg
        import akg.topi as t1
        import akg.tvm
        import akg.tvm as v1
        import numpy
        import topi as t2
        import tvm as v2
        from akg import topi as t3
        from akg.topi import nn
        from akg.tvm import compute, ir_builder
        from akg.utils import check_shape
        from tvm.expr import Select

        assert akg.tvm is v1 is v2 is tvm
        assert akg.topi is t1 is t2 is t3 is topi  # noqa: F821
        assert ir_builder is tvm.ir_builder
        assert nn is topi.nn  # noqa: F821
        assert numpy is np
        check_shape(x, 1)
        return compute(x.shape, lambda i: Select(x(i) > 0.0, x(i), 0.0))

    x = np.array([1.0, -1.0], np.float32)
    np.testing.assert_array_equal(run(kernel, x)[0], [1, 0])


def _helper(x):
    import akg.tvm

    return akg.tvm.compute(x.shape, lambda i: _inner(x(i)))


def _inner(value):
    return topi.add(value, tvm.const(1.0))  # noqa: F821


def test_helpers_and_closures_see_the_same_modules():
    def doubled(x):
        return topi.multiply(x, 2.0)  # noqa: F821

    def kernel(x):
        return doubled(_helper(x))

    np.testing.assert_array_equal(run(kernel, np.ones(2, np.float32))[0], [4, 4])
    assert "topi" not in globals()


def test_real_packages_of_these_names_are_left_alone(monkeypatch):
    real = types.ModuleType("tvm")
    monkeypatch.setitem(sys.modules, "tvm", real)
    namespace = {"tvm": real, "real_tvm": real, "__name__": "elsewhere"}
    code = "def kernel(x):\n    return real_tvm.compute(x.shape, lambda i: tvm.exp(x(i)))\n"
    exec(code, namespace)
    before = dict(sys.modules)
    x = np.zeros(2, np.float32)
    np.testing.assert_array_equal(run(namespace["kernel"], x)[0], [1, 1])
    assert namespace["tvm"] is real
    assert sys.modules["tvm"] is real
    assert set(sys.modules) == set(before)


def test_threads_do_not_meet():
    case = next(case for case in computed.CASES if case.name == "softmax_topi")
    inputs = case.inputs(np.random.default_rng(0), 4)
    found: list[object] = []

    def work():
        for _ in range(20):
            found.append(specialised_tvm(case, inputs))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(kernel == found[0] for kernel in found)


def test_attributes_are_keyword_arguments():
    def kernel(x, n, mode="none", *, scale):
        assert (n, mode) == (2, "add")
        return tvm.compute((n,), lambda i: x(i) * scale)

    x = np.ones(6, np.float32)
    np.testing.assert_array_equal(run(kernel, x, n=2, scale=3.0, mode="add")[0], [3, 3])


def test_marks_change_nothing():
    def kernel(x):
        with tvm.tag_scope(tag=tvm.tag.INJECTIVE):
            return tvm.compute(x.shape, lambda i: x(i), tag="t", attrs={"a": 1})

    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(kernel, x)[0], x)


def test_settings_for_the_compiler_after_the_results_have_no_effect():
    def kernel(x):
        return tvm.compute(x.shape, lambda i: x(i) + 1.0), {"enable_multicore": False}

    x = np.arange(3, dtype=np.float32)
    (got,) = run(kernel, x)
    np.testing.assert_array_equal(got, x + 1)
    with pytest.raises(ArgumentTypeError, match="expected a tensor or several; got dict"):
        run(lambda x: {"enable_multicore": False}, x)


def test_a_stage_may_be_in_the_hybrid_dsl():
    def kernel(x):
        @tvm.hybrid.script
        def prefix(a, step):
            sums = output_tensor(a.shape, a.dtype)  # noqa: F821
            part = allocate((1,), a.dtype)  # noqa: F821
            for i in range(a.shape[0]):
                part[0] = part[0] + a[i] * step
                sums[i] = part[0]
            return sums

        @tvm.hybrid.script
        def negated(a):
            for i in range(a.shape[0]):
                a[i] = -a[i]
            return a

        shifted = tvm.compute(x.shape, lambda i: x(i) + 1.0)
        return prefix(negated(shifted), 2.0), shifted

    x = np.arange(6, dtype=np.float32)
    sums, shifted = run(kernel, x)
    np.testing.assert_array_equal(shifted, x + 1)
    np.testing.assert_array_equal(sums, -2 * np.cumsum(x + 1))


def test_a_script_captures_what_it_is_given_and_returns_what_it_allocates():
    def kernel(x):
        shift = 1.0

        @tvm.hybrid.script(capture={"scale": 2.0, "shift": 3.0})
        def scaled(a, number):
            t = allocate(a.shape, number.dtype)  # noqa: F821
            for i in range(a.shape[0]):
                t[i] = a[i] * scale + shift * number  # noqa: F821
            return t

        return scaled(x, tvm.const(shift, "float16"))

    x = np.arange(6, dtype=np.float16)
    (got,) = run(kernel, x)
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, 2 * x + 3)


@pytest.mark.parametrize(("name", "first"), [("fargmax", np.argmax), ("fargmin", np.argmin)])
def test_an_index_of_an_extreme_element(name, first):
    def kernel(x):
        def better(a, b):
            return tvm.call_pure_intrin(a.dtype, name, a, b)

        k = tvm.reduce_axis((0, 4), "k")
        reducer = tvm.comm_reducer(better, tvm.min_value)
        found = tvm.compute((3,), lambda i: reducer(x(i, k), axis=k))
        return tvm.compute((3,), lambda i: found(i).astype("int32"))

    x = np.float32([[1, 5, 5, 2], [-3, -4, -1, -4], [0, 0, 0, 0]])
    np.testing.assert_array_equal(run(kernel, x)[0], first(x, 1))


# Errors.


def _reduce_twice(x):
    k = tvm.reduce_axis((0, 6), "k")
    return tvm.compute((1,), lambda i: tvm.sum(x(k), axis=k) + 1.0)


def _free(x):
    return tvm.compute(x.shape, lambda i: x(i) * tvm.var("lost", "float32"))


def _axis_outside(x):
    k = tvm.reduce_axis((0, 6), "k")
    return tvm.compute(x.shape, lambda i: x(k))


def _stranger(x):
    other = tvm.placeholder((6,), name="other")
    return tvm.compute(x.shape, lambda i: x(i) + other(i))


def _branch(x):
    return tvm.compute(x.shape, lambda i: x(i) if i > 0 else 0.0)


def _two_reductions(x):
    k = tvm.reduce_axis((0, 6), "k")
    return tvm.compute((1,), lambda i: (tvm.sum(x(k), k), tvm.max(x(k), k)))


@pytest.mark.parametrize(
    ("kernel", "kind", "message"),
    [
        (_reduce_twice, ArgumentValueError, "reductions are only allowed at the top level"),
        (_two_reductions, ArgumentValueError, "results of one reduction, or of none"),
        (_free, ArgumentValueError, "'lost' has no value here"),
        (_axis_outside, ArgumentValueError, "'k' has no value here"),
        (_stranger, ArgumentValueError, "'other': it is not an input of the kernel"),
        (_branch, ArgumentValueError, "its truth is not known while the kernel is being built"),
        (lambda x: tvm.compute(x.shape, lambda i: i / 2), ArgumentValueError, "is ambiguous"),
        (lambda x: tvm.compute(x.shape, lambda i: x), ArgumentValueError, "provide 1 indices"),
        (lambda x: tvm.compute(x.shape, lambda i: x(i, i)), ValueError, "1 indices; got 2"),
        (lambda x: tvm.compute(x.shape, lambda i: x(x(i))), ValueError, "expected an integer"),
        (lambda x: tvm.compute(x.shape, lambda i, j: x(i)), ValueError, "it takes 2 indices"),
        (lambda x: tvm.compute(x.shape, lambda i: None), TypeError, "got None"),
        (lambda x: tvm.compute(x.shape, lambda i: "1"), TypeError, "got str"),
        (lambda x: tvm.compute((tvm.var("n"),), lambda i: x(i)), TypeError, "a shape of ints"),
        (lambda x: tvm.compute((-1,), lambda i: x(i)), ValueError, "without negative extents"),
        (lambda x: tvm.compute(x.shape, lambda i: x(i) & 1), ValueError, "expected integers"),
        (lambda x: tvm.compute(x.shape, lambda i: ~x(i)), ValueError, "got float32"),
        (lambda x: tvm.compute(x.shape, lambda i: tvm.exp(i)), ValueError, "expected a float"),
        (lambda x: tvm.compute(x.shape, lambda i: tvm.popcount(x(i))), ValueError, "an integer"),
        (lambda x: tvm.compute(x.shape, lambda i: tvm.all()), ValueError, "at least one"),
        (lambda x: tvm.reduce_axis(6), ArgumentTypeError, "expected a pair of ints; got 6"),
        (lambda x: tvm.const("1"), ArgumentTypeError, "expected a number; got str"),
        (lambda x: tvm.const(1, "int4"), ArgumentTypeError, "got 'int4'"),
        (lambda x: tvm.call_extern("float32", "sinf", x(0)), BackendError, "function 'sinf'"),
        (lambda x: tvm.call_packed("hello", x), BackendError, "function 'hello'"),
        (lambda x: tvm.call_pure_intrin("float32", "vmadd", x(0)), BackendError, "'vmadd' is not"),
        (
            lambda x: tvm.compute(
                (1,), lambda i: tvm.call_pure_intrin("float32", "fargmax", x(i), x(i))
            ),
            ArgumentValueError,
            "only allowed in the function of a tvm.comm_reducer",
        ),
        (lambda x: tvm.create_schedule(x.op), AttributeError, "tvm.create_schedule: there is no"),
        (
            lambda x: 3,
            ArgumentTypeError,
            "kernel '<lambda>': expected a tensor or several; got int",
        ),
    ],
)
def test_what_cannot_be_is_refused(kernel, kind, message):
    with pytest.raises(kind, match=message) as caught:
        specialise(kernel, [ROW], {}, "Custom 'op'")
    assert isinstance(caught.value, MsopsError)
    assert str(caught.value).startswith("Custom 'op': ")


def test_an_error_points_at_the_line():
    with pytest.raises(MsopsError) as caught:
        specialise(_branch, [ROW], {}, "Custom 'op'")
    assert re.search(
        r"test_tvm_compute.py:\d+\n    return tvm.compute\(x.shape, lambda i: x\(i\) if i > 0 .*\n"
        r" +\^\^\^\^\^\n",
        str(caught.value),
    )


def test_unknown_names_and_modules_are_explained():
    def attribute(x):
        import akg

        return akg.tvm.te.compute(x.shape, lambda i: x(i))

    def module(x):
        import akg.ops  # noqa: F401

    def name(x):
        from akg.tvm import lower  # noqa: F401

    with pytest.raises(AttributeError, match="tvm has Tensor, abs, acos"):
        specialise(attribute, [ROW], {}, "Custom 'op'")
    with pytest.raises(ModuleNotFoundError, match="akg has differentiate, "):
        specialise(module, [ROW], {}, "Custom 'op'")
    with pytest.raises(ImportError, match="cannot import name 'lower' from 'tvm'"):
        specialise(name, [ROW], {}, "Custom 'op'")
    assert not hasattr(tvm, "te")


def test_lowering_serves_tensors_made_outside_a_kernel():
    x = tvm.placeholder((3,), name="x")
    y = tvm.compute((3,), lambda i: x(i) * 2.0, name="y")
    kernel = lower([y], [x], "outside")
    np.testing.assert_array_equal(interpret(kernel, [np.ones(3, np.float32)])[0], [2, 2, 2])
