"""The suite of loop kernels: sizes, inputs, and what each is compared with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import loop_kernels
import numpy as np
from jax import lax

import msops
from msops import _toolchain

Shape = tuple[int, ...]
Shapes = Sequence[Sequence[Any]]

# Those of generated C, so that the two differ in nothing but who wrote them.
_C_FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fopenmp-simd")


@dataclass(frozen=True)
class Case:
    """One kernel of the suite.

    Attributes:
      name: of the function in loop_kernels.py, and in the other files.
      shapes_of: shapes of the inputs by a length; a trailing "int32" is a dtype.
      lengths: the small and the large size.
      by_hand: the same in `jax.numpy`; None for the order-bound, which loops_c/<name>.c has in C.
    """

    name: str
    shapes_of: Callable[[int], Shapes]
    lengths: tuple[int, int]
    by_hand: Callable[..., Any] | None

    @property
    def kernel(self) -> Callable[..., Any]:
        """The loops."""
        return getattr(loop_kernels, self.name)

    def inputs(self, size: int) -> list[np.ndarray]:
        """Returns the inputs of size 0 or 1."""
        return make_inputs(self.name, self.shapes_of(self.lengths[size]))

    def baseline(self) -> Callable[..., Any]:
        """Returns what was written by hand, jitted."""
        return jax.jit(self.by_hand or _c_op(self.name))

    def label(self, size: int) -> str:
        """Returns the name with the shape of the first input."""
        return self.label_at(self.lengths[size])

    def label_at(self, length: int) -> str:
        """Returns the name with the shape of the first input at a length."""
        return f"{self.name} {'x'.join(map(str, shape_of(self.shapes_of(length)[0])))}"


def shape_of(entry: Any) -> Shape:
    """Returns the shape in an entry of `Case.shapes`."""
    return tuple(item for item in entry if not isinstance(item, str))


def make_inputs(name: str, entries: Sequence[Any]) -> list[np.ndarray]:
    """Returns random inputs; square ones of decompositions are well-conditioned."""
    rng = np.random.default_rng(0)
    arrays: list[np.ndarray] = []
    for entry in entries:
        shape = shape_of(entry)
        if "int32" in entry:
            arrays.append(rng.integers(0, min(4, *shape) if name == "edit_distance" else shape[0],
                                       shape).astype(np.int32))  # fmt: skip
            continue
        array = rng.normal(size=shape)
        if name in ("lu", "cholesky", "triangular_solve") and not arrays:
            array = array @ array.T / shape[0] + 2 * np.eye(shape[0])
        arrays.append(array.astype(np.float32))
    return arrays


@functools.cache
def _c_op(name: str) -> msops.Custom:
    source = Path(__file__).parent / "loops_c" / f"{name}.c"
    library = _toolchain.build(source, options=msops.Build(flags=_C_FLAGS), who="benchmarks").path
    shape = {"edit_distance": lambda s, t: [s[0] + 1, t[0] + 1], "triangular_solve": lambda a, y: y}
    return msops.Custom(
        f"{library}:{name}", shape.get(name, lambda x, *_: x), lambda x, *_: x, "aot"
    )


def _gelu(a: jax.Array) -> jax.Array:
    return 0.5 * a * (1.0 + jnp.tanh(0.7978845608 * (a + 0.044715 * a * a * a)))


def _softmax(a: jax.Array) -> jax.Array:
    e = jnp.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _layer_norm(a: jax.Array, g: jax.Array, h: jax.Array) -> jax.Array:
    centred = a - a.mean(1, keepdims=True)
    return centred / jnp.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5) * g + h


def _max_pool(a: jax.Array) -> jax.Array:
    return a.reshape(a.shape[0] // 2, 2, a.shape[1] // 2, 2).max((1, 3))


def _stencil_3(a: jax.Array) -> jax.Array:
    return a.at[1:-1].set(0.25 * a[:-2] + 0.5 * a[1:-1] + 0.25 * a[2:])


def _stencil_5(a: jax.Array) -> jax.Array:
    cross = a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
    return a.at[1:-1, 1:-1].set(0.2 * cross)


def _conv2d(a: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(a[None], w, (1, 1), "VALID")[0]


def _scatter_add(a: jax.Array, idx: jax.Array) -> jax.Array:
    return jnp.zeros_like(a).at[idx].add(a)


def _n_body(p: jax.Array, q: jax.Array) -> jax.Array:
    d = p[None] - p[:, None]
    r = (d * d).sum(2) + 0.01
    return ((q / (r * jnp.sqrt(r)))[..., None] * d).sum(1)


def _square(n: int) -> Shapes:
    return [(n, n)]


def _squares(n: int) -> Shapes:
    return [(n, n), (n, n)]


CASES = (
    Case("add", _squares, (64, 1024), jnp.add),
    Case("gelu", _square, (64, 1024), _gelu),
    Case("softmax", _square, (64, 1024), _softmax),
    Case("layer_norm", lambda n: [(n, n), (n,), (n,)], (64, 1024), _layer_norm),
    Case("row_sum", _square, (64, 1024), lambda a: a.sum(1)),
    Case("column_sum", _square, (64, 1024), lambda a: a.sum(0)),
    Case("full_sum", _square, (64, 1024), lambda a: a.sum().reshape(1)),
    Case("max_pool", _square, (64, 1024), _max_pool),
    Case("stencil_3", lambda n: [(n,)], (4096, 1048576), _stencil_3),
    Case("stencil_5", _square, (64, 1024), _stencil_5),
    Case("transpose", _square, (64, 1024), jnp.transpose),
    Case("matmul", _squares, (64, 512), jnp.matmul),
    Case("batched_matmul", lambda n: [(8, n, n)] * 2, (32, 128), jnp.matmul),
    Case("conv2d", lambda n: [(8, n, n), (16, 8, 3, 3)], (32, 128), _conv2d),
    Case("outer", lambda n: [(n,)] * 2, (64, 1024), jnp.outer),
    Case("gather", lambda n: [(n, 64), (n, "int32")], (64, 4096), lambda a, idx: a[idx]),
    Case("scatter_add", lambda n: [(n, 64), (n, "int32")], (64, 4096), _scatter_add),
    Case("cumulative_sum", _square, (64, 1024), None),
    Case("lu", _square, (64, 256), None),
    Case("cholesky", _square, (64, 256), None),
    Case("triangular_solve", lambda n: [(n, n), (n, 16)], (64, 256), None),
    Case("edit_distance", lambda n: [(n, "int32")] * 2, (64, 1024), None),
    Case("gauss_seidel", _square, (64, 512), None),
    Case("n_body", lambda n: [(n, 3), (n,)], (64, 1024), _n_body),
)
