#!/usr/bin/env bash
# What a Python function of MindSpore's Custom returns is taken byte by byte.
#
# Guess:    an output that is declared float32 is converted to it, or another dtype is an error.
# Seen:     int32 [1, 2] becomes [1e-45, 3e-45]: the bytes are copied as they are. So do one
#           float64, and the Python number 3, fill two elements. float64 of two elements, whose
#           bytes do not fit, is an error, "memcpy failed.".
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


def show(name, returned):
    def function(x):
        return returned

    custom = ops.Custom(function, lambda shape: shape, lambda dtype: dtype, "pyfunc")
    try:
        seen = custom(Tensor(np.float32([1, 2]))).asnumpy()
    except RuntimeError as error:
        seen = str(error).splitlines()[0]
    print(f"{name:18}", seen)


print("mindspore", ms.__version__)
show("float32 [1, 2]", np.float32([1, 2]))
show("int32 [1, 2]", np.int32([1, 2]))
show("float64 [1]", np.float64([1]))
show("3", 3)
show("float64 [1, 2]", np.float64([1, 2]))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
float32 [1, 2]     [1. 2.]
int32 [1, 2]       [1.e-45 3.e-45]
float64 [1]        [0.    1.875]
3                  [4.e-45 0.e+00]
float64 [1, 2]     memcpy failed.
RECORDED
