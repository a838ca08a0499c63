#!/usr/bin/env bash
# MindSpore's Tensor.max of all elements returns 0 as the place of the greatest one.
#
# Guess:    without an axis, return_indices=True gives the place in the flat Tensor, as argmax does;
#           or it is refused.
# Seen:     a pair of the right value and of 0, wherever the value is; min, too. With an axis the
#           places are right.
# Versions: mindspore 2.10.0, numpy 1.26.4; x86-64 Linux.
# Needs:    Python 3.11, 2 GB of disk, three minutes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet mindspore==2.10.0 numpy==1.26.4
export GLOG_v=4
cat > "$folder/probe.py" <<'PYTHON'
import mindspore as ms
from mindspore import Tensor

print("mindspore", ms.__version__)
x = Tensor([[3.0, 5.0, 2.0], [4.0, 1.0, 9.0]])
for name, found in {
    "max": x.max(axis=None, return_indices=True),
    "min": x.min(axis=None, return_indices=True),
    "max of rows": x.max(axis=1, return_indices=True),
}.items():
    print(name, *(part.asnumpy().tolist() for part in found))
print("argmax", x.argmax().asnumpy().tolist(), "argmin", x.argmin().asnumpy().tolist())
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
max 9.0 0
min 1.0 0
max of rows [5.0, 9.0] [1, 2]
argmax 5 argmin 4
RECORDED
