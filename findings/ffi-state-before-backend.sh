#!/usr/bin/env bash
# A handler of XLA's FFI with typed state stops the CPU backend if it is registered before it.
#
# Guess:    registrations before the first use of JAX wait until the backend is there, in the order
#           in which they were made.
# Seen:     handlers are flushed before types. The same two calls work after jax.devices(); before it
#           the backend does not start: "Types used by FFI handlers must be registered before".
# Versions: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6; x86-64 Linux.
# Needs:    Python 3.11, g++ with C++17, 400 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat > "$folder/seven.cc" <<'CODE'
#include <memory>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

struct Seven {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  float value = 7;
};
ffi::TypeId Seven::id = {};
ffi::TypeInfo Seven::info = ffi::MakeTypeInfo<Seven>();

static ffi::ErrorOr<std::unique_ptr<Seven>> MakeSeven() { return std::make_unique<Seven>(); }

static ffi::Error WriteSeven(Seven* seven, ffi::ResultBuffer<ffi::F32> y) {
  y->typed_data()[0] = seven->value;
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Instantiate, MakeSeven, ffi::Ffi::BindInstantiate());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Execute, WriteSeven,
    ffi::Ffi::Bind().Ctx<ffi::State<Seven>>().Ret<ffi::Buffer<ffi::F32>>());
extern "C" void* TypeIdOfSeven() { return &Seven::id; }
extern "C" void* TypeInfoOfSeven() { return &Seven::info; }
CODE
headers=$("$folder/venv/bin/python" -c "import jax; print(jax.ffi.include_dir())")
g++ -std=c++17 -O1 -w -fPIC -shared -I"$headers" "$folder/seven.cc" -o "$folder/seven.so"
cat > "$folder/probe.py" <<'PYTHON'
import ctypes
import sys

import jax
import numpy as np

library = ctypes.CDLL(sys.argv[1])
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def capsule_of(function):
    function.restype = ctypes.c_void_p
    return new_capsule(function(), None, None)


if sys.argv[2] == "after":
    jax.devices()
kind = {
    "type_id": capsule_of(library.TypeIdOfSeven),
    "type_info": capsule_of(library.TypeInfoOfSeven),
}
stages = {
    "instantiate": jax.ffi.pycapsule(library.Instantiate),
    "execute": jax.ffi.pycapsule(library.Execute),
}
jax.ffi.register_ffi_type("seven", kind, platform="cpu")
jax.ffi.register_ffi_target("write_seven", stages, platform="cpu")
try:
    y = jax.ffi.ffi_call("write_seven", jax.ShapeDtypeStruct((1,), np.float32))()
    print("registered", sys.argv[2], "the backend:", y)
except RuntimeError as error:
    print("registered", sys.argv[2], "the backend:", str(error).split(" (")[0])
PYTHON
for order in after before; do
  "$folder/venv/bin/python" "$folder/probe.py" "$folder/seven.so" $order
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
registered after the backend: [7.]
registered before the backend: Unable to initialize backend 'cpu': FAILED_PRECONDITION: Types used by FFI handlers must be registered before the handler registration
RECORDED
