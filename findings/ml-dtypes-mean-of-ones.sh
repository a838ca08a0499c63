#!/usr/bin/env bash
# The mean of 1,000 ones in bfloat16 is a quarter, by numpy.
#
# Guess:    numpy adds pairwise and computes the mean of 16-bit floats in float32, so the mean
#           of ones is 1.
# Seen:     np.sum of 1,000 bfloat16 ones is 256 and np.mean 0.256, since each addition rounds
#           to bfloat16 in order; float16 gives 1000 and 1; np.dot of the same ones gives 1000.
# Versions: numpy 2.4.6, ml_dtypes 0.6.0; x86-64 Linux.
# Needs:    Python 3.11, 200 MB of disk, half a minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet numpy==2.4.6 ml_dtypes==0.6.0
cat > "$folder/probe.py" <<'PYTHON'
import ml_dtypes
import numpy as np

print("ml_dtypes", ml_dtypes.__version__, "numpy", np.__version__)
for dtype in (ml_dtypes.bfloat16, np.float16):
    ones = np.ones(1000, dtype)
    print(ones.dtype, "sum", ones.sum(), "mean", ones.mean(), "dot", np.dot(ones, ones))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
ml_dtypes 0.6.0 numpy 2.4.6
bfloat16 sum 256 mean 0.255859 dot 1000
float16 sum 1e+03 mean 1.0 dot 1e+03
RECORDED
