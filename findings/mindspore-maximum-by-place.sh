#!/usr/bin/env bash
# The max and maximum of MindSpore treat a NaN by where it stands.
#
# Guess:    a maximum with a NaN is NaN, as in numpy, or ignores the NaN, as C's fmax; one of
#           the two everywhere.
# Seen:     max is NaN only if the NaN comes first; maximum(nan, 2) is 2 and maximum(2, nan)
#           NaN; relu(nan) is 0.
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
import numpy as np
from mindspore import Tensor, ops

print("mindspore", ms.__version__)
nan = float("nan")


def tensor(*values):
    return Tensor(np.array(values, np.float32))


print("max of (nan, 1, 2):", ops.max(tensor(nan, 1, 2))[0], "of (1, nan, 2):", ops.max(tensor(1, nan, 2))[0])
print("maximum(nan, 2):", ops.maximum(tensor(nan), tensor(2)), "maximum(2, nan):", ops.maximum(tensor(2), tensor(nan)))
print("relu(nan):", ops.relu(tensor(nan)))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
max of (nan, 1, 2): nan of (1, nan, 2): 2.0
maximum(nan, 2): [2.] maximum(2, nan): [nan]
relu(nan): [0.]
RECORDED
