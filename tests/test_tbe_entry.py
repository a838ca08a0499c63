"""The protocol of TBE entry functions: what they get, what they must leave, what they import."""

from __future__ import annotations

import subprocess
import sys
import threading
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tbe_ops import kernel_of, op_info, run

import msops
from msops import Custom
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BackendError,
    BuildError,
    InferenceValueError,
    OpInfoTypeError,
    OpInfoValueError,
)
from msops.ops import CustomRegOp, DataType, TBERegOp, custom_info_register, op_info_register

X = jnp.arange(12.0).reshape(3, 4)
first = lambda x, *_: x  # noqa: E731


def tbe_op(kernel: Any, info: Any, out_shape: Any = first, out_dtype: Any = first) -> Custom:
    return Custom(kernel, out_shape, out_dtype, func_type="tbe", reg_info=info)


def built(kernel_name: str, inputs: list[Any], results: list[Any]) -> None:
    """Ends a kernel, in the newer names."""
    import tbe.dsl
    from tbe import tvm

    with tvm.target.cce():
        schedule = tbe.dsl.auto_schedule(results)
    tbe.dsl.build(schedule, {"name": kernel_name, "tensor_list": inputs + results})


# ---- what an entry function gets


def test_inputs_outputs_attributes_and_the_name_in_this_order():
    seen: dict[str, Any] = {}

    def scale(x, bias, y, z, factor, axes, tag, kernel_name="scale"):
        from te import tvm
        from te.lang import cce

        seen.update(x=x, bias=bias, y=y, z=z, factor=factor, axes=axes, tag=tag, name=kernel_name)
        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        shift = tvm.placeholder(bias["shape"], name="bias", dtype=bias["dtype"])
        result = cce.vmuls(data, factor)
        shifted = cce.vadd(result, cce.broadcast(shift, x["shape"]))
        schedule = cce.auto_schedule([result, shifted])
        # A result may be what another is made of.
        cce.cce_build_code(schedule, {"tensor_list": (data, shift, result, shifted)})

    info = op_info(
        2,
        2,
        attributes=[
            ("factor", "required", "float"),
            ("axes", "required", "listInt"),
            ("tag", "optional", "str"),
        ],
    )
    op = tbe_op(scale, info, lambda x, b, *_: (x, x), lambda x, b, *_: (x, x))
    bias = jnp.array([[1.0]])
    y, z = op(X, bias, 2.0, [0, -1], "t")
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_array_equal(z, 2 * X + 1)
    expected = {
        "shape": [3, 4],
        "ori_shape": [3, 4],
        "dtype": "float32",
        "format": "NCHW",
        "ori_format": "NCHW",
        "range": [[3, 3], [4, 4]],
        "name": "x0",
        "param_type": "required",
    }
    assert type(seen["x"]) is dict
    assert expected.items() <= seen["x"].items()
    assert seen["bias"]["shape"] == [1, 1]
    assert seen["z"]["shape"] == [3, 4]
    assert seen["z"]["name"] == "y1"
    assert (seen["factor"], seen["axes"], seen["tag"]) == (2.0, [0, -1], "t")
    assert seen["name"] == "scale"


def test_an_attribute_without_value_is_the_kernels_own_default():
    def shifted(x, y, by=3.0, twice=False, kernel_name="shifted"):
        from te import tvm
        from te.lang import cce

        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        result = cce.vadds(data, by * (2 if twice else 1))
        built(kernel_name, [data], [result])

    info = op_info(1, attributes=[("by", "optional", "float"), ("twice", "optional", "bool")])
    op = tbe_op(shifted, info)
    np.testing.assert_array_equal(op(X), X + 3)
    np.testing.assert_array_equal(op(X, 1.0), X + 1)
    np.testing.assert_array_equal(op(X, None, True), X + 6)


