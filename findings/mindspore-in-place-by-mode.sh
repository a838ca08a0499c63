#!/usr/bin/env bash
# What changes in place in MindSpore on a CPU is one thing in PyNative mode, another in graph mode.
#
# Guess:    y.add_(1) and y[0] = 5 change y, under all its names, and the two modes agree.
# Seen:     in PyNative mode y.add_(1) leaves y as it was and returns the sum; y[0] = 5 changes y,
#           its other names, and the caller's tensor. In graph mode it is the reverse: add_ changes
#           y and the caller's tensor, y[0] = 5 only the name that it was written with.
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
from mindspore import Tensor, nn


class Added(nn.Cell):
    def construct(self, x):
        y = x
        y.add_(1.0)
        return x * 1, y * 1


class Stored(nn.Cell):
    def construct(self, x):
        y = x
        y[0] = 5.0
        return x * 1, y * 1


print("mindspore", ms.__version__)
for name, mode in {"PyNative": ms.PYNATIVE_MODE, "graph": ms.GRAPH_MODE}.items():
    ms.set_context(mode=mode)
    for cell in Added(), Stored():
        given = Tensor([1.0, 2.0])
        x, y = cell(given)
        print(f"{name:8} {type(cell).__name__:6} x {x} y {y} the caller's {given}")
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
PyNative Added  x [1. 2.] y [1. 2.] the caller's [1. 2.]
PyNative Stored x [5. 2.] y [5. 2.] the caller's [5. 2.]
graph    Added  x [2. 3.] y [2. 3.] the caller's [2. 3.]
graph    Stored x [1. 2.] y [5. 2.] the caller's [1. 2.]
RECORDED
