#!/usr/bin/env bash
# numpy.power of -inf by one half is NaN or inf: it depends on whether the exponent is an array.
#
# Guess:    the power of a number by 0.5 is one number, that of C's pow: 0.0 for -0.0, inf for -inf,
#           whether the exponent is a scalar or an array of the same value.
# Seen:     by the scalar 0.5, numpy.power and ** of an array take the square root: -0.0 and NaN. By
#           an array of 0.5 they are 0.0 and inf. numpy.power of two scalars takes the root as well,
#           ** of two scalars does not.
# Versions: numpy 2.4.6; Python 3.11; x86-64 Linux.
# Needs:    Python 3.11, 100 MB of disk, half a minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import math

import numpy as np

print("numpy", np.__version__)
special = np.array([-0.0, -np.inf])
half = np.float64(0.5)
with np.errstate(all="ignore"):
    print("math.pow", [math.pow(value, 0.5) for value in special])
    print("numpy.power by a scalar", np.power(special, 0.5).tolist())
    print("numpy.power by an array", np.power(special, np.full(2, 0.5)).tolist())
    print("** by a scalar", (special**0.5).tolist())
    print("** by an array", (special ** np.full(2, 0.5)).tolist())
    print("numpy.power of two scalars", [float(np.power(value, half)) for value in special])
    print("** of two scalars", [float(value**half) for value in special])
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
numpy 2.4.6
math.pow [0.0, inf]
numpy.power by a scalar [-0.0, nan]
numpy.power by an array [0.0, inf]
** by a scalar [-0.0, nan]
** by an array [0.0, inf]
numpy.power of two scalars [-0.0, nan]
** of two scalars [0.0, inf]
RECORDED