def test_a_dynamic_input_is_a_list_and_an_absent_optional_one_none():
    seen = []

    def add_all(xs, bias, y, kernel_name="add_all"):
        from te import tvm
        from te.lang import cce

        seen.append((type(xs), [x["name"] for x in xs], bias))
        data = [tvm.placeholder(x["shape"], name=x["name"], dtype=x["dtype"]) for x in xs]
        total = data[0]
        for one in data[1:]:
            total = cce.vadd(total, one)
        if bias is not None:
            data.append(tvm.placeholder(bias["shape"], name="bias", dtype=bias["dtype"]))
            total = cce.vadd(total, data[-1])
        built(kernel_name, data, [total])

    op = tbe_op(
        add_all, op_info(["dynamic", "optional"]), lambda xs, *_: xs[0], lambda xs, *_: xs[0]
    )
    np.testing.assert_array_equal(op([X, X, X]), 3 * X)
    np.testing.assert_array_equal(op([X, X], X), 3 * X)
    assert seen[0] == (list, ["x0_0", "x0_1", "x0_2"], None)
    gradients = jax.grad(lambda xs: (op(xs) * X).sum())([X, X])
    np.testing.assert_array_equal(gradients[1], X)


@pytest.mark.parametrize(
    "shape",
    [lambda s: [12], lambda s: [1, *s, 1], lambda s: [3, 2, 2]],
    ids=["flattened", "padded with ones", "split"],
)
def test_placeholders_of_another_shape_hold_the_same_elements(shape):
    def doubled(x, y, kernel_name):
        from te import tvm
        from te.lang import cce

        data = tvm.placeholder(shape(x["shape"]), name="x", dtype=x["dtype"])
        built(kernel_name, [data], [cce.vadds(cce.vmuls(data, 2.0), 1.0)])

    np.testing.assert_array_equal(tbe_op(doubled, op_info(1))(X), 2 * X + 1)


def test_a_scalar_has_one_element():
    def half(x, y, kernel_name):
        from te import tvm
        from te.lang import cce

        assert x["shape"] == [1]
        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        built(kernel_name, [data], [cce.vmuls(data, 0.5)])

    got = tbe_op(half, op_info(1))(jnp.float32(3))
    assert got.shape == ()
    assert got == 1.5


def test_kernels_for_dynamic_shapes_run_for_the_shapes_of_the_call():
    def add(x, y, z, kernel_name="add"):
        from impl.util.platform_adapter import OpPatternMode, classify, tbe, tvm
        from tbe.common.utils import shape_util

        schedules, tensors = [], []
        for one, other in classify([x, y], OpPatternMode.ELEWISE_WITH_BROADCAST):
            with tbe.compute():
                shapes = shape_util.variable_shape([one, other])
                a = tvm.placeholder(shapes[0], name="a", dtype=x["dtype"])
                b = tvm.placeholder(shapes[1], name="b", dtype=y["dtype"])
                _, _, shape = shape_util.broadcast_shapes(a.shape, b.shape)
                result = tbe.vadd(tbe.broadcast(a, shape), tbe.broadcast(b, shape))
                tensors.append([a, b, result])
            with tvm.target.cce():
                schedules.append(tbe.auto_schedule(result))
        tbe.build(schedules, {"name": kernel_name, "tensor_list": tensors})

    row = jnp.arange(4.0)
    np.testing.assert_array_equal(tbe_op(add, op_info(2))(X, row), X + row)


def test_a_kernel_runs_once_per_shapes_dtypes_and_attributes():
    runs = []

    def counted(x, y, by, kernel_name):
        from te import tvm
        from te.lang import cce

        runs.append(by)
        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        built(kernel_name, [data], [cce.vadds(data, by)])

    op = tbe_op(counted, op_info(1, attributes=[("by", "required", "float")]))
    for _ in range(2):
        op(X, 1.0)
        jax.jit(lambda x: op(x, 1.0))(X)
        jax.grad(lambda x: op(x, 1.0).sum())(X)
    op(X, 2.0)
    op(X, -0.0)
    op(X, 0.0)
    assert runs == [1.0, 2.0, -0.0, 0.0]


