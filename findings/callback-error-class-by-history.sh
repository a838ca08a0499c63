#!/usr/bin/env bash
# The class of a callback's error depends on whether the jitted function has succeeded before.
#
# Guess:    an exception in jax.pure_callback arrives as the same class each time, with the
#           cause attached.
# Seen:     JaxRuntimeError if the first call of the jitted function fails; ValueError if an
#           earlier call of it succeeded. `__cause__` is None in both, so only the text holds
#           the KeyError.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import logging

import jax
import numpy as np

logging.disable(logging.CRITICAL)
print("jax", jax.__version__)
result = jax.ShapeDtypeStruct((), np.float32)


def host(x):
    if x < 0:
        raise KeyError("negative")
    return x


def outcome(function, x):
    try:
        return jax.block_until_ready(function(np.float32(x)))
    except Exception as error:
        return f"{type(error).__name__}, cause {error.__cause__}, names KeyError: {'KeyError' in str(error)}"


for order in ((-1, -1), (1, -1)):
    function = jax.jit(lambda x: jax.pure_callback(host, result, x))
    print(order, "->", [str(outcome(function, x)) for x in order])
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
(-1, -1) -> ['JaxRuntimeError, cause None, names KeyError: True', 'JaxRuntimeError, cause None, names KeyError: True']
(1, -1) -> ['1.0', 'ValueError, cause None, names KeyError: True']
RECORDED
