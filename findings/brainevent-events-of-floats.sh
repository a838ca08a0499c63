#!/usr/bin/env bash
# brainevent's events 0.5 and 2 count as 1, except in the gradient, and in one format.
#
# Guess:    BinaryArray and BitPackedBinary take any array whose numbers other than zero are events,
#           as their documentation says, and count each as 1: in every product, and in both
#           directions of differentiation.
# Seen:     with the events 0.5, 0, 2 both give the sum of two rows for a dense matrix, but
#           BitPackedBinary weighs the rows of the same matrix as CSR with 0.5 and 2. The slope of
#           that sum in all weights is 4 by jax.jvp and 5 by jax.grad.
# Versions: brainevent 0.2.1, numba 0.68.1, jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 700 MB of disk, two minutes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet \
  brainevent==0.2.1 numba==0.68.1 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import brainevent
import jax
import jax.numpy as jnp

weights = jnp.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
numbers = jnp.array([0.5, 0.0, 2.0])
print("brainevent", brainevent.__version__)
for kind in (brainevent.BinaryArray, brainevent.BitPackedBinary):
    events = kind(numbers)
    by_csr = events @ brainevent.CSR.fromdense(weights)
    print(kind.__name__, "dense:", events @ weights, "CSR:", by_csr)


def total(weights):
    return (brainevent.BinaryArray(numbers) @ weights).sum()


print("slope by jvp: ", jax.jvp(total, (weights,), (jnp.ones_like(weights),))[1])
print("slope by grad:", jax.grad(total)(weights).sum())
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
brainevent 0.2.1
BinaryArray dense: [ 5. 50.] CSR: [ 5. 50.]
BitPackedBinary dense: [ 5. 50.] CSR: [ 8.5 85. ]
slope by jvp:  4.0
slope by grad: 5.0
RECORDED
