#!/usr/bin/env bash
# In Warp, // rounds down and % does not go with it.
#
# Guess:    both follow C, or both follow Python, so that a == (a // b) * b + a % b.
# Seen:     -7 // 2 is -4 as in Python, -7 % 2 is -1 as in C, for int and float alike; together
#           they make -9. wp.round(2.5) is 3, where Python's round gives 2.
# Versions: warp-lang 1.19.0, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 500 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet warp-lang==1.19.0 numpy==2.4.6
export WARP_CACHE_PATH="$folder/warp"
cat > "$folder/probe.py" <<'PYTHON'
import numpy as np
import warp as wp

wp.config.log_level = wp.LOG_WARNING


@wp.kernel
def divide(
    a: wp.array(dtype=int),
    x: wp.array(dtype=float),
    whole: wp.array(dtype=int),
    real: wp.array(dtype=float),
):
    whole[0] = a[0] // a[1]
    whole[1] = a[0] % a[1]
    real[0] = x[0] // x[1]
    real[1] = x[0] % x[1]
    real[2] = wp.round(x[2])


with wp.ScopedDevice("cpu"):
    a, x = wp.array([-7, 2], dtype=int), wp.array([-7.0, 2.0, 2.5], dtype=float)
    whole, real = wp.zeros(2, dtype=int), wp.zeros(3, dtype=float)
    wp.launch(divide, dim=1, inputs=[a, x, whole, real])
    print("warp", wp.__version__)
    q, r = (int(value) for value in whole.numpy())
    print("int: -7 // 2 =", q, " -7 % 2 =", r, " back:", q * 2 + r, "| Python:", divmod(-7, 2))
    q, r, rounded = (float(value) for value in real.numpy())
    print("float: -7 // 2 =", q, " -7 % 2 =", r, "| Python:", divmod(-7.0, 2.0))
    print("round(2.5) =", rounded, "| Python:", round(2.5))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
warp 1.19.0
int: -7 // 2 = -4  -7 % 2 = -1  back: -9 | Python: (-4, 1)
float: -7 // 2 = -4.0  -7 % 2 = -1.0 | Python: (-4.0, 1.0)
round(2.5) = 3.0 | Python: 2
RECORDED
