#!/usr/bin/env bash
# clang gives an assembler label of memcpy to calls in the source, not to the copies that it makes.
#
# Guess:    after `void *memcpy(...) __asm__("my_copy")` each copy of the file is a call of my_copy.
# Seen:     the written call is one; an assignment of a structure still calls memcpy. gcc calls
#           my_copy for the assignment, too.
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
cat > "$folder/copies.c" <<'CODE'
void *memcpy(void *, const void *, unsigned long) __asm__("my_copy");

struct Block {
  char bytes[65536];
};

void Assigned(struct Block *to, const struct Block *from) { *to = *from; }

void Called(struct Block *to, const struct Block *from) { memcpy(to, from, sizeof *to); }
CODE
export ZIG_GLOBAL_CACHE_DIR="$folder/zig" ZIG_LOCAL_CACHE_DIR="$folder/zig"
cd "$folder"
venv/bin/python -m ziglang cc -target x86_64-linux-gnu -O3 -g0 -w -S copies.c -o clang.s
gcc/usr/bin/gcc-12 -O3 -w -S copies.c -o gcc.s
for compiler in clang gcc; do
  awk -v compiler="$compiler" '
    /^[A-Z][a-z]+:/ { where = $1 }
    /(call|jmp).*(memcpy|my_copy)/ { sub("@PLT", "", $2); print compiler ": " where, $2 }
  ' "$compiler.s"
done | tee seen
diff seen - <<'RECORDED' && echo 'As recorded.'
clang: Assigned: memcpy
clang: Called: my_copy
gcc: Assigned: my_copy
gcc: Called: my_copy
RECORDED
