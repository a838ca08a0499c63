"""The table of aclnn operators against numpy; its errors; operators that a user adds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from aclnn_cases import CASES as PLAIN_CASES
from aclnn_cases import Case
from aclnn_language_model_cases import CASES as LANGUAGE_MODEL_CASES
from aclnn_model_cases import CASES as MODEL_CASES
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads
from quick_cases import one_in
from random_examples import examples

import msops
from msops import errors, extension
from msops._ascend import aclnn
from msops._ascend.aclnn.dtypes import promote

CASES = [*PLAIN_CASES, *MODEL_CASES, *LANGUAGE_MODEL_CASES]

ONES = np.ones(3, np.float32)
F32 = jax.ShapeDtypeStruct((3,), np.float32)

# The names of tests and tutorials of MindSpore for C++ extensions.
SEEN = """
AddCustom Mul Cat BatchNorm AvgPool2d ArgMin SubCustom SplitTensor ReduceSum MaxPool Index Expand
MultiScaleDeformableAttn MultiScaleDeformableAttnGrad Cast AllFinite Add
"""

# The families that the project promises.
PROMISED = """
Add Sub Mul Div Muls Adds Neg Abs Exp Log Sqrt Rsqrt Tanh Sigmoid Relu Gelu Silu Maximum Minimum
EqTensor LtScalar LogicalAnd SWhere Cast Expand Permute Cat Stack SplitTensor Slice Index Gather
IndexSelect ScatterAdd ReduceSum Mean Amax Amin ArgMax ArgMin Softmax LogSoftmax LayerNorm RmsNorm
Matmul BatchMatMul Mm Sort Topk Cumsum DropoutDoMask
"""

# What they draw no reference has: the tests below look at the distributions.
RANDOM = {
    "aclnnInplaceUniform",
    "aclnnInplaceNormal",
    "aclnnInplaceRandom",
    "aclnnDropoutGenMaskV2",
}

SMOOTH = """
Add Sub Mul Div Gelu Silu Softmax LogSoftmax LayerNorm RmsNorm Matmul Mean ReduceSum Exp Tanh Elu
Softplus LogSumExp Norm Cumsum Gather ScatterAdd Index AvgPool2d MaxPool BatchNorm GroupNorm Amax
MultiScaleDeformableAttn Sort Topk SplitTensor Cat DeepNorm MoeGatingTopKSoftmax MoeInitRoutingV2
MoeFinalizeRoutingV2 ScatterNdUpdate ScatterPaCache KvRmsNormRopeCache ApplyRotaryPosEmbV2
SparseFlashAttention
"""
# One of each kind: element by element, along an axis, a product, by indices, over windows, a
# normalisation, several results. JAX differentiates what the others are made of in the same ways.
SMOOTH_FAST = "Mul Gelu Softmax Matmul Mean Norm Cumsum Gather Index MaxPool LayerNorm Topk Cat"


def structs(arrays: Any) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(np.shape(a), np.asarray(a).dtype) for a in arrays]


def call(name: str, inputs: Any, outputs: Any) -> tuple[jax.Array, ...]:
    return aclnn.lookup(name, "my_ops")(inputs, outputs)


def declared(case: Case) -> tuple[list[np.ndarray], list[jax.ShapeDtypeStruct]]:
    """Returns the expected arrays, float64 ones of numpy's narrowed, and the outputs to declare."""
    answer = case.expected(*case.inputs)
    arrays = [np.asarray(a) for a in (answer if isinstance(answer, (tuple, list)) else [answer])]
    arrays = [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]
    positions = aclnn.lookup(case.name, "").updated
    updated = sum(case.inputs[position] is not None for position in positions)
    return arrays, structs(arrays[: len(arrays) - updated])


def check(case: Case, results: Any, expected: list[np.ndarray]) -> None:
    # An updated input that is absent has no new value.
    results = [result for result in results if result is not None]
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        tolerance = case.tolerance if wanted.dtype.kind == "f" else 0
        np.testing.assert_allclose(
            np.asarray(result, wanted.dtype), wanted, rtol=tolerance, atol=tolerance
        )


