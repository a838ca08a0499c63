"""Operators of Ascend named in an aot Custom, in the forms that MindSpore's scripts have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops
from msops import Custom, Tensor, context, errors, nn, ops
from msops.ops import CustomRegOp, DataType

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7 - 1
Y = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)

INFER = """
#include <cstdint>
#include <vector>
#include "custom_aot_extra.h"

enum TypeId : int {};

extern "C" std::vector<int64_t> CatInferShape(int *ndims, int64_t **shapes, AotExtra *extra) {
  std::vector<int64_t> shape(shapes[0], shapes[0] + ndims[0]);
  const int64_t axis = extra->Attr<int64_t>("axis");
  shape[axis] = shapes[0][axis] + shapes[1][axis];
  return shape;
}

extern "C" TypeId CatInferType(std::vector<TypeId> types, AotExtra *extra) { return types[0]; }

extern "C" std::vector<int64_t> CastInferShape(int *ndims, int64_t **shapes, AotExtra *extra) {
  return std::vector<int64_t>(shapes[0], shapes[0] + ndims[0]);
}

extern "C" TypeId CastInferType(std::vector<TypeId> types, AotExtra *extra) {
  return static_cast<TypeId>(extra->Attr<int64_t>("dst_type"));
}

extern "C" std::vector<std::vector<int64_t>> BatchNormInferShape(int *ndims, int64_t **shapes,
                                                                 AotExtra *extra) {
  std::vector<int64_t> channels(shapes[1], shapes[1] + ndims[1]);
  return {{shapes[0], shapes[0] + ndims[0]}, channels, channels};
}

extern "C" std::vector<TypeId> BatchNormInferType(std::vector<TypeId> types, AotExtra *extra) {
  return {types[0], types[1], types[1]};
}

extern "C" std::vector<int64_t> AddCustomInferShape(int *ndims, int64_t **shapes,
                                                    AotExtra *extra) {
  return std::vector<int64_t>(shapes[0], shapes[0] + ndims[0]);
}

extern "C" TypeId AddCustomInferType(std::vector<TypeId> types, AotExtra *extra) {
  return types[0];
}
"""


def cat_info() -> dict[str, Any]:
    return (
        CustomRegOp("aclnnCat")
        .input(0, "x", "dynamic")
        .output(0, "z", "required")
        .attr("axis", "required", "int")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .target("Ascend")
        .get_op_info()
    )


def batch_norm_info() -> dict[str, Any]:
    info = CustomRegOp("aclnnBatchNorm")
    for position, name in enumerate(("input", "weight", "bias", "running_mean", "running_var")):
        info.input(position, name, "required")
    for name, kind in (("training", "bool"), ("momentum", "float"), ("eps", "float")):
        info.attr(name, "required", kind)
    for position, name in enumerate(("output", "save_mean", "save_invstd")):
        info.output(position, name, "required")
    return info.dtype_format(*[DataType.F32_Default] * 8).target("Ascend").get_op_info()


class Net(nn.Cell):
    """A Cell around one op, as in MindSpore's tests."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        self.op = ops.Custom(*args, func_type="aot", **kwargs)

    def construct(self, *args: Any) -> Any:
        return self.op(*args)


@pytest.fixture(params=[context.GRAPH_MODE, context.PYNATIVE_MODE], ids=["graph", "pynative"])
def mode(request: pytest.FixtureRequest) -> int:
    context.set_context(mode=request.param)
    return request.param


@pytest.fixture(scope="module")
def infer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("infer") / "custom_infer.cc"
    path.write_text(INFER)
    return path


def close(result: Any, expected: Any, tolerance: float = 1e-6) -> None:
    result = np.asarray(result)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["aclnnMul", "Mul"])