def test_symbolic_shapes_are_refused():
    op = tbe_op(kernel_of(lambda te, x: te.vabs(x), 1), op_info(1))
    (n,) = jax.export.symbolic_shape("n")
    with pytest.raises(InferenceValueError, match=r"numbers for the shape of 'x0'; got \(n, 3\)"):
        jax.export.export(jax.jit(op))(jax.ShapeDtypeStruct((n, 3), jnp.float32))


def test_arrays_without_elements():
    assert run(lambda te, x: te.vabs(x), np.zeros((0, 3), "f4")).shape == (0, 3)


# ---- what it must leave


def two_of(results: Any) -> Any:
    """Returns a kernel of one input whose tensor list is what a function makes of it."""

    def entry(x, y, kernel_name):
        from te import tvm
        from te.lang import cce

        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        tensors = results(cce, tvm, data)
        cce.cce_build_code(cce.auto_schedule(tensors[-1]), {"tensor_list": tensors})

    return entry


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (
            lambda te, tvm, x: [x],
            "expected a tensor_list of 1 input(s) and 1 result(s); its kernel gave 1 tensors",
        ),
        (
            lambda te, tvm, x: [x, te.sum(x, 1)],
            "expected for 'y0' a tensor of 12 elements, [3, 4]; its kernel has [3]",
        ),
        (
            lambda te, tvm, x: [tvm.placeholder((13,), name="w"), te.vabs(x)],
            "expected for 'x0' a tensor of 12 elements, [3, 4]; its kernel has [13]",
        ),
        (
            lambda te, tvm, x: [tvm.placeholder((12,), "float16", "w"), te.vabs(x)],
            "expected for 'x0' a placeholder of float32; its kernel has float16",
        ),
        (
            lambda te, tvm, x: [te.vabs(x), x],
            "expected for 'x0' a placeholder for it in tensor_list; its kernel has vabs(...)",
        ),
        (
            lambda te, tvm, x: [tvm.placeholder((3, 4), name="w"), te.vabs(x)],
            "tvm.placeholder 'x': a result is made from it, and it is not in the tensor_list",
        ),
        (
            lambda te, tvm, x: [x, te.vcmp(x, 0.0)],
            "expected for 'y0' a result of float32; its kernel has bool",
        ),
    ],
)
def test_a_tensor_list_that_is_not_the_ops_is_refused(tensors, message):
    with pytest.raises(BuildError) as caught:
        tbe_op(two_of(tensors), op_info(1))(X)
    assert message in str(caught.value)


def test_floats_are_no_integer_result():
    with pytest.raises(BuildError, match="a result of int32; its kernel has float32"):
        run(lambda te, x: te.vexp(x), X, like=np.zeros((3, 4), "i4"))


@pytest.mark.parametrize("times", [0, 2])
def test_build_is_called_once(times):
    def entry(x, y, kernel_name):
        from te import tvm

        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        for _ in range(times):
            built(kernel_name, [data], [data])

    with pytest.raises(BuildError, match=f"to call build once; it did so {times} times"):
        tbe_op(entry, op_info(1))(X)


def test_parameters_that_do_not_fit_the_op_info_are_named():
    def entry(x, y, kernel_name="entry"):
        pass

    message = r"its kernel entry\(x, y, kernel_name='entry'\) cannot take what the op info lists"
    with pytest.raises(BuildError, match=message):
        tbe_op(entry, op_info(2))(X, X)


def test_a_config_without_tensors_is_refused():
    def entry(x, y, kernel_name):
        from te import tvm
        from te.lang import cce

        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        cce.cce_build_code(cce.auto_schedule(data), {"name": kernel_name})

    with pytest.raises(
        BuildError, match="expected a config with 'name' and 'tensor_list'; got keys"
    ):
        tbe_op(entry, op_info(1))(X)


# ---- op info


def add(te: Any, x: Any, y: Any) -> Any:
    return te.vadd(x, y)


