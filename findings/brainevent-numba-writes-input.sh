#!/usr/bin/env bash
# A numba kernel of brainevent that writes to its input changes the caller's jax.Array.
#
# Guess:    a jax.Array never changes; a kernel that writes to an input gets a copy or a
#           read-only view.
# Seen:     the array that the caller holds has the new values afterwards.
# Versions: brainevent 0.2.1, numba 0.68.1, jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64
#           Linux.
# Needs:    Python 3.11, 700 MB of disk, two minutes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet brainevent==0.2.1 numba==0.68.1 \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import brainevent
import jax
import jax.numpy as jnp
import numba

print("brainevent", brainevent.__version__, "jax", jax.__version__)


@numba.njit
def double(x, out):
    for i in range(out.size):
        x[i] = 2 * x[i]
        out[i] = x[i]


kernel = brainevent.numba_kernel(double, outs=jax.ShapeDtypeStruct((3,), jnp.float32))
x = jnp.array([1.0, 2.0, 3.0])
print("before", x)
print("result", jax.block_until_ready(kernel(x)))
print("after ", x)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
brainevent 0.2.1 jax 0.10.2
before [1. 2. 3.]
result [2. 4. 6.]
after  [2. 4. 6.]
RECORDED
