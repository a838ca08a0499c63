"""Trains a network with a C++ activation in data parallel: one process, or several together.

Each device has its rows of the batch, and XLA averages the gradients over all of them, so several
processes print the losses that one prints, up to rounding.

    python examples/data_parallel.py                  # the devices of this process
    python examples/data_parallel.py --processes 2    # two processes on this machine

On several machines it is started on each, with the address of the first:

    python examples/data_parallel.py --processes 2 --process 0 --coordinator host0:4096
    python examples/data_parallel.py --processes 2 --process 1 --coordinator host0:4096
"""

from __future__ import annotations

import argparse
import itertools
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import msops

LAYER_SIZES = (2, 32, 32, 1)
POINTS = 256
LEARNING_RATE = 0.05

SOURCE = Path(__file__).with_name("activation.cc")
mish_grad = msops.cpp(f"{SOURCE}:MishGrad", out=lambda x, dy: x)
mish = msops.cpp(
    f"{SOURCE}:Mish", out=lambda x: x, bprop=lambda x, out, dout: (mish_grad(x, dout),)
)

Parameters = list[tuple[jax.Array, jax.Array]]


def make_points() -> tuple[np.ndarray, np.ndarray]:
    """Returns points of a square, of shape (POINTS, 2), and a height over each, (POINTS, 1)."""
    x = np.random.default_rng(0).uniform(-2, 2, (POINTS, 2)).astype(np.float32)
    return x, np.sin(2 * x[:, :1]) * np.cos(x[:, 1:])


def own_rows(array: np.ndarray) -> np.ndarray:
    """Returns the rows that the devices of this process have."""
    return np.split(array, jax.process_count())[jax.process_index()]


def initial_parameters() -> Parameters:
    """Returns weights and biases, the same in every process."""
    keys = jax.random.split(jax.random.key(0), len(LAYER_SIZES) - 1)
    return [
        (jax.random.normal(key, pair) * np.sqrt(1 / pair[0]), jnp.zeros(pair[1]))
        for key, pair in zip(keys, itertools.pairwise(LAYER_SIZES), strict=True)
    ]


def predict(parameters: Parameters, x: jax.Array) -> jax.Array:
    """Returns the network's height over each point."""
    *hidden, (weight, bias) = parameters
    for w, b in hidden:
        x = mish(x @ w + b)
    return x @ weight + bias


def train(steps: int) -> list[float]:
    """Returns the loss of every step, over the points of all processes."""
    mesh = jax.make_mesh((jax.device_count(),), ("batch",), axis_types=(AxisType.Auto,))
    whole, rows = PartitionSpec(), PartitionSpec("batch")

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=(whole, rows, rows), out_specs=whole)
    def step(parameters, x, y):
        def mean_loss(parameters):
            return jax.lax.pmean(jnp.mean((predict(parameters, x) - y) ** 2), "batch")

        loss, gradients = jax.value_and_grad(mean_loss)(parameters)
        update = jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients)
        return update, loss

    sharding = NamedSharding(mesh, rows)
    x, y = (jax.make_array_from_process_local_data(sharding, own_rows(a)) for a in make_points())
    parameters = jax.device_put(initial_parameters(), NamedSharding(mesh, whole))
    losses = []
    for _ in range(steps):
        parameters, loss = step(parameters, x, y)
        losses.append(float(loss))
    return losses


def start_processes(count: int, steps: int) -> int:
    """Runs this script in several processes on this machine; returns the exit status."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    command = [sys.executable, __file__, f"--steps={steps}", f"--processes={count}"]
    children = [
        subprocess.Popen([*command, f"--coordinator={address}", f"--process={number}"])
        for number in range(count)
    ]
    return max(abs(child.wait()) for child in children)


def main() -> int:
    """Trains as the command line says and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1, help="how many run together")
    parser.add_argument("--process", type=int, help="which of them this is, from 0")
    parser.add_argument("--coordinator", help="host:port of process 0")
    options = parser.parse_args()
    if options.processes > 1 and options.coordinator is None:
        return start_processes(options.processes, options.steps)
    if options.processes > 1:
        # Before anything that starts JAX's devices, which are those of all processes then.
        jax.distributed.initialize(options.coordinator, options.processes, options.process)
    losses = train(options.steps)
    if jax.process_index() == 0:
        last = options.steps - 1
        for number in sorted({*range(0, last, max(1, last // 5)), last}):
            print(f"step {number:4}  loss {losses[number]:.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
