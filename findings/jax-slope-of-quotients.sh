#!/usr/bin/env bash
# The slope of x / y along y is 0 for y = 1e20 in float32, whatever x is.
#
# Guess:    jax.grad of a quotient is -x / y / y up to a few units in the last place, where that is a
#           number that float32 has.
# Seen:     at x = y = 1e20 it is -0.0, where -1e-20 is right; at x = 1e30, y = 1e25, where the slope
#           is -1e-20, too. At x = y = 1e-23 it is -inf, where -1e23 is right. The square of y leaves
#           the range of float32 before the quotient is taken: JAX has x * y**-2, and autograd, with
#           x / y**2, has the same slopes. -x / y / y, or -(x / y) / y, has the right ones.
# Versions: jax 0.10.2, jaxlib 0.10.2, autograd 1.8.0, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet \
  jax==0.10.2 jaxlib==0.10.2 autograd==1.8.0 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import autograd
import jax
import numpy as np

print("jax", jax.__version__, "numpy", np.__version__)


def quotient(x, y):
    return x / y


for x, y in ((1e20, 1e20), (1e30, 1e25), (1e-23, 1e-23)):
    x, y = np.float32(x), np.float32(y)
    with np.errstate(all="ignore"):
        by_autograd = autograd.grad(quotient, 1)(x, y)
    print(
        f"x {x:.0e}, y {y:.0e}: right {-x / y / y:.2e},",
        f"jax {jax.grad(quotient, 1)(x, y):.2e}, autograd {by_autograd:.2e}",
    )
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2 numpy 2.4.6
x 1e+20, y 1e+20: right -1.00e-20, jax -0.00e+00, autograd -0.00e+00
x 1e+30, y 1e+25: right -1.00e-20, jax -0.00e+00, autograd -0.00e+00
x 1e-23, y 1e-23: right -1.00e+23, jax -inf, autograd -inf
RECORDED
