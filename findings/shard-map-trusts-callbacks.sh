#!/usr/bin/env bash
# shard_map accepts a callback's result as replicated, although each device computed another
# one.
#
# Guess:    out_specs=P() of a result that varies over the mesh is refused, whatever computed
#           the result.
# Seen:     `x * 2` is refused with a ValueError; the same shard through jax.pure_callback is
#           accepted, and the caller gets the first shard's part as if it were the whole.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
export XLA_FLAGS=--xla_force_host_platform_device_count=2
cat > "$folder/probe.py" <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

print("jax", jax.__version__)
mesh = jax.make_mesh((2,), ("i",))
x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, P("i")))


def by_callback(x):
    return jax.pure_callback(np.asarray, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


for name, body in (("x * 2", lambda x: x * 2), ("callback", by_callback)):
    try:
        print(name, jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P())(x))
    except ValueError as error:
        print(name, "ValueError:", str(error).split("given ")[1][:44])
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
x * 2 ValueError: out_specs which require replication which ca
callback [0. 1.]
RECORDED
