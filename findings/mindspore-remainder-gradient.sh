#!/usr/bin/env bash
# MindSpore's gradient of a remainder by its divisor is not that of the remainder.
#
# Guess:    since x mod y is x - y * trunc(x / y), its slope in y is -trunc(x / y).
# Seen:     ops.Mod truncates (-7 mod 3 is -1), but the slope in y that ms.grad gives is that of
#           a remainder that floors.
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
mod = ops.Mod()
for x, y in ((-7.0, 3.0), (7.0, -3.0), (7.0, 3.0)):
    a, b = Tensor(np.array([x], np.float32)), Tensor(np.array([y], np.float32))
    slope = ms.grad(lambda a, b: mod(a, b).sum(), grad_position=1)(a, b)
    step = (mod(a, b + 0.01).asnumpy() - mod(a, b - 0.01).asnumpy()) / 0.02
    print(x, "mod", y, "value", mod(a, b).asnumpy(), "slope", slope.asnumpy(), "difference", np.round(step, 2))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
mindspore 2.10.0
-7.0 mod 3.0 value [-1.] slope [3.] difference [2.]
7.0 mod -3.0 value [1.] slope [3.] difference [2.]
7.0 mod 3.0 value [1.] slope [-2.] difference [-2.]
RECORDED
