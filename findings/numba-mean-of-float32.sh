#!/usr/bin/env bash
# numba's np.mean of a million float32 numbers is off by one percent.
#
# Guess:    numba's np.mean and np.sum give numpy's result to a few units in the last place.
# Seen:     the mean of a million times 0.1 is 0.10096 by numba, which adds in order in float32,
#           and 0.1 by numpy, which adds in pairs.
# Versions: numba 0.68.1, llvmlite 0.50.0, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 500 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet numba==0.68.1 llvmlite==0.50.0 \
  numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import numba
import numpy as np

print("numba", numba.__version__, "numpy", np.__version__)
x = np.full(1_000_000, 0.1, np.float32)
print("numpy", round(float(np.mean(x)), 5), "numba", round(float(numba.njit(lambda x: np.mean(x))(x)), 5))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
numba 0.68.1 numpy 2.4.6
numpy 0.1 numba 0.10096
RECORDED
