"""The suite of loop nests: inputs at three sizes, and the same in `jax.numpy` by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import nest_kernels
import numpy as np
from jax import lax

Array = jax.Array


@dataclass(frozen=True)
class Nest:
    """One kernel of the suite.

    Attributes:
      name: of the functions in nest_kernels.py and nests.c.
      inputs: returns the inputs for a length.
      lengths: three of them; the largest is beyond the caches near a processor.
      by_hand: the same in `jax.numpy`.
    """

    name: str
    inputs: Callable[[int], Sequence[np.ndarray]]
    lengths: tuple[int, int, int]
    by_hand: Callable[..., Any]

    @property
    def kernel(self) -> Callable[..., Any]:
        """The loops."""
        return getattr(nest_kernels, self.name)


def _uniform(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, np.float32)


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def _sparse(n: int) -> list[np.ndarray]:
    """Returns a matrix with up to 31 elements in a row, by rows, and a vector."""
    rng = np.random.default_rng(0)
    first = np.concatenate([[0], np.cumsum(rng.integers(0, 32, n))]).astype(np.int32)
    column = rng.integers(0, n, first[-1]).astype(np.int32)
    return [first, column, _normal(first[-1]), _normal(n, seed=1)]


def _symm(a: Array, b: Array, c: Array) -> Array:
    return c + (jnp.tril(a) + jnp.tril(a, -1).T) @ b


def _covariance(x: Array) -> Array:
    centred = x - x.mean(0)
    return centred.T @ centred / (len(x) - 1)


def _floyd_warshall(p: Array) -> Array:
    return lax.fori_loop(0, len(p), lambda k, p: jnp.minimum(p, p[:, k][:, None] + p[k][None]), p)


def _spmv(first: Array, column: Array, value: Array, x: Array) -> Array:
    rows = jnp.repeat(jnp.arange(len(first) - 1), jnp.diff(first), total_repeat_length=len(column))
    return jax.ops.segment_sum(value * x[column], rows, len(first) - 1, indices_are_sorted=True)


def _seidel(a: Array) -> Array:
    def row(i: Array, a: Array) -> Array:
        above, at, below = a[i - 1], a[i], a[i + 1]
        rest = above[:-2] + above[1:-1] + above[2:] + at[1:-1] + at[2:]
        rest = rest + below[:-2] + below[1:-1] + below[2:]

        def step(left: Array, others: Array) -> tuple[Array, Array]:
            new = (left + others) / 9
            return new, new

        _, new = lax.scan(step, at[0], rest)
        return a.at[i, 1:-1].set(new)

    return lax.fori_loop(0, 4, lambda _, a: lax.fori_loop(1, a.shape[0] - 1, row, a), a)


def _gray_scott(u: Array, v: Array) -> tuple[Array, Array]:
    def cross(a: Array) -> Array:
        return a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]

    def step(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        u, v = state
        at, vt = u[1:-1, 1:-1], v[1:-1, 1:-1]
        r = at * vt * vt
        return (
            u.at[1:-1, 1:-1].set(at + 0.16 * cross(u) - r + 0.035 * (1 - at)),
            v.at[1:-1, 1:-1].set(vt + 0.08 * cross(v) + r - 0.1 * vt),
        )

    return lax.fori_loop(0, 8, step, (u, v))


def _diffusion(a: Array, c: Array) -> Array:
    lap = 4 * a[1:-1, 1:-1] - (a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2])
    f = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flx = jnp.where(f * (a[2:-1, 2:-2] - a[1:-2, 2:-2]) > 0, 0, f)
    f = lap[1:-1, 1:] - lap[1:-1, :-1]
    fly = jnp.where(f * (a[2:-2, 2:-1] - a[2:-2, 1:-2]) > 0, 0, f)
    return a[2:-2, 2:-2] - c * (flx[1:] - flx[:-1] + fly[:, 1:] - fly[:, :-1])


def _thomas(a: Array, b: Array, c: Array, d: Array) -> Array:
    a, b, c, d = (jnp.moveaxis(part, -1, 0) for part in (a, b, c, d))

    def down(last: tuple[Array, Array], row: tuple[Array, ...]) -> Any:
        a, b, c, d = row
        pivot = b - a * last[0]
        new = (c / pivot, (d - a * last[1]) / pivot)
        return new, new

    zero = jnp.zeros_like(b[0])
    _, (cp, dp) = lax.scan(down, (zero, zero), (a.at[0].set(0), b, c, d))

    def up(x: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        x = row[1] - row[0] * x
        return x, x

    _, x = lax.scan(up, zero, (cp.at[-1].set(0), dp), reverse=True)
    return jnp.moveaxis(x, 0, -1)


def _mandelbrot(cr: Array, ci: Array) -> Array:
    def step(_: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
        zr, zi, steps = state
        inside = zr * zr + zi * zi <= 4
        return (
            jnp.where(inside, zr * zr - zi * zi + cr, zr),
            jnp.where(inside, 2 * zr * zi + ci, zi),
            steps + inside,
        )

    zero = jnp.zeros_like(cr)
    return lax.fori_loop(0, 50, step, (zero, zero, zero))[2]


def _harris(a: Array) -> Array:
    right = a[:-2, 2:] + 2 * a[1:-1, 2:] + a[2:, 2:]
    dx = right - (a[:-2, :-2] + 2 * a[1:-1, :-2] + a[2:, :-2])
    low = a[2:, :-2] + 2 * a[2:, 1:-1] + a[2:, 2:]
    dy = low - (a[:-2, :-2] + 2 * a[:-2, 1:-1] + a[:-2, 2:])

    def box(a: Array) -> Array:
        rows = a[:, :-2] + a[:, 1:-1] + a[:, 2:]
        return rows[:-2] + rows[1:-1] + rows[2:]

    xx, yy, xy = box(dx * dx), box(dy * dy), box(dx * dy)
    return xx * yy - xy * xy - 0.05 * (xx + yy) ** 2


def _windows(a: Array, size: int) -> list[tuple[int, int, Array]]:
    n, m = a.shape[0] - size + 1, a.shape[1] - size + 1
    return [(p, q, a[p : p + n, q : q + m]) for p in range(size) for q in range(size)]


def _bilateral(a: Array) -> Array:
    total = weights = jnp.zeros(())
    for p, q, part in _windows(a, 5):
        d = part - a[2:-2, 2:-2]
        w = jnp.exp(-0.1 * ((p - 2) ** 2 + (q - 2) ** 2) - 8 * d * d)
        total, weights = total + w * part, weights + w
    return total / weights


def _median(a: Array) -> Array:
    return jnp.sort(jnp.stack([part for _, _, part in _windows(a, 3)]), axis=0)[4]


def _dilate(a: Array) -> Array:
    return lax.reduce_window(a, -jnp.inf, lax.max, (5, 5), (1, 1), "SAME")


def _lstm(x: Array, w: Array, u: Array, b: Array) -> Array:
    def step(state: tuple[Array, Array], row: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = state
        add, keep, new, out = jnp.split(row + h @ u, 4)
        c = jax.nn.sigmoid(keep) * c + jax.nn.sigmoid(add) * jnp.tanh(new)
        h = jax.nn.sigmoid(out) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros(u.shape[0], x.dtype)
    return lax.scan(step, (zero, zero), x @ w + b)[1]


def _wkv(w: Array, u: Array, k: Array, v: Array) -> Array:
    decay = jnp.exp(w)

    def step(state: tuple[Array, Array], row: tuple[Array, Array]) -> Any:
        (a, b), (k, v) = state, row
        e, f = jnp.exp(u + k), jnp.exp(k)
        return (decay * a + f * v, decay * b + f), (a + e * v) / (b + e)

    zero = jnp.zeros_like(w)
    return lax.scan(step, (zero, zero), (k, v))[1]


def _attention(q: Array, k: Array, v: Array) -> Array:
    steps = q.shape[1]
    scores = jnp.einsum("htd,hsd->hts", q, k) / 8
    seen = jnp.tril(jnp.ones((steps, steps), bool))
    return jnp.einsum("hts,hsd->htd", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)), v)


def _rms_norm(x: Array, g: Array) -> Array:
    return x / jnp.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * g


def _system(n: int) -> list[np.ndarray]:
    parts = [_uniform(n, n, 64, seed=seed) for seed in range(4)]
    return [parts[0], parts[1] + 3, parts[2], parts[3]]


NESTS = (
    Nest(
        "symm",
        lambda n: [_normal(n, n), _normal(n, n, seed=1), _normal(n, n, seed=2)],
        (64, 200, 500),
        _symm,
    ),
    Nest("covariance", lambda n: [_normal(n, n)], (64, 200, 600), _covariance),
    Nest("floyd_warshall", lambda n: [_uniform(n, n)], (64, 200, 500), _floyd_warshall),
    Nest("spmv", _sparse, (1000, 20_000, 200_000), _spmv),
    Nest("seidel", lambda n: [_uniform(n, n)], (64, 300, 1200), _seidel),
    Nest(
        "gray_scott",
        lambda n: [_uniform(n, n), _uniform(n, n, seed=1)],
        (64, 300, 1500),
        _gray_scott,
    ),
    Nest(
        "diffusion",
        lambda n: [_uniform(n + 4, n + 4, 32), _uniform(n, n, 32, seed=1)],
        (16, 64, 200),
        _diffusion,
    ),
    Nest("thomas", _system, (16, 64, 160), _thomas),
    Nest(
        "mandelbrot",
        lambda n: [3 * _uniform(n, n) - 2, 2 * _uniform(n, n, seed=1) - 1],
        (64, 200, 700),
        _mandelbrot,
    ),
    Nest("harris", lambda n: [_uniform(n, n)], (64, 400, 2000), _harris),
    Nest("bilateral", lambda n: [_uniform(n, n)], (64, 300, 1000), _bilateral),
    Nest("median", lambda n: [_uniform(n, n)], (64, 300, 1000), _median),
    Nest("dilate", lambda n: [_uniform(n, n)], (64, 300, 1000), _dilate),
    Nest(
        "lstm",
        lambda n: [
            _normal(4 * n, n // 2),
            _normal(n // 2, 4 * n, seed=1) / 8,
            _normal(n, 4 * n, seed=2) / 12,
            _normal(4 * n, seed=3),
        ],
        (32, 64, 128),
        _lstm,
    ),
    Nest(
        "wkv",
        lambda n: [
            -_uniform(n),
            _uniform(n, seed=1),
            _uniform(2 * n, n, seed=2),
            _uniform(2 * n, n, seed=3),
        ],
        (64, 256, 768),
        _wkv,
    ),
    Nest(
        "attention",
        lambda n: [_normal(4, n, 64, seed=seed) for seed in range(3)],
        (64, 200, 600),
        _attention,
    ),
    Nest(
        "online_softmax",
        lambda n: [_normal(n, n)],
        (64, 400, 2000),
        lambda x: jax.nn.softmax(x, axis=1),
    ),
    Nest("rms_norm", lambda n: [_normal(n, n), _normal(n, seed=1)], (64, 400, 2000), _rms_norm),
)