def test_op_info_is_required():
    with pytest.raises(OpInfoValueError) as caught:
        Custom(kernel_of(add, 2), first, first, func_type="tbe")
    assert str(caught.value) == (
        "Custom 'entry': func_type 'tbe' requires op info for target 'Ascend'; got none.\n"
        "Pass reg_info=CustomRegOp()...target('Ascend').get_op_info(), or decorate the function "
        "with custom_info_register."
    )
    with pytest.raises(OpInfoValueError, match="for target 'Ascend'; got 'CPU'"):
        tbe_op(kernel_of(add, 2), op_info(2) | {"target": "CPU"})


def test_the_ascend_rows_guard_on_every_device():
    rows = [[DataType.F32_Default] * 3, [DataType.F16_Default] * 3]
    op = tbe_op(kernel_of(add, 2), op_info(2, rows=rows))
    np.testing.assert_array_equal(op(X, X), 2 * X)
    with pytest.raises(
        OpInfoTypeError, match=r"on Ascend: input dtypes .int32, int32. match no row"
    ):
        op(X.astype(int), X.astype(int))


def test_out_shape_is_required():
    op = tbe_op(kernel_of(add, 2), op_info(2), None, None)
    with pytest.raises(ArgumentValueError, match="out_shape is required for func_type 'tbe'"):
        op(X, X)


@pytest.mark.parametrize("option", ["host", "stateful", "writable", "dynamic_outputs"])
def test_options_of_other_kinds_are_refused(option):
    with pytest.raises(ArgumentValueError, match=f"option {option} is for .*; this op is 'tbe'"):
        Custom(
            kernel_of(add, 2), first, first, func_type="tbe", reg_info=op_info(2), **{option: True}
        )


def test_what_is_no_function_is_refused():
    with pytest.raises(ArgumentTypeError, match="expected a function for func_type 'tbe'; got int"):
        tbe_op(3, op_info(2))


# ---- gradients


def test_a_bprop_wins():
    plain = tbe_op(kernel_of(lambda te, x: te.vmul(x, x), 1), op_info(1))
    np.testing.assert_array_equal(jax.grad(lambda x: plain(x).sum())(X), 2 * X)
    np.testing.assert_array_equal(jax.jvp(plain, (X,), (X,))[1], 2 * X * X)
    np.testing.assert_array_equal(jax.hessian(lambda x: plain(x).sum())(X[0]), 2 * np.eye(4))
    own = Custom(
        kernel_of(lambda te, x: te.vmul(x, x), 1),
        first,
        first,
        func_type="tbe",
        reg_info=op_info(1),
        bprop=lambda x, out, dout: (out + dout,),
    )
    np.testing.assert_array_equal(jax.grad(lambda x: own(x).sum())(X), X * X + 1)


def test_tensors_keep_their_face():
    op = tbe_op(kernel_of(add, 2), op_info(2))
    got = op(msops.Tensor(np.float32([1, 2])), msops.Tensor(np.float32([3, 4])))
    assert isinstance(got, msops.Tensor)
    np.testing.assert_array_equal(got.asnumpy(), [4, 6])


# ---- imports


def test_the_modules_kernels_import_are_there_and_nowhere_else():
    statements = """
import te
import te.lang.cce
import te.platform.cce_params as cce
import tbe
import tbe.dsl as dsl
from te import tvm, tik
from te.lang.cce import vadd
from te.platform import CUBE_MKN
from te.platform.cce_build import build_config
from te.platform.cce_conf import te_set_version, api_check_support
from te.platform.fusion_manager import fusion_manager
from te.utils import para_check, shape_util
from te.utils.op_utils import check_op_params, REQUIRED_INPUT
from tbe import tvm as tvm2
from tbe.common.buildcfg import build_config as configuration
from tbe.common.platform import get_soc_spec
from tbe.common.register import register_op_compute
from tbe.common.utils import para_check as checks, shape_util as shapes, broadcast_shapes
from tbe.tvm.topi import generic
from tbe.tvm.topi.cce import util
from topi import generic as scheduling
from topi.cce import util as util2
from impl.util.platform_adapter import tbe_register
from impl.util.util_select_op_base import gen_param, get_dynamic_param_in_json
""".strip().splitlines()

    lines = "\n".join(f"    {line}" for line in statements)
    namespace: dict[str, Any] = {}
    exec(f"def imports():\n{lines}\n    return cce.BLOCK_IN, CUBE_MKN", namespace)
    imports = namespace["imports"]

    def importing(x, y, kernel_name):
        from te import tvm

        assert imports()[0] == 16
        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        built(kernel_name, [data], [data])

    np.testing.assert_array_equal(tbe_op(importing, op_info(1))(X), X)
    assert not {"te", "tbe", "topi", "impl"} & {name.partition(".")[0] for name in sys.modules}
    for statement in statements:
        with pytest.raises(ModuleNotFoundError):
            exec(statement, {})


