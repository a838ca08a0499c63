#!/usr/bin/env bash
# A call through jax-tvm-ffi loses its attributes without a word.
#
# Guess:    an attribute that a call passes reaches the function, or the call fails, as XLA's own
#           handlers refuse an attribute that they do not bind.
# Seen:     a target that is registered as the package's default says never sees attributes:
#           scale=3.0 is not there, and the call succeeds. Registered with "attrs.scale" it arrives;
#           a second attribute is then an error if its name comes before "scale" in the alphabet,
#           and lost in the same way if it comes after.
# Versions: jax-tvm-ffi 0.1.3, apache-tvm-ffi 0.1.15.post2, jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6;
#           x86-64 Linux.
# Needs:    Python 3.11, 500 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet \
  jax-tvm-ffi==0.1.3 apache-tvm-ffi==0.1.15.post2 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
from importlib.metadata import version

import jax
import jax_tvm_ffi
import numpy as np
import tvm_ffi


def scaled(x, y, scale=1.0):
    np.from_dlpack(y)[...] = np.from_dlpack(x) * scale


print("jax-tvm-ffi", version("jax-tvm-ffi"))
x = np.float32([1, 2])
function = tvm_ffi.convert(scaled)
for name, arguments in {"default": None, "named": ["args", "rets", "attrs.scale"]}.items():
    jax_tvm_ffi.register_ffi_target(name, function, arguments, pass_owned_tensor=True)
    call = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((2,), np.float32))
    for others in {}, {"offset": 5.0}, {"twice": 5.0}:
        try:
            result = call(x, scale=3.0, **others)
        except RuntimeError as error:
            result = str(error).split(": ")[1]
        print(f"{name}, scale {others}:", result)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax-tvm-ffi 0.1.3
default, scale {}: [1. 2.]
default, scale {'offset': 5.0}: [1. 2.]
default, scale {'twice': 5.0}: [1. 2.]
named, scale {}: [3. 6.]
named, scale {'offset': 5.0}: Attribute mismatch mismatch, expected `scale`, actual `offset`
named, scale {'twice': 5.0}: [3. 6.]
RECORDED
