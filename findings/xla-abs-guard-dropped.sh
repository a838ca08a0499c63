#!/usr/bin/env bash
# Under jit, a test that an absolute value is not negative is taken for always true.
#
# Guess:    abs of the least int32 is itself, so the test `abs(i) >= 0` is False for it, under
#           jit as eagerly.
# Seen:     the value is the least int32 in both, yet under jit of jaxlib 0.10.2 the comparison
#           is True: a guard of an index by such a test guards nothing there. jaxlib 0.12.0.1
#           compares.
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
from jax import lax

print("jax", jax.__version__)
least = np.int32(-(2**31))
table = np.array([10.0, 20.0], np.float32)


def guarded(i):
    return jnp.where(lax.abs(i) >= 0, table[0], -1.0)


print("abs(least int32): eager", lax.abs(jnp.asarray(least)), "jit", jax.jit(lax.abs)(least))
print("abs(i) >= 0: eager", lax.abs(jnp.asarray(least)) >= 0)
print("abs(i) >= 0: jit  ", jax.jit(lambda i: lax.abs(i) >= 0)(least))
print("guarded element: eager", guarded(jnp.asarray(least)), "jit", jax.jit(guarded)(least))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
abs(least int32): eager -2147483648 jit -2147483648
abs(i) >= 0: eager False
abs(i) >= 0: jit   True
guarded element: eager -1.0 jit 10.0
RECORDED