def test_a_real_package_of_the_name_is_not_disturbed(monkeypatch):
    real = types.ModuleType("te")
    real.answer = 42
    monkeypatch.setitem(sys.modules, "te", real)
    inside, outside = threading.Event(), threading.Event()
    seen = []

    def look():
        inside.wait(30)
        import te

        seen.append(te.answer)
        outside.set()

    thread = threading.Thread(target=look)
    thread.start()

    def entry(x, y, kernel_name):
        import te.lang.cce

        inside.set()
        outside.wait(30)
        from te import tvm

        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        built(kernel_name, [data], [te.lang.cce.vabs(data)])

    np.testing.assert_array_equal(tbe_op(entry, op_info(1))(-X), X)
    thread.join()
    assert seen == [42]
    assert sys.modules["te"] is real


def test_what_a_module_does_not_have_is_told_with_what_it_has():
    def entry(x, y, kernel_name):
        from te.platform.fusion_manager import nothing  # noqa: F401

    message = "cannot import name 'nothing' from 'te.platform.fusion_manager', which has fusion_man"
    with pytest.raises(BuildError, match=message):
        tbe_op(entry, op_info(1))(X)

    def attribute(x, y, kernel_name):
        import te.lang.cce

        te.lang.nothing()

    with pytest.raises(BackendError, match=r"te\.lang\.nothing: there is no such name"):
        tbe_op(attribute, op_info(1))(X)


def test_what_is_registered_is_called_as_it_is():
    def entry(x, y, kernel_name):
        from impl.util.platform_adapter import operation, register_operator, tbe_register
        from te import tvm
        from te.lang import cce

        @register_operator("Add3")
        def entered(text):
            return text + "1"

        @tbe_register.register_op("Add3", "static")
        def by_op(text):
            return entered(text) + "2"

        @operation.register_operator("Add3", pattern="elewise")
        def by_operation(text):
            return by_op(text) + "3"

        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        built(kernel_name, [data], [cce.vadds(data, float(by_operation("")))])

    np.testing.assert_array_equal(tbe_op(entry, op_info(1))(X), X + 123)


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        ((2, 3, 4), (2, 3, 4), 1),
        ((2, 3, 4), (2, 3, 1), 2),
        ((4, 5, 2, 3), (1, 1, 2, 3), 3),
        ((3, 2, 2), (2,), 3),
        ((2, 1, 2), (2, 3, 2), 3),
    ],
)
def test_refined_shapes_broadcast_to_the_same_elements(one, other, joined):
    def entry(x, y, z, kernel_name):
        from te import tvm
        from te.utils import shape_util
        from topi.cce import util

        seen.append(shape_util.refine_shapes_for_broadcast(x["shape"], y["shape"]))
        seen.append(util.shape_simplify_with_broadcast(x["shape"], y["shape"]))
        data = [tvm.placeholder(arg["shape"], name="x", dtype=arg["dtype"]) for arg in (x, y)]
        built(kernel_name, data, data[:1])

    seen: list[Any] = []
    a = np.arange(np.prod(one), dtype=np.float32).reshape(one)
    b = 100 * np.arange(np.prod(other), dtype=np.float32).reshape(other)
    np.testing.assert_array_equal(tbe_op(entry, op_info(2))(a, b), a)
    assert len(seen) == 2
    for first, second in seen:
        assert len(first) == len(second) == joined
        refined = a.reshape(first) + b.reshape(second)
        np.testing.assert_array_equal(refined.ravel(), (a + b).ravel())


