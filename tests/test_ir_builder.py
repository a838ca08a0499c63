"""The IR builder: what it builds, what it refuses, and kernels run by the interpreter."""
# A loop is a with-block.
# ruff: noqa: SIM117

from __future__ import annotations

import re

import numpy as np
import pytest
from loop_ir import TVM_MODULES as MODULES
from loop_ir import Kernel, Local, Spec, body_text, interpret, statements, verify
from loop_ir import specialise_tvm as specialise
from tvm_corpus import specialised_tvm
from tvm_kernels import built

from msops import Custom
from msops.errors import ArgumentTypeError, ArgumentValueError, BackendError, MsopsError

tvm = MODULES["tvm"]

MATRIX = Spec((3, 4), "float32")


def kernel_of(write, shape=(3, 4), dtype="float32", inputs=(MATRIX,), **attributes) -> Kernel:
    """Returns the kernel of ``write(ib, ins, outs)``."""

    def func(tensors, attrs):
        def body(ins, outs):
            ib = tvm.ir_builder.create()
            write(ib, ins, outs)
            return ib.get()

        return tvm.extern(shape, tensors, body, name="out", dtype=dtype)

    kernel = specialise(func, inputs, attributes, "Custom 'op'")
    verify(kernel)
    return kernel


def refused(write, **options) -> MsopsError:
    with pytest.raises(MsopsError) as caught:
        kernel_of(write, **options)
    return caught.value


@pytest.mark.parametrize("size", [3, 8])
@pytest.mark.parametrize("case", [*built.CASES, built.LISTED], ids=lambda case: case.name)
def test_corpus_agrees_with_numpy(case, size):
    inputs = case.inputs(np.random.default_rng(size), size)
    kernel = specialised_tvm(case, inputs)
    verify(kernel)
    case.check(inputs, interpret(kernel, inputs, check_bounds=True))


# What is built.


def test_loops_keep_their_bounds_names_and_keywords():
    def write(ib, ins, outs):
        with ib.for_range(1, 3, name="row", for_type="parallel") as i:
            with ib.for_range(i, 4, name="row", for_type="vectorize") as j:
                ib.store(outs[0], [i, j], ib.load(ins[0], [i, j]))
            with ib.for_range_n([2, 3], "n", for_type="unroll") as at:
                ib.store(outs[0], [*at], 0.0)

    assert body_text(kernel_of(write).body) == (
        "serial row in 1 .. 3 @parallel {\n"
        "  serial row_1 in row .. 4 @vectorize {\n"
        "    out[row, row_1] = input_0[row, row_1]\n"
        "  }\n"
        "  serial n1 in 0 .. 2 @unroll {\n"
        "    serial n2 in 0 .. 3 @unroll {\n"
        "      out[n1, n2] = 0.0:float32\n"
        "    }\n"
        "  }\n"
        "}"
    )


def test_a_flat_index_becomes_one_per_dimension():
    def write(ib, ins, outs):
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 3, name="i") as i:
            with ib.for_range(0, 8, name="j") as j:
                y[i * 8 + j] = x[i * 8 + j]
        y[7] = 1.0

    text = body_text(kernel_of(write, (3, 4, 2), inputs=[Spec((3, 4, 2), "float32")]).body)
    place = "((i * 8) + j)"
    indices = f"[{place} // 8, ({place} // 2) % 4, {place} % 2]"
    assert f"out{indices} = input_0{indices}" in text
    assert "out[0, 3, 1] = 1.0:float32" in text


def test_an_allocation_lives_in_the_rest_of_its_scope():
    def write(ib, ins, outs):
        with ib.for_range(0, 3, name="i") as i:
            ib.store(outs[0], [i, 0], 1.0)
            held = ib.allocate("float32", (2, 2), name="held", scope="local")
            ib.store(held, [1, i % 2], 2.0)
            ib.store(outs[0], [i, 1], held[2 + i % 2] + held[0])

    kernel = kernel_of(write)
    text = body_text(kernel.body)
    assert text.index("out[i, 0]") < text.index("local held: float32[2, 2]") < text.index("held[1")
    output = interpret(kernel, [np.zeros((3, 4), np.float32)], check_bounds=True)[0]
    np.testing.assert_array_equal(output[:, :2], [[1, 2]] * 3)


def test_a_new_scope_ends_allocations():
    def write(ib, ins, outs):
        with ib.new_scope():
            first = ib.allocate("int32", 2, name="first")
            first[0] = 1
        second = ib.allocate("int32", [2], name="second")
        second[0] = 1

    locals_ = [s for s in kernel_of(write).body if isinstance(s, Local)]
    assert [stmt.buffer.name for stmt in locals_] == ["first", "second"]