def first_of_each() -> list[Any]:
    """Returns the cases, of which only one of an operator runs at every run."""
    seen: Counter[str] = Counter()
    found = []
    for case in CASES:
        seen[case.name] += 1
        marks = [pytest.mark.slow] * (seen[case.name] > 1)
        found.append(pytest.param(case, marks=marks, id=str(case)))
    return found


@pytest.mark.parametrize("case", one_in(3, first_of_each()))
def test_an_operator_does_what_numpy_does(case: Case) -> None:
    with jax.enable_x64(True):
        expected, outputs = declared(case)
        leaves, tree = jax.tree.flatten(list(case.inputs), is_leaf=lambda leaf: leaf is None)
        arrays = {n: x for n, x in enumerate(leaves) if isinstance(x, np.ndarray)}

        @jax.jit
        def program(arrays: dict[int, jax.Array]) -> Any:
            filled = [arrays.get(n, leaf) for n, leaf in enumerate(leaves)]
            return call(case.name, jax.tree.unflatten(tree, filled), outputs)

        check(case, program(arrays), expected)


# Eagerly, every operation is a program to compile: one case per operator is enough but for `slow`.
FIRST = {case.name: case for case in reversed(CASES)}


@pytest.mark.slow
@pytest.mark.parametrize("case", FIRST.values(), ids=str)
def test_an_operator_runs_eagerly(case: Case) -> None:
    with jax.enable_x64(True):
        expected, outputs = declared(case)
        check(case, call(case.name, case.inputs, outputs), expected)


def test_every_operator_has_a_case() -> None:
    own = {name for name in aclnn.names() if name.removeprefix("aclnn") not in {"Twice"}}
    assert own == {f"aclnn{case.name}" for case in CASES} | RANDOM


@pytest.mark.parametrize(
    "name",
    ["BatchMatmul", "Fill", "MatMul", "Ones", "Pow", "Reshape", "Split", "TopK", "Where", "Zeros"],
)
def test_a_name_that_cann_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(errors.ArgumentValueError, match="near names: aclnn"):
        aclnn.lookup(name, "x")


@pytest.mark.parametrize("name", [*SEEN.split(), *PROMISED.split()])
def test_what_scripts_use_is_there_with_and_without_prefix(name: str) -> None:
    bare, prefixed = aclnn.lookup(name, "x"), aclnn.lookup(f"aclnn{name}", "x")
    assert bare == prefixed
    assert bare.name == f"aclnn{name}"


FLOAT_DTYPES = ("float16", "bfloat16", "float32", "float64")
INTEGER_DTYPES = ("uint8", "int8", "int16", "int32", "int64")


def promoted(first: str, second: str) -> str:
    """PyTorch's table of promotion, by its rules: kinds first, then widths."""
    if first == second or second == "bool":
        return first
    if first == "bool":
        return second
    floats = [name for name in (first, second) if name in FLOAT_DTYPES]
    if len(floats) == 1:
        return floats[0]
    if set(floats) == {"float16", "bfloat16"}:
        return "float32"
    if "uint8" in (first, second) and not floats:
        signed = first if second == "uint8" else second
        return "int16" if signed == "int8" else signed
    order = FLOAT_DTYPES if floats else INTEGER_DTYPES
    return max(first, second, key=order.index)


