#!/usr/bin/env bash
# XLA on a CPU fuses over an optimization barrier in JAX 0.10.2, and in 0.12.0.1 it does not.
#
# Guess:    lax.optimization_barrier, whose page says that it keeps the compiler from moving
#           operations across it, costs a pass over memory wherever it stands between two operations
#           that would be one loop.
# Seen:     with 0.10.2 sin(2 * x) + 1 is one fusion with a barrier before the addition, as without:
#           the barrier is taken out before fusion. With 0.12.0.1 there are two. So a barrier that
#           costs nothing today is the price of an array tomorrow, and one that was put there to
#           separate two loops does not.
# Versions: jax and jaxlib 0.10.2 on Python 3.11, 0.12.0.1 on Python 3.12; numpy 2.4.6; x86-64 Linux.
# Needs:    both Pythons (PYTHON and PYTHON312 may name them), 800 MB of disk, two minutes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/probe.py" <<'PYTHON'
import jax
import jax.numpy as jnp

print("jax", jax.__version__)


def fusions(between):
    program = jax.jit(lambda x: between(jnp.sin(x * 2)) + 1)
    text = program.lower(jnp.ones(1000)).compile().as_text()
    return text[text.index("ENTRY") :].count(" fusion(")


print("without a barrier:", fusions(lambda x: x))
print("with a barrier:   ", fusions(jax.lax.optimization_barrier))
PYTHON
for version in 0.10.2 0.12.0.1; do
  case $version in 0.10.2) python=${PYTHON:-python3.11} ;; *) python=${PYTHON312:-python3.12} ;; esac
  "$python" -m venv "$folder/$version"
  "$folder/$version/bin/python" -m pip install --quiet jax==$version jaxlib==$version numpy==2.4.6
  "$folder/$version/bin/python" "$folder/probe.py"
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
without a barrier: 1
with a barrier:    1
jax 0.12.0.1
without a barrier: 1
with a barrier:    2
RECORDED
