#!/usr/bin/env bash
# jax.ffi.ffi_call lowers a tuple as an attribute, and XLA then refuses to run it.
#
# Guess:    a tuple of whole numbers reaches the handler as a span, or ffi_call refuses it with the
#           attribute's name and what to pass.
# Seen:     the program lowers; running it ends in "Unsupported attribute type". A list is a
#           TypeError at once, since it has no hash. A numpy array arrives as a span.
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, g++ with C++17, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/sum.cc" <<'CODE'
#include <numeric>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error SumParts(ffi::ResultBuffer<ffi::F32> y, ffi::Span<const int64_t> parts) {
  y->typed_data()[0] = std::accumulate(parts.begin(), parts.end(), 0);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Sum, SumParts,
                              ffi::Ffi::Bind()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Attr<ffi::Span<const int64_t>>("parts"));
CODE
headers=$("$folder/venv/bin/python" -c "import jax; print(jax.ffi.include_dir())")
g++ -std=c++17 -O1 -w -fPIC -shared -I"$headers" "$folder/sum.cc" -o "$folder/sum.so"
cat > "$folder/probe.py" <<'PYTHON'
import ctypes
import sys

import jax
import numpy as np

library = ctypes.CDLL(sys.argv[1])
jax.ffi.register_ffi_target("sum", jax.ffi.pycapsule(library.Sum), platform="cpu")
print("jax", jax.__version__)
for parts in ((1, 2), [1, 2], np.array([1, 2])):
    call = jax.ffi.ffi_call("sum", jax.ShapeDtypeStruct((1,), np.float32))
    program = jax.jit(lambda call=call, parts=parts: call(parts=parts))
    for step, run in (("lowers", program.lower), ("runs", program)):
        try:
            outcome = run()
            print(type(parts).__name__, step + (f" to {outcome}" if step == "runs" else ""))
        except Exception as error:
            print(type(parts).__name__, step, type(error).__name__, str(error).split("\n")[0])
PYTHON
"$folder/venv/bin/python" "$folder/probe.py" "$folder/sum.so" | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
jax 0.10.2
tuple lowers
tuple runs JaxRuntimeError INVALID_ARGUMENT: Unsupported attribute type for attribute: parts
list lowers TypeError Non-hashable keyword argument to ffi_call parts: [1, 2]
list runs TypeError Non-hashable keyword argument to ffi_call parts: [1, 2]
ndarray lowers
ndarray runs to [3.]
RECORDED