@given(
    st.sampled_from(("bool", *INTEGER_DTYPES, *FLOAT_DTYPES)),
    st.sampled_from(("bool", *INTEGER_DTYPES, *FLOAT_DTYPES)),
)
@settings(max_examples=examples(100), deadline=None)
def test_dtypes_are_promoted_as_pytorch_does(first: str, second: str) -> None:
    with jax.enable_x64(True):
        x, y = promote(jnp.zeros(2, first), jnp.zeros(2, second))
    assert x.dtype == y.dtype == promoted(first, second)


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("int32", 2, "int32"),
        ("int8", 300.5, "float32"),
        ("float16", 2.5, "float16"),
        ("bool", 2, "int64"),
        ("bool", True, "bool"),
        ("float64", 1j, "complex128"),
        ("float32", 1j, "complex64"),
    ],
)
def test_a_number_matters_by_its_kind(dtype: str, number: Any, expected: str) -> None:
    with jax.enable_x64(True):
        outputs = [jax.ShapeDtypeStruct((2,), expected)]
        (result,) = call("aclnnMuls", [jnp.ones(2, dtype), number], outputs)
        np.testing.assert_allclose(np.asarray(result).astype(complex), np.full(2, number))
        if expected != "bool":
            narrower = [jax.ShapeDtypeStruct((2,), "bool")]
            with pytest.raises(errors.InferenceTypeError, match=f"holds {expected}; got bool"):
                call("aclnnMuls", [jnp.ones(2, dtype), number], narrower)


@pytest.mark.parametrize(
    "name",
    one_in(
        2,
        [
            name if name in SMOOTH_FAST.split() else pytest.param(name, marks=pytest.mark.slow)
            for name in SMOOTH.split()
        ],
    ),
)
def test_an_operator_is_differentiable(name: str) -> None:
    case = FIRST[name]
    _, outputs = declared(case)
    with jax.enable_x64(True):
        leaves, tree = jax.tree.flatten(list(case.inputs), is_leaf=lambda leaf: leaf is None)
        floats = [
            n for n, x in enumerate(leaves) if isinstance(x, np.ndarray) and x.dtype.kind == "f"
        ]
        wide = [
            jax.ShapeDtypeStruct(s.shape, "float64" if s.dtype.kind == "f" else s.dtype)
            for s in outputs
        ]

        @jax.jit
        def function(*arrays: jax.Array) -> Any:
            whole = list(leaves)
            for n, array in zip(floats, arrays, strict=True):
                whole[n] = array
            results = call(name, jax.tree.unflatten(tree, whole), wide)
            return [r for r in results if jnp.issubdtype(r.dtype, jnp.floating)]

        check_grads(
            function, [leaves[n].astype(float) for n in floats], order=1, atol=1e-4, rtol=1e-4
        )


def test_random_numbers_follow_from_seed_and_offset() -> None:
    x = jax.ShapeDtypeStruct((20000,), np.float32)
    zeros = jnp.zeros(x.shape)

    def draw(name: str, *arguments: Any) -> np.ndarray:
        return np.asarray(call(name, [zeros, *arguments], [])[0])

    first = draw("InplaceUniform", -2.0, 3.0, 7, 0)
    np.testing.assert_array_equal(first, draw("InplaceUniform", -2.0, 3.0, 7, 0))
    for other in ((8, 0), (7, 1), (7 + 2**32, 0), (7, 2**32)):
        assert np.mean(first == draw("InplaceUniform", -2.0, 3.0, *other)) < 0.01
    assert scipy.stats.kstest(first, scipy.stats.uniform(-2, 5).cdf).pvalue > 1e-3
    normal = draw("InplaceNormal", 1.0, 2.0, 7, 0)
    assert scipy.stats.kstest(normal, scipy.stats.norm(1, 2).cdf).pvalue > 1e-3
    whole = draw("InplaceRandom", -3, 5, 7, 0)
    counts = np.unique(whole, return_counts=True)
    assert counts[0].tolist() == [*range(-3, 5)]
    assert scipy.stats.chisquare(counts[1]).pvalue > 1e-3


