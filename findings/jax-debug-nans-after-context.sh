#!/usr/bin/env bash
# jax_debug_nans no longer finds a NaN after a context that turned it off has ended.
#
# Guess:    after `with jax.debug_nans(False)` everything is as before; where the flag is True, a
#           NaN in the result of a jitted function is an error.
# Seen:     once that context has ended, functions whose first run was good give their NaN to the
#           caller, those that are jitted later as well. jax.config still says True, and setting it
#           again does not bring the check back.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import jax
import jax.numpy as jnp


def ratio():
    return jax.jit(lambda x: x / x)


def show(name, function):
    function(jnp.float32(1))
    try:
        seen = function(jnp.float32(0))
    except FloatingPointError as error:
        seen = type(error).__name__
    print(f"{name:21}", jax.config.jax_debug_nans, seen)


print("jax", jax.__version__)
jax.config.update("jax_debug_nans", True)
old = ratio()
show("flag set", old)
with jax.debug_nans(False):
    pass
show("after the context", old)
show("jitted after it", ratio())
for flag in (True, False, True):
    jax.config.update("jax_debug_nans", flag)
    show(f"flag set to {flag}", old)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | grep -v "^Invalid nan" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
flag set              True FloatingPointError
after the context     True nan
jitted after it       True nan
flag set to True      True nan
flag set to False     False nan
flag set to True      True nan
RECORDED
