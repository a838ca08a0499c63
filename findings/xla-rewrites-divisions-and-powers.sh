#!/usr/bin/env bash
# Under jit, XLA computes a / b / c as a / (b * c), and the logarithm of a power as a product.
#
# Guess:    floating-point operations are rewritten only where the value stays the same, unless
#           a fast-math option is on.
# Seen:     1e-30 / 1e-30 / 1e-30 is inf under jit and 1e30 eagerly; log(x ** 3) of -2 is log(8)
#           under jit and NaN eagerly.
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
import numpy as np

print("jax", jax.__version__)
tiny = np.float32(1e-30)


def divide(a, b, c):
    return (a / b) / c


def log_of_power(x, p):
    return jnp.log(x**p)


print("a / b / c: eager", divide(*map(jnp.asarray, (tiny, tiny, tiny))))
print("a / b / c: jit  ", jax.jit(divide)(tiny, tiny, tiny))
x, p = np.float32(-2), np.float32(3)
print("log(x ** p): eager", log_of_power(jnp.asarray(x), p))
print("log(x ** p): jit  ", jax.jit(log_of_power)(x, p))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
a / b / c: eager 1e+30
a / b / c: jit   inf
log(x ** p): eager nan
log(x ** p): jit   2.0794415
RECORDED