def test_a_drawn_mask_drops_its_part() -> None:
    shape = [101, 99]
    outputs = [jax.ShapeDtypeStruct((1264,), np.uint8)]
    (mask,) = call("DropoutGenMaskV2", [shape, 0.3, 5, 2, np.dtype(np.float32)], outputs)
    bits = np.unpackbits(np.asarray(mask), bitorder="little")
    assert not bits[101 * 99 :].any()
    kept = bits[: 101 * 99].sum()
    assert scipy.stats.binomtest(int(kept), 101 * 99, 0.7).pvalue > 1e-3
    ones = jnp.ones(shape)
    struct = [jax.ShapeDtypeStruct((101, 99), np.float32)]
    (dropped,) = call("DropoutDoMask", [ones, mask, 0.3], struct)
    np.testing.assert_allclose(
        dropped, bits[: 101 * 99].reshape(shape) / np.float32(0.7), rtol=1e-6
    )
    (all_kept,) = call(
        "DropoutGenMaskV2", [[128], 0.0, 5, 2, 0], [jax.ShapeDtypeStruct((16,), "uint8")]
    )
    assert np.asarray(all_kept).tolist() == [255] * 16


def choosing(layout: Any = 0, key_layout: Any = "BSND", count: int = 2, mode: int = 0) -> Any:
    """A call of LightningIndexer."""
    query = np.ones((1, 2, 4) if layout else (1, 2, 2, 4), np.float32)
    key = np.ones((1, 3, 1, 4), np.float32)
    weights = np.ones(query.shape[:-1], np.float32)
    return [query, key, weights, None, None, None, layout, key_layout, count, mode]


def attending(
    rope: bool = False, size: int = 1, heads: int = 1, chosen: int = 0, length: float = 3
) -> Any:
    """A call of SparseFlashAttention."""
    query, key = np.ones((1, 2, 2, 4), np.float32), np.ones((1, 3, heads, 4), np.float32)
    indices = np.full((1, 2, heads, 2), chosen, np.int32)
    ropes = query if rope else None, None
    return [
        query,
        key,
        key,
        indices,
        None,
        None,
        np.array([length]),
        *ropes,
        1.0,
        size,
        0,
        "BSND",
        3,
    ]


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("BatchNorm", [ONES[None], None, None, None, None, False, 0.1, 1e-5], "running statistics"),
        ("RoundDecimals", [np.ones(3, np.int8), -3], "for which 10\\*\\*3 fits int8"),
        (
            "MaxPool",
            [np.ones((1, 4, 4), np.float32), [2], [2], 0, [0], [1, 1, 2, 1], 0],
            "dilations",
        ),
        ("Convolution", [ONES, ONES, None, [1], [0], [1], False, [0], 1], "expected an input"),
        ("Kthvalue", [ONES, 4, 0, False], "k between 1 and 3"),
        ("Bincount", [np.array([0, 5]), None, 2], "an output of 6 or more entries"),
        ("RotaryPositionEmbedding", [ONES, ONES, ONES, 0], "multiple of 2"),
        ("GeluMul", [np.ones(4, np.float32), "fast"], "expected 'none' or 'tanh'"),
        ("InplaceUniform", [ONES, 2.0, 1.0, 0, 0], "from <= to"),
        ("MseLoss", [ONES, ONES, 3], "expected reduction 0, 1 or 2"),
        ("IndexFillTensor", [ONES, 0, [3], 1.0], "indices below 3"),
        ("RightShift", [ONES, ONES], "integers or booleans"),
        ("LightningIndexer", choosing(layout=1), "actualSeqLengthsQuery with layout TND"),
        ("LightningIndexer", choosing(key_layout="PA_BSND"), "a blockTable with PA_BSND alone"),
        ("LightningIndexer", choosing(count=0), "sparseCount above 0"),
        ("LightningIndexer", choosing(mode=2), "sparseMode 0 or 3"),
        ("SparseFlashAttention", attending(rope=True), "queryRope and keyRope, or none"),
        ("SparseFlashAttention", attending(size=0), "sparseBlockSize above 0"),
        ("SparseFlashAttention", attending(heads=3), "sparseIndices do not fit"),
        ("SparseFlashAttention", attending(chosen=3), "indices below 3"),
        ("SparseFlashAttention", attending(length=4), "indices below 4"),
        ("SparseFlashAttention", attending(length=1.0), "integer indices"),
        ("ScatterNdUpdate", [ONES, np.array([[3]]), ONES[:1]], "indices below 3"),
        ("ScatterNdUpdate", [ONES, np.array([[0]]), ONES], r"updates of shape \(1,\)"),
        ("DynamicQuant", [ONES, None], "an Int8 output"),
        ("GeluQuant", [ONES, None, None, "erf", "static", "rint", 2], "'none' or 'tanh'"),
        ("GeluQuant", [ONES, None, None, "tanh", "static", "rint", 36], "dstType 2"),
        ("GeluQuant", [ONES, None, None, "tanh", "static", "rint", 2], "an inputScale with"),
        ("DeepNorm", [ONES, ONES[:2], ONES, ONES, 1.0, 1e-5], "gx of shape"),
        ("MoeGatingTopKSoftmax", [ONES[None], None, 4], "k up to"),
        ("MoeInitRoutingV2", [ONES[None], np.array([[2]]), 0, 0, 2, 0, 1, False], "below 2"),
        ("MoeInitRoutingV2", [ONES[None], np.array([[0]]), 0, 0, 2, 1, 0, False], "a capacity"),
        ("MoeFinalizeRoutingV2", [ONES[None], np.array([1]), *[None] * 5, 0], "indices below 1"),
        ("MoeFinalizeRoutingV2", [ONES[None], np.array([0]), *[None] * 5, 4], "dropPadMode 0 to 3"),
        (
            "ScatterPaCache",
            [np.ones((1, 1, 3), np.float32), np.ones((1, 2, 1, 3), np.float32), np.array([2])]
            + [None] * 4,
            "indices below 2",
        ),
        (
            "ApplyRotaryPosEmbV2",
            [*[np.ones((1, 1, 1, 4), np.float32)] * 4, 2, "half"],
            "expected layout 1",
        ),
    ],
)
def test_what_a_model_gets_wrong_is_said(name: str, inputs: Any, message: str) -> None:
    count = len(aclnn.lookup(name, "").signature.results or [])
    with pytest.raises(errors.ArgumentValueError, match=message):
        call(name, inputs, [F32] * count)


