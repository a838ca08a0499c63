#!/usr/bin/env bash
# jax-finufft 1.3.1 works with jax 0.10.2 but for vmap and hessian.
#
# Guess:    a release that pip installs beside a JAX runs under its transformations, or pip
#           refuses the pair.
# Seen:     nufft1, jit and grad are right; vmap and hessian raise AttributeError, since JAX no
#           longer has a private name that the batching rules use.
# Versions: jax-finufft 1.3.1, jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 500 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax-finufft==1.3.1 jax==0.10.2 \
  jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/probe.py" <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
from jax_finufft import nufft1

print("jax", jax.__version__)
points = jnp.array([0.3, 1.2])
strengths = jnp.array([1.0 + 0j, 2.0 + 0j])
expected = np.exp(1j * np.outer(np.arange(-2, 3), np.asarray(points))) @ np.asarray(strengths)


def energy(points):
    return jnp.sum(jnp.abs(nufft1(5, strengths, points)) ** 2)


print("nufft1 right:", bool(np.allclose(nufft1(5, strengths, points), expected, atol=1e-4)))
print("grad finite:", bool(jnp.isfinite(jax.grad(energy)(points)).all()))
for name, function, x in (
    ("vmap", jax.vmap(energy), points[None]),
    ("hessian", jax.hessian(energy), points),
):
    try:
        print(name, function(x).shape)
    except AttributeError as error:
        print(name, "AttributeError:", error)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
nufft1 right: True
grad finite: True
vmap AttributeError: module 'jax._src.interpreters.batching' has no attribute 'not_mapped'
hessian AttributeError: module 'jax._src.interpreters.batching' has no attribute 'not_mapped'
RECORDED