@pytest.mark.parametrize(
    ("shape", "axes", "refined", "reduced"),
    [
        ((2, 3, 4, 5, 6), (1, -3), [2, 12, 30], [1]),
        ((2, 3, 4), (), [24], []),
        ((2, 1, 3), [0, 1, 2], [6], [0]),
        ((5,), [0], [5], [0]),
        ((4, 1, 3, 2), (-1,), [12, 2], [1]),
    ],
)
def test_refined_shapes_are_reduced_to_the_same_elements(shape, axes, refined, reduced):
    def entry(x, y, kernel_name):
        from tbe.common.utils import refine_shape_axes
        from te import tvm
        from te.utils import shape_util

        seen.append(refine_shape_axes(shape, axes))
        seen.append(shape_util.refine_shape_axes(shape, axes))
        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        built(kernel_name, [data], [data])

    seen: list[Any] = []
    tbe_op(entry, op_info(1))(X)
    assert seen == [(refined, reduced)] * 2
    values = np.arange(np.prod(shape)).reshape(shape)
    expected = values.sum(tuple(axes), keepdims=False).ravel()
    np.testing.assert_array_equal(values.reshape(refined).sum(tuple(reduced)).ravel(), expected)


def test_a_flag_for_speed_or_precision_is_taken():
    def entry(x, y, kernel_name):
        from te import tvm
        from te.lang import cce

        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        result = cce.vrec(cce.vsqrt(cce.vexp(cce.vlog(data, 1)), 1), priority_flag=0)
        built(kernel_name, [data], [result])

    positive = np.abs(X) + 1
    result = tbe_op(entry, op_info(1))(positive)
    np.testing.assert_allclose(result, positive**-0.5, rtol=1e-6)


def test_a_mode_for_speed_or_precision_is_taken():
    def entry(x, y, kernel_name):
        import tbe.dsl as dsl
        from te import tvm

        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        result = dsl.vexp(dsl.vlog(data, impl_mode="high_precision"), "high_performance")
        result = dsl.vrec(dsl.vsqrt(result, impl_mode="high_precision"), impl_mode="high_precision")
        result = dsl.vmul(result, dsl.vrsqrt(data, impl_mode="high_precision"))
        built(kernel_name, [data], [result])

    positive = np.abs(X) + 1
    result = tbe_op(entry, op_info(1))(positive)
    np.testing.assert_allclose(result, 1 / positive, rtol=1e-6)


def test_a_file_may_make_an_op_of_another_file_while_it_is_imported(tmp_path):
    kernel = (
        "from te import tvm\nfrom te.lang import cce\n"
        "def double(x, y, kernel_name):\n"
        "    data = tvm.placeholder(x['shape'], name='x', dtype=x['dtype'])\n"
        "    result = cce.vmuls(data, 2.0)\n"
        "    config = {'name': kernel_name, 'tensor_list': [data, result]}\n"
        "    cce.cce_build_code(cce.auto_schedule(result), config)\n"
    )
    (tmp_path / "other.py").write_text(kernel)
    make = "ops.Custom({path!r}, lambda x: x, lambda x: x, 'tbe', reg_info={info!r})\n"
    info = op_info(1)
    for name in ("other", "main"):
        path = f"{tmp_path}/{name}.py:double"
        text = kernel + "from mindspore import ops\nop = " + make.format(path=path, info=info)
        (tmp_path / "main.py").write_text(text)
        func = f"{tmp_path}/main.py:double"
        if name == "other":
            np.testing.assert_array_equal(tbe_op(func, info)(X), 2 * X)
        else:
            with pytest.raises(BuildError, match="makes an op of itself while it is imported"):
                tbe_op(func, info)(X)