@pytest.mark.parametrize("name", one_in(2, ["SparseFlashAttention", "LightningIndexer"]))
def test_sparse_attention_of_batches_is_that_of_each(name: str) -> None:
    inputs = FIRST[name].inputs

    def operate(query: jax.Array) -> jax.Array:
        return aclnn.lookup(name, "")([query, *inputs[1:]], None)[0]

    queries = jnp.stack([inputs[0], -inputs[0]])
    each = jnp.stack([*map(operate, queries)])
    # A result near 0 is a sum of values near 1: it has their rounding.
    np.testing.assert_allclose(jax.vmap(operate)(queries), each, rtol=1e-5, atol=1e-6)


def test_a_traced_index_beyond_the_keys_chooses_none() -> None:
    def program(indices: jax.Array) -> jax.Array:
        inputs = attending(size=4)
        inputs[3] = jnp.broadcast_to(indices, (1, 2, 1, 2))
        return aclnn.lookup("SparseFlashAttention", "")(inputs, None)[0]

    # 4 * 2**30 is 0 in 32 bits.
    np.testing.assert_array_equal(jax.jit(program)(jnp.array([2**30, -1])), 0.0)
    np.testing.assert_array_equal(jax.jit(program)(jnp.array([0, 2**30])), 1.0)


def test_in_place_operators_give_the_new_value_of_what_they_write_to() -> None:
    operator = aclnn.lookup("aclnnInplaceAdd", "my_ops")
    assert operator.updated == (0,)
    (result,) = operator([jnp.ones(3), jnp.arange(3.0), 2], [])
    np.testing.assert_array_equal(result, [1, 3, 5])
    assert aclnn.lookup("aclnnBatchNorm", "x").updated == (3, 4)
    with pytest.raises(errors.InferenceTypeError, match="holds float32; got int32"):
        operator([jnp.ones(3, int), jnp.arange(3.0), 2], [])


