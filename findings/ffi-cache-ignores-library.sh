#!/usr/bin/env bash
# JAX's cache on disk takes a program for the same although its FFI library has changed.
#
# Guess:    the key of the cache covers what a custom call runs, so another library under the same
#           target name is a miss.
# Seen:     the second process, with another library, has a hit. The key has the name alone; the code
#           that runs is the new one, with whatever the program fixed for the old.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, g++ with C++17, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/fill.cc" <<'CODE'
#include <algorithm>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error FillWith(ffi::ResultBuffer<ffi::F32> y) {
  std::fill_n(y->typed_data(), y->element_count(), VALUE);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Fill, FillWith, ffi::Ffi::Bind().Ret<ffi::Buffer<ffi::F32>>());
CODE
headers=$("$folder/venv/bin/python" -c "import jax; print(jax.ffi.include_dir())")
for value in 1 2; do
  g++ -std=c++17 -O1 -w -fPIC -shared -DVALUE=$value -I"$headers" "$folder/fill.cc" \
    -o "$folder/fill_$value.so"
done
cat > "$folder/probe.py" <<'PYTHON'
import ctypes
import pathlib
import sys

import jax
import numpy as np

cache = pathlib.Path(sys.argv[2])
jax.config.update("jax_compilation_cache_dir", str(cache))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
before = len(list(cache.glob("*-cache")))
library = ctypes.CDLL(sys.argv[1])
jax.ffi.register_ffi_target("fill", jax.ffi.pycapsule(library.Fill), platform="cpu")
fill = jax.jit(lambda: jax.ffi.ffi_call("fill", jax.ShapeDtypeStruct((2,), np.float32))())
print(pathlib.Path(sys.argv[1]).name, "gives", fill(), end=", ")
print("new programs in the cache:", len(list(cache.glob("*-cache"))) - before)
PYTHON
for value in 1 2; do
  "$folder/venv/bin/python" "$folder/probe.py" "$folder/fill_$value.so" "$folder/cache"
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
fill_1.so gives [1. 1.], new programs in the cache: 1
fill_2.so gives [2. 2.], new programs in the cache: 0
RECORDED
