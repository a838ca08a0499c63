"""What a TBE kernel costs, next to the same mathematics in jax.numpy."""

from __future__ import annotations

import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from report import Report, Table, judge, show_count, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

from msops import Custom
from msops.ops import CustomRegOp, DataType

METHOD = (
    "Fake quantisation per channel of float32 (N, 64, 8, 8), softmax of rows of 256, and a sum of "
    "three arrays, under jax.jit and with its gradient; microseconds a call as median (quartiles) "
    "of {rounds} rounds in which all contenders take turns; ratios are taken within a round. The "
    "jax.numpy code is written as one would, not after the kernel. Programs are equal if XLA's "
    "optimised HLO of both holds as many operations of each kind and shape: what is then beyond "
    "1.00 is where their buffers happen to lie"
)
LEVELS = 255.0


def _run_kernel(kernel, inputs, kernel_name):
    """Builds a kernel of placeholders like the inputs; `kernel` describes it."""
    import te.lang.cce
    from te import tvm

    data = [tvm.placeholder(x["shape"], name=x["name"], dtype=x["dtype"]) for x in inputs]
    result = kernel(te.lang.cce, *data)
    with tvm.target.cce():
        schedule = te.lang.cce.auto_schedule(result)
    te.lang.cce.cce_build_code(schedule, {"name": kernel_name, "tensor_list": [*data, result]})


def add3(a, b, c, y, kernel_name="add3"):
    """a + b + c."""
    _run_kernel(lambda te, a, b, c: te.vadd(te.vadd(a, b), c), [a, b, c], kernel_name)


def softmax(x, y, kernel_name="softmax"):
    """Softmax over the last axis."""

    def describe(te, x):
        top = te.broadcast(te.reduce_max(x, -1, True), x.shape)
        exponent = te.vexp(te.vsub(x, top))
        return te.vdiv(exponent, te.broadcast(te.sum(exponent, -1, True), x.shape))

    _run_kernel(describe, [x], kernel_name)


def fake_quant(x, scale, y, kernel_name="fake_quant"):
    """Rounds to the levels of a scale per channel."""

    def describe(te, x, scale):
        scale = te.broadcast(scale, x.shape)
        levels = te.round_to(te.vdiv(x, scale), LEVELS, 0.0)
        return te.vmul(te.floor(te.vadds(levels, 0.5)), scale)

    shaped = {**scale, "shape": [1, scale["shape"][0], 1, 1]}
    _run_kernel(describe, [x, shaped], kernel_name)


def _fake_quant_in_numpy(x, scale):
    scale = scale[:, None, None]
    return jnp.floor(jnp.clip(x / scale, 0, LEVELS) + 0.5) * scale


def _softmax_in_numpy(x):
    # jax.nn.softmax has a derivative of its own, other mathematics than the kernel's.
    exponent = jnp.exp(x - x.max(-1, keepdims=True))
    return exponent / exponent.sum(-1, keepdims=True)


KERNELS = {
    "add3": (add3, lambda a, b, c: a + b + c, 3),
    "softmax": (softmax, _softmax_in_numpy, 1),
    "fake_quant": (fake_quant, _fake_quant_in_numpy, 2),
}


def _make_op(kernel, inputs):
    builder = CustomRegOp(kernel.__name__)
    for index in range(inputs):
        builder.input(index, f"x{index}")
    builder.output(0, "y").dtype_format(*[DataType.F32_Default] * (inputs + 1))
    info = builder.target("Ascend").get_op_info()
    return Custom(kernel, lambda x, *_: x, lambda x, *_: x, func_type="tbe", reg_info=info)


def _make_inputs(name, count):
    rng = np.random.default_rng(0)
    if name == "fake_quant":
        images = rng.normal(size=(max(count // 4096, 1), 64, 8, 8))
        return [jnp.asarray(x, jnp.float32) for x in (images, rng.uniform(0.01, 0.1, 64))]
    shape = (max(count // 256, 1), min(count, 256)) if name == "softmax" else (count,)
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for _ in range(KERNELS[name][2])]


def run(settings: Settings) -> Report:
    """Measures every kernel at every size, and its gradient."""
    tables, worst = [], {}
    for name in KERNELS:
        rows = []
        for count in settings.counts:
            for what, (times, is_equal) in _measure(name, count, settings.rounds).items():
                ratio = times["tbe"].over(times["jax.numpy"])
                worst[f"{name}, {what}, {show_count(count)}"] = ratio.median
                costs = [show_us(times[who].microseconds) for who in ("tbe", "jax.numpy")]
                programs = "equal" if is_equal else "differ"
                rows.append([show_count(count), what, *costs, show_ratio(ratio), programs])
        columns = ["elements", "what", "tbe", "jax.numpy", "tbe / jax.numpy", "programs"]
        tables.append(Table(name, columns, rows))
    return Report(
        name="tbe",
        title="A TBE kernel and the same in jax.numpy",
        method=METHOD.format(rounds=settings.rounds),
        tables=tables,
        verdicts=[judge("a tbe kernel within 5 % of jax.numpy", worst, 1.05)],
    )


def _measure(name: str, count: int, rounds: int) -> dict[str, tuple[dict[str, Times], bool]]:
    """Returns, for value and gradient, the times, and whether both are the same program."""
    kernel, plain, inputs = KERNELS[name]
    arrays = _make_inputs(name, count)
    functions = {"tbe": _make_op(kernel, inputs), "jax.numpy": plain}
    found = {}
    for what, wrap in (("value", jax.jit), ("gradient", _gradient)):
        calls = {who: wrap(function) for who, function in functions.items()}
        results = [np.asarray(call(*arrays)) for call in calls.values()]
        if not np.allclose(*results, rtol=1e-4, atol=1e-4):
            raise RuntimeError(f"{name}, {what}: both must compute the same")
        tbe, numpy = (_operations(call, arrays) for call in calls.values())
        turns = {who: _waiting(call, arrays) for who, call in calls.items()}
        found[what] = take_turns(turns, rounds), tbe == numpy
    return found


def _operations(call, arrays) -> Counter[tuple[str, str]]:
    """Returns how often each kind of operation stands in a program, by shape of its result."""
    text = call.lower(*arrays).compile().as_text()
    return Counter(re.findall(r" = (\S+) ([a-z-]+)\(", text))


def _gradient(function):
    return jax.jit(jax.grad(lambda *arrays: (function(*arrays) ** 2).sum()))


def _waiting(call, arrays):
    return lambda: call(*arrays).block_until_ready()