@pytest.mark.parametrize(
    ("name", "arguments", "inputs", "outputs"),
    [
        ("aclnnAdd", "x y alpha out", "x y alpha", "out"),
        ("aclnnMatmul", "x y out cube", "x y cube", "out"),
        ("aclnnLayerNorm", "x s w b eps out mean rstd", "x s w b eps", "out mean rstd"),
        ("aclnnInplaceMul", "x y", "x y", ""),
    ],
)
def test_arguments_of_the_c_function_are_split(
    name: str, arguments: str, inputs: str, outputs: str
) -> None:
    operator = aclnn.lookup(name, "my_ops")
    assert operator.split(arguments.split()) == (inputs.split(), outputs.split())


def test_a_list_of_outputs_is_spliced_in() -> None:
    operator = aclnn.lookup("aclnnSplitTensor", "my_ops")
    assert operator.split(["x", 2, 0, ["a", "b"]]) == (["x", 2, 0], ["a", "b"])


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "kind", "message"),
    [
        ("aclnnAdd", [ONES], [F32], TypeError, r"expected 3 input\(s\) \(self, other, alpha\); "),
        ("aclnnAdd", [ONES, 2, 1], [F32], TypeError, "expected a tensor for other; got 2"),
        ("aclnnAdds", [ONES, ONES, 1], [F32], TypeError, "expected a number for other; got float"),
        ("aclnnSoftmax", [ONES, 0.5], [F32], TypeError, "expected an int for dim; got 0.5"),
        ("aclnnCast", [ONES, 999], [F32], TypeError, "expected a dtype for dtype; got 999"),
        ("aclnnCat", [ONES, 0], [F32], TypeError, "expected a list of tensors for tensors; got fl"),
        (
            "aclnnMean",
            [ONES, None, 2, None],
            [F32],
            TypeError,
            "expected a bool for keep_dim; got 2",
        ),
        ("aclnnExp", [ONES], [], ValueError, r"expected 1 output tensor\(s\); got 0"),
        ("aclnnExp", [ONES], [F32, F32], ValueError, r"expected 1 output tensor\(s\); got 2"),
        ("aclnnSplitTensor", [ONES, 2, 0], [F32], ValueError, r"expected 2 output tensor\(s\); g"),
        (
            "aclnnAdd",
            [np.ones((2, 3), np.float32), ONES, 1],
            [F32],
            ValueError,
            r"expected an output 0 of shape \(2, 3\); got a tensor of shape \(3,\)",
        ),
        ("aclnnAdd", [ONES, np.ones(2, np.float32), 1], [F32], ValueError, "cannot serve the inp"),
        ("aclnnAdd", [ONES.astype(int), ONES.astype(int), 0.5], [F32], ValueError, "integer alpha"),
        ("aclnnSub", [ONES > 0, ONES > 0, 1], [F32], ValueError, "cannot be subtracted"),
        ("aclnnReduceSum", [ONES, [1], False, None], [F32], ValueError, "different axes"),
        ("aclnnIndexSelect", [ONES, 0, np.array([3])], [F32], ValueError, "indices below 3"),
        ("aclnnGather", [ONES, 0, np.array([-4])], [F32], ValueError, "indices below 3"),
        ("aclnnPermute", [ONES, [0, 0]], [F32], ValueError, "expected 1 axes"),
        ("aclnnMm", [ONES, ONES], [F32], ValueError, "expected self of rank 2"),
        ("aclnnCast", [ONES, 34], [F32], None, ""),
        ("aclnnExp", [ONES], [jax.ShapeDtypeStruct((3,), np.float64)], TypeError, "64-bit types"),
        ("aclnnExp", [ONES], [jax.ShapeDtypeStruct((3,), np.int32)], TypeError, "holds float32"),
    ],
)
def test_errors_say_who_and_what(
    name: str, inputs: Any, outputs: Any, kind: type | None, message: str
) -> None:
    if kind is None:
        call(name, inputs, outputs)
        return
    with pytest.raises(kind, match=message) as caught:
        call(name, inputs, outputs)
    assert isinstance(caught.value, errors.MsopsError)
    assert str(caught.value).startswith(f"my_ops, {name}: ")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("aclnnMoeDistributeDispatchV3", "2 devices or more, for which JAX has jax.shard_map"),
    ],
)
def test_what_msops_leaves_out_is_said_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(errors.ArgumentValueError, match=f"no aclnn operator '{name}': .*{why}"):
        aclnn.lookup(name, "my_ops")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("aclnnAddd", "aclnnAdd"),
        ("Softmx", "aclnnSoftmax"),
        ("aclnnsoftmax", "aclnnSoftmax"),
        ("aclnnInterleave", "aclnnRepeatInterleaveIntWithDim"),
    ],
)
def test_an_unknown_name_lists_near_ones(name: str, near: str) -> None:
    with pytest.raises(errors.ArgumentValueError, match="msops has no aclnn operator") as caught:
        aclnn.lookup(name, "my_ops")
    assert near in str(caught.value)
    assert "register_aclnn" in str(caught.value)