def test_the_chip_is_that_of_a_cloud():
    def entry(x, y, kernel_name):
        from te import tvm
        from te.lang import cce
        from topi.cce import util

        versions = {util.VERSION_CLOUD: 1.0, util.VERSION_MINI: 2.0}
        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        built(kernel_name, [data], [cce.vadds(data, versions[util.get_product_version()])])

    np.testing.assert_array_equal(tbe_op(entry, op_info(1))(X), X + 1)


def test_tik_can_be_imported_and_is_refused_by_name():
    def gather_tik(x, y, kernel_name):
        from te import tik

        tik.Tik(tik.Dprofile("v100", "mini"))

    with pytest.raises(BackendError) as caught:
        tbe_op(gather_tik, op_info(1))(X)
    text = str(caught.value)
    assert "TIK is not supported: the kernel 'gather_tik' is written in TIK" in text
    assert "func_type 'akg' or 'hybrid'" in text


# ---- kernel files

SCALED = '''
from functools import reduce

import te.lang.cce
from te import tvm
from te.platform.fusion_manager import fusion_manager
from tbe.tvm.topi import generic
from tbe.tvm.topi.cce import util
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from impl.helper import twice

scaled_op_info = TBERegOp("Scaled") \\
    .kernel_name("scaled") \\
    .attr("by", "optional", "float", "all") \\
    .input(0, "x", None, "required", None) \\
    .output(0, "y", True, "required", "all") \\
    .dtype_format(DataType.F32_Default, DataType.F32_Default) \\
    .get_op_info()


@op_info_register(scaled_op_info)
def _scaled_tbe():
    """Registers Scaled."""
    return


@fusion_manager.register("scaled")
def scaled_compute(x, y, by, kernel_name="scaled"):
    return twice(te.lang.cce.vmuls(x, by))


@util.check_input_type(dict, dict, float, str)
def scaled(x, y, by=3.0, kernel_name="scaled"):
    util.check_kernel_name(kernel_name)
    shape = (reduce(lambda a, b: a * b, x.get("shape")),)
    data = tvm.placeholder(shape, name="data", dtype=x.get("dtype").lower())
    res = scaled_compute(data, y, by, kernel_name)
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, res]})
'''
HELPER = """
import te.lang.cce

def twice(x):
    return te.lang.cce.vmuls(x, 2.0)
"""


@pytest.fixture
def kernel_file(tmp_path):
    (tmp_path / "scaled.py").write_text(SCALED)
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path / "scaled.py"


def from_file(path: Any, name: str = "scaled") -> Custom:
    return Custom(f"{path}:{name}", first, first, func_type="tbe")


def test_a_kernel_file_runs_by_its_path(kernel_file):
    op = from_file(kernel_file)
    assert op.__name__ == "scaled"
    np.testing.assert_array_equal(op(X), 6 * X)
    np.testing.assert_array_equal(op(X, 0.5), X)
    with pytest.raises(OpInfoTypeError, match="match no row"):
        op(X.astype(jnp.float16))


def test_ops_of_one_file_are_shared_and_an_edited_file_is_read_again(kernel_file):
    one, other = from_file(kernel_file), from_file(kernel_file)
    assert one(X) is not None
    assert other(X) is not None
    assert one._resolve() is other._resolve()
    (kernel_file.parent / "helper.py").write_text(HELPER.replace("2.0", "5.0"))
    np.testing.assert_array_equal(from_file(kernel_file)(X), 15 * X)


def test_an_entry_that_carries_its_op_info_runs_as_well(tmp_path):
    text = SCALED.replace("@op_info_register(scaled_op_info)\n", "", 1).replace(
        "@util.check", "@op_info_register(scaled_op_info)\n@util.check"
    )
    (tmp_path / "scaled.py").write_text(text)
    (tmp_path / "helper.py").write_text(HELPER)
    np.testing.assert_array_equal(from_file(tmp_path / "scaled.py")(X), 6 * X)


