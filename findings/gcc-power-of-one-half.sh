#!/usr/bin/env bash
# gcc's -fno-signed-zeros makes NaN of the square root of minus infinity by pow.
#
# Guess:    -fno-signed-zeros lets the compiler ignore the sign of a zero, and nothing else.
# Seen:     with it, pow(-inf, 0.5) becomes sqrt(-inf), NaN, where C's pow is inf.
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
cat > "$folder/half.c" <<'CODE'
#include <math.h>
#include <stdio.h>

__attribute__((noinline)) double Half(double x) { return pow(x, 0.5); }

int main(void) {
  volatile double x = -INFINITY;
  puts(isnan(Half(x)) ? "NaN" : isinf(Half(x)) ? "inf" : "a number");
}
CODE
for flags in -O2 "-O2 -fno-math-errno" "-O2 -fno-signed-zeros"; do
  # shellcheck disable=SC2086
  "$gcc" $flags "$folder/half.c" -o "$folder/half" -lm
  echo "gcc $("$gcc" -dumpfullversion) $flags: $("$folder/half")"
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
gcc 12.2.0 -O2: inf
gcc 12.2.0 -O2 -fno-math-errno: inf
gcc 12.2.0 -O2 -fno-signed-zeros: NaN
RECORDED
