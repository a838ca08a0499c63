#!/usr/bin/env bash
# In a compiled MindSpore function, a store to part of a row that does not exist goes to the last row.
#
# Guess:    an IndexError, as without compilation, and as for a whole row.
# Seen:     z[2, 0:2] = y of a Tensor with two rows is an IndexError when it runs eagerly. Compiled
#           by ms.jit it stores into row 1 without a word. z[2] = y is an IndexError in both.
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


def part(z, y):
    z[2, 0:2] = y
    return z


def whole(z, y):
    z[2] = y
    return z


for name, store, y in ("part", part, [7.0, 8.0]), ("whole", whole, [7.0, 8.0, 9.0]):
    for way, function in ("eager", store), ("compiled", ms.jit(store)):
        try:
            seen = function(ops.zeros((2, 3), ms.float32), Tensor(y)).asnumpy().tolist()
        except IndexError:
            seen = "IndexError"
        print(name, way, seen)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
part eager IndexError
part compiled [[0.0, 0.0, 0.0], [7.0, 8.0, 0.0]]
whole eager IndexError
whole compiled IndexError
RECORDED
