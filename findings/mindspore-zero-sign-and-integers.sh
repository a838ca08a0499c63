#!/usr/bin/env bash
# MindSpore on a CPU loses the sign of a zero divisor, and the high half of a 64-bit index.
#
# Guess:    1 / -0.0 is -inf by IEEE 754, and an int64 index of 2**40 into four elements is out
#           of range.
# Seen:     1 / -0.0 is inf; gather with the index 2**40 gives element 0, while the index 4
#           raises; RealDiv of two int32 tensors has dtype int32.
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
one, zero = Tensor(np.array([1.0], np.float32)), Tensor(np.array([-0.0], np.float32))
print("1 / -0.0:", (one / zero).asnumpy())
table = Tensor(np.array([10, 20, 30, 40], np.float32))
for index in (2**40, 4):
    try:
        print("gather of", index, ops.gather(table, Tensor(np.array([index], np.int64)), 0).asnumpy())
    except Exception as error:
        print("gather of", index, "raises", type(error).__name__)
quotient = ops.RealDiv()(Tensor(np.array([7], np.int32)), Tensor(np.array([2], np.int32)))
print("RealDiv of int32:", quotient.dtype, quotient.asnumpy())
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
1 / -0.0: [inf]
gather of 1099511627776 [10.]
gather of 4 raises RuntimeError
RealDiv of int32: Int32 [3]
RECORDED
