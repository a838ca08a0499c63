#!/usr/bin/env bash
# Where maxima are equal, JAX has a rule of its own for each way to write the maximum.
#
# Guess:    equal maxima share the slope equally, as the gradient of jnp.max does, and the gradient
#           of a transposed array is the transposed gradient.
# Seen:     of two equal maxima each gets 1/2 by jnp.max, 1/4 if `initial` is equal, too; a window
#           that covers the same array gives 1 to the first in memory, so transposing it moves the
#           slope; the last of jnp.sort gives 1 to the last. At its bound jnp.clip has the slope
#           1/2, lax.clamp 0 and hard_tanh 1. The slope of abs at 0 is 1.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import jax
import jax.numpy as jnp
from jax import lax


def window(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, x.shape, (1,) * x.ndim, "VALID").sum()


print("jax", jax.__version__)
x = jnp.array([[1.0, 3.0], [3.0, 2.0]])
for name, maximum in {
    "max": jnp.max,
    "max, initial=3": lambda x: jnp.max(x, initial=3.0),
    "window": window,
    "window of x.T": lambda x: window(x.T),
    "sort, last": lambda x: jnp.sort(x, None)[-1],
}.items():
    print(f"{name:15}", jax.grad(maximum)(x).tolist())
for name, bounded in {
    "jnp.clip at 1": lambda x: jnp.clip(x, -1.0, 1.0),
    "lax.clamp at 1": lambda x: lax.clamp(-1.0, x, 1.0),
    "hard_tanh at 1": jax.nn.hard_tanh,
}.items():
    print(f"{name:15}", jax.grad(bounded)(1.0))
print(f"{'abs at 0':15}", jax.grad(jnp.abs)(0.0))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
max             [[0.0, 0.5], [0.5, 0.0]]
max, initial=3  [[0.0, 0.25], [0.25, 0.0]]
window          [[0.0, 1.0], [0.0, 0.0]]
window of x.T   [[0.0, 0.0], [1.0, 0.0]]
sort, last      [[0.0, 0.0], [1.0, 0.0]]
jnp.clip at 1   0.5
lax.clamp at 1  0.0
hard_tanh at 1  1.0
abs at 0        1.0
RECORDED