def test_branches_may_nest_and_have_others():
    def write(ib, ins, outs):
        with ib.for_range(0, 3, name="i") as i:
            with ib.for_range(0, 4, name="j") as j:
                with ib.if_scope(tvm.all(i > 0, j > 0)):
                    with ib.if_scope(i > j):
                        ib.store(outs[0], [i, j], 1.0)
                    with ib.else_scope():
                        ib.store(outs[0], [i, j], 2.0)
                with ib.else_scope():
                    ib.store(outs[0], [i, j], 3.0)

    (output,) = interpret(kernel_of(write), [np.zeros((3, 4), np.float32)])
    np.testing.assert_array_equal(output, [[3, 3, 3, 3], [3, 2, 2, 2], [3, 1, 2, 2]])


def test_thread_extents_are_parallel_loops_and_other_attributes_nothing():
    def write(ib, ins, outs):
        ib.scope_attr(outs[0], "storage_scope", "global")
        thread = tvm.thread_axis("threadIdx.x")
        ib.scope_attr(thread, "thread_extent", 3)
        ib.store(outs[0], [thread, 0], 1.0)

    assert body_text(kernel_of(write).body) == (
        "serial threadIdx_x in 0 .. 3 @parallel {\n  out[threadIdx_x, 0] = 1.0:float32\n}"
    )


def test_emit_takes_statements_and_what_wraps_the_rest():
    seen = []

    def write(ib, ins, outs):
        ib.emit(outs[0].vstore([0, 0], 1.0))
        ib.emit(lambda rest: (seen.append(rest), rest)[1])
        ib.store(outs[0], [0, 1], 2.0)

    assert len(kernel_of(write).body) == 2
    assert len(seen[0].body) == 1


def test_a_number_takes_the_width_of_the_buffer():
    def write(ib, ins, outs):
        ib.store(outs[0], [0, 0], 1.5)
        ib.buffer_ptr(outs[0])[1] = 0.1

    kernel = kernel_of(write, dtype="float16")
    (output,) = interpret(kernel, [np.zeros((3, 4), np.float32)])
    np.testing.assert_array_equal(output[0, :2], np.array([1.5, 0.1], np.float16))


def test_augmented_assignment_reads_and_writes():
    def write(ib, ins, outs):
        out = ib.buffer_ptr(outs[0])
        out[5] = 1.0
        out[5] += 2.0

    (output,) = interpret(kernel_of(write), [np.zeros((3, 4), np.float32)])
    assert output[1, 1] == 3.0


def test_attributes_are_numbers_of_tvm():
    def func(inputs, attrs):
        (x,) = inputs
        assert attrs["axis"].value == 1
        assert [int(n) for n in attrs["steps"]] == [1, 2]
        assert attrs["mode"] == "add"
        assert attrs["flag"]

        def body(ins, outs):
            ib = tvm.ir_builder.create()
            with ib.for_range(0, attrs["axis"] + 1) as i:
                ib.store(outs[0], i, attrs["scale"] * attrs["steps"][1])
            return ib.get()

        return tvm.extern((attrs["axis"] + 1,), [x], body)

    attributes = {"axis": 1, "steps": (1, 2), "mode": "add", "flag": True, "scale": 1.5}
    kernel = specialise(func, [MATRIX], attributes, "Custom 'op'")
    (output,) = interpret(kernel, [np.zeros((3, 4), np.float32)])
    np.testing.assert_array_equal(output, [3, 3])


def test_declared_buffers_stand_for_inputs_and_outputs():
    def func(inputs, attrs):
        x = inputs[0]
        source = tvm.decl_buffer(x.shape, x.dtype, name="source")
        target = tvm.decl_buffer(x.shape, x.dtype, name="target")

        def body(ins, outs):
            assert (ins, outs) == ([source], [target])
            ib = tvm.ir_builder.create()
            with ib.for_range_n(x.shape) as at:
                ib.store(target, at, ib.load(source, at) * 2.0)
            return ib.get()

        once = tvm.extern(x.shape, [x], body, in_buffers=[source], out_buffers=target)
        # The same declarations serve a second call.
        return tvm.extern(x.shape, [once], body, in_buffers=[source], out_buffers=target)

    kernel = specialise(func, [MATRIX], {}, "Custom 'op'")
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(interpret(kernel, [x])[0], 4 * x)


def test_a_written_input_is_a_private_copy():
    def write(ib, ins, outs):
        with ib.for_range_n([3, 4]) as at:
            ib.store(ins[0], at, ib.load(ins[0], at) + 1.0)
            ib.store(outs[0], at, ib.load(ins[0], at))

    x = np.zeros((3, 4), np.float32)
    np.testing.assert_array_equal(interpret(kernel_of(write), [x])[0], x + 1)
    assert not x.any()


