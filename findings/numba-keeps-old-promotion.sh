#!/usr/bin/env bash
# Numba promotes a float32 array times a Python float to float64, under numpy 2 as well.
#
# Guess:    numba follows the numpy that it runs on, so with numpy 2 a Python number takes the
#           array's dtype.
# Seen:     float32 array * 2.5 is float64 and int8 array * 2 int64 in numba 0.68.1; numpy 2.4.6
#           keeps float32 and int8. Two uint8 elements 1 - 2 give 2**64 - 1 in numba, 255 in
#           numpy.
# Versions: numba 0.68.1, llvmlite 0.50.0, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 500 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet numba==0.68.1 llvmlite==0.50.0 \
  numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import warnings

import numba
import numpy as np

warnings.simplefilter("ignore")
print("numba", numba.__version__, "numpy", np.__version__)


def times_float(x):
    return x * 2.5


def times_int(x):
    return x * 2


def difference(x):
    return x[0] - x[1]


for function, x in (
    (times_float, np.ones(1, np.float32)),
    (times_int, np.full(1, 100, np.int8)),
    (difference, np.array([1, 2], np.uint8)),
):
    by_numpy, by_numba = function(x), numba.njit(function)(x)
    print(function.__name__, x.dtype, "numpy", by_numpy, by_numpy.dtype, "| numba", by_numba,
          getattr(by_numba, "dtype", "scalar"))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
numba 0.68.1 numpy 2.4.6
times_float float32 numpy [2.5] float32 | numba [2.5] float64
times_int int8 numpy [-56] int8 | numba [200] int64
difference uint8 numpy 255 uint8 | numba 18446744073709551615 scalar
RECORDED
