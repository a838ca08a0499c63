#!/usr/bin/env bash
# jnp.exp2 of a whole number is not a power of two.
#
# Guess:    exp2 is exact where its result is a power of two, as in C's library and in numpy.
# Seen:     exp2(13) is 8192.004 in float32; 221 of the 254 whole exponents with a normal result
#           are off. `2.0 ** x` is exact for all of them.
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
exponents = np.arange(-126, 128).astype(np.float32)
exact = np.ldexp(np.float32(1), exponents.astype(int))
print("exp2(13)", jnp.exp2(exponents[139]), "2 ** 13", jnp.float32(2) ** exponents[139])
print("inexact by jnp.exp2", int((jnp.exp2(exponents) != exact).sum()), "of", len(exponents))
print("inexact by np.exp2 ", int((np.exp2(exponents) != exact).sum()))
print("inexact by 2 ** x  ", int((jnp.float32(2) ** exponents != exact).sum()))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
exp2(13) 8192.004 2 ** 13 8192.0
inexact by jnp.exp2 221 of 254
inexact by np.exp2  1
inexact by 2 ** x   0
RECORDED
