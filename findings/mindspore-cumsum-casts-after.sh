#!/usr/bin/env bash
# MindSpore's Tensor.cumsum adds before it casts, ops.cumsum after.
#
# Guess:    both cast the elements to `dtype` first, so that a sum in Float64 loses nothing; the
#           method and the function are one thing.
# Seen:     the method adds in Float32 and casts the sums: ones after 2**24 are lost, in a result
#           that says Float64. The function keeps them.
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
x = Tensor([2.0**24, 1, 1, 1], ms.float32)
for name, sums in {
    "Tensor.cumsum": x.cumsum(0, dtype=ms.float64),
    "ops.cumsum": ops.cumsum(x, 0, dtype=ms.float64),
}.items():
    print(name, sums.dtype, (sums.asnumpy() - 2**24).tolist())
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
Tensor.cumsum Float64 [0.0, 0.0, 0.0, 0.0]
ops.cumsum Float64 [0.0, 1.0, 2.0, 3.0]
RECORDED
