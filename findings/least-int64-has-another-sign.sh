#!/usr/bin/env bash
# The digits of the least int64 are a negative number of 16 bytes to gcc, a positive one to clang.
#
# Guess:    -9223372036854775808 is the least int64: both compilers warn that the digits are no
#           signed number, as for -2147483648 in C of 1990, and wrap.
# Seen:     gcc takes a type of 16 bytes, and the number is negative. clang takes an unsigned type of
#           8 bytes, and the number is positive: it is greater than 5. Each only warns. An assignment
#           to a variable hides it, as both then wrap; a comparison and a division do not.
# Versions: clang 18.1.6 of ziglang 0.13.0; gcc 12.2.0-14+deb12u1 of Debian 12, unpacked; x86-64 Linux.
# Needs:    Python 3.11, Debian 12 with binutils, 600 MB of disk, a minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet ziglang==0.13.0
(
  cd "$folder"
  apt-get download --quiet=2 {gcc-12,cpp-12,libgcc-12-dev}=12.2.0-14+deb12u1 2> /dev/null
  for package in *.deb; do dpkg -x "$package" gcc; done
)
cat > "$folder/least.c" <<'CODE'
int size = sizeof(-9223372036854775808);
int is_above_5 = -9223372036854775808 > 5L;
long half = -9223372036854775808 / 2;
long stored = -9223372036854775808;
CODE
export ZIG_GLOBAL_CACHE_DIR="$folder/zig" ZIG_LOCAL_CACHE_DIR="$folder/zig"
cd "$folder"
venv/bin/python -m ziglang cc -target x86_64-linux-gnu -g0 -w -S least.c -o clang.s
gcc/usr/bin/gcc-12 -w -S least.c -o gcc.s
for compiler in clang gcc; do
  awk -v compiler="$compiler" '
    /^[a-z_0-9]+:/ { where = $1 }
    # gcc writes no zeros where a variable is 0.
    /^\t\.(long|quad|zero)\t/ && where != "" {
      print compiler ": " where, ($1 == ".zero" ? 0 : $2 > 2^63 ? $2 - 2^64 : $2)
      where = ""
    }
  ' "$compiler.s"
done | sort | tee seen
diff seen - <<'RECORDED' && echo 'As recorded.'
clang: half: 4611686018427387904
clang: is_above_5: 1
clang: size: 8
clang: stored: -9223372036854775808
gcc: half: -4611686018427387904
gcc: is_above_5: 0
gcc: size: 16
gcc: stored: -9223372036854775808
RECORDED
