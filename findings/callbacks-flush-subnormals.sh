#!/usr/bin/env bash
# Inside a callback of JAX on a CPU, Python's own floats lose their subnormals.
#
# Guess:    flushing to zero is a matter of compiled code; Python's arithmetic in a callback is
#           Python's.
# Seen:     in jax.pure_callback, eager and jitted, 2.0 ** -1000 * 2.0 ** -60 is 0.0 and numpy's
#           smallest float32 equals 0: the thread runs with subnormals flushed. Outside both are
#           kept.
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


def probe(x):
    small = float(x)  # not a constant that the compiler of Python folds
    subnormal = np.float32(1e-45)
    print("product", small * 2.0**-60, "numpy float32 equals zero:", bool(subnormal == np.float32(0)))
    return x


x = np.float64(2.0**-1000)
jax.config.update("jax_enable_x64", True)
result = jax.ShapeDtypeStruct((), np.float64)
print("outside: ", end="")
probe(x)
print("eager:   ", end="")
jax.block_until_ready(jax.pure_callback(probe, result, x))
print("jitted:  ", end="")
jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(probe, result, x))(x))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
outside: product 8.095e-320 numpy float32 equals zero: False
eager:   product 0.0 numpy float32 equals zero: True
jitted:  product 0.0 numpy float32 equals zero: True
RECORDED
