#!/usr/bin/env bash
# 3.0 and 0.0 in float8_e8m0fnu are 4 and NaN.
#
# Guess:    a format of powers of two without a zero rounds 3 down to 2, a tie by value, and 0
#           to its least value.
# Seen:     3.0, 6.0 and 12.0 all round up (4, 8, 16); 0 and negative numbers become NaN,
#           although the least power, 2 ** -127, is as near to 0 as can be. JAX does the same.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6, ml_dtypes 0.6.0; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0
cat > "$folder/probe.py" <<'PYTHON'
import jax.numpy as jnp
import ml_dtypes
import numpy as np

print("ml_dtypes", ml_dtypes.__version__)
x = np.array([3, 6, 12, 0, 1e-45, -1], np.float32)
print("from     ", x)
print("ml_dtypes", x.astype(ml_dtypes.float8_e8m0fnu).astype(np.float32))
print("jax      ", np.asarray(jnp.asarray(x).astype(jnp.float8_e8m0fnu).astype(jnp.float32)))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
ml_dtypes 0.6.0
from      [ 3.0e+00  6.0e+00  1.2e+01  0.0e+00  1.4e-45 -1.0e+00]
ml_dtypes [4.000000e+00 8.000000e+00 1.600000e+01          nan 5.877472e-39
          nan]
jax       [4.000000e+00 8.000000e+00 1.600000e+01          nan 5.877472e-39
          nan]
RECORDED
