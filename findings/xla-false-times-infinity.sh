#!/usr/bin/env bash
# Under jit, False times infinity is 0, and False by 0 is 0.
#
# Guess:    a bool that becomes a float32 is 0.0, so its product with infinity and its quotient
#           by 0 are NaN.
# Seen:     eagerly both are NaN; under jit XLA makes both a choice between a number and 0.
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
no = np.array([False, True])
for name, y, function in (
    ("times infinity", np.float32(np.inf), lambda b, y: b.astype(jnp.float32) * y),
    ("by zero", np.float32(0), lambda b, y: b.astype(jnp.float32) / y),
):
    print("(False, True)", name, "eager", function(jnp.asarray(no), y), "jit", jax.jit(function)(no, y))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
(False, True) times infinity eager [nan inf] jit [ 0. inf]
(False, True) by zero eager [nan inf] jit [ 0. inf]
RECORDED
