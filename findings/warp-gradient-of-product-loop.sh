#!/usr/bin/env bash
# Warp's gradient of a product in a loop with a length at run time is wrong, without a warning.
#
# Guess:    an accumulator that a loop multiplies is differentiated right, or refused.
# Seen:     d(x ** 3)/dx by `for j in range(n): s = s * x` gives 42 at x = 2 where 12 is right;
#           the same loop with the constant 3 gives 12. The values agree.
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
def power_dynamic(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    i = wp.tid()
    s = float(1.0)
    for j in range(n):
        s = s * x[i]
    out[i] = s


@wp.kernel
def power_static(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    i = wp.tid()
    s = float(1.0)
    for j in range(3):
        s = s * x[i]
    out[i] = s


with wp.ScopedDevice("cpu"):
    print("warp", wp.__version__)
    for kernel in (power_dynamic, power_static):
        x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
        out = wp.zeros(3, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(kernel, dim=3, inputs=[x, 3], outputs=[out])
        tape.backward(grads={out: wp.ones(3, dtype=float)})
        print(kernel.key, "values", out.numpy(), "gradient", x.grad.numpy(), "right:", 3 * x.numpy() ** 2)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
warp 1.19.0
power_dynamic values [ 1.  8. 27.] gradient [  3.  42. 273.] right: [ 3. 12. 27.]
power_static values [ 1.  8. 27.] gradient [ 3. 12. 27.] right: [ 3. 12. 27.]
RECORDED
