#!/usr/bin/env bash
# The place of a NaN in lax.top_k depends on how the NaN came about.
#
# Guess:    NaN counts as the largest value, as in jnp.sort, so top_k puts it first.
# Seen:     a NaN written as a constant comes first; one that inf - inf computed on x86 comes
#           last, because its sign bit is set and the order is that of the bits. jnp.sort puts
#           both last.
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
written = jnp.array([1.0, np.nan, 3.0], jnp.float32)
infinity = jnp.float32(np.inf)
computed = jax.jit(lambda a: jnp.stack([jnp.float32(1), a - a, jnp.float32(3)]))(infinity)
for name, x in (("written", written), ("computed", computed)):
    values, places = lax.top_k(x, 3)
    print(name, "sign bit", bool(jnp.signbit(x)[1]), "top_k", values, places, "sort", jnp.sort(x))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
written sign bit False top_k [nan  3.  1.] [1 2 0] sort [ 1.  3. nan]
computed sign bit True top_k [ 3.  1. nan] [2 0 1] sort [ 1.  3. nan]
RECORDED
