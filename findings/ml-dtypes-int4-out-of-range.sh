#!/usr/bin/env bash
# An int4 array of ml_dtypes can hold 8 and 14.
#
# Guess:    int4 wraps at -8 and 7, as numpy's integers wrap: -(-8) is -8, and 7 << 1 is -2.
# Seen:     negation, abs and shifts leave the byte as it is: they give 8 and 14, which compare
#           as larger than 7; addition and multiplication wrap. jax.numpy reads such an array as
#           8, and wraps when it computes itself.
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


def int4(*values):
    return np.array(values, ml_dtypes.int4)


least, most = int4(-8), int4(7)
print("-(-8)", -least, "abs(-8)", abs(least), "7 << 1", most << int4(1))
print("7 + 1", most + int4(1), "7 * 2", most * int4(2))
print("-(-8) > 7:", -least > most, "as int8:", (-least).astype(np.int8))
print("jnp.asarray(-(-8))", jnp.asarray(-least), "jax computes -(-8)", -jnp.asarray(least))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
ml_dtypes 0.6.0
-(-8) [8] abs(-8) [8] 7 << 1 [14]
7 + 1 [-8] 7 * 2 [-2]
-(-8) > 7: [ True] as int8: [8]
jnp.asarray(-(-8)) [8] jax computes -(-8) [-8]
RECORDED