def test_externs_and_computes_mix():
    def func(x):
        def body(ins, outs):
            ib = tvm.ir_builder.create()
            with ib.for_range_n(x.shape) as at:
                ib.store(outs[0], at, ib.load(ins[0], at) * 2.0)
            return ib.get()

        moved = tvm.compute(x.shape, lambda i, j: x(i, j) + 1.0)
        doubled = tvm.extern(x.shape, [moved], body)
        return tvm.compute(x.shape, lambda i, j: doubled(i, j) - x(i, j))

    kernel = specialise(func, [MATRIX], {}, "Custom 'op'")
    verify(kernel)
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(interpret(kernel, [x])[0], 3 * x)


def test_two_parameters_without_a_builder_are_two_tensors():
    def func(x, y):
        return tvm.compute(x.shape, lambda i, j: x(i, j) - y(i, j))

    kernel = specialise(func, [MATRIX, MATRIX], {}, "Custom 'op'")
    assert [buffer.name for buffer in kernel.parameters] == ["x", "y"]


def _built_elsewhere(ins, outs):
    ib = tvm.ir_builder.create()
    ib.store(outs[0], [0, 0], ib.load(ins[0], [0, 0]))
    return ib.get()


def test_a_builder_in_a_helper_is_found():
    def func(inputs, attrs):
        return tvm.extern((3, 4), inputs, lambda ins, outs: _built_elsewhere(ins, outs))

    kernel = specialise(func, [MATRIX], {}, "Custom 'op'")
    assert [buffer.name for buffer in kernel.parameters] == ["input_0"]


# What is refused.


def _unknown_for_type(ib, ins, outs):
    with ib.for_range(0, 3, for_type="threads"):
        pass


def _else_alone(ib, ins, outs):
    with ib.else_scope():
        pass


def _else_late(ib, ins, outs):
    with ib.if_scope(ib.load(ins[0], 0) > 0.0):
        ib.store(outs[0], 0, 1.0)
    ib.store(outs[0], 1, 1.0)
    with ib.else_scope():
        pass


def _else_twice(ib, ins, outs):
    with ib.if_scope(ib.load(ins[0], 0) > 0.0):
        ib.store(outs[0], 0, 1.0)
    for _ in range(2):
        with ib.else_scope():
            ib.store(outs[0], 0, 2.0)


def _open_scope(ib, ins, outs):
    with ib.for_range(0, 3):
        ib.get()


def _float_into_int(ib, ins, outs):
    held = ib.allocate("int32", (1,))
    held[0] = 1.0


def _int_into_float(ib, ins, outs):
    ib.buffer_ptr(outs[0])[0] = 1


def _narrow_into_wide(ib, ins, outs):
    ib.store(outs[0], [0, 0], ib.load(ins[0], [0, 0]).astype("float16"))


def _loop_variable_outside(ib, ins, outs):
    with ib.for_range(0, 3, name="i") as i:
        pass
    ib.store(outs[0], [i, 0], 1.0)


def _local_outside(ib, ins, outs):
    with ib.for_range(0, 3, name="i"):
        held = ib.allocate("float32", (1,), name="held")
    held[0] = 1.0


def test_a_range_of_data_beyond_int32_makes_every_iteration():
    def write(ib, ins, outs):
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(ib.load(ins[0], 0), ib.load(ins[0], 1), name="i") as i:
            held = ib.allocate("int64", (1,), name="held")
            held[0] = ib.load(ins[1], 0) * 2
            out[0] = out[0] + held[0]
            with ib.if_scope(i > 2):
                out[1] = out[1] + 1

    inputs = (Spec((2,), "int64"), Spec((1,), "int64"))
    kernel = kernel_of(write, (2,), "int64", inputs)
    for begin, wanted in (0, [60, 3]), (2**40, [60, 6]):
        bounds = np.int64([begin, begin + 6])
        assert interpret(kernel, [bounds, np.int64([5])])[0].tolist() == wanted


def test_a_range_of_constants_beyond_int32_makes_every_iteration():
    def write(ib, ins, outs):
        with ib.for_range(2**40, 2**40 + 3):
            ib.store(outs[0], 0, ib.load(outs[0], 0) + 1.0)

    kernel = kernel_of(write, (1,), "float32", ())
    assert interpret(kernel, [])[0].tolist() == [3.0]


