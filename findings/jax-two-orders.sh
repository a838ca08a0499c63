#!/usr/bin/env bash
# Ordered callbacks of JAX keep two orders, not one.
#
# Guess:    callbacks with ordered=True run in the order of the program, so a jax.debug.callback that
#           stands before an io_callback runs before it.
# Seen:     calls of one kind keep their order in each of 100 runs. Between the two kinds there is
#           none: the io_callback that stands behind runs first in many, as its argument is there first.
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
from jax.experimental import io_callback

noted = []


def by_debug(x, name):
    jax.debug.callback(lambda _: noted.append(name), x, ordered=True)


def by_io(x, name):
    io_callback(lambda _: noted.append(name), None, x, ordered=True)


def show(first, second):
    @jax.jit
    def program(x):
        first(jnp.linalg.inv(x).sum(), "first")
        second(x, "second")

    x = jnp.eye(500)
    kept = True
    for _ in range(100):
        noted.clear()
        program(x)
        jax.effects_barrier()
        kept = kept and noted == ["first", "second"]
    print(f"{first.__name__:8} before {second.__name__:8} always first: {kept}")


print("jax", jax.__version__)
show(by_debug, by_debug)
show(by_io, by_io)
show(by_debug, by_io)
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
by_debug before by_debug always first: True
by_io    before by_io    always first: True
by_debug before by_io    always first: False
RECORDED
