"""Trains a network with a C++ activation on handwritten digits, next to the same one in jax.numpy.

The activation is Mish, whose kernel and gradient kernel are in activation.cc. Both networks start
from the same weights and see the same batches, so they must end at the same test accuracy.

    python examples/digits.py [--epochs 100]

Exits with 1 if a network ends at or below 95 % test accuracy, or if the two differ.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import msops

try:
    import optax
    from sklearn.datasets import load_digits
    from tqdm import trange
except ImportError as error:
    sys.exit(f"digits.py: {error}.\nInstall what it needs: pip install optax scikit-learn tqdm")

LAYER_SIZES = (64, 256, 256, 10)
BATCH_SIZE = 64
TEST_SIZE = 360
WANTED_ACCURACY = 0.95
# Rounding may tip an image that lies between two digits: two of the 360.
ACCURACY_TOLERANCE = 2 / TEST_SIZE

SOURCE = Path(__file__).with_name("activation.cc")
mish_grad = msops.cpp(f"{SOURCE}:MishGrad", out=lambda x, dy: x)
mish = msops.cpp(
    f"{SOURCE}:Mish",
    out=lambda x: x,
    bprop=lambda x, out, dout: (mish_grad(x, dout),),
)


def plain_mish(x: jax.Array) -> jax.Array:
    """Mish as one writes it in jax.numpy."""
    return x * jnp.tanh(jax.nn.softplus(x))


class Digits(NamedTuple):
    """Images of shape (count, 64) in [0, 1], and their labels."""

    images: np.ndarray
    labels: np.ndarray


class Result(NamedTuple):
    """How one network did."""

    network: str
    accuracy: float
    compile_s: float
    train_s: float
    activation_us: float


def load_data() -> tuple[Digits, Digits]:
    """Returns scikit-learn's digits, shuffled, as training and test set."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int32)
    return (
        Digits(images[TEST_SIZE:], labels[TEST_SIZE:]),
        Digits(images[:TEST_SIZE], labels[:TEST_SIZE]),
    )


def init_params(key: jax.Array) -> list[dict[str, jax.Array]]:
    """Returns He-initialised weights, and biases of zero."""
    pairs = list(itertools.pairwise(LAYER_SIZES))
    return [
        {"w": jax.random.normal(k, pair) * np.sqrt(2 / pair[0]), "b": jnp.zeros(pair[1])}
        for k, pair in zip(jax.random.split(key, len(pairs)), pairs, strict=True)
    ]


def make_network(
    activation: Callable[..., jax.Array], optimizer: optax.GradientTransformation
) -> tuple[Callable[..., jax.Array], Callable[..., tuple[Any, Any, jax.Array]]]:
    """Returns the network as a function of parameters and images, and its training step."""

    def predict(params, images):
        *hidden, last = params
        for layer in hidden:
            images = activation(images @ layer["w"] + layer["b"])
        return images @ last["w"] + last["b"]

    def mean_loss(params, batch):
        logits = predict(params, batch.images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch.labels).mean()

    def step(params, state, batch):
        loss, grads = jax.value_and_grad(mean_loss)(params, batch)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return predict, step


def train(name: str, activation: Callable[..., jax.Array], epochs: int) -> Result:
    """Trains a network with `activation`; every call uses the same seeds."""
    training, test = load_data()
    optimizer = optax.adamw(2e-3)
    predict, step = make_network(activation, optimizer)
    params = init_params(jax.random.key(0))
    state = optimizer.init(params)
    batch = Digits(training.images[:BATCH_SIZE], training.labels[:BATCH_SIZE])

    start = time.perf_counter()
    # Donated weights are updated in place.
    run_step = jax.jit(step, donate_argnums=(0, 1)).lower(params, state, batch).compile()
    compile_s = time.perf_counter() - start

    shuffle = np.random.default_rng(1)
    start = time.perf_counter()
    # disable=None: no bar unless it goes to a terminal.
    with trange(epochs, desc=name, unit="epoch", disable=None) as progress:
        for _ in progress:
            order = shuffle.permutation(len(training.labels))
            for first in range(0, len(order) - BATCH_SIZE + 1, BATCH_SIZE):
                rows = order[first : first + BATCH_SIZE]
                batch = Digits(training.images[rows], training.labels[rows])
                params, state, loss = run_step(params, state, batch)
            progress.set_postfix(loss=f"{loss:.4f}")
    train_s = time.perf_counter() - start

    correct = jnp.argmax(jax.jit(predict)(params, test.images), axis=1) == test.labels
    return Result(name, float(correct.mean()), compile_s, train_s, time_activation(activation))


def time_activation(activation: Callable[..., jax.Array], repeats: int = 500) -> float:
    """Returns the median time, in microseconds, of one layer's activation and its gradient."""

    @jax.jit
    def forward_and_backward(x, dy):
        y, pull_back = jax.vjp(activation, x)
        return y, pull_back(dy)

    x = jax.random.normal(jax.random.key(2), (BATCH_SIZE, LAYER_SIZES[1]))
    times_s = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(forward_and_backward(x, x))
        times_s.append(time.perf_counter() - start)
    return statistics.median(times_s) * 1e6


def print_table(results: list[Result]) -> None:
    """Prints one row per network."""
    print(f"\n{'network':<20}{'test accuracy':>14}{'compile':>10}{'train':>10}{'activation':>13}")
    for row in results:
        print(
            f"{row.network:<20}{row.accuracy:>14.2%}{row.compile_s:>8.2f} s{row.train_s:>8.2f} s"
            f"{row.activation_us:>10.0f} us"
        )
    print("(activation: one layer of one batch, value and gradient)")


def main() -> int:
    """Trains both networks and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=100, help="passes over the training set")
    epochs = parser.parse_args().epochs
    results = [train("Mish in C++", mish, epochs), train("Mish in jax.numpy", plain_mish, epochs)]
    print_table(results)
    accuracies = [result.accuracy for result in results]
    if min(accuracies) <= WANTED_ACCURACY:
        print(f"Wanted more than {WANTED_ACCURACY:.0%} test accuracy.", file=sys.stderr)
        return 1
    if abs(accuracies[0] - accuracies[1]) > ACCURACY_TOLERANCE:
        print("Wanted equal accuracies.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
