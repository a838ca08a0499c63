#!/usr/bin/env bash
# Differentiating a scan drops the side effects of a custom_vjp function whose result is unused.
#
# Guess:    effects (jax.debug.callback, io_callback) happen in a differentiated program as in
#           the plain one.
# Seen:     a custom_vjp function that is called for its effect runs in a scan, and in jax.grad
#           without a scan, but never in jax.grad of the scan.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import jax
from jax import lax
from jax.experimental import io_callback

print("jax", jax.__version__)
seen = []


@jax.custom_vjp
def record(x):
    io_callback(lambda value: seen.append(float(value)), None, x)
    return x * 2


record.defvjp(lambda x: (record(x), None), lambda _, cotangent: (cotangent * 2,))


def step(carry, _):
    record(carry)  # for its effect
    return carry + 1, None


def loop(x):
    return lax.scan(step, x, None, length=3)[0]


def once(x):
    record(x)
    return x + 1


for name, function in (
    ("scan", loop),
    ("grad of scan", jax.grad(loop)),
    ("grad without scan", jax.grad(once)),
):
    seen.clear()
    jax.block_until_ready(function(1.0))
    jax.effects_barrier()
    print(f"{name}: {seen}")
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
scan: [1.0, 2.0, 3.0]
grad of scan: []
grad without scan: [1.0]
RECORDED
