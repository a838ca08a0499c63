#!/usr/bin/env bash
# The same jitted expressions have other values in jaxlib 0.10.2 and 0.12.0.1.
#
# Guess:    a newer compiler may be faster, but float32 and int32 arithmetic of three operations
#           keeps its value.
# Seen:     0.10.2 folds (x + c) - c to x, log(exp(x)) to x, exp(a) * exp(b) to exp(a + b), and
#           takes i * i for non-negative although int32 wraps; 0.12.0.1 computes what is written.
# Versions: jax and jaxlib 0.10.2 on Python 3.11, 0.12.0.1 on Python 3.12; numpy 2.4.6; x86-64 Linux.
# Needs:    both Pythons (PYTHON and PYTHON312 may name them), 800 MB of disk, two minutes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/old"
"${PYTHON312:-python3.12}" -m venv "$folder/new"
"$folder/old/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$folder/new/bin/python" -m pip install --quiet jax==0.12.0.1 jaxlib==0.12.0.1 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np

f, i = np.float32, np.int32(46341)
print("jax", jax.__version__)
print("(0.7 + c) - c       ", jax.jit(lambda x: (x + 12582912) - 12582912)(f(0.7)))
print("log(exp(200))       ", jax.jit(lambda x: jnp.log(jnp.exp(x)))(f(200)))
print("exp(100) * exp(-100)", jax.jit(lambda a, b: jnp.exp(a) * jnp.exp(b))(f(100), f(-100)))
print("46341 * 46341 < 0   ", jax.jit(lambda i: i * i < 0)(i))
print("abs(46341 * 46341)  ", jax.jit(lambda i: jnp.abs(i * i))(i))
PYTHON
for age in old new; do "$folder/$age/bin/python" "$folder/probe.py"; done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
(0.7 + c) - c        0.7
log(exp(200))        200.0
exp(100) * exp(-100) 1.0
46341 * 46341 < 0    False
abs(46341 * 46341)   -2147479015
jax 0.12.0.1
(0.7 + c) - c        1.0
log(exp(200))        inf
exp(100) * exp(-100) nan
46341 * 46341 < 0    True
abs(46341 * 46341)   2147479015
RECORDED
