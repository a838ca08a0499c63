#!/usr/bin/env bash
# jnp.max and jnp.min on a CPU lose a NaN when the array is large.
#
# Guess:    the maximum of an array that holds a NaN is NaN, at every size, as in numpy.
# Seen:     from 4,096 float32 elements on the NaN is ignored, and a NaN in the last place makes
#           the maximum of zeros -inf. argmax and sum see the NaN; float16 keeps it too.
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
for count in (4095, 4096):
    for place in (5, count - 1):
        x = np.zeros(count, np.float32)
        x[place] = np.nan
        print(
            f"{count} elements, NaN at {place}: numpy {np.max(x)}, jnp.max {jnp.max(x)},",
            f"jnp.min {jnp.min(x)}, argmax {jnp.argmax(x)}, sum {jnp.sum(x)},",
            f"float16 {jnp.max(x.astype(np.float16))}",
        )
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
4095 elements, NaN at 5: numpy nan, jnp.max nan, jnp.min nan, argmax 5, sum nan, float16 nan
4095 elements, NaN at 4094: numpy nan, jnp.max nan, jnp.min nan, argmax 4094, sum nan, float16 nan
4096 elements, NaN at 5: numpy nan, jnp.max 0.0, jnp.min 0.0, argmax 5, sum nan, float16 nan
4096 elements, NaN at 4095: numpy nan, jnp.max -inf, jnp.min inf, argmax 4095, sum nan, float16 nan
RECORDED
