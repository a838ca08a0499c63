#!/usr/bin/env bash
# Slopes, magnitudes and truth values differ between JAX 0.10.2, 0.11.2 and 0.12.0.1.
#
# Guess:    the slope of a function at a point, the magnitude of a number and whether it is zero
#           stay what they were when JAX is updated.
# Seen:     the slope of acosh at -2.5, where it has no value, was 0.44 and is NaN from 0.11 on; the
#           slope of hypot at (0, 0) was 0.5 and is NaN in 0.12. A bfloat16 of 1e-40, which is equal
#           to 0, was True as a bool and is False from 0.11 on. The magnitude of (NaN, inf) was NaN
#           and is inf in 0.12.
#           The notes of 0.11.0 (CHANGELOG.md of JAX, as of 8 August 2026) have no line about the
#           slope of acosh or about bool; those of 0.11.1 and later were not looked up.
# Versions: jax and jaxlib 0.10.2 on Python 3.11, 0.11.2 and 0.12.0.1 on Python 3.12; numpy 2.4.6;
#           x86-64 Linux.
# Needs:    both Pythons (PYTHON and PYTHON312 may name them), 1.2 GB of disk, three minutes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/probe.py" <<'PYTHON'
import jax
import jax.numpy as jnp

print("jax", jax.__version__)
tiny = jnp.bfloat16(1e-40)
print("slope of acosh at -2.5 ", jax.grad(jnp.acosh)(-2.5))
print("slope of hypot at (0,0)", jax.grad(jnp.hypot)(0.0, 0.0))
print("tiny == 0, as a bool   ", tiny == 0, tiny.astype(bool))
print("abs((nan, inf))        ", jnp.abs(jnp.complex64(complex("nan+infj"))))
PYTHON
for version in 0.10.2 0.11.2 0.12.0.1; do
  case $version in 0.10.2) python=${PYTHON:-python3.11} ;; *) python=${PYTHON312:-python3.12} ;; esac
  "$python" -m venv "$folder/$version"
  "$folder/$version/bin/python" -m pip install --quiet jax==$version jaxlib==$version numpy==2.4.6
  "$folder/$version/bin/python" "$folder/probe.py"
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
slope of acosh at -2.5  0.4364358
slope of hypot at (0,0) 0.5
tiny == 0, as a bool    True True
abs((nan, inf))         nan
jax 0.11.2
slope of acosh at -2.5  nan
slope of hypot at (0,0) 0.5
tiny == 0, as a bool    True False
abs((nan, inf))         nan
jax 0.12.0.1
slope of acosh at -2.5  nan
slope of hypot at (0,0) nan
tiny == 0, as a bool    True False
abs((nan, inf))         inf
RECORDED
