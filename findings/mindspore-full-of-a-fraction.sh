#!/usr/bin/env bash
# MindSpore's ops.full without a dtype fills with the whole part of a fraction, as Int64.
#
# Guess:    the dtype is that of the value: Float32 for a Python float, as in torch.full and
#           numpy.full.
# Seen:     ops.full([2], 1.5) is Int64 of ones, eager and compiled; -0.5 gives zeros. With a dtype
#           the fraction stays. ops.full_like of a Float32 Tensor keeps it, too.
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
from mindspore import Tensor, ops

print("mindspore", ms.__version__)


@ms.jit
def compiled():
    return ops.full([2], 1.5)


for name, filled in {
    "1.5": ops.full([2], 1.5),
    "1.5, compiled": compiled(),
    "-0.5": ops.full([2], -0.5),
    "1.5, dtype Float32": ops.full([2], 1.5, dtype=ms.float32),
    "1.5, like Float32": ops.full_like(Tensor([0.0, 0.0]), 1.5),
}.items():
    print(name, filled.dtype, filled.asnumpy().tolist())
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
1.5 Int64 [1, 1]
1.5, compiled Int64 [1, 1]
-0.5 Int64 [0, 0]
1.5, dtype Float32 Float32 [1.5, 1.5]
1.5, like Float32 Float32 [1.5, 1.5]
RECORDED
