#!/usr/bin/env bash
# jnp.take with the int8 index -1 of 300 elements gives element 43.
#
# Guess:    -1 is the last element, whatever integer dtype the index has.
# Seen:     JAX adds the extent in int8, where it wraps: jnp.take gives element 43, and x[i]
#           raises OverflowError. With int32 both give the last element.
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
x = jnp.arange(300.0)
for dtype in (np.int8, np.int32):
    i = jnp.array([-1], dtype)
    print(np.dtype(dtype), "take under jit", jax.jit(lambda x, i: jnp.take(x, i))(x, i))
    try:
        print(np.dtype(dtype), "x[i]", x[i])
    except OverflowError as error:
        print(np.dtype(dtype), "x[i] OverflowError:", error)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
int8 take under jit [43.]
int8 x[i] OverflowError: Python integer 300 out of bounds for int8
int32 take under jit [299.]
int32 x[i] [299.]
RECORDED
