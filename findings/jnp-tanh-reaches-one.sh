#!/usr/bin/env bash
# jnp.tanh in float32 is exactly 1 from about 8 on.
#
# Guess:    tanh(8) is the float32 nearest to it, 0.99999976, so 1 - tanh(x) ** 2 is not yet
#           zero.
# Seen:     jnp.tanh(8) is 1, four units in the last place of 0.99999976 away, and a gradient
#           computed from it is 0; numpy gives 0.99999976.
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
for x in (7.9, 8.0):
    x = np.float32(x)
    y = np.tanh(x)
    slope = jax.grad(jnp.tanh)(x)
    units = round(float((jnp.tanh(x) - y) / np.spacing(y)))
    print(f"tanh({x}): numpy {y}, jax {jnp.tanh(x)}, units apart {units}, gradient {slope}")
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
tanh(7.900000095367432): numpy 0.9999997615814209, jax 0.9999997615814209, units apart 0, gradient 4.7683710135970614e-07
tanh(8.0): numpy 0.9999997615814209, jax 1.0, units apart 4, gradient 0.0
RECORDED
