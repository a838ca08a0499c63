#!/usr/bin/env bash
# Of two equal calls of XLA's FFI one runs; one whose result has no element does not run at all.
#
# Guess:    a custom call is opaque, so each call that the program makes runs once, as the calls of
#           jax.pure_callback do.
# Seen:     two equal ffi_calls of one program run once, where two equal pure_callbacks run twice. A
#           call whose result is unused, or has no element, runs only with has_side_effect=True.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, g++ with C++17, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/count.cc" <<'CODE'
#include <algorithm>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static int runs = 0;
extern "C" int TakeRuns() {
  const int taken = runs;
  runs = 0;
  return taken;
}

static ffi::Error CountRun(ffi::Buffer<ffi::F32>, ffi::ResultBuffer<ffi::F32> y) {
  ++runs;
  std::fill_n(y->typed_data(), y->element_count(), 1.0f);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Count, CountRun,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
CODE
headers=$("$folder/venv/bin/python" -c "import jax; print(jax.ffi.include_dir())")
g++ -std=c++17 -O1 -w -fPIC -shared -I"$headers" "$folder/count.cc" -o "$folder/count.so"
cat > "$folder/probe.py" <<'PYTHON'
import ctypes
import sys

import jax
import jax.numpy as jnp
import numpy as np

library = ctypes.CDLL(sys.argv[1])
jax.ffi.register_ffi_target("count", jax.ffi.pycapsule(library.Count), platform="cpu")
host_runs = []


def call(x, shape=(3,), effect=False):
    result = jax.ShapeDtypeStruct(shape, np.float32)
    return jax.ffi.ffi_call("count", result, has_side_effect=effect)(x)


def host(x):
    def body(x):
        host_runs.append(1)
        return np.asarray(x)

    return jax.pure_callback(body, jax.ShapeDtypeStruct((3,), np.float32), x)


print("jax", jax.__version__)
for name, program in (
    ("two equal calls", lambda x: call(x) + call(x)),
    ("empty result", lambda x: call(x, (0,))),
    ("empty result, side effect", lambda x: call(x, (0,), True)),
    ("unused result", lambda x: (call(x), x)[1]),
    ("unused result, side effect", lambda x: (call(x, effect=True), x)[1]),
    ("two equal pure_callbacks", lambda x: host(x) + host(x)),
):
    jax.block_until_ready(jax.jit(program)(jnp.zeros(3)))
    print(name + ":", library.TakeRuns() + len(host_runs), "runs")
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" "$folder/count.so" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
two equal calls: 1 runs
empty result: 0 runs
empty result, side effect: 1 runs
unused result: 0 runs
unused result, side effect: 1 runs
two equal pure_callbacks: 2 runs
RECORDED
