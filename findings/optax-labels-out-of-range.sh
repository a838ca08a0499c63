#!/usr/bin/env bash
# optax's cross entropy with integer labels takes -1 for the last class.
#
# Guess:    a label outside of the classes, such as the -1 of ignored entries, gives an error,
#           NaN, or no loss.
# Seen:     label -1 gives the loss of the last class, a number that trains on; label 5 of 3
#           classes gives NaN.
# Versions: optax 0.2.8, jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 500 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 \
  numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import jax.numpy as jnp
import optax

print("optax", optax.__version__)
logits = jnp.array([[1.0, 2.0, 3.0]])
for label in (2, -1, -3, 5):
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.array([label]))
    print("label", label, "loss", round(float(loss[0]), 4))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
optax 0.2.8
label 2 loss 0.4076
label -1 loss 0.4076
label -3 loss 2.4076
label 5 loss nan
RECORDED