@pytest.mark.parametrize(
    ("write", "kind", "message"),
    [
        (_unknown_for_type, ValueError, "unknown for_type: expected one of serial, parallel"),
        (_else_alone, RuntimeError, "else_scope can only follow an if_scope"),
        (_else_late, RuntimeError, "else_scope can only follow an if_scope"),
        (_else_twice, RuntimeError, "else_scope can only follow an if_scope"),
        (_open_scope, RuntimeError, "1 scopes are still open"),
        (_float_into_int, ValueError, "content type: float32 vs int32"),
        (_int_into_float, ValueError, "content type: int32 vs float32"),
        (_narrow_into_wide, ValueError, "content type: float16 vs float32"),
        (_loop_variable_outside, ValueError, "'i' has no value here"),
        (_local_outside, ValueError, "'held' has no value here"),
        (lambda ib, i, o: ib.load(i[0], [0, 0, 0]), ValueError, "expected 2 indices, or one"),
        (lambda ib, i, o: ib.load(i[0], 0.5), ValueError, "expected an integer"),
        (lambda ib, i, o: ib.load(3, 0), TypeError, "expected a buffer; got int"),
        (lambda ib, i, o: ib.pointer("float32", "p"), BackendError, "pointer 'p' has no memory"),
        (lambda ib, i, o: ib.extern_call(1, op_name="f"), BackendError, "external function 'f'"),
        (lambda ib, i, o: ib.emit(3), ArgumentTypeError, "expected a statement; got int"),
        (lambda ib, i, o: ib.if_scope(1.5).__enter__(), ArgumentValueError, "dtype float32"),
        (
            lambda ib, i, o: ib.for_range(0, 3, dtype="float32").__enter__(),
            ArgumentValueError,
            "integer dtype of the loop variable",
        ),
    ],
)
def test_what_cannot_be_built_is_refused(write, kind, message):
    error = refused(write)
    assert isinstance(error, kind)
    assert str(error).startswith("Custom 'op': ")
    assert re.search(message, str(error))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"dtype": None, "inputs": [MATRIX, Spec((2,), "int32")]}, ValueError, "cannot infer"),
        ({"dtype": None, "inputs": []}, ValueError, "the inputs have none"),
        ({"shape": [(3,), (3,)], "dtype": ["float32"]}, ValueError, "expected 2 dtypes"),
        ({"shape": [(3,), 2.5]}, TypeError, "expected a shape of ints"),
    ],
)
def test_an_extern_needs_shapes_and_dtypes(options, kind, message):
    error = refused(lambda ib, ins, outs: None, **options)
    assert isinstance(error, kind)
    assert message in str(error)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"in_buffers": []}, RuntimeError, "number of inputs and of their buffers differ: 1 vs 0"),
        ({"out_buffers": [tvm.decl_buffer((2,))]}, ValueError, "does not describe its output"),
        ({"inputs": [3]}, TypeError, "expected a tensor or several; got int"),
        ({"fcompute": lambda ins, outs: None}, TypeError, "got NoneType"),
    ],
)
def test_an_extern_checks_what_it_is_given(options, kind, message):
    def func(inputs, attrs):
        given = {"inputs": inputs, "fcompute": lambda i, o: tvm.ir_builder.create().get()}
        return tvm.extern((3, 4), **(given | options))

    with pytest.raises(MsopsError, match=message) as caught:
        specialise(func, [MATRIX], {}, "Custom 'op'")
    assert isinstance(caught.value, kind)


def test_statements_know_their_place_in_the_source():
    def write(ib, ins, outs):
        with ib.for_range(0, 3, name="i") as i:
            with ib.if_scope(i > 0):
                ib.store(outs[0], [i, 0], 1.0)

    texts = [stmt.location.text.strip() for stmt in statements(kernel_of(write).body)]
    assert texts == [
        'with ib.for_range(0, 3, name="i") as i:',
        "with ib.if_scope(i > 0):",
        "ib.store(outs[0], [i, 0], 1.0)",
    ]


@pytest.mark.parametrize(
    ("dtype", "begin", "end", "count"),
    [("uint32", 2**31 - 3, 2**31 + 2, 5), ("int64", 0, -(2**32) + 2, 0), ("int64", 1, 3, 2)],
)
def test_wide_bounds_are_taken_as_they_are(dtype, begin, end, count):
    def write(ib, ins, outs):
        with ib.for_range(ib.load(ins[0], [0]), ib.load(ins[0], [1])):
            ib.store(outs[0], [0], ib.load(outs[0], [0]) + 1)

    kernel = kernel_of(write, (1,), "int32", (Spec((2,), dtype),))
    (output,) = interpret(kernel, [np.array([begin, end], dtype)])
    assert output.tolist() == [count]


def test_an_op_called_with_one_list_passes_that_list():
    def weighted(inputs, attrs):
        x, y = inputs

        def body(ins, outs):
            ib = tvm.ir_builder.create()
            a, b, c = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, x.shape[0], name="i") as i:
                c[i] = a[i] + 2.0 * b[i]
            return ib.get()

        return tvm.extern(x.shape, [x, y], body, name="c", dtype=x.dtype)

    op = Custom(weighted, func_type="akg")
    x, y = np.float32([1, 2]), np.float32([3, 4])
    np.testing.assert_array_equal(op([x, y]), x + 2 * y)
    np.testing.assert_array_equal(op(x, y), x + 2 * y)