def test_the_checks_of_an_entry_run(kernel_file):
    text = kernel_file.read_text().replace("(dict, dict, float, str)", "(dict, dict, int, str)")
    kernel_file.write_text(text)
    with pytest.raises(TypeError, match=r"expected int for 'by'; got 2.5"):
        from_file(kernel_file)(X, 2.5)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.py:scaled", "and there is no such file"),
        ("scaled", "and it names no file"),
        ("{file}:nothing", "scaled.py has no function 'nothing'.\nIt has "),
    ],
)
def test_a_file_or_function_that_is_not_there(kernel_file, source, message):
    with pytest.raises(ArgumentValueError) as caught:
        Custom(source.format(file=kernel_file), first, first, func_type="tbe")
    assert message in str(caught.value)


def test_a_file_that_cannot_be_imported(tmp_path):
    (tmp_path / "broken.py").write_text("import te\nimport nothing_of_this_name\n")
    with pytest.raises(BuildError, match=r"broken.py could not be imported: ModuleNotFoundError"):
        from_file(tmp_path / "broken.py")


def test_scripts_import_at_the_top_under_msops_run(kernel_file):
    script = kernel_file.parent / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from mindspore import Tensor, ops\n"
        "import te.lang.cce\n"
        "from scaled import scaled, scaled_op_info\n"
        "op = ops.Custom(scaled, lambda x: x, lambda x: x, 'tbe', reg_info=scaled_op_info)\n"
        "print(op(Tensor(np.float32([1.0, 2.0]))))\n"
    )
    text = SCALED.replace("from impl.helper", "from helper")
    kernel_file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "msops", "run", "--device", "CPU", str(script)],
        cwd=kernel_file.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout == "[ 6. 12.]\n", done.stderr


def test_a_kernel_imports_a_module_of_the_authors_that_imports_te(tmp_path, monkeypatch):
    (tmp_path / "authors_helper.py").write_text(HELPER)
    monkeypatch.syspath_prepend(tmp_path)

    def entry(x, y, kernel_name):
        from authors_helper import twice
        from te import tvm

        data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
        built(kernel_name, [data], [twice(data)])

    np.testing.assert_array_equal(tbe_op(entry, op_info(1))(X), 2 * X)
    assert "authors_helper" not in sys.modules


def test_the_decorators_of_op_info_do_not_hide_the_kernel():
    info = (
        TBERegOp("Abs")
        .input(0, "x", None, "required", None)
        .output(0, "y", True, "required", "all")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .get_op_info()
    )
    for register in (op_info_register, custom_info_register):

        @register(info)
        def absolute(x, y, kernel_name="absolute"):
            import te.lang.cce
            from te import tvm

            data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
            result = te.lang.cce.vabs(data)
            schedule = te.lang.cce.auto_schedule(result)
            te.lang.cce.cce_build_code(schedule, {"tensor_list": [data, result]})

        op = Custom(absolute, first, first, func_type="tbe")
        np.testing.assert_array_equal(op(-X), X)


def test_explain_and_the_stage_show_what_the_kernel_described():
    op = tbe_op(kernel_of(lambda te, x: te.vmuls(te.vexp(x), 2.0), 1), op_info(1))
    assert op.lower_text(X, stage="dsl") == (
        "tbe kernel entry\n"
        "%0 = input x0: float32[3, 4]\n"
        "%1: float32[3, 4] = vexp(%0)\n"
        "%2: float32[3, 4] = vmuls(%1, 2.0)\n"
        "return %2"
    )
    assert op.explain(X).startswith(
        "Custom 'entry' on CPU: the kernel's description runs as operations of XLA.\n"
        "Formats of the row that matched: x0 any, y0 any.\n"
    )
    assert "custom_call" not in op.lower_text(X)


def test_op_info_by_the_builder_for_custom_ops():
    info = CustomRegOp().input(0, "x").output(0, "y").target("Ascend").get_op_info()
    op = tbe_op(kernel_of(lambda te, x: te.vabs(x), 1), info)
    np.testing.assert_array_equal(op(-X), X)
