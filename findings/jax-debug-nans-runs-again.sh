#!/usr/bin/env bash
# With jax_debug_nans, a jitted function that gave a NaN runs again as plain Python.
#
# Guess:    a NaN in the result of a jitted function is a FloatingPointError; the switch adds a
#           check and changes nothing else.
# Seen:     the function runs again without jit, on the arguments as the caller wrote them: x / x of
#           the Python number 0.0 is a ZeroDivisionError, x.at of a numpy array an AttributeError,
#           and an ordered io_callback happens twice.
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
from jax.experimental import io_callback

FLOAT = jax.ShapeDtypeStruct((), np.float32)
noted = []


def note(x):
    noted.append(float(x))
    return x


def show(name, function, argument):
    noted.clear()
    try:
        seen = jax.block_until_ready(jax.jit(function)(argument))
    except Exception as error:
        seen = type(error).__name__
    jax.effects_barrier()
    print(f"{name:20}", seen, *[f"after {len(noted)} calls"] * bool(noted))


print("jax", jax.__version__)
for debug in (False, True):
    jax.config.update("jax_debug_nans", debug)
    print("jax_debug_nans", debug)
    show("x / x of JAX's 0", lambda x: x / x, jnp.float32(0))
    show("x / x of Python's 0", lambda x: x / x, 0.0)
    show("at of a numpy array", lambda x: x.at[0].set(x[0] / x[1]), np.zeros(2, np.float32))
    show("log, with a callback", lambda x: jnp.log(io_callback(note, FLOAT, x, ordered=True)), -1.0)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | grep -v "^Invalid nan" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
jax_debug_nans False
x / x of JAX's 0     nan
x / x of Python's 0  nan
at of a numpy array  [nan  0.]
log, with a callback nan after 1 calls
jax_debug_nans True
x / x of JAX's 0     FloatingPointError
x / x of Python's 0  ZeroDivisionError
at of a numpy array  AttributeError
log, with a callback FloatingPointError after 2 calls
RECORDED
