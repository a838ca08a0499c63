#!/usr/bin/env bash
# Under jit, the constant [-0., 1., 2.] is [0., 1., 2.].
#
# Guess:    an array that a jitted function closes over has the bits that it has outside.
# Seen:     [-0., 1., 2.] loses its sign, and so does [-0., 1.]; [-0., 2., 4.], [-0., 0.],
#           [-0., 0.5] and two rows of [-0., 1.] keep it. The program that JAX hands over still has
#           it (stablehlo.constant dense<[-0.000000e+00, ...]>): XLA takes the numbers 0, 1, 2, ...
#           for an iota, and compares them as numbers. 1 / x in the same program is -inf all the
#           same, and 1 / of its result inf.
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
import numpy as np

print("jax", jax.__version__)
rows = ([-0.0, 1.0], [-0.0, 1.0, 2.0], [-0.0, 2.0, 4.0], [-0.0, 0.0], [-0.0, 0.5], [[-0.0, 1.0]] * 2)
for numbers in rows:
    x = np.float32(numbers)
    program = jax.jit(lambda x=x: jnp.asarray(x))
    handed_over = "-0.0" in program.lower().as_text()
    print(f"{x.tolist()}: -0 handed over {handed_over}, result {np.asarray(program()).tolist()}")
x = np.float32([-0.0, 1.0])
print("1 / [-0., 1.]:", jax.jit(lambda: 1 / jnp.asarray(x))().tolist())
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
[-0.0, 1.0]: -0 handed over True, result [0.0, 1.0]
[-0.0, 1.0, 2.0]: -0 handed over True, result [0.0, 1.0, 2.0]
[-0.0, 2.0, 4.0]: -0 handed over True, result [-0.0, 2.0, 4.0]
[-0.0, 0.0]: -0 handed over True, result [-0.0, 0.0]
[-0.0, 0.5]: -0 handed over True, result [-0.0, 0.5]
[[-0.0, 1.0], [-0.0, 1.0]]: -0 handed over True, result [[-0.0, 1.0], [-0.0, 1.0]]
1 / [-0., 1.]: [-inf, 1.0]
RECORDED
