#!/usr/bin/env bash
# gcc 12.2 hands a vector on to the next iteration of a loop, though a store has changed it.
#
# Guess:    a loop of unaligned loads and stores by intrinsics runs as it is written, at every level
#           of optimisation.
# Seen:     of `store(x + i, load(x + i) + load(x + i + 1))` most sums are wrong from -O2 on: the
#           load of the next x + i is the last load of x + i + 1, but the store between them has
#           changed seven of its eight elements. -fno-predictive-commoning makes it right.
# Versions: gcc 12.2.0-14+deb12u1 of Debian 12, unpacked; x86-64 Linux, a processor with AVX.
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
cat > "$folder/add.c" <<'CODE'
#include <immintrin.h>
#include <stdio.h>

enum { kCount = 40 };

__attribute__((noinline)) void Add(float *x, long count) {
  for (long i = 0; i + 9 <= count; ++i) {
    _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(x + i + 1)));
  }
}

int main(void) {
  float x[kCount], want[kCount], added[8];
  for (int i = 0; i < kCount; ++i) x[i] = want[i] = i % 3;
  Add(x, kCount);
  for (int i = 0; i + 9 <= kCount; ++i) {
    for (int k = 0; k < 8; ++k) added[k] = want[i + k] + want[i + k + 1];
    for (int k = 0; k < 8; ++k) want[i + k] = added[k];
  }
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += x[i] != want[i];
  printf("%d of %d wrong\n", wrong, kCount);
}
CODE
for flags in -O0 -O1 -O2 "-O2 -fno-predictive-commoning"; do
  # shellcheck disable=SC2086
  "$gcc" $flags -mavx "$folder/add.c" -o "$folder/add"
  echo "gcc $("$gcc" -dumpfullversion) $flags: $("$folder/add")"
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
gcc 12.2.0 -O0: 0 of 40 wrong
gcc 12.2.0 -O1: 0 of 40 wrong
gcc 12.2.0 -O2: 37 of 40 wrong
gcc 12.2.0 -O2 -fno-predictive-commoning: 0 of 40 wrong
RECORDED
