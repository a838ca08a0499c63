#!/usr/bin/env bash
# A check by equinox.error_if is lost in the compiled gradient of a function that is linear after it.
#
# Guess:    a number that went through error_if raises the error wherever it is used: in the value,
#           in the gradient, under jit and without.
# Seen:     filter_grad of error_if(x, x > 0, ...) * 2 raises; under filter_jit it gives 2.0, and so
#           does jvp, since the slope needs no value and the check goes with the value. The jitted
#           function itself raises.
# Versions: equinox 0.13.8, jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 500 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet \
  equinox==0.13.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import equinox
import jax
import jax.numpy as jnp


def twice(x):
    return equinox.error_if(x, x > 0, "a positive number") * 2


def slope(x):
    return jax.jvp(twice, (x,), (1.0,))[1]


print("equinox", equinox.__version__)
for name, function in {
    "jitted": equinox.filter_jit(twice),
    "gradient": equinox.filter_grad(twice),
    "jitted gradient": equinox.filter_jit(equinox.filter_grad(twice)),
    "jitted jvp": equinox.filter_jit(slope),
}.items():
    try:
        seen = function(jnp.float32(1))
    except RuntimeError as error:
        seen = "RuntimeError" if "a positive number" in str(error) else error
    print(f"{name:15}", seen)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
equinox 0.13.8
jitted          RuntimeError
gradient        RuntimeError
jitted gradient 2.0
jitted jvp      2.0
RECORDED
