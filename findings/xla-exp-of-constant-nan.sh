#!/usr/bin/env bash
# Under jit, the exponential of a NaN that the compiler knows is not NaN.
#
# Guess:    exp(nan + y) is NaN, whether the NaN is a constant of the program or an input.
# Seen:     with the NaN as a constant, exp and cosh of XLA on a CPU give other numbers at some
#           sizes, and not the same ones each time; expm1, log and sin keep it. With the NaN as
#           an input all are NaN.
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
nan = np.float32(np.nan)


def keeps_nan(function, is_constant):
    """Returns whether all results are NaN, at all sizes."""
    for size in (1, 2, 3, 4, 5, 8, 16, 100):
        y = np.ones(size, np.float32)
        if is_constant:
            z = jax.jit(lambda y: function(lax.add(jnp.full(y.shape, nan), y)))(y)
        else:
            z = jax.jit(lambda n, y: function(lax.add(n, y)))(np.full(size, nan), y)
        if not np.isnan(z).all():
            return False
    return True


for function in (lax.exp, lax.cosh, lax.expm1, lax.log, lax.sin):
    print(
        f"{function.__name__}: keeps a NaN that is a constant: {keeps_nan(function, True)},",
        f"that is an input: {keeps_nan(function, False)}",
    )
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
exp: keeps a NaN that is a constant: False, that is an input: True
cosh: keeps a NaN that is a constant: False, that is an input: True
expm1: keeps a NaN that is a constant: True, that is an input: True
log: keeps a NaN that is a constant: True, that is an input: True
sin: keeps a NaN that is a constant: True, that is an input: True
RECORDED
