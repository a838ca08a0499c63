#!/usr/bin/env bash
# ml_dtypes and JAX convert the same large floats to different int4.
#
# Guess:    jax.numpy and the dtype library under it agree in conversions, as they do for the
#           8-bit floats.
# Seen:     ml_dtypes keeps the low bits of the whole part (465 becomes 1, 500 becomes 4, inf
#           becomes 0); JAX saturates (7, 7, 7). In uint4, -1 becomes 15 by one and 0 by the
#           other.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6, ml_dtypes 0.6.0; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0
cat > "$folder/probe.py" <<'PYTHON'
import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

warnings.simplefilter("ignore")
print("jax", jax.__version__, "ml_dtypes", ml_dtypes.__version__)
x = np.array([465, 500, np.inf, -1, 6.9], np.float32)
print("from", x)
for dtype in (ml_dtypes.int4, ml_dtypes.uint4):
    by_jax = jax.jit(lambda x, dtype=dtype: x.astype(dtype).astype(jnp.int32))(x)
    print(np.dtype(dtype), "ml_dtypes", x.astype(dtype), "jax", by_jax)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2 ml_dtypes 0.6.0
from [465.  500.    inf  -1.    6.9]
int4 ml_dtypes [1 4 0 -1 6] jax [ 7  7  7 -1  6]
uint4 ml_dtypes [1 4 0 15 6] jax [15 15 15  0  6]
RECORDED
