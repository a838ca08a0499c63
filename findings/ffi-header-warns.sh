#!/usr/bin/env bash
# The FFI header that jaxlib ships does not compile by g++ under -Werror=return-type.
#
# Guess:    a public header compiles without warnings at the compiler's own level, so an author can
#           make a missing return in a kernel an error.
# Seen:     g++ 12 warns without any -W flag that two functions of the header end without a return,
#           so -Werror=return-type refuses the header; as a system header (-isystem) it passes.
# Versions: jax 0.10.2, jaxlib 0.10.2; g++ 12.2.0-14+deb12u1 of Debian 12, unpacked; x86-64 Linux.
# Needs:    Debian 12 with Python 3.11, binutils and libc6-dev, 700 MB of disk, one minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2
(
  cd "$folder"
  apt-get download --quiet=2 {g++-12,gcc-12,cpp-12,libgcc-12-dev,libstdc++-12-dev}=12.2.0-14+deb12u1 \
    2> /dev/null
  for package in *.deb; do dpkg -x "$package" gcc; done
)
headers=$("$folder/venv/bin/python" -c "import jax; print(jax.ffi.include_dir())")
cat > "$folder/noop.cc" <<'CODE'
#include "xla/ffi/api/ffi.h"

static xla::ffi::Error Run(xla::ffi::ResultBuffer<xla::ffi::F32>) {
  return xla::ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Noop, Run,
                              xla::ffi::Ffi::Bind().Ret<xla::ffi::Buffer<xla::ffi::F32>>());
CODE
compile() { "$folder/gcc/usr/bin/g++-12" -std=c++17 -c "$folder/noop.cc" -o "$folder/noop.o" "$@" 2> "$folder/said"; }
{
  compile -I"$headers" && echo "plain: compiles"
  echo "plain: functions without a return: $(grep -c 'Wreturn-type' "$folder/said")"
  compile -I"$headers" -Werror=return-type || echo "-Werror=return-type: refused"
  compile -isystem "$headers" -Werror=return-type && echo "-Werror=return-type, -isystem: compiles"
} | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
plain: compiles
plain: functions without a return: 2
-Werror=return-type: refused
-Werror=return-type, -isystem: compiles
RECORDED
