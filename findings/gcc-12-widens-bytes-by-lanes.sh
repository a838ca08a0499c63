#!/usr/bin/env bash
# gcc 12.2 converts a vector of bytes to floats one lane at a time, and by way of int at once.
#
# Guess:    __builtin_convertvector of 16 bytes to 16 floats is what its two steps are: with AVX-512
#           one instruction that widens, one that converts.
# Seen:     57 instructions, one or more for each lane; the same conversion written as two steps,
#           to int and then to float, is 3 with the return. Bytes to int is one instruction for a
#           vector in a register, and lane by lane for a vector that comes from memory and is
#           widened in two places: 53 instructions where 7 do.
# Versions: gcc 12.2.0-14+deb12u1 of Debian 12, unpacked; x86-64 Linux.
# Needs:    Debian 12 with binutils and libc6-dev, 200 MB of disk, half a minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(
  cd "$folder"
  apt-get download --quiet=2 {gcc-12,cpp-12,libgcc-12-dev}=12.2.0-14+deb12u1 2> /dev/null
  for package in *.deb; do dpkg -x "$package" gcc; done
)
gcc="$folder/gcc/usr/bin/gcc-12"
cat > "$folder/widen.c" <<'CODE'
typedef unsigned char Bytes __attribute__((vector_size(16)));
typedef int Ints __attribute__((vector_size(64)));
typedef float Floats __attribute__((vector_size(64)));

Floats at_once(Bytes x) { return __builtin_convertvector(x, Floats); }

Floats in_two_steps(Bytes x) {
  return __builtin_convertvector(__builtin_convertvector(x, Ints), Floats);
}

Ints in_a_register(Bytes x) {
  return (__builtin_convertvector(x, Ints) & 1) + (__builtin_convertvector(x, Ints) >> 1);
}

Ints in_memory(const Bytes *x) {
  const Bytes loaded = *x;
  return (__builtin_convertvector(loaded, Ints) & 1) + (__builtin_convertvector(loaded, Ints) >> 1);
}
CODE
# Prints how many instructions each function has.
count() {
  "$gcc" -O3 -march=skylake-avx512 -fno-asynchronous-unwind-tables -S "$folder/widen.c" -o - \
    | awk '/^[a-z_]+:/ { name = $1; n = 0 } /^\t[a-z]/ { n++ } /^\tret/ { print name, n }'
}
count | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
at_once: 57
in_two_steps: 3
in_a_register: 7
in_memory: 53
RECORDED
