#!/usr/bin/env bash
# ml_dtypes' bfloat16 takes no Python integer beyond int64, and says that it is no number.
#
# Guess:    bfloat16(10**30) is 1e30, as float32(10**30) is: bfloat16 has the range of float32.
# Seen:     from 2**63 on it is TypeError "expected number, got int", in an array as well. An array
#           of uint64 that holds the same number converts, and so does the float.
# Versions: ml_dtypes 0.5.4, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 100 MB of disk, half a minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet ml_dtypes==0.5.4 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import ml_dtypes
import numpy as np

print("ml_dtypes", ml_dtypes.__version__)


def tried(make):
    try:
        return make()
    except TypeError as error:
        return f"{type(error).__name__}: {error}"


for number in (2**63 - 1, 2**63, 10**30):
    for dtype in (np.float32, ml_dtypes.bfloat16):
        name = np.dtype(dtype).name
        print(f"{name}({number:.3g}):", tried(lambda t=dtype, n=number: f"{float(t(n)):.3g}"))
print("in an array:", tried(lambda: np.array([2**63], ml_dtypes.bfloat16)))
print("of uint64:", float(np.array([2**63], np.uint64).astype(ml_dtypes.bfloat16)[0]))
print("of a float:", float(ml_dtypes.bfloat16(float(2**63))))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
ml_dtypes 0.5.4
float32(9.22e+18): 9.22e+18
bfloat16(9.22e+18): 9.22e+18
float32(9.22e+18): 9.22e+18
bfloat16(9.22e+18): TypeError: expected number, got int
float32(1e+30): 1e+30
bfloat16(1e+30): TypeError: expected number, got int
in an array: TypeError: expected number, got int
of uint64: 9.223372036854776e+18
of a float: 9.223372036854776e+18
RECORDED