def test_an_operator_is_found_by_name_and_has_its_own_bprop(name: str, mode: int) -> None:
    def bprop(x: Tensor, y: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
        return 10 * dout * y, 20 * dout * x

    net = Net(name, lambda x, _: x, lambda x, _: x, bprop=bprop)
    close(net(Tensor(X), Tensor(Y)).asnumpy(), X * Y)
    dx, dy = ops.GradOperation(get_all=True)(net)(Tensor(X), Tensor(Y))
    close(dx.asnumpy(), 10 * Y)
    close(dy.asnumpy(), 20 * X)


def test_without_a_bprop_it_has_the_derivatives_of_its_jax_code() -> None:
    op = Custom("aclnnMul", lambda x, _: x, lambda x, _: x, func_type="aot")
    close(jax.grad(lambda x: op(x, Y).sum())(X), Y)
    close(jax.jvp(op, (X, Y), (Y, X))[1], X * X + Y * Y)
    close(jax.jit(jax.vmap(op, in_axes=(0, None)))(X, Y[0]), X * Y[0])


def test_op_info_names_inputs_and_attributes(mode: int) -> None:
    info = (
        CustomRegOp("aclnnAdd")
        .input(0, "x", "required")
        .input(1, "y", "required")
        .attr("alpha", "required", "number")
        .output(0, "z", "required")
        .dtype_format(DataType.F32_Default, DataType.F32_Default, DataType.F32_Default)
        .target("Ascend")
        .get_op_info()
    )
    net = Net("aclnnAdd", lambda x, y, alpha: x, lambda x, y, alpha: x, reg_info=info)
    close(net(Tensor(X), Tensor(Y), 0.5).asnumpy(), X + np.float32(0.5) * Y)


@pytest.mark.parametrize(
    ("value", "default"), [(2.5, None), (None, "2.5")], ids=["fixed value", "default"]
)
def test_op_info_gives_values_that_a_call_leaves_out(value: Any, default: Any) -> None:
    kwargs = {} if value is None else {"value": value}
    info = (
        CustomRegOp("Muls")
        .input(0, "x", "required")
        .attr("other", "required", "float", default, **kwargs)
        .output(0, "z", "required")
        .target("Ascend")
        .get_op_info()
    )
    op = Custom("Muls", lambda x: x, lambda x: x, "aot", reg_info=info)
    close(op(jnp.asarray(X)), X * np.float32(2.5))


def test_lists_of_tensors_are_one_input(mode: int) -> None:
    shape = lambda xs, axis: [xs[0][0] + xs[1][0], xs[0][1]]  # noqa: E731
    net = Net("aclnnCat", shape, lambda xs, axis: xs[0], reg_info=cat_info())
    close(net([Tensor(X), Tensor(Y)], 0).asnumpy(), np.concatenate([X, Y]))
    close(net((Tensor(X), Tensor(Y)), 0).asnumpy(), np.concatenate([X, Y]))


def test_a_list_of_outputs_is_a_tuple(mode: int) -> None:
    info = (
        CustomRegOp("aclnnSplitTensor")
        .input(0, "x", "required")
        .attr("split_sections", "required", "int")
        .attr("dim", "required", "int")
        .output(0, "z", "dynamic")
        .target("Ascend")
        .get_op_info()
    )
    net = Net(
        "aclnnSplitTensor",
        lambda x, n, dim: ([2, 6], [2, 6]),
        lambda x, n, dim: (x, x),
        reg_info=info,
    )
    first, second = net(Tensor(X), 2, 0)
    close(first.asnumpy(), X[:2])
    close(second.asnumpy(), X[2:])


def test_infer_functions_in_cpp_are_found_without_the_prefix(infer: Path, mode: int) -> None:
    net = Net(f"{infer}:aclnnCat", None, None, reg_info=cat_info())
    close(net([Tensor(X), Tensor(Y)], 1).asnumpy(), np.concatenate([X, Y], axis=1))
    net = Net(f"{infer}:AddCustom", None, None)
    close(net(Tensor(X), Tensor(Y)).asnumpy(), X + Y)


def test_infer_functions_in_cpp_give_several_outputs(infer: Path, mode: int) -> None:
    x = np.random.default_rng(3).normal(size=(5, 3, 4)).astype(np.float32)
    one, none = np.ones(3, np.float32), np.zeros(3, np.float32)
    net = Net(f"{infer}:aclnnBatchNorm", None, None, reg_info=batch_norm_info())
    result, mean, rstd = net(*map(Tensor, (x, one, none, none, one)), True, 0.1, 1e-5)
    expected_mean = x.mean(axis=(0, 2), dtype=float)
    expected_rstd = 1 / np.sqrt(x.var(axis=(0, 2), dtype=float) + 1e-5)
    close(mean.asnumpy(), expected_mean)
    close(rstd.asnumpy(), expected_rstd, 1e-5)
    close(result.asnumpy(), (x - expected_mean[:, None]) * expected_rstd[:, None], 1e-5)


def test_a_dtype_is_an_argument_and_a_number_to_cpp(infer: Path, mode: int) -> None:
    net = Net("aclnnCast", lambda x, dst: x, msops.float16)
    assert net(Tensor(X), msops.float16).dtype == msops.float16
    info = (
        CustomRegOp("aclnnCast")
        .input(0, "x", "required")
        .attr("dst_type", "required", "int")
        .output(0, "z", "required")
        .target("Ascend")
        .get_op_info()
    )
    net = Net(f"{infer}:aclnnCast", None, None, reg_info=info)
    result = net(Tensor(X), msops.float16)
    assert result.dtype == msops.float16
    close(result.asnumpy(), X.astype(np.float16), 0)


def test_a_tensor_may_stand_behind_numbers(mode: int) -> None:
    index = np.array([[0, 5], [1, 4], [2, 3], [3, 2]], np.int32)
    info = (
        CustomRegOp("aclnnGather")
        .input(0, "x", "required")
        .attr("dim", "required", "int")
        .attr("index", "required", "tensor")
        .output(0, "z", "required")
        .target("Ascend")
        .get_op_info()
    )
    for reg_info in (None, info):
        net = Net(
            "aclnnGather", lambda x, dim, index: index, lambda x, dim, index: x, reg_info=reg_info
        )
        result = net(Tensor(X), 1, Tensor(index))
        close(result.asnumpy(), np.take_along_axis(X, index, axis=1))


def test_a_bprop_has_one_gradient_per_argument_wherever_it_stands() -> None:
    index = jnp.array([[0, 5], [1, 4], [2, 3], [3, 2]])

    def bprop(x: Any, dim: int, index: Any, out: Any, dout: Any) -> tuple[Any, None, None]:
        assert dim == 1
        return 3 * x, None, None

    op = Custom("Gather", lambda x, d, i: i, lambda x, d, i: x, "aot", bprop)
    close(jax.grad(lambda x: op(x, 1, index).sum())(jnp.asarray(X)), 3 * X)


def test_shapes_and_dtypes_follow_from_the_operator() -> None:
    sort = Custom("aclnnSort", func_type="aot")
    values, places = sort(jnp.asarray(X), True, 1, True)
    close(values, -np.sort(-X, axis=1))
    assert places.tolist() == np.argsort(-X, axis=1).tolist()
    joined = Custom("Cat", func_type="aot")([jnp.asarray(X), jnp.asarray(Y)], 0)
    close(joined, np.concatenate([X, Y]))


def test_an_updated_input_is_an_output_more(caplog: pytest.LogCaptureFixture) -> None:
    added = Custom("aclnnInplaceAdd", lambda x, _: x, lambda x, _: x, "aot")
    close(added(X, Y), X + Y)
    x, one, none = X.T.reshape(3, 8), jnp.ones(8), jnp.zeros(8)
    args = (jnp.asarray(x), one, none, none, one, True, 0.1, 1e-5)
    with caplog.at_level("WARNING", "msops"):
        Custom("BatchNorm", [[3, 8], [8], [8]], [msops.float32] * 3, "aot")(*args)
    assert "running_mean" in caplog.text
    whole = Custom("BatchNorm", [[3, 8], [8], [8], [8], [8]], [msops.float32] * 5, "aot")
    close(whole(*args)[3], 0.1 * x.mean(axis=0))


def test_a_kernel_of_the_users_own_goes_first(tmp_path: Path) -> None:
    path = tmp_path / "mul.cc"
    kernel = (
        '#include <cstdint>\n#include <vector>\n#include "custom_aot_extra.h"\n'
        'extern "C" std::vector<int64_t> MulInferShape(int *, int64_t **, AotExtra *) {{\n'
        "  return {{1}};\n}}\n{}int Mul(int, void **params, int *, int64_t **shapes, "
        "const char **, void *, void *) {{\n"
        "  static_cast<float *>(params[2])[0] = 77;\n  return 0;\n}}\n"
    )
    path.write_text(kernel.format('extern "C" '))
    own = Custom(f"{path}:Mul", None, lambda x, _: x, "aot")
    assert own(X, Y).tolist() == [77]
    # Its name is not exported as written: that is an error, not another operator.
    path.write_text(kernel.format(""))
    own = Custom(f"{path}:Mul", None, lambda x, _: x, "aot")
    with pytest.raises(errors.BuildError, match='Declare Mul as extern "C"'):
        own(X, Y)


ERRORS = {
    "misspelt": (
        lambda: Custom("aclnnMull", lambda x: x, lambda x: x, "aot"),
        errors.ArgumentValueError,
        "Custom 'aclnnMull': msops has no aclnn operator 'aclnnMull'; near names: aclnnMul",
    ),
    "another shape": (
        lambda: Custom("aclnnMul", [3], msops.float32, "aot")(X, Y),
        errors.InferenceValueError,
        r"expected an output 0 of shape \(4, 6\); got a tensor of shape \(3,\)",
    ),
    "another kind of argument": (
        lambda: Custom("aclnnCat", func_type="aot")([X, Y], 0.5),
        errors.ArgumentTypeError,
        "expected an int for dim; got 0.5",
    ),
    "one argument too few": (
        lambda: Custom("aclnnMul", lambda x: x, lambda x: x, "aot")(X),
        errors.ArgumentTypeError,
        r"expected 2 input\(s\) \(self, other\); got 1",
    ),
    "one attribute too many": (
        lambda: Custom("aclnnCat", [8, 6], msops.float32, "aot", reg_info=cat_info())([X, Y], 0, 1),
        errors.ArgumentValueError,
        r"expected 1 input\(s\) and 1 attribute\(s\) as op info lists; got 3 arguments",
    ),
    "outputs that nobody knows": (
        lambda: Custom("aclnnArange", func_type="aot")(0, 4, 1),
        errors.ArgumentValueError,
        "Pass out_shape and out_dtype: the inputs do not determine them",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_what_is_wrong_is_said(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_an_error_in_graph_mode_is_the_same(mode: int) -> None:
    net = Net("aclnnCat", [8, 6], msops.float32)
    with pytest.raises(errors.ArgumentTypeError, match=r"expected an int for dim; got 0\.5"):
        net([Tensor(X), Tensor(Y)], 0.5)


def test_an_operator_is_lowered_for_every_platform() -> None:
    op = Custom("aclnnSoftmax", lambda x, dim: x, lambda x, dim: x, "aot")
    for platform in ("cuda", "tpu"):
        program = jax.export.export(jax.jit(lambda x: op(x, 1)), platforms=[platform])(X)
        assert "custom_call" not in program.mlir_module()


def test_opcheck_passes() -> None:
    report = msops.testing.opcheck(Custom("aclnnMul", func_type="aot"), jnp.asarray(X), Y)
    assert report.ok, str(report)


def test_explain_and_lower_text_say_what_runs() -> None:
    op = Custom("aclnnMul", lambda x, _: x, lambda x, _: x, "aot")
    assert "the operator aclnnMul of Ascend runs as operations of XLA" in op.explain(X, Y)
    assert "stablehlo.multiply" in op.lower_text(X, Y)
    assert op.cost_analysis(X, Y)["flops"] == 24
