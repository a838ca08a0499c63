#!/usr/bin/env bash
# MindSpore on a CPU loses the sign of a zero divisor, and RealDiv the fraction of 7 / 2.
#
# Guess:    1 / -0.0 is -inf by IEEE 754, and RealDiv, the operator behind `/`, gives `/`'s results.
# Seen:     1 / -0.0 is inf. 7 / 2 of int32 tensors is 3.5, and RealDiv of them the int32 3.
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
seven, two = Tensor(np.array([7], np.int32)), Tensor(np.array([2], np.int32))
for name, quotient in {"/": seven / two, "RealDiv": ops.RealDiv()(seven, two)}.items():
    print(f"{name} of int32:", quotient.dtype, quotient.asnumpy())
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
1 / -0.0: [inf]
/ of int32: Float32 [3.5]
RealDiv of int32: Int32 [3]
RECORDED
