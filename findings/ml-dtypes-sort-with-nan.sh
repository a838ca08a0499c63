#!/usr/bin/env bash
# numpy leaves a bfloat16 array with a NaN unsorted.
#
# Guess:    np.sort puts NaN last for every floating dtype, so the numbers before it are in
#           order.
# Seen:     np.sort([2, nan, 1]) stays as it is in bfloat16, np.unique keeps two NaN and no
#           order, and np.median is a number; float16 and float32 do as guessed. jnp.sort is
#           right.
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

import jax.numpy as jnp
import ml_dtypes
import numpy as np

warnings.simplefilter("ignore")
print("ml_dtypes", ml_dtypes.__version__, "numpy", np.__version__)
for dtype in (ml_dtypes.bfloat16, np.float16):
    x = np.array([2, np.nan, 1, np.nan, 0], dtype)
    print(x.dtype, "sort", np.sort(x), "unique", np.unique(x), "median", np.median(x))
    print(x.dtype, "jnp.sort", np.asarray(jnp.sort(x)))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
ml_dtypes 0.6.0 numpy 2.4.6
bfloat16 sort [2 nan 1 nan 0] unique [2 nan 1 nan 0] median 1
bfloat16 jnp.sort [0 1 2 nan nan]
float16 sort [ 0.  1.  2. nan nan] unique [ 0.  1.  2. nan] median nan
float16 jnp.sort [ 0.  1.  2. nan nan]
RECORDED
