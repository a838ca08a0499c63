#!/usr/bin/env bash
# The sign of -0 is 0 for numpy's floats, -0 for ml_dtypes' and for jax.numpy.
#
# Guess:    np.sign goes by one rule for every float dtype, and jax.numpy has numpy's rule: its page
#           of sign names 0 for x = 0. So 1 / np.sign(x) is inf for both zeros.
# Seen:     np.sign(-0.0) is 0.0 in float16, float32 and float64, and -0.0 in bfloat16 and both kinds
#           of float8. jnp.sign is -0.0 in all of them.
# Versions: jax 0.10.2, jaxlib 0.10.2, ml_dtypes 0.5.4, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet \
  jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.5.4 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

jax.config.update("jax_enable_x64", True)
print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__, "jax", jax.__version__)
kinds = (
    np.float16,
    np.float32,
    np.float64,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fn,
)
for dtype in kinds:
    x = np.array([-0.0], dtype)
    by_numpy, by_jax = (np.asarray(sign(x)).astype(float)[0] for sign in (np.sign, jnp.sign))
    print(f"{np.dtype(dtype).name}: np.sign {by_numpy}, jnp.sign {by_jax}")
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
numpy 2.4.6 ml_dtypes 0.5.4 jax 0.10.2
float16: np.sign 0.0, jnp.sign -0.0
float32: np.sign 0.0, jnp.sign -0.0
float64: np.sign 0.0, jnp.sign -0.0
bfloat16: np.sign -0.0, jnp.sign -0.0
float8_e5m2: np.sign -0.0, jnp.sign -0.0
float8_e4m3fn: np.sign -0.0, jnp.sign -0.0
RECORDED
