#!/usr/bin/env bash
# jnp.sum refuses int4, which jnp.max, jnp.mean and the matrix product take.
#
# Guess:    a dtype that arrays can have can be summed.
# Seen:     jnp.sum and jnp.prod of int4 and uint4 raise "ValueError: Invalid integer data type
#           'V'", from numpy's iinfo; max gives 1, mean 1.0, and the matrix product works.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6, ml_dtypes 0.6.0; x86-64 Linux.
# Needs:    Python 3.11, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0
cat > "$folder/probe.py" <<'PYTHON'
import jax
import jax.numpy as jnp

print("jax", jax.__version__)
for dtype in (jnp.int4, jnp.uint4, jnp.int8):
    ones = jnp.ones(3, dtype)
    for function in (jnp.sum, jnp.prod, jnp.max, jnp.mean):
        try:
            print(ones.dtype, function.__name__, function(ones))
        except ValueError as error:
            print(ones.dtype, function.__name__, "ValueError:", error)
    print(ones.dtype, "matmul", (ones[None] @ ones[:, None])[0, 0])
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
int4 sum ValueError: Invalid integer data type 'V'.
int4 prod ValueError: Invalid integer data type 'V'.
int4 max 1
int4 mean 1.0
int4 matmul 3
uint4 sum ValueError: Invalid integer data type 'V'.
uint4 prod ValueError: Invalid integer data type 'V'.
uint4 max 1
uint4 mean 1.0
uint4 matmul 3
int8 sum 3
int8 prod 1
int8 max 1
int8 mean 1.0
int8 matmul 3
RECORDED
