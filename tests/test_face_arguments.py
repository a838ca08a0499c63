"""Arguments of functions, methods and primitives: MindSpore's names, defaults and order.

The results are those of MindSpore 2.10.0 on a CPU.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from face_namespace import ms

from msops import ops
from msops._face import array_math
from msops._face.argument_names import ARGUMENTS
from msops.ops._table import FUNCTIONS

INPUTS = {
    "f": ms.Tensor([[1.5, -2.25, 3.5], [4.5, 5.25, -6.0]], ms.float32),
    "i": ms.Tensor([[1, -2, 3], [4, 5, -6]], ms.int32),
    "u": ms.Tensor([[1, 250], [4, 9]], ms.uint8),
    "b": ms.Tensor([[True, False], [True, True]]),
    "k": ms.Tensor([2, 0], ms.int32),
    "s": ms.Tensor(3.0),
}
RECORDED: dict[str, Any] = {
    "ops.abs(input=f)": ("Float32", [[1.5, 2.25, 3.5], [4.5, 5.25, 6.0]]),
    "ops.sqrt(x=u)": ("Float32", [[1.0, 15.81138801574707], [2.0, 3.0]]),
    "ops.add(input=f, other=i)": ("Float32", [[2.5, -4.25, 6.5], [8.5, 10.25, -12.0]]),
    "ops.sub(f, other=i)": ("Float32", [[0.5, -0.25, 0.5], [0.5, 0.25, 0.0]]),
    "ops.floor_div(x=i, y=2)": ("Int32", [[0, -1, 1], [2, 2, -3]]),
    "ops.true_divide(dividend=i, divisor=2)": ("Float32", [[0.5, -1.0, 1.5], [2.0, 2.5, -3.0]]),
    "ops.pow(input=i, exponent=2)": ("Int32", [[1, 4, 9], [16, 25, 36]]),
    "ops.tensor_div(x=i, y=4)": ("Int32", [[0, 0, 0], [1, 1, -1]]),
    "ops.logical_or(input=b, other=b)": ("Bool", [[True, False], [True, True]]),
    "ops.matmul(input=i, other=i.T)": ("Int32", [[14, -24], [-24, 77]]),
    "ops.cast(input=f, dtype=ms.int32)": ("Int32", [[1, -2, 3], [4, 5, -6]]),
    "ops.sum(f, dim=1, keepdim=True)": ("Float32", [[2.75], [3.75]]),
    "ops.sum(input=i, dim=0, dtype=ms.float16)": ("Float16", [5.0, 3.0, -3.0]),
    "ops.sum(u, 0, True, dtype=ms.uint8)": ("UInt8", [[5, 3]]),
    "ops.mean(x=f, axis=1, keep_dims=True)": ("Float32", [[0.9166666865348816], [1.25]]),
    "ops.prod(i, 1, True, ms.float32)": ("Float32", [[-6.0], [-120.0]]),
    "ops.all(input=b, axis=0, keep_dims=True)": ("Bool", [[True, False]]),
    "ops.amax(f, 0, keepdims=True)": ("Float32", [[4.5, 5.25, 3.5]]),
    "ops.argmax(f, dim=1, keepdim=True)": ("Int64", [[2], [1]]),
    "ops.argmax(f, None, True)": ("Int64", 4),
    "ops.argmin(input=f, axis=0, keepdims=True)": ("Int32", [[0, 0, 1]]),
    "ops.count_nonzero(x=i, axis=1)": ("Int32", [3, 3]),
    "ops.var(input=f, axis=0, keepdims=True)": ("Float32", [[2.25, 14.0625, 22.5625]]),
    "ops.clamp(input=f, max=1.0)": ("Float32", [[1.0, -2.25, 1.0], [1.0, 1.0, -6.0]]),
    "ops.where(condition=b, input=u, other=0)": ("UInt8", [[1, 0], [4, 9]]),
    "ops.gather(input_params=i, input_indices=k, axis=1)": ("Int32", [[3, 1], [-6, 4]]),
    "ops.gather(i, Tensor([[0], [2]], ms.int32), 1, batch_dims=1)": ("Int32", [[1], [-6]]),
    "ops.gather(i, Tensor([[0], [2]], ms.int32), -1, -1)": ("Int32", [[1], [-6]]),
    "ops.Gather(batch_dims=1)(i, Tensor([[0], [2]], ms.int32), 1)": ("Int32", [[1], [-6]]),
    "ops.concat(tensors=(i, i), axis=1)": ("Int32", [[1, -2, 3, 1, -2, 3], [4, 5, -6, 4, 5, -6]]),
    "ops.stack(tensors=(k, k))": ("Int32", [[2, 0], [2, 0]]),
    "ops.split(tensor=i, split_size_or_sections=[1, 2], axis=1)": [
        ("Int32", [[1], [4]]),
        ("Int32", [[-2, 3], [5, -6]]),
    ],
    "ops.topk(input=f, k=1, dim=1)": [("Float32", [[3.5], [5.25]]), ("Int32", [[2], [1]])],
    "ops.sort(input_x=f, axis=0)": [
        ("Float32", [[1.5, -2.25, -6.0], [4.5, 5.25, 3.5]]),
        ("Int32", [[0, 0, 1], [1, 1, 0]]),
    ],
    "ops.softmax(Tensor([0, 0], ms.float16), dtype=ms.float32)": ("Float32", [0.5, 0.5]),
    "ops.reshape(input=i, shape=(3, 2))": ("Int32", [[1, -2], [3, 4], [5, -6]]),
    "ops.transpose(input=i, dims=(1, 0))": ("Int32", [[1, 4], [-2, 5], [3, -6]]),
    "ops.tile(input=k, dims=(2, 2))": ("Int32", [[2, 0, 2, 0], [2, 0, 2, 0]]),
    "ops.broadcast_to(input=i, shape=(2, -1, 3))": (
        "Int32",
        [[[1, -2, 3], [4, 5, -6]], [[1, -2, 3], [4, 5, -6]]],
    ),
    "ops.BroadcastTo((-1, -1))(i)": ("Int32", [[1, -2, 3], [4, 5, -6]]),
    "ops.expand_dims(input_x=k, axis=0)": ("Int32", [[2, 0]]),
    "ops.squeeze(input=i, axis=0)": ("Int32", [[1, -2, 3], [4, 5, -6]]),
    "ops.squeeze(i[:1], (0, 1))": ("Int32", [1, -2, 3]),
    "ops.slice(input_x=i, begin=(0, 1), size=(2, 1))": ("Int32", [[-2], [5]]),
    "ops.full_like(input=i, fill_value=2)": ("Int32", [[2, 2, 2], [2, 2, 2]]),
    "ops.zeros_like(input=k)": ("Int32", [0, 0]),
    'ops.div(f, i, rounding_mode="floor")': ("Float32", [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
    'ops.div(i, 2, rounding_mode="trunc")': ("Int32", [[0, -1, 1], [2, 2, -3]]),
    'ops.div(i, 4.0, rounding_mode="trunc")': ("Float32", [[0.0, -0.0, 0.0], [1.0, 1.0, -1.0]]),
    "ops.ReduceSum()(x=f, axis=1)": ("Float32", [2.75, 3.75]),
    "ops.ReduceMax(keep_dims=True)(f, axis=0)": ("Float32", [[4.5, 5.25, 3.5]]),
    "ops.Cast()(f, dtype=ms.int32)": ("Int32", [[1, -2, 3], [4, 5, -6]]),
    "ops.Reshape()(i, shape=(3, 2))": ("Int32", [[1, -2], [3, 4], [5, -6]]),
    "ops.MatMul()(i, mat2=i.T)": ("Int32", [[14, -24], [-24, 77]]),
    "ops.Add()(input=i, other=f)": ("Float32", [[2.5, -4.25, 6.5], [8.5, 10.25, -12.0]]),
    "i.add(other=f)": ("Float32", [[2.5, -4.25, 6.5], [8.5, 10.25, -12.0]]),
    "i.pow(exponent=2)": ("Int32", [[1, 4, 9], [16, 25, 36]]),
    "i.matmul(tensor2=i.T)": ("Int32", [[14, -24], [-24, 77]]),
    "f.sum(dim=0, keepdim=True)": ("Float32", [[6.0, 3.0, -2.5]]),
    "f.sum(0, True)": ("Float32", [[6.0, 3.0, -2.5]]),
    "f.sum(0, ms.float64)": ("Float64", [6.0, 3.0, -2.5]),
    "i.mean(dim=0, keepdim=True, dtype=ms.float32)": ("Float32", [[2.5, 1.5, -1.5]]),
    "f.mean(axis=0, keep_dims=True)": ("Float32", [[3.0, 1.5, -1.25]]),
    "i.prod(dim=0, keepdim=True, dtype=ms.float32)": ("Float32", [[4.0, -10.0, -18.0]]),
    "f.all(dim=0, keepdim=True)": ("Bool", [[True, True, True]]),
    "b.any(axis=0, keep_dims=True)": ("Bool", [[True, True]]),
    "f.argmax(dim=0, keepdim=True)": ("Int64", [[1, 1, 0]]),
    "f.argmin(dim=0)": ("Int32", [0, 0, 1]),
    "f.max(dim=0)": [("Float32", [4.5, 5.25, 3.5]), ("Int64", [1, 1, 0])],
    "f.max(0, True)": [("Float32", [[4.5, 5.25, 3.5]]), ("Int64", [[1, 1, 0]])],
    "f.max(0, keepdims=True)": ("Float32", [[4.5, 5.25, 3.5]]),
    "f.max(None)": ("Float32", 5.25),
    "f.min(dim=1, keepdim=True)": [("Float32", [[-2.25], [-6.0]]), ("Int64", [[1], [2]])],
    "f.min(axis=0, return_indices=True)": [("Float32", [1.5, -2.25, -6.0]), ("Int64", [0, 0, 1])],
    "u.cumsum(dim=0)": ("Int32", [[1, 250], [5, 259]]),
    "i.split(2, dim=1)": [("Int32", [[1, -2], [4, 5]]), ("Int32", [[3], [-6]])],
    "i.split(split_size=1)": [("Int32", [[1, -2, 3]]), ("Int32", [[4, 5, -6]])],
    "i.flatten(1)": ("Int32", [[1, -2, 3], [4, 5, -6]]),
    "i.flatten(0, 1)": ("Int32", [1, -2, 3, 4, 5, -6]),
    'i.flatten("F")': ("Int32", [1, 4, -2, 5, 3, -6]),
    "i.transpose(0, 1)": ("Int32", [[1, 4], [-2, 5], [3, -6]]),
    "i.transpose(dim0=0, dim1=1)": ("Int32", [[1, 4], [-2, 5], [3, -6]]),
    "i.expand_dims(0).transpose(0, 2)": ("Int32", [[[1], [4]], [[-2], [5]], [[3], [-6]]]),
    "i.permute(0, 1)": ("Int32", [[1, -2, 3], [4, 5, -6]]),
    "k.tile(dims=(2,))": ("Int32", [2, 0, 2, 0]),
    "k.tile(2, 2)": ("Int32", [[2, 0, 2, 0], [2, 0, 2, 0]]),
    "i.squeeze(axis=0)": ("Int32", [[1, -2, 3], [4, 5, -6]]),
    "i.unsqueeze(dim=0)": ("Int32", [[[1, -2, 3], [4, 5, -6]]]),
    "i.swapaxes(axis0=0, axis1=1)": ("Int32", [[1, 4], [-2, 5], [3, -6]]),
    "i.broadcast_to(shape=(1, -1, 3))": ("Int32", [[[1, -2, 3], [4, 5, -6]]]),
    "s.sum(0)": ("Float32", 3.0),
    "s.sum(axis=(-1,))": ("Float32", 3.0),
    "ops.mean(s, -1)": ("Float32", 3.0),
    "ops.ReduceMax()(s, (0,))": ("Float32", 3.0),
    "s.argmax(0)": ("Int64", 0),
    "s.argmax(keepdims=True)": ("Int64", 0),
    "s.max(0)": [("Float32", 3.0), ("Int64", 0)],
    "s.squeeze(0)": ("Float32", 3.0),
    "s.transpose(0, -1)": ("Float32", 3.0),
    "ops.full((2,), True)": ("Int64", [1, 1]),
    "ops.full((2,), ms.Tensor(2, ms.int8))": ("Int64", [2, 2]),
    "ops.full((2,), np.int32(2))": ("Int64", [2, 2]),
    "ops.full((2,), 1, dtype=ms.bool_)": ("Bool", [True, True]),
    "ops.argmin(s)": ("Int64", 0),
    "s.argmin(0, keepdims=True)": ("Int64", 0),
    "ops.amax(f, initial=9)": ("Float32", 9.0),
    "ops.amax(f, 0, initial=2, where=f > 4)": ("Float32", [4.5, 5.25, 2.0]),
    "ops.amin(f, axis=1, keepdims=True, initial=-9)": ("Float32", [[-9.0], [-9.0]]),
    "ops.amax(i, 0, initial=9.7)": ("Int32", [9, 9, 9]),
    "f.max(axis=0, initial=2, where=f > 4)": ("Float32", [4.5, 5.25, 2.0]),
    "f.max(axis=0, initial=2, where=False)": ("Float32", [2.0, 2.0, 2.0]),
    "f.max(0, False, initial=2)": ("Float32", [4.5, 5.25, 3.5]),
    "f.max(axis=(0, 1), keepdims=True, initial=9)": ("Float32", [[9.0]]),
    "u.max(axis=0, initial=300)": ("UInt8", [44, 250]),
    "f.min(axis=1, initial=-7, return_indices=True)": [
        ("Float32", [-7.0, -7.0]),
        ("Int64", [0, 0]),
    ],
    # Without an axis it has neither, nor axes to keep.
    "f.max(initial=9)": ("Float32", 5.25),
    "f.max(axis=None, keepdims=True)": ("Float32", 5.25),
    "i.sum(axis=0, initial=2)": ("Int64", [7, 5, -1]),
    "i.sum(axis=0, initial=2.5)": ("Float32", [7.5, 5.5, -0.5]),
    "f.sum(0, ms.float64, True, 2)": ("Float64", [[8.0, 5.0, -0.5]]),
    "f.sum(axis=0, dtype=ms.bool_, initial=2)": ("Bool", [True, True, True]),
    "f.std(dim=0, correction=1)": (
        "Float32",
        [2.1213202476501465, 5.303300857543945, 6.717514514923096],
    ),
    "f.std(0, correction=1)": (
        "Float32",
        [2.1213202476501465, 5.303300857543945, 6.717514514923096],
    ),
    "f.std(dim=(0, 1), keepdim=True)": ("Float32", [[4.006938457489014]]),
    "f.std(axis=0, ddof=0, keepdims=True)": ("Float32", [[1.5, 3.75, 4.75]]),
    "f.var(0, 2)": ("Float32", [float("inf")] * 3),
    "ops.var(f, 0, 3)": ("Float32", [-4.5, -28.125, -45.125]),
    # A list beside a Tensor has its dtype.
    "i + [1.5, 2, 3]": ("Int32", [[2, 0, 6], [5, 7, -3]]),
    "(1.5, 2, 3) - i": ("Int32", [[0, 4, 0], [-3, -3, 9]]),
    "u + [[1, 2], [3, 300]]": ("UInt8", [[2, 252], [7, 53]]),
    "f.add([1, 2, 3])": ("Float32", [[2.5, -0.25, 6.5], [5.5, 7.25, -3.0]]),
    "i.sub((1.5, 2, 3))": ("Int32", [[0, -4, 0], [3, 3, -9]]),
    "f.add(i, alpha=2.5)": ("Float32", [[4.0, -7.25, 11.0], [14.5, 17.75, -21.0]]),
    "i.add(1.5, alpha=2)": ("Float32", [[4.0, 1.0, 6.0], [7.0, 8.0, -3.0]]),
    "i.sub(other=1, alpha=2)": ("Int32", [[-1, -4, 1], [2, 3, -8]]),
    "u.sub(u, alpha=300)": ("UInt8", [[213, 2], [84, 125]]),
    "i.add(3, alpha=2**40)": ("Int32", [[1, -2, 3], [4, 5, -6]]),
    "b.add(b, alpha=2)": ("Bool", [[True, False], [True, True]]),
    "f.add(i, alpha=ms.Tensor(2))": ("Float32", [[3.5, -6.25, 9.5], [12.5, 15.25, -18.0]]),
    "(f + 0).add_(2, alpha=3)": ("Float32", [[7.5, 3.75, 9.5], [10.5, 11.25, 0.0]]),
    "(f + 0).sub_(f, alpha=2)": ("Float32", [[-1.5, 2.25, -3.5], [-4.5, -5.25, 6.0]]),
    # Numbers of numpy are Python's.
    "f * np.float64(2)": ("Float32", [[3.0, -4.5, 7.0], [9.0, 10.5, -12.0]]),
    "f.astype(ms.float16) * np.float32(2)": ("Float16", [[3.0, -4.5, 7.0], [9.0, 10.5, -12.0]]),
    "np.float64(2) * f": ("Float32", [[3.0, -4.5, 7.0], [9.0, 10.5, -12.0]]),
    "f ** np.float64(2)": ("Float32", [[2.25, 5.0625, 12.25], [20.25, 27.5625, 36.0]]),
    "f // np.float64(2)": ("Float32", [[0.0, -2.0, 1.0], [2.0, 2.0, -3.0]]),
    "i * np.int64(3)": ("Int32", [[3, -6, 9], [12, 15, -18]]),
    "i & np.int64(3)": ("Int32", [[1, 2, 3], [0, 1, 2]]),
    "i + np.float64(0.5)": ("Float32", [[1.5, -1.5, 3.5], [4.5, 5.5, -5.5]]),
    "b * np.float64(2)": ("Float32", [[2.0, 0.0], [2.0, 2.0]]),
    "u + np.int64(300)": ("UInt8", [[45, 38], [48, 53]]),
    "f.pow(np.float64(2))": ("Float32", [[2.25, 5.0625, 12.25], [20.25, 27.5625, 36.0]]),
    "ops.Add()(i, np.float64(2))": ("Float32", [[3.0, 0.0, 5.0], [6.0, 7.0, -4.0]]),
    "ops.where(f > 0, i, np.int64(0))": ("Int32", [[1, 0, 3], [4, 5, 0]]),
    "ops.where(b, np.float64(1), np.float64(0))": ("Float32", [[1.0, 0.0], [1.0, 1.0]]),
    "ops.clamp(f, np.float64(0), np.float64(1))": ("Float32", [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]),
    "ops.stack(k)": ("Int32", [[2, 0]]),
    "ops.stack(k, 1)": ("Int32", [[2], [0]]),
}


def described(found: Any) -> Any:
    if isinstance(found, tuple):
        return [described(entry) for entry in found]
    return str(found.dtype), found.asnumpy().tolist()


def computed(form: str, *inputs: Any) -> Any:
    names = {"ms": ms, "np": np, "ops": ops, "Tensor": ms.Tensor}
    return eval(f"lambda {', '.join(INPUTS)}: {form}", names)(*inputs)


@pytest.mark.parametrize("form", RECORDED)
def test_forms_give_mindspores_results(form: str) -> None:
    assert described(computed(form, *INPUTS.values())) == RECORDED[form]


def test_a_program_of_all_forms_gives_mindspores_results() -> None:
    program = ms.jit(lambda *inputs: tuple(computed(form, *inputs) for form in RECORDED))
    found = program(*INPUTS.values())
    assert dict(zip(RECORDED, map(described, found), strict=True)) == RECORDED


WRONG = {
    "ops.add(i, input=i)": TypeError,
    "ops.add(i, i, other=i)": TypeError,
    "ops.add(i, others=i)": TypeError,
    "ops.logical_and(x=b, input=b)": TypeError,
    "ops.split(i, [1, 1], 1)": ValueError,
    "ops.split(i, 0, 1)": ValueError,
    "i.split([1, 3], 1)": ValueError,
    "ops.squeeze(i, 2)": ValueError,
    "ops.broadcast_to(i, (-1, 2, 3))": ValueError,
    'ops.div(f, 2, rounding_mode="up")': ValueError,
    "ops.gather(i, k, 1, batch_dims=2)": ValueError,
    "s.sum(1)": ValueError,
    "ops.add(f, [1, 2, 3])": TypeError,
    "ops.mul(f, [1, 2, 3])": TypeError,
    "ops.clamp(f, [1, 2, 3])": TypeError,
    "ops.abs([1, -2])": TypeError,
    "ops.sum([1, 2])": TypeError,
    "f.mul([1, 2, 3])": TypeError,
    "f.pow([1, 2, 3])": TypeError,
    "ops.add(f, i, alpha=2)": TypeError,
    "i.add(i, 2)": TypeError,
    "i.add(i, alpha=2.5)": TypeError,
    "f.add(f, alpha=True)": TypeError,
    "f.add(f, alpha=None)": TypeError,
    "ops.amax(f, 0, where=f > 0)": ValueError,
    "f.max(axis=0, where=f > 0)": ValueError,
    "f.max(axis=0, initial=2, where=b)": ValueError,
    "f.max(axis=0, initial=[1])": TypeError,
    "f.max(axis=0, initial=2, where=i)": TypeError,
    "ops.sum(f, True)": TypeError,
    "ops.sum(f, 'a')": TypeError,
    "ops.concat(f)": TypeError,
    "ops.split(f, 1.5)": TypeError,
    "ops.mean(f, (0, 0))": RuntimeError,
    "ops.transpose(f, (0,))": ValueError,
    "ops.transpose(f, ())": ValueError,
    "ops.permute(f, (0, 0))": ValueError,
    "f.permute(0)": ValueError,
    "f.permute(())": ValueError,
    "f.transpose((1, 1))": ValueError,
}
WITH_AXES = """
    ops.sum(f, 2); ops.mean(f, 2); ops.prod(f, -3); ops.amax(f, 2); ops.all(b, 2); ops.var(f, 2);
    ops.argmax(f, 2); ops.argmin(f, -3); ops.softmax(f, 2); ops.concat((f, f), 2);
    ops.stack((f, f), 3); ops.split(f, 1, 2); ops.Split(2, 1)(f); ops.expand_dims(f, 3);
    ops.squeeze(f, 2); ops.sort(f, 2); ops.gather(f, k, 2); ops.topk(f, 1, -3); f.max(2);
    f.min(axis=2); f.std(2); f.var(-3); f.cumsum(2); f.chunk(2, 2); f.index_select(2, k);
    f.repeat_interleave(2, 2); f.swapaxes(0, 2); f.swapaxes(-3, 0); f.split(1, 2);
    f.transpose(0, 2); f.transpose((0, 2)); f.permute(0, 2); ops.ReduceMean()(f, 2);
    ops.ReduceSum()(f, (0, 5)); ops.count_nonzero(f, 2); ops.split(s, 1); s.transpose(0, 1)
