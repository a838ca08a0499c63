#!/usr/bin/env bash
# jnp.from_dlpack cuts 64-bit integers to 32 bits without a word.
#
# Guess:    importing an int64 buffer either keeps its dtype or raises, since DLPack hands over
#           memory as it is.
# Seen:     with jax_enable_x64 off, 2**31 becomes -2147483648, and no warning is given;
#           jnp.asarray of such a numpy array does the same.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import warnings

import jax
import jax.numpy as jnp
import numpy as np

print("jax", jax.__version__)
x = np.array([2**31, 5], np.int64)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for read in (jnp.from_dlpack, jnp.asarray):
        y = read(x)
        print(read.__name__, y, y.dtype, "warnings:", len(caught))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
from_dlpack [-2147483648           5] int32 warnings: 0
asarray [-2147483648           5] int32 warnings: 0
RECORDED
