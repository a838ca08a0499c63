#!/usr/bin/env bash
# A bfloat16 array plus 1.5 is float32, plus 1 it is bfloat16.
#
# Guess:    numpy 2 lets a Python number take the array's dtype, so `x + 1.5` stays bfloat16 as
#           float16 does.
# Seen:     a Python float widens bfloat16 to float32, a Python int does not; float16 stays
#           float16 in both. bfloat16 + float16 is float32, but np.where of the two raises.
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
brain, half = np.ones(1, ml_dtypes.bfloat16), np.ones(1, np.float16)
for x in (brain, half):
    print(x.dtype, "+ 1.5:", (x + 1.5).dtype, "| + 1:", (x + 1).dtype)
print("bfloat16 + float16:", (brain + half).dtype)
try:
    print("np.where:", np.where([True], brain, half).dtype)
except TypeError as error:
    print("np.where:", type(error).__name__)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
ml_dtypes 0.6.0 numpy 2.4.6
bfloat16 + 1.5: float32 | + 1: bfloat16
float16 + 1.5: float16 | + 1: float16
bfloat16 + float16: float32
np.where: DTypePromotionError
RECORDED