"""


@pytest.mark.parametrize("form", WRONG)
def test_wrong_forms_have_mindspores_errors(form: str) -> None:
    with pytest.raises(WRONG[form]):
        eval(form, {"ops": ops, **INPUTS})


@pytest.mark.parametrize("form", [form.strip() for form in WITH_AXES.split(";")])
def test_axes_out_of_range_are_value_errors(form: str) -> None:
    with pytest.raises(ValueError, match=r"ax[ie]s"):
        eval(form, {"ops": ops, **INPUTS})


@pytest.mark.parametrize(
    ("form", "who"),
    [
        *((f"ops.{name}(f, 7)", f"ops.{name}") for name in ("sum", "mean", "prod", "amax", "var")),
        ("ops.ReduceSum()(f, 7)", "ops.ReduceSum"),
        ("f.max(axis=7)", "Tensor.max"),
    ],
)
def test_an_axis_out_of_range_names_the_function(form: str, who: str) -> None:
    with pytest.raises(ValueError, match=rf"^{re.escape(who)}: expected an axis of an array"):
        eval(form, {"ops": ops, **INPUTS})


def test_every_function_of_arrays_has_names_for_its_arguments() -> None:
    made = {"arange", "depend", "full", "ones", "zeros"}
    assert set(ARGUMENTS) == set(FUNCTIONS) - made
    for name, names in ARGUMENTS.items():
        own = getattr(array_math, name, None)
        if own is not None and "*args" not in str(inspect.signature(own)):
            assert len(names.split()) <= len(inspect.signature(own).parameters), name