def test_indices_out_of_range_are_visible_in_a_program() -> None:
    def program(index: jax.Array) -> jax.Array:
        return call("aclnnIndexSelect", [ONES, 0, index], [jax.ShapeDtypeStruct((2,), "float32")])[
            0
        ]

    np.testing.assert_array_equal(jax.jit(program)(jnp.array([1, 3])), [1, np.nan])


# Three operators that read and five that write at indices along a vector, by what they take.
READS = {
    "IndexSelect": lambda x, i: [x, 0, i],
    "Embedding": lambda x, i: [x, i],
    "GatherNd": lambda x, i: [x, i[:, None], False],
}
WRITES = {
    "ScatterAdd": lambda x, i, y: [x, 0, i, y],
    "Scatter store": lambda x, i, y: [x, 0, i, y, 0],
    "Scatter add": lambda x, i, y: [x, 0, i, y, 1],
    "ScatterValue": lambda x, i, y: [x, 0, i, 5.0, 2],
    "IndexAdd": lambda x, i, y: [x, 0, i, y, 2.0],
    "ScatterNdUpdate": lambda x, i, y: [x, i[:, None], y],
    "ScatterPaCache": lambda x, i, y: [y[:, None], x.reshape(2, 100, 1), i, *[None] * 4],
}
UPDATES = "ScatterNdUpdate", "ScatterPaCache"
VECTOR = np.arange(1, 201, dtype=np.float32)
WITHIN = np.array([1, 100, 120], np.int8)


@pytest.mark.parametrize("bad", one_in(2, [-1, -128, 200, -201, 2**30]))
@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_an_index_out_of_range_is_never_another_index(name: str, bad: int) -> None:
    """Known ones are refused; traced ones, of any width, read NaN or write nothing."""
    dtype = np.int8 if -128 <= bad < 128 else np.int32
    index = np.append(WITHIN, bad).astype(dtype)
    entries = np.array([0.5, 3.0, 4.0, 5.0], np.float32)

    def program(index: jax.Array, entries: np.ndarray) -> jax.Array:
        reads = name in READS
        inputs = READS[name](VECTOR, index) if reads else WRITES[name](VECTOR, index, entries)
        shape = index.shape if reads else VECTOR.shape
        outputs = [] if name in UPDATES else [jax.ShapeDtypeStruct(shape, "float32")]
        return call(name.split()[0], inputs, outputs)[0].reshape(shape)

    with pytest.raises(errors.ArgumentValueError, match="indices below 200"):
        program(index, entries)
    result = jax.jit(program)(index, entries)
    good = program(WITHIN, entries[:-1])
    np.testing.assert_array_equal(result, np.append(good, np.nan) if name in READS else good)
    if name in READS:
        np.testing.assert_array_equal(good, VECTOR[WITHIN])
    else:
        assert np.flatnonzero(good != VECTOR).tolist() == WITHIN.tolist()


