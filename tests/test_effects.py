"""Calls of an op with effects are never lost and never doubled, or the op is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback
from quick_cases import in_turn

from msops import Custom, errors

X = jnp.float32(1)
SOURCE = """
#include <cstdint>
static float seen[64];
static int count;
extern "C" int Note(int, void **p, int *, int64_t **, const char **, void *, void *) {
  if (count < 64) seen[count++] = *static_cast<float *>(p[0]);
  *static_cast<float *>(p[1]) = *static_cast<float *>(p[0]);
  return 0;
}
extern "C" int Drain(int, void **p, int *, int64_t **, const char **, void *, void *) {
  float *out = static_cast<float *>(p[1]);
  out[0] = count;
  for (int i = 0; i < count; ++i) out[i + 1] = seen[i];
  count = 0;
  return 0;
}
"""


def first(x: Any) -> Any:
    return x


class Noting:
    """An op that notes its argument, and what it noted."""

    def __init__(self, op: Custom, drain: Callable[[], list[float]]):
        self.op = op
        self._drain = drain

    def calls(self) -> list[float]:
        jax.effects_barrier()
        return self._drain()


def noting_in_python(**options: Any) -> Noting:
    noted: list[float] = []

    def note(x: np.ndarray) -> np.ndarray:
        noted.append(float(x))
        return x

    def drain() -> list[float]:
        found = list(noted)
        noted.clear()
        return found

    return Noting(Custom(note, first, first, **{"stateful": True, **options}), drain)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("effects") / "note.cc"
    path.write_text(SOURCE)
    return path


def noting_in_cpp(source: Path, **options: Any) -> Noting:
    drain = Custom(f"{source}:Drain", [65], np.float32, stateful=True)

    def drained() -> list[float]:
        found = np.asarray(drain(X))
        return found[1 : 1 + int(found[0])].tolist()

    return Noting(Custom(f"{source}:Note", first, first, **{"stateful": True, **options}), drained)


@pytest.fixture(params=["python", "cpp", "vjp", "jvp"])
def noting(request: pytest.FixtureRequest, source: Path) -> Iterator[Noting]:
    gradient = {"bprop": lambda x, out, dout: (dout,)}
    if request.param == "cpp":
        made = noting_in_cpp(source, **gradient)
    elif request.param == "python":
        made = noting_in_python(**gradient)
    else:
        made = noting_in_python()
        op = made.op
        if request.param == "vjp":
            op.def_vjp(lambda x: (op(x), ()), lambda residuals, dout: (dout,))
        else:
            op.def_jvp(lambda primals, tangents: (op(*primals), tangents[0]))
    yield made
    made.calls()


def unused(op: Callable[..., Any], x: Any) -> Any:
    op(x)
    return x


def programs(op: Callable[..., Any]) -> dict[str, tuple[Callable[[Any], Any], list[float]]]:
    """Programs that call the op, by name, with the values it gets."""

    def body(carry: Any, i: Any) -> Any:
        op(carry + i)
        return carry, None

    def in_while(x: Any) -> Any:
        lax.while_loop(lambda c: c < 4, lambda c: unused(op, c) + 1, lax.stop_gradient(x))
        return x

    steps = jnp.arange(3.0)
    three = [1.0, 2.0, 3.0]
    return {
        "call": (lambda x: unused(op, x), [1.0]),
        "used": (lambda x: op(x) * x, [1.0]),
        "jit": (lambda x: unused(jax.jit(op), x), [1.0]),
        "scan": (lambda x: lax.scan(body, x, steps)[0], three),
        "outputs of scan": (lambda x: lax.scan(lambda c, i: (c, op(c + i)), x, steps)[0], three),
        "fori_loop": (
            lambda x: unused(lambda v: lax.fori_loop(0, 3, lambda i, c: op(c) + 1, v), x),
            three,
        ),
        "unused in fori_loop": (
            lambda x: lax.fori_loop(0, 3, lambda i, c: body(c, i * 1.0)[0], x),
            three,
        ),
        "while_loop": (in_while, three),
        "cond": (lambda x: lax.cond(x > 0, lambda y: unused(op, y), lambda y: y, x), [1.0]),
        "result of cond": (
            lambda x: unused(lambda v: lax.cond(v > 0, op, lambda y: y, v), x),
            [1.0],
        ),
        "switch": (lambda x: unused(lambda v: lax.switch(1, [lambda y: y, op], v), x), [1.0]),
        "cond in scan": (
            lambda x: lax.scan(
                lambda c, i: (
                    lax.cond(i >= 0, lambda y: unused(op, y), lambda y: y, c + i) * 0 + c,
                    None,
                ),
                x,
                steps,
            )[0],
            three,
        ),
        "scan in scan": (
            lambda x: lax.scan(lambda c, i: (lax.scan(body, c, i[None])[0], None), x, steps)[0],
            three,
        ),
        "vmap": (lambda x: unused(jax.vmap(op), x + steps)[0], three),
        "vmap of scan": (
            lambda x: jax.vmap(lambda y: lax.scan(body, y, steps)[0])(x + steps[:2])[0],
            [1.0, 2.0, 2.0, 3.0, 3.0, 4.0],
        ),
    }


PROGRAMS = list(programs(first))
TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda f: f,
    "jit": jax.jit,
    "grad": jax.grad,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "value_and_grad": jax.value_and_grad,
    "remat": jax.checkpoint,
    "grad in scan": lambda f: (
        lambda x: jax.grad(lambda y: lax.scan(lambda c, _: (c + f(y), None), 0.0, length=1)[0])(x)
    ),
}


def pull_back_twice(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def pulled(x: Any) -> Any:
        _, pull = jax.vjp(f, x)
        return pull(1.0), pull(2.0)

    return pulled


TRANSFORMATIONS["vjp called twice"] = pull_back_twice


@pytest.mark.parametrize(("program", "transformation"), in_turn(PROGRAMS, TRANSFORMATIONS))
def test_each_call_happens_once(program: str, transformation: str, noting: Noting) -> None:
    function, expected = programs(noting.op)[program]
    transformed = TRANSFORMATIONS[transformation](function)
    if (program, transformation) == ("while_loop", "grad in scan"):
        with pytest.raises(errors.BackendError, match="runs a while loop again"):
            transformed(X)
        expected = []
    else:
        jax.block_until_ready(transformed(X))
    assert sorted(noting.calls()) == expected


@pytest.mark.parametrize("language", ["python", "cpp"])
@pytest.mark.parametrize("program", ["call", "used", "scan", "unused in fori_loop", "cond"])
def test_linearize_calls_once(program: str, language: str, source: Path) -> None:
    noting = noting_in_cpp(source) if language == "cpp" else noting_in_python()
    noting.op.def_jvp(lambda primals, tangents: (noting.op(*primals), tangents[0]))
    function, expected = programs(noting.op)[program]
    _, push = jax.linearize(function, X)
    assert sorted(noting.calls()) == expected
    push(X)
    assert noting.calls() == []


@pytest.mark.parametrize("program", ["call", "scan", "cond", "vmap"])
def test_the_derivative_of_remat_is_refused_by_name(program: str, noting: Noting) -> None:
    """It would call again what its policy does not save."""
    function, _ = programs(noting.op)[program]
    with pytest.raises(NotImplementedError, match=r"Custom '[nN]ote' is stateful: it runs once"):
        jax.grad(jax.checkpoint(function))(X)
    assert noting.calls() == []


def test_a_rule_that_calls_its_op_gives_result_and_tangent() -> None:
    noting = noting_in_python()
    noting.op.def_jvp(lambda primals, tangents: (noting.op(*primals), 3 * tangents[0]))
    assert jax.jvp(noting.op, (X,), (X,)) == (1.0, 3.0)
    assert noting.calls() == [1.0]


@pytest.mark.parametrize("transform", [first, jax.jit, lambda f: jax.jit(jax.vmap(f))])
def test_vmap_of_a_condition_that_differs_is_refused(transform: Any, noting: Noting) -> None:
    def choose(x: Any) -> Any:
        return lax.cond(x > 1, noting.op, lambda y: y, x)

    x = jnp.arange(4.0).reshape(2, 2) if transform not in (first, jax.jit) else jnp.arange(4.0)
    with pytest.raises(errors.BackendError, match="it is stateful, and jax"):
        transform(jax.vmap(choose))(x)
    assert noting.calls() == []
    assert lax.map(choose, jnp.arange(4.0)).tolist() == [0, 1, 2, 3]
    assert noting.calls() == [2.0, 3.0]


def test_vmap_of_a_condition_that_all_elements_share_runs_one_branch() -> None:
    noting = noting_in_python()
    choose = jax.vmap(lambda flag, x: lax.cond(flag, noting.op, lambda y: -y, x), (None, 0))
    choose(False, jnp.arange(2.0))
    assert noting.calls() == []
    choose(True, jnp.arange(2.0))
    assert noting.calls() == [0.0, 1.0]


def test_vmap_of_a_while_loop_that_differs_is_refused(noting: Noting) -> None:
    def loop(limit: Any, x: Any) -> Any:
        return lax.while_loop(
            lambda c: c[0] < limit, lambda c: (c[0] + 1, noting.op(c[1])), (0.0, x)
        )

    with pytest.raises(errors.BackendError, match="until the last one is done"):
        jax.vmap(loop)(jnp.arange(3.0), jnp.arange(3.0))
    assert noting.calls() == []
    jax.vmap(loop, (None, 0))(1.0, jnp.arange(3.0))
    assert noting.calls() == [0.0, 1.0, 2.0]


def test_the_derivative_of_a_while_loop_that_calls_is_refused() -> None:
    noting = noting_in_python(forward=True, bprop=lambda x, out, dout: (dout,))

    def loop(x: Any) -> Any:
        return lax.while_loop(lambda c: c < 4, lambda c: noting.op(c) + 1, x)

    with pytest.raises(errors.BackendError, match="runs a while loop again for its derivative"):
        jax.linearize(loop, X)


def test_an_op_without_outputs_is_called_once_under_grad() -> None:
    noted: list[float] = []
    op = Custom(lambda x: noted.append(float(x)), (), (), bprop=lambda x, out, dout: (x,))
    assert jax.jit(jax.grad(lambda x: (op(x), x * x)[1]))(X) == 2
    jax.effects_barrier()
    assert noted == [1.0]


def orders(op: Callable[..., Any], other: Callable[..., Any]) -> dict[str, tuple[Any, list[float]]]:
    """Programs of two ops, of which the second notes its argument less 100, with what they note."""

    def in_while(x: Any) -> Any:
        return lax.while_loop(lambda c: op(c) < 3, lambda c: other(c) + 1, x)

    six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    return {
        "six calls": (lambda x: [op(x + i) for i in range(6)], six),
        "two ops": (lambda x: [op(x), other(x + 1), op(x + 2), other(x + 3)], [1, -98, 3, -96]),
        "unused": (lambda x: ([op(x + i) for i in range(4)], x)[1], [1, 2, 3, 4]),
        "scan": (
            lambda x: lax.scan(lambda c, i: (c, (op(c + i), other(c + i))), x, jnp.arange(2.0)),
            [1, -99, 2, -98],
        ),
        "cond": (
            lambda x: [op(x), lax.cond(x > 0, lambda y: other(y), lambda y: y, x), op(x + 1)],
            [1, -99, 2],
        ),
        "while_loop": (in_while, [1, -99, 2, -98, 3]),
        "map": (
            lambda x: lax.map(lambda i: (op(i), other(i)), x + jnp.arange(2.0)),
            [1, -99, 2, -98],
        ),
        "gradient": (
            lambda x: jax.grad(lambda y: op(y) * other(y + 1) * op(y + 2))(x),
            [1, -98, 3],
        ),
    }


ORDERS = list(orders(first, first))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("stateful", [True, "ordered"])
def test_calls_run_in_the_order_of_the_program(order: str, stateful: Any) -> None:
    noted: list[float] = []

    def note(x: np.ndarray) -> np.ndarray:
        noted.append(float(x))
        return x

    def note_less(x: np.ndarray) -> np.ndarray:
        noted.append(float(x) - 100)
        return x

    ops = [
        Custom(function, first, first, stateful=stateful, bprop=lambda x, out, dout: (dout,))
        for function in (note, note_less)
    ]
    program, expected = orders(*ops)[order]
    for transform in (first, jax.jit):
        noted.clear()
        jax.block_until_ready(transform(program)(X))
        jax.effects_barrier()
        assert noted == expected


def test_ordered_calls_keep_the_order_of_ordered_callbacks() -> None:
    noting, noted = noting_in_python(stateful="ordered"), []

    def program(x: Any) -> Any:
        for i in range(4):
            noting.op(x + i) if i % 2 else io_callback(noted.append, None, x + i, ordered=True)

    text = str(jax.make_jaxpr(program)(X).effects)
    jax.jit(program)(X)
    assert noting.calls() == [2.0, 4.0]
    assert [float(value) for value in noted] == [1.0, 3.0]
    # One token for both kinds.
    assert text.count("order") + text.count("Ordered") == 1


@pytest.mark.parametrize("stateful", [True, "ordered"])
@pytest.mark.parametrize("wrap", [first, jax.jit])
def test_ordered_debugging_callbacks_beside_ops(stateful: Any, wrap: Callable[..., Any]) -> None:
    noting, noted, written = noting_in_python(stateful=stateful), [], []

    def step(x: Any, _: Any) -> Any:
        jax.debug.callback(lambda x: noted.append(float(x)), x, ordered=True)
        y = wrap(noting.op)(x)
        io_callback(lambda x: written.append(float(x)), None, y, ordered=True)
        jax.debug.callback(lambda x: noted.append(float(x)), -x, ordered=True)
        return x + wrap(noting.op)(x * 10) / 10, None

    jax.jit(lambda x: lax.scan(step, x, length=2))(X)
    assert noting.calls() == [1, 10, 2, 20]
    # JAX keeps no order between these two kinds.
    assert noted == [1, -1, 2, -2]
    assert written == [1, 2]


@pytest.mark.parametrize("stateful", [True, "ordered"])
@pytest.mark.parametrize("host", [False, True])
def test_calls_of_cpp_run_in_the_order_of_the_program(
    source: Path, host: bool, stateful: Any
) -> None:
    noting = noting_in_cpp(source, stateful=stateful, host=host)
    # Calls outside of jit are programs of their own.
    for transform in (first, jax.jit) if stateful == "ordered" else (jax.jit,):
        transform(lambda x: [noting.op(x + i) for i in range(6)])(X)
        assert noting.calls() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("stateful", [True, "ordered"])
def test_calls_of_narrow_elements_run_in_order(stateful: Any) -> None:
    noting = noting_in_python(stateful=stateful)
    jax.jit(lambda x: [noting.op(x + i) for i in range(5)])(jnp.ones((), jnp.int4))
    assert noting.calls() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_ordered_calls_are_refused_where_there_is_no_order() -> None:
    op = noting_in_python(stateful="ordered").op
    with pytest.raises(errors.BackendError, match="have no order"):
        jax.vmap(op)(jnp.arange(3.0))
    with pytest.raises(NotImplementedError, match="Custom 'note' is stateful: it runs once per"):
        jax.grad(jax.checkpoint(lambda x: op(lax.stop_gradient(x)) * x))(X)


@pytest.mark.parametrize("stateful", [True, "ordered"])
def test_an_effects_barrier_raises_an_error_once(stateful: Any) -> None:
    def fail(x: Any) -> Any:
        raise ValueError("by hand")

    long = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda _, x: x @ x, x))
    program = jax.jit(Custom(fail, first, first, stateful=stateful))
    with pytest.raises((ValueError, RuntimeError), match="by hand"):
        program(jnp.eye(700))
    jax.effects_barrier()
    raised: list[str] = []
    try:
        program(long(jnp.eye(700)))  # runs when its input is there
    except (ValueError, RuntimeError) as error:
        raised.append(str(error))
    if raised:
        # On a busy machine the input may be there before the call.
        assert "by hand" in raised[0]
    else:
        with pytest.raises((ValueError, RuntimeError), match="by hand"):
            jax.effects_barrier()
    jax.effects_barrier()
