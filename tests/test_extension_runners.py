"""PyboostRunner: kernels on the arrays' memory, at once or whenever a program gets there."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT
from extension_modules import extension
from jax.experimental.jet import jet
from native_harness import native

import msops as ms
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BackendError,
    GradientTypeError,
    KernelError,
)

pytestmark = pytest.mark.usefixtures("quick_collections")

X = jnp.array([1.0, 2.0, 3.0], jnp.float32)
Y = jnp.array([4.0, 5.0, 6.0], jnp.float32)


@pytest.fixture(scope="module")
def ops():
    return extension("runners")


def same(ours, theirs):
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_eager_jit_and_vmap(ops):
    expected = X * 2 + Y
    same(ops.axpy(X, Y, 2.0), expected)
    same(ops.axpy(X, y=Y, factor=2), expected)
    same(jax.jit(lambda x, y: ops.axpy(x, y, 2.0))(X, Y), expected)
    batch = jnp.stack([X, Y, X - 7])
    same(jax.vmap(ops.axpy)(batch, batch), 2 * batch)
    same(jax.vmap(ops.axpy, (0, None))(batch, Y), batch + Y)
    same(jax.jit(jax.vmap(ops.axpy, (1, None), 1))(batch.T, Y), (batch + Y).T)
    same(ops.axpy_by_caller(X, Y, 2.0, False), expected)


def test_tensors_in_tensors_out(ops):
    result = ops.axpy(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0]))
    assert isinstance(result, ms.Tensor)
    same(result.asnumpy(), [4.0, 6.0])
    assert isinstance(ops.axpy(X, Y), jax.Array)


def test_a_transposed_tensor_arrives_in_its_own_order(ops):
    """MindSpore 2.10.0 hands a kernel the entries in the order of memory."""
    square = ms.Tensor([[1.0, 2.0], [3.0, 4.0]], ms.float32)
    zeros = ms.Tensor(np.zeros((2, 2), np.float32))
    for transposed in (square.T, square.transpose((1, 0)), square.swapaxes(0, 1)):
        same(ops.axpy(transposed, zeros, 1.0).asnumpy(), [[1.0, 3.0], [2.0, 4.0]])


def test_a_jitted_function_runs_the_kernel_each_time(ops):
    compiled = jax.jit(lambda x, y: ops.axpy(ops.axpy(x, y), y, 0.5))
    for seed in range(3):
        same(compiled(X + seed, Y), (X + seed + Y) * 0.5 + Y)


def test_with_jit_disabled(ops):
    batch = jnp.stack([X, Y])
    with jax.disable_jit():
        same(ops.axpy(X, Y, 2.0), X * 2 + Y)
        same(jax.jit(ops.axpy)(X, Y), X + Y)
        same(jax.vmap(ops.axpy)(batch, batch), 2 * batch)
        same(jax.grad(lambda x: ops.square(x).sum())(X), 2 * X)


def test_a_backward_that_applies_its_function_is_differentiated_again(ops):
    def cube(x):
        return ops.cube(x).sum()

    for wrap in (lambda f: f, jax.jit):
        second = wrap(jax.grad(lambda x: (jax.grad(cube)(x) * Y).sum()))
        same(second(X), 6 * X * Y)
        third = wrap(jax.grad(lambda x: jax.grad(lambda x: jax.grad(cube)(x).sum())(x).sum()))
        same(third(X), jnp.full(3, 6.0))


def test_a_backward_that_calls_a_runner_has_no_second_gradient(ops):
    with pytest.raises(GradientTypeError, match=r"call that Function in Backward, too"):
        jax.grad(lambda x: jax.grad(lambda x: ops.square(x).sum())(x).sum())(X)


def test_sequential_vmap(ops):
    batch = jnp.stack([X, Y])
    same(jax.vmap(jax.custom_batching.sequential_vmap(ops.square))(batch), batch * batch)


def test_a_transfer_guard_lets_calls_pass(ops):
    with jax.transfer_guard("disallow"):
        ops.axpy(X, Y)
        jax.jit(ops.axpy)(X, Y)


def test_jet_and_linear_transpose_are_refused(ops):
    for function in (ops.square, jax.jit(ops.square)):
        with pytest.raises(GradientTypeError, match="jet is applied to it"):
            jet(function, (X,), ((X,),))
    with pytest.raises(GradientTypeError, match="a PyboostRunner has no transpose"):
        jax.linear_transpose(lambda x: ops.axpy(x, Y), X)(X)


def test_under_scan(ops):
    def total(x):
        return jax.lax.scan(lambda c, y: (ops.axpy(c, y, 2.0), c), x, jnp.stack([Y, X, Y]))[0]

    same(jax.jit(total)(X), ((X * 2 + Y) * 2 + X) * 2 + Y)


def test_shapes_without_elements_or_axes(ops):
    empty = jnp.zeros((0, 3), jnp.float32)
    same(ops.axpy(empty, empty), empty)
    same(jax.jit(ops.axpy)(empty, empty), empty)
    same(jax.jit(ops.axpy)(X[0], Y[0]), 5.0)


def test_in_place_outputs_update_tensors_and_leave_arrays(ops):
    t, u = ms.Tensor(np.asarray(X)), ms.Tensor(np.asarray(Y))
    assert ops.swap(t, u) is None
    same(t.asnumpy(), Y)
    same(u.asnumpy(), X)
    x, y = jnp.array(X), jnp.array(Y)
    same(ops.swapped(x, y), [Y, X])
    same([x, y], [X, Y])


def test_in_place_outputs_under_jit(ops):
    def difference(x, y):
        t, u = ms.Tensor(x), ms.Tensor(y)
        ops.swap(t, u)
        return t.value - 2 * u.value

    same(jax.jit(difference)(X, Y), Y - 2 * X)
    # The operands are used again after the call that updates them.
    compiled = jax.jit(lambda x, y: (*ops.swapped(x, y), x + y, x))
    for _ in range(2):
        same(compiled(X, Y), [Y, X, X + Y, X])


def test_a_parameter_is_updated_by_a_compiled_cell(ops):
    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="p")

        def construct(self, x):
            ops.swap(self.p, x)
            return self.p + 0

    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        try:
            net = Net()
            same(net(ms.Tensor([5.0, 6.0])).asnumpy(), [5.0, 6.0])
            same(net.p.asnumpy(), [5.0, 6.0])
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)


def test_an_output_with_data_is_updated(ops):
    expected = jnp.array([2.0, 1.0, 1.0])
    same(ops.bump(X), expected)
    same(jax.jit(ops.bump)(X), expected)
    same(ops.inner.bump(X), expected)


def test_a_slice_of_a_tensor_is_a_view_if_the_kernel_wants_its_strides(ops):
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    tensor = ms.Tensor(whole)
    for index in (
        (slice(None, None, 2), slice(1, 5, 3)),
        (slice(1, 3), slice(None)),
        (slice(None), slice(None, None, -1)),
    ):
        view = whole[index]
        offset = (view.ctypes.data - whole.ctypes.data) // 4
        strides = [stride // 4 for stride in view.strides]
        dense = [view.shape[1], 1]
        out, seen, outside = ops.layout(tensor[index], False)
        same(out.asnumpy(), view)
        assert seen == [*strides, offset, int(strides == dense)]
        assert outside == strides
        # By default the kernel sees a dense copy.
        out, seen, _ = ops.layout(tensor[index], True)
        same(out.asnumpy(), view)
        assert seen == [*dense, 0, 1]
    rows = tensor[1:][::2][:, 3:]
    assert ops.layout(rows, False)[1] == [12, 1, 9, 0]


def test_a_view_follows_its_tensor(ops):
    tensor = ms.Tensor(np.arange(8, dtype=np.float32).reshape(2, 4))
    piece = tensor[:, ::2]
    piece[0, 0] = 100.0
    out, seen, _ = ops.layout(piece, False)
    same(out.asnumpy(), [[100, 2], [4, 6]])
    assert seen == [2, 1, 0, 1]
    gone = ms.Tensor(np.arange(8, dtype=np.float32).reshape(2, 4))[:, ::2]
    same(ops.layout(gone, False)[0].asnumpy(), [[0, 2], [4, 6]])


def test_a_traced_slice_is_dense(ops):
    def rows(x):
        out, _, _ = ops.layout(ms.Tensor(x)[:, ::2], False)
        return out.value

    x = jnp.arange(8, dtype=jnp.float32).reshape(2, 4)
    same(jax.jit(rows)(x), x[:, ::2])


def test_a_kernel_in_a_function_is_differentiated(ops):
    def loss(square):
        return lambda x: (square(x) * Y).sum()

    expected = jax.grad(loss(jnp.square))(X)
    for compile in (lambda f: f, jax.jit):
        same(compile(jax.grad(loss(ops.square)))(X), expected)
    same(jax.vmap(jax.grad(loss(ops.square)))(jnp.stack([X, Y])), jnp.stack([2 * X * Y, 2 * Y * Y]))
    second = jax.grad(lambda x: jax.grad(loss(ops.square))(x).sum())
    # Backward is a kernel without a gradient of its own.
    with pytest.raises(GradientTypeError, match="a PyboostRunner has no gradient"):
        second(X)


def test_a_bare_kernel_is_not_differentiated(ops):
    with pytest.raises(
        GradientTypeError, match="Runner 'Axpy' of extension module 'tests_runners'"
    ):
        jax.grad(lambda x: ops.axpy(x, Y).sum())(X)
    gradient = jax.grad(lambda x: (ops.axpy(jax.lax.stop_gradient(x), Y) * x).sum())(X)
    same(gradient, X + Y)


def test_a_kernel_that_throws(ops):
    with pytest.raises(KernelError, match="Runner 'Fail': its kernel failed:\n  no luck"):
        ops.fail(X)
    with pytest.raises(KernelError, match="an exception that is no std::exception"):
        ops.fail(X, odd=True)
    with pytest.raises(
        jax.errors.JaxRuntimeError,
        match=r"Runner 'Fail' on CPU.*\n  no luck\n  inputs: float32\[3\]; outputs: float32\[3\]",
    ):
        jax.jit(ops.fail)(X).block_until_ready()


def test_the_wrong_number_of_outputs(ops):
    with pytest.raises(RuntimeError, match="the output size should be equal to 3, but got 2"):
        ops.three(X, Y)
    with pytest.raises(RuntimeError, match="Argument count mismatch: expected 4, got 2"):
        ops.axpy_by_caller(X, Y)


def test_a_runner_has_to_be_shared(ops):
    with pytest.raises(RuntimeError, match="made with std::make_shared"):
        ops.not_shared(X)


def test_a_traced_kernel_needs_outputs(ops):
    with pytest.raises(ArgumentValueError, match="it has no outputs"):
        jax.jit(ops.no_outputs)(X)


def test_data_outside_a_kernel(ops):
    assert ops.peek(X) == 1.0
    x = jnp.array(X)
    same(ops.poke(x), [42.0, 2.0, 3.0])
    same(x, X)
    with pytest.raises(ArgumentTypeError, match="a function is being traced"):
        jax.jit(ops.peek)(X)


def test_methods_of_classes_take_arrays(ops):
    scale = ops.Scale(3.0)
    same(scale(X), 4 * X)
    same(jax.jit(scale)(X), 4 * X)


def test_overlapping_runs_do_not_share_memory(ops):
    compiled = jax.jit(lambda x, y: ops.axpy(x, y, 2.0, slow=True))
    compiled(X, Y)
    results = {}

    def work(seed):
        x = jnp.full(1000 + seed % 2, float(seed))
        results[seed] = [(compiled(x, x), ops.axpy(x, x, 3.0, slow=True)) for _ in range(4)]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(8):
        for jitted, eager in results[seed]:
            same(jitted, np.full(1000 + seed % 2, 3.0 * seed))
            same(eager, np.full(1000 + seed % 2, 4.0 * seed))


def test_eager_kernels_run_without_the_gil(ops):
    ops.most_running()
    threads = [threading.Thread(target=ops.meet, args=(X,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ops.most_running() > 1


def test_runners_go_with_their_programs(ops):
    gc.collect()
    before = native.count_runners()

    def use():
        compiled = [jax.jit(lambda x, k=k: ops.axpy(x, x, float(k))) for k in range(5)]
        for k, function in enumerate(compiled):
            same(function(X), X * k + X)
        return native.count_runners()

    assert use() == before + 5
    jax.clear_caches()
    gc.collect()
    assert native.count_runners() <= before


FOUR_DEVICES = """
import sys, warnings
sys.path[:0] = {path!r}
import jax, jax.numpy as jnp, msops, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from extension_modules import extension

