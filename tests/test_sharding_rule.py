"""Rules by themselves: what they say, what they refuse, and the arithmetic of divided arrays."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msops
from msops import Custom
from msops._jax_seam.division import Dimensions, Tiling, undivided
from msops._op.sharding_rule import ShardingRule, read_rule
from msops._sharding.partitioning import _divide
from msops._sharding.tiling import find_gathered, plan
from msops.errors import ArgumentTypeError, ArgumentValueError, KernelError


def rule(text: str) -> ShardingRule:
    found = read_rule(text, 0, "op")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "inputs", "outputs"),
    [
        ("i j, i j -> i j", (("i", "j"), ("i", "j")), (("i", "j"),)),
        ("batch in_1, in_1 -> batch", (("batch", "in_1"), ("in_1",)), (("batch",),)),
        (" i,->i , ", (("i",), ()), (("i",), ())),
        ("-> i", ((),), (("i",),)),
    ],
)
def test_rules_are_read(text: str, inputs: Any, outputs: Any) -> None:
    assert rule(text) == ShardingRule(inputs, outputs)


@pytest.mark.parametrize(
    ("text", "independent"),
    [
        ("i j, j -> i j", {"i", "j"}),
        ("i k, k j -> i j", {"i", "j"}),
        ("i j -> i, i j", {"i"}),
        ("i -> i n", {"i"}),
        ("i ->", set()),
    ],
)
def test_what_may_be_divided(text: str, independent: set[str]) -> None:
    read = rule(text)
    sizes = {name: size for size, name in enumerate(sorted({*"ijkn"}), 2)}
    shapes = [
        [tuple(sizes[name] for name in names) for names in side]
        for side in (read.inputs, read.outputs)
    ]
    assert read.name_dimensions(*shapes, "op").independent == independent


def test_a_gradient_is_divided_as_its_kernel_is() -> None:
    forward = rule("i k, k j, j -> i j, i")
    backward = forward.adjoint(floats=[0, 1], wanted=[0, 2])
    assert backward.inputs == (*forward.inputs, ("i", "j"), ("i",))
    assert backward.outputs == (("i", "k"), ("j",))
    # Forward lets i be divided alone; the gradient of what lacks it is a sum.
    dimensions = backward.name_dimensions(
        [(8, 2), (2, 4), (4,), (8, 4), (8,)], [(8, 2), (4,)], "op"
    )
    assert dimensions.independent == {"i"}
    lead = Tiling((4, 1), np.arange(8).reshape(4, 1, 2, 1))
    found = [lead, *(undivided(rank, np.arange(8)[:, None]) for rank in (2, 1, 2, 1, 2, 1))]
    planned = plan(dimensions, found)
    assert [tiling.tiles for tiling in planned.tilings] == [
        (4, 1), (1, 1), (1,), (4, 1), (4,), (4, 1), (1,),
    ]  # fmt: skip
    assert planned.sums[0] is None
    assert planned.sums[1] is not None
    assert sorted(map(sorted, planned.sums[1].tolist())) == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_a_gradient_is_not_divided_where_its_kernel_is_not() -> None:
    backward = rule("i k -> i").adjoint(floats=[0], wanted=[0])
    dimensions = backward.name_dimensions([(8, 2), (8,)], [(8, 2)], "op")
    assert dimensions.independent == {"i"}
    assert dimensions.with_axis(3, [3, None]).independent == {"i", "axis 2"}
    total = rule("i ->").adjoint(floats=[0], wanted=[0])
    assert total.name_dimensions([(8,), ()], [(8,)], "op").independent == set()
    second = backward.adjoint(floats=[0], wanted=[0, 1])
    shapes = [(8, 2), (8,), (8, 2)]
    assert second.name_dimensions(shapes, shapes[:2], "op").independent == {"i"}


REFUSED = {
    "i j": "expected one -> in sharding; got 'i j'",
    "i -> i -> i": "expected one -> in sharding",
    "i i -> i": "a name twice in 'i i' of 'i i -> i'",
    "ij2, 2i -> i": "the name '2i'",
    "(i j) -> i": "the name '(i'",
    "... i -> i": "the name '...'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        Custom(np.square, lambda x: x, lambda x: x, sharding=text)
    assert REFUSED[text] in str(caught.value)
    assert str(caught.value).startswith("Custom 'square': ")
    assert 'Write sharding="i j, j -> i j"' in str(caught.value)


def test_options_that_do_not_go_together() -> None:
    same = lambda x: x  # noqa: E731
    with pytest.raises(ArgumentTypeError, match="expected a str for sharding; got 3"):
        Custom(np.square, same, same, sharding=3)
    for wrong in (-1, True, "1", 1.0):
        with pytest.raises(ArgumentTypeError, match="expected batch_dims an int, at least 0"):
            Custom(np.square, same, same, batch_dims=wrong)
    with pytest.raises(ArgumentValueError, match="are both given"):
        Custom(np.square, same, same, sharding="i -> i", batch_dims=1)


X, W = jnp.ones((4, 3)), jnp.ones(3)


@pytest.mark.parametrize(
    ("text", "args", "told"),
    [
        ("i j -> i j", (X, W), r"expected 1 input\(s\) of rank\(s\) 2; got 2 of rank\(s\) 2, 1"),
        ("i, j -> i", (X, W), r"expected 2 input\(s\) of rank\(s\) 1, 1; got 2 of rank\(s\) 2, 1"),
        ("i j, j -> i", (X, W), r"expected 1 output\(s\) of rank\(s\) 1; got 1 of rank\(s\) 2"),
        (
            "i j, i -> i j",
            (X, W),
            "expected dimension 0 of input 0 and dimension 0 of input 1 equally long; got 4 and 3",
        ),
    ],
)
def test_a_rule_about_other_arrays_is_refused_at_the_first_call(
    text: str, args: tuple[Any, ...], told: str
) -> None:
    op = Custom(np.multiply, lambda x, w: x, lambda x, w: x, sharding=text)
    for call in (op, jax.jit(op)):
        with pytest.raises(ArgumentValueError, match=told):
            call(*args)


def test_batch_dims_that_arrays_do_not_have() -> None:
    op = Custom(np.multiply, lambda x, w: x, lambda x, w: x, batch_dims=2)
    with pytest.raises(ArgumentValueError, match=r"input 1 has shape \(3,\)"):
        op(X, W)
    with pytest.raises(ArgumentValueError, match="dimension 1 of input 0 and dimension 1 of input"):
        op(X, jnp.ones((4, 1)))


def test_a_rule_changes_nothing_on_one_device() -> None:
    plain, ruled = (
        Custom(
            np.multiply,
            lambda x, w: x,
            lambda x, w: x,
            bprop=lambda x, w, out, dout: (dout * w, (dout * x).sum(0)),
            **options,
        )
        for options in ({}, {"sharding": "i j, j -> i j"})
    )
    assert jax.jit(ruled).lower(X, W).as_text() == jax.jit(plain).lower(X, W).as_text()
    stack = jnp.arange(24.0).reshape(2, 4, 3)
    for axes in ((0, None), (None, 0), (0, 0)):
        args = [stack if axes[0] == 0 else X, stack[:, 0] if axes[1] == 0 else W]
        np.testing.assert_array_equal(jax.vmap(ruled, axes)(*args), jax.vmap(plain, axes)(*args))
    nested = jax.vmap(jax.vmap(ruled, (None, 0)), (0, None), 1)
    assert nested(stack, stack[:, 0]).shape == (2, 2, 4, 3)
    np.testing.assert_array_equal(
        nested(stack, stack[:, 0]),
        jax.vmap(jax.vmap(plain, (None, 0)), (0, None), 1)(stack, stack[:, 0]),
    )
    slopes = [
        jax.vmap(jax.grad(lambda x, w, f=f: f(x, w).sum(), 1), (0, None)) for f in (ruled, plain)
    ]
    np.testing.assert_array_equal(*(slope(stack, W) for slope in slopes))


def test_the_policy_of_gathers() -> None:
    assert msops.get_context("implicit_gather") == "warn"
    for policy in ("raise", "allow", "warn"):
        msops.set_context(implicit_gather=policy)
        assert msops.get_context("implicit_gather") == policy
    for wrong in ("error", None, True):
        with pytest.raises(ArgumentValueError, match="expected implicit_gather 'warn', 'raise'"):
            msops.set_context(implicit_gather=wrong)
    assert msops.get_context("implicit_gather") == "warn"


def test_a_call_that_another_process_lowered_is_refused() -> None:
    with pytest.raises(KernelError, match="lowered in another process"):
        _divide("op-0123456789abcdef-0", [], 0)


# What XLA may say of the arrays of a call: sizes, and devices in any order.
FACTORS = "ijkl"


@st.composite
def calls(draw: st.DrawFn) -> tuple[Dimensions, list[Tiling]]:
    sizes = {name: draw(st.sampled_from([1, 2, 4, 6, 8])) for name in FACTORS}
    arrays = st.lists(
        st.permutations(FACTORS).flatmap(
            lambda names: st.integers(0, len(names)).map(lambda count: tuple(names[:count]))
        ),
        min_size=1,
        max_size=3,
    )
    dimensions = Dimensions(tuple(draw(arrays)), tuple(draw(arrays)), tuple(sizes.items()))
    return dimensions, [draw(tilings(len(names))) for names in dimensions.arrays]


@st.composite
def tilings(draw: st.DrawFn, rank: int) -> Tiling:
    counts = [1] * (rank + 1)
    for _ in range(3):
        counts[draw(st.integers(0, rank))] *= 2
    devices = np.array(draw(st.permutations(range(8))))
    return Tiling(tuple(counts[:rank]), devices.reshape(*counts, 1))


def ranges(tiling: Tiling, shape: tuple[int, ...]) -> dict[int, tuple[range, ...]]:
    """Returns what each device has of an array: along each dimension a range of indices."""
    found = {}
    part = [size // tiles for size, tiles in zip(shape, tiling.tiles, strict=True)]
    for place in itertools.product(*map(range, tiling.tiles)):
        for device in tiling.devices[place].reshape(-1):
            found[int(device)] = tuple(
                range(i * size, (i + 1) * size) for i, size in zip(place, part, strict=True)
            )
    return found


@given(calls())
def test_every_device_has_what_its_part_needs(call: tuple[Dimensions, list[Tiling]]) -> None:
    dimensions, found = call
    planned = plan(dimensions, found).tilings
    own: dict[tuple[int, str], range] = {}
    for names, tiling in zip(dimensions.arrays, planned, strict=True):
        shape = dimensions.shape(names)
        assert sorted(tiling.devices.reshape(-1)) == list(range(8))
        assert all(size % tiles == 0 for size, tiles in zip(shape, tiling.tiles, strict=True))
        for device, held in ranges(tiling, shape).items():
            for name, indices in zip(names, held, strict=True):
                # The same part along a name in every array, and all of what is not independent.
                assert own.setdefault((device, name), indices) == indices
                if name not in dimensions.independent:
                    assert indices == range(dict(dimensions.sizes)[name])


@given(calls())
def test_nothing_more_is_gathered_than_must_be(call: tuple[Dimensions, list[Tiling]]) -> None:
    dimensions, found = call
    planned = plan(dimensions, found).tilings

    def kept(names: tuple[str, ...], tiling: Tiling) -> int:
        shape = dimensions.shape(names)
        return math.prod(
            tiles
            for name, size, tiles in zip(names, shape, tiling.tiles, strict=True)
            if name in dimensions.independent and size % tiles == 0
        )

    parts = [kept(*pair) for pair in zip(dimensions.arrays, found, strict=True)]
    leader = parts.index(max(parts))
    assert math.prod(planned[leader].tiles) == parts[leader]
    told = {(one.array, one.axis) for one in find_gathered(dimensions, found)}
    for index, (names, tiling) in enumerate(zip(dimensions.inputs, found, strict=False)):
        for axis, (name, tiles) in enumerate(zip(names, tiling.tiles, strict=True)):
            # Told is what more of comes to each device than some device has.
            length = planned[index].part(dimensions.shape(names))[axis]
            assert ((index, axis) in told) == (length > dict(dimensions.sizes)[name] // tiles)
