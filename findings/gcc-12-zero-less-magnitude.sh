#!/usr/bin/env bash
# gcc 12.2 takes 0.0 - fabs(x) for -fabs(x), at -O0 too.
#
# Guess:    without a flag that allows it no compiler changes the sign of a zero: 0.0 - 0.0 is 0.0, by
#           IEEE 754 in every rounding that C starts with, and at -O0 the text is computed as it is.
# Seen:     -0.0 at -O0 and -O2 alike, where gcc sees in one expression that what is subtracted is
#           never -0.0: a magnitude, or a float made of an int. Through a variable it is 0.0.
# Versions: gcc 12.2.0-14+deb12u1 and, which is right, gcc 11.3.0-12 of Debian 12, unpacked; x86-64
#           Linux.
# Needs:    Debian 12 with binutils and libc6-dev, 300 MB of disk, a minute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(
  cd "$folder"
  apt-get download --quiet=2 {gcc-12,cpp-12,libgcc-12-dev}=12.2.0-14+deb12u1 2> /dev/null
  apt-get download --quiet=2 {gcc-11,cpp-11,libgcc-11-dev}=11.3.0-12 2> /dev/null
  for package in *.deb; do dpkg -x "$package" gcc; done
)
cat > "$folder/less.c" <<'CODE'
#include <stdio.h>

double LessMagnitude(double x) { return 0.0 - __builtin_fabs(x); }
double LessInt(int i) { return 0.0 - (double)i; }
double LessVariable(double x) {
  const double magnitude = __builtin_fabs(x);
  return 0.0 - magnitude;
}

int main(void) {
  volatile double x = 0.0;
  volatile int i = 0;
  printf("magnitude %g, int %g, variable %g\n", LessMagnitude(x), LessInt(i), LessVariable(x));
}
CODE
for version in 11 12; do
  gcc="$folder/gcc/usr/bin/gcc-$version"
  for level in -O0 -O2; do
    "$gcc" $level "$folder/less.c" -o "$folder/less"
    echo "gcc $("$gcc" -dumpfullversion) $level: $("$folder/less")"
  done
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
gcc 11.3.0 -O0: magnitude 0, int 0, variable 0
gcc 11.3.0 -O2: magnitude 0, int 0, variable 0
gcc 12.2.0 -O0: magnitude -0, int -0, variable 0
gcc 12.2.0 -O2: magnitude -0, int -0, variable 0
RECORDED
