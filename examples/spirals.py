"""Trains a network with a C++ layer to separate two spirals, next to the same in jax.numpy.

The layer, swish(x + bias) with its gradient, is a Function of MindSpore's extension API in
bias_swish.cpp. Both networks start from the same weights and see the same points, in one jitted
step with optax, so their losses must be the same all along.

    python examples/spirals.py [--steps 1000]

Exits with 1 if the losses differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops.ops import CustomOpBuilder

try:
    import optax
except ImportError as error:
    sys.exit(f"spirals.py: {error}.\nInstall what it needs: pip install optax")

SOURCE = Path(__file__).with_name("bias_swish.cpp")
LAYER_SIZES = (2, 32, 32, 1)
POINTS = 400
LEARNING_RATE = 3e-3
# Both sum in float32, in orders of their own, and a training amplifies what differs.
LOSS_TOLERANCE = 2e-3

Layer = Callable[[jax.Array, jax.Array], jax.Array]
Parameters = list[tuple[jax.Array, jax.Array]]


def plain_bias_swish(x: jax.Array, bias: jax.Array) -> jax.Array:
    """The layer as one writes it in jax.numpy."""
    return jax.nn.swish(x + bias)


def make_spirals() -> tuple[np.ndarray, np.ndarray]:
    """Returns points of shape (POINTS, 2) and which spiral each is on, 0 or 1."""
    random = np.random.default_rng(0)
    labels = np.arange(POINTS) % 2
    angle = np.sqrt(random.uniform(0.05, 1, POINTS)) * 3 * np.pi
    turned = angle + np.pi * labels
    points = np.stack([np.cos(turned), np.sin(turned)], 1) * angle[:, None] / (3 * np.pi)
    points += random.normal(scale=0.01, size=points.shape)
    return points.astype(np.float32), labels.astype(np.float32)


def initial_parameters() -> Parameters:
    """Returns the weights that both networks start from."""
    keys = jax.random.split(jax.random.key(0), len(LAYER_SIZES))
    return [
        (jax.random.normal(key, (m, n)) * np.sqrt(2 / m), jnp.zeros(n))
        for key, m, n in zip(keys, LAYER_SIZES, LAYER_SIZES[1:], strict=False)
    ]


def train(layer: Layer, steps: int) -> tuple[np.ndarray, float]:
    """Returns the loss of every step, and the accuracy at the end."""
    points, labels = make_spirals()
    optimizer = optax.adam(LEARNING_RATE)

    def scores(parameters: Parameters) -> jax.Array:
        x = jnp.asarray(points)
        for weight, bias in parameters[:-1]:
            x = layer(x @ weight, bias)
        weight, bias = parameters[-1]
        return (x @ weight + bias)[:, 0]

    def loss(parameters: Parameters) -> jax.Array:
        return optax.sigmoid_binary_cross_entropy(scores(parameters), labels).mean()

    @jax.jit
    def step(parameters: Parameters, state: Any) -> tuple[Parameters, Any, jax.Array]:
        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(parameters, updates), state, value

    parameters = initial_parameters()
    state = optimizer.init(parameters)
    losses = []
    for _ in range(steps):
        parameters, state, value = step(parameters, state)
        losses.append(value)
    accuracy = np.mean((np.asarray(scores(parameters)) > 0) == labels)
    return np.array(losses), float(accuracy)


def main() -> None:
    """Trains both networks and compares their losses."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    steps = parser.parse_args().steps
    module = CustomOpBuilder("bias_swish", str(SOURCE)).load()
    ours, accuracy = train(module.bias_swish, steps)
    plain, plain_accuracy = train(plain_bias_swish, steps)
    print("step    C++ loss  jax.numpy loss")
    for index in sorted({*range(0, steps, max(1, steps // 5)), steps - 1}):
        print(f"{index:4}  {ours[index]:10.6f}  {plain[index]:14.6f}")
    print(f"Accuracy: {accuracy:.1%} with C++, {plain_accuracy:.1%} with jax.numpy")
    apart = float(np.abs(ours - plain).max())
    if apart > LOSS_TOLERANCE:
        sys.exit(f"spirals.py: the losses differ by {apart:.2g}, more than {LOSS_TOLERANCE}.")
    print(f"The losses of all {steps} steps agree to {apart:.1g}.")


if __name__ == "__main__":
    main()