ops = extension("runners")
devices = jax.devices()
assert len(devices) == 4
x = jax.device_put(jnp.arange(8.0), devices[2])
assert ops.axpy(x, x).devices() == {{devices[2]}}
numbers = np.arange(8.0, dtype=np.float32)
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((4,), ("d",), axis_types=(kind,))
    spread = jax.device_put(numbers, NamedSharding(mesh, P("d")))
    msops.set_context(implicit_gather="raise")
    for wrap in (lambda f: f, jax.jit):
        with jax.set_mesh(mesh):
            try:
                wrap(ops.axpy)(spread, spread)
                raise AssertionError("no error")
            except (msops.errors.BackendError, jax.errors.JaxRuntimeError) as error:
                assert "Runner 'Axpy' of extension module" in str(error), error
                assert "input 0, dimension 0, is divided over" in str(error), error
                assert "Call it inside jax.shard_map" in str(error), error
    msops.set_context(implicit_gather="warn")
    if kind == AxisType.Auto:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                ops.axpy(spread, spread)  # here
        (warning,) = caught
        assert "gets the whole of an input that is divided" in str(warning.message)
    msops.set_context(implicit_gather="allow")
    for wrap in (lambda f: f, jax.jit):
        with jax.set_mesh(mesh):
            np.testing.assert_array_equal(wrap(ops.axpy)(spread, spread), 2 * numbers)
            cube = wrap(lambda x: (ops.product(ops.product(x, x), x) * numbers).sum())
            np.testing.assert_array_equal(jax.grad(cube)(spread), 3 * numbers**3)
            np.testing.assert_array_equal(wrap(jax.grad(cube))(spread), 3 * numbers**3)
mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))


def local(function):
    return jax.shard_map(function, mesh=mesh, in_specs=P("d"), out_specs=P("d"))


for wrap in (lambda f: f, jax.jit):
    result = wrap(local(lambda x: ops.axpy(x, x, 2.0)))(numbers)
    assert result.sharding.spec == P("d")
    np.testing.assert_array_equal(result, 3 * numbers)
    square = local(lambda x: ops.product(x, x))
    np.testing.assert_array_equal(wrap(square)(numbers), numbers**2)
    loss = wrap(lambda x: (square(x) * numbers).sum())
    np.testing.assert_array_equal(jax.grad(loss)(numbers), 2 * numbers**2)
    inside = wrap(local(jax.grad(lambda x: ops.product(x, x).sum())))
    np.testing.assert_array_equal(inside(numbers), 2 * numbers)
print("ok")
"""


@pytest.mark.slow
def test_four_devices():
    script = FOUR_DEVICES.format(path=[str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.stdout == "ok\n", done.stderr


PROGRAM_IDS = """
import re, sys
sys.path[:0] = {path!r}
import jax, jax.numpy as jnp
from extension_modules import extension
ops = extension("runners")
x = jnp.ones(3)
text = jax.jit(lambda x: ops.axpy(ops.axpy(x, x), x)).lower(x).as_text()
print(sorted(re.findall(r'runner = "([^"]+)"', text)))
"""


def test_ids_are_equal_in_every_process():
    path = [str(ROOT), str(ROOT / "tests")]
    script = PROGRAM_IDS.format(path=path)
    answers = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert answers[0].count("/Axpy/") == 2


def test_a_program_that_names_no_runner_of_this_process_is_refused(ops):
    ops.axpy(X, Y)
    jax.jit(ops.axpy)(X, Y)  # registers the target
    call = jax.ffi.ffi_call("msops_runner", jax.ShapeDtypeStruct((3,), jnp.float32))
    attributes = {
        "op": "Axpy",
        "runner": "0123456789abcdef/Axpy/7",
        "input_count": np.int64(1),
        "updates": np.array([-1]),
        "operands": np.int64(1),
        "ranks": np.array([1, 1]),
        "dims": np.array([3, 3]),
        "dtypes": "float32,float32",
        "type_ids": np.array([43, 43]),
    }
    with pytest.raises(jax.errors.JaxRuntimeError, match="an object of another process, or one"):
        call(X, **attributes)


# The module is compiled anew.
@pytest.mark.slow
def test_a_module_for_a_gpu_does_not_run_on_cpu():
    axpy = extension("runners", "GPU").axpy
    with pytest.raises(
        BackendError, match="was built for backend 'GPU', and the program is lowered"
    ):
        jax.jit(lambda x: axpy(x, x, 2.0))(X)
