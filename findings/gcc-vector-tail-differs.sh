#!/usr/bin/env bash
# In one vectorised loop, equal numbers have other exponentials by where they stand.
#
# Guess:    -ffast-math may change a loop's results by some units in the last place, but equal inputs
#           of one loop keep equal results.
# Seen:     of nine equal numbers the first, from a vector of libmvec, and the last, from the loop's
#           tail, differ in about half of all cases for expf and exp, and in a quarter for sinf.
# Versions: gcc 12.2.0-14+deb12u1 of Debian 12, unpacked; glibc 2.36; x86-64 Linux with AVX2.
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
cat > "$folder/tail.c" <<'CODE'
#include <math.h>
#include <stdio.h>

enum { kCount = 9, kTrials = 100000 };

__attribute__((noinline)) void Exps(float *y, const float *x, int n) {
  for (int i = 0; i < n; ++i) y[i] = expf(x[i]);
}

__attribute__((noinline)) void Sines(float *y, const float *x, int n) {
  for (int i = 0; i < n; ++i) y[i] = sinf(x[i]);
}

static const char *Compare(void (*function)(float *, const float *, int)) {
  int differ = 0;
  for (int k = 1; k <= kTrials; ++k) {
    float x[kCount], y[kCount];
    for (int i = 0; i < kCount; ++i) x[i] = k * 1e-5f;
    function(y, x, kCount);
    differ += y[0] != y[kCount - 1];
  }
  return differ == 0 ? "never" : differ > kTrials / 20 ? "often" : "seldom";
}

int main(void) { printf("expf %s, sinf %s\n", Compare(Exps), Compare(Sines)); }
CODE
for flags in "-O3 -mavx2" "-O3 -mavx2 -ffast-math"; do
  # shellcheck disable=SC2086
  "$gcc" $flags "$folder/tail.c" -o "$folder/tail" -lm
  echo "gcc $("$gcc" -dumpfullversion) $flags: first and last differ: $("$folder/tail")"
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
gcc 12.2.0 -O3 -mavx2: first and last differ: expf never, sinf never
gcc 12.2.0 -O3 -mavx2 -ffast-math: first and last differ: expf often, sinf often
RECORDED