@pytest.mark.parametrize(
    ("tables", "offset", "message"),
    [
        ([[1, 9]], 0, "indices below 3; got 0 to 9"),
        ([[1, -1]], 0, "indices below 3; got -1 to 1"),
        ([[1, 0]], 2, "indices below 4; got 0 to 4"),
        ([[1, 0]], -1, "indices below 4; got -1 to 1"),
    ],
)
def test_a_cache_is_never_read_in_another_block(
    tables: list[list[int]], offset: int, message: str
) -> None:
    """The wanted tokens that are somewhere are read; the entry behind them stays."""
    cache = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    old = np.full(4, -1, np.float32)

    def program(tables: Any) -> jax.Array:
        offsets = np.array([offset], np.int32)
        inputs = [cache, cache, tables, np.array([3], np.int32), old, old, offsets, "Norm", False]
        return call("aclnnGatherPaKvCache", inputs, [])[0]

    with pytest.raises(errors.ArgumentValueError, match=message):
        program(np.array(tables, np.int32))
    places = [*range(offset, offset + 3)]
    expected = [
        cache[block, at % 2] if 0 <= at < 4 and 0 <= (block := tables[0][at // 2]) < 3 else np.nan
        for at in places
    ]
    found = jax.jit(program)(np.array(tables, np.int32))
    np.testing.assert_array_equal(found, [*expected, -1])


def test_negative_indices_count_back_where_that_is_asked_for() -> None:
    outputs = [jax.ShapeDtypeStruct((4,), np.float32)]
    for name, inputs in (
        ("Index", lambda x, i: [x, [i]]),
        ("Gather", lambda x, i: [x, 0, i]),
        ("GatherNd", lambda x, i: [x, i[:, None], True]),
    ):
        program = jax.jit(lambda *a, name=name, inputs=inputs: call(name, inputs(*a), outputs)[0])
        index = np.array([-1, -3, -4, 3])
        np.testing.assert_array_equal(program(VECTOR[:3], index), [3, 1, np.nan, np.nan])
        # 200 is no int8, though the indices are.
        narrow = np.array([-1, -128, 127, 0], np.int8)
        np.testing.assert_array_equal(program(VECTOR, narrow), VECTOR[narrow])


def test_a_mask_selects() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    mask = x % 2 == 1
    outputs = [jax.ShapeDtypeStruct((6,), np.float32)]
    np.testing.assert_array_equal(call("aclnnIndex", [x, [mask]], outputs)[0], x[mask])
    with pytest.raises(errors.ArgumentValueError, match="traced mask"):
        jax.jit(lambda m: call("aclnnIndex", [x, [m]], outputs))(mask)


def test_a_user_adds_an_operator() -> None:
    extension.register_aclnn("aclnnTwice", lambda x, *, outputs: (2 * x).astype(outputs[0].dtype))
    for name in ("aclnnTwice", "Twice"):
        (result,) = call(name, [ONES], [F32])
        np.testing.assert_array_equal(result, 2 * ONES)
    # A notebook cell runs again.
    extension.register_aclnn("Twice", lambda x: (x + x + 1,))
    np.testing.assert_array_equal(call("aclnnTwice", [ONES], [F32])[0], 2 * ONES + 1)
    with pytest.raises(TypeError, match="expected 1 input"):
        call("aclnnTwice", [ONES, ONES], [F32])


@pytest.mark.parametrize(
    ("name", "function", "kind", "message"),
    [
        ("aclnnAdd", max, ValueError, "msops has aclnnAdd"),
        ("aclnnMine", 3, TypeError, "expected a name and a function"),
        (7, max, TypeError, "expected a name and a function"),
        ("aclnn no", max, ValueError, "expected an identifier"),
    ],
)
def test_registering_refuses(name: Any, function: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        msops.extension.register_aclnn(name, function)
