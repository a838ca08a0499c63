#!/usr/bin/env bash
# Of a Cell with its own bprop, MindSpore calls the hook before the forward pass, and not the one after.
#
# Guess:    forward hooks are about the forward pass, so they are called whether or not the Cell
#           defines bprop; or register_forward_hook refuses such a Cell.
# Seen:     the hook of register_forward_pre_hook is called and that of register_forward_hook is
#           not, without a warning; an output that it would replace stays. Without bprop both are
#           called.
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


class Plain(nn.Cell):
    def construct(self, x):
        return x * 2


class WithBprop(Plain):
    def bprop(self, x, out, dout):
        return (dout * 2,)


def before(cell, inputs):
    print("  before", type(cell).__name__, flush=True)


def after(cell, inputs, output):
    print("  after", type(cell).__name__, flush=True)
    return output * 10


print("mindspore", ms.__version__)
for cell in Plain(), WithBprop():
    cell.register_forward_pre_hook(before)
    cell.register_forward_hook(after)
    print(type(cell).__name__, "of 1:", cell(Tensor(1.0)))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
  before Plain
  after Plain
Plain of 1: 20.0
  before WithBprop
WithBprop of 1: 2.0
RECORDED
