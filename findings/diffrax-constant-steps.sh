#!/usr/bin/env bash
# ConstantStepSize of diffrax takes steps that are not constant.
#
# Guess:    from 0 to 1 with dt0=0.3 it steps to 0.3, 0.6, 0.9 and, shortened, to 1.
# Seen:     it steps to 0.3, 0.5, 0.75 and 1: dt0 holds for the first step only, the others lie
#           on a grid of equal steps from 0 to 1. Euler's result is that of these steps, 0.315
#           and not 0.3087.
# Versions: diffrax 0.7.2, equinox 0.13.8, jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 500 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet diffrax==0.7.2 equinox==0.13.8 \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

print("diffrax", diffrax.__version__, "jax", jax.__version__)
term = diffrax.ODETerm(lambda t, y, args: -y)
for dt0 in (0.3, 0.4, 0.25):
    solution = diffrax.diffeqsolve(
        term, diffrax.Euler(), 0.0, 1.0, dt0, jnp.array(1.0),
        stepsize_controller=diffrax.ConstantStepSize(), saveat=diffrax.SaveAt(steps=True), max_steps=8,
    )
    taken = np.isfinite(solution.ts)
    times = [round(float(t), 4) for t in solution.ts[taken]]
    print("dt0", dt0, "steps to", times, "y(1)", round(float(solution.ys[taken][-1]), 4))
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
diffrax 0.7.2 jax 0.10.2
dt0 0.3 steps to [0.3, 0.5, 0.75, 1.0] y(1) 0.315
dt0 0.4 steps to [0.4, 0.6667, 1.0] y(1) 0.2933
dt0 0.25 steps to [0.25, 0.5, 0.75, 1.0] y(1) 0.3164
RECORDED
