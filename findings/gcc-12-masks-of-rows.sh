#!/usr/bin/env bash
# gcc 12.2 takes the mask of the first vector for a whole row of conditional loads.
#
# Guess:    -O3 -mavx2 gives valid C the values of -O0.
# Seen:     of `y[k] = m[k] ? a[k] : 0` over rows of 16 elements, 64 of 640 are wrong from -O3 -mavx2
#           on; -fno-tree-loop-if-convert makes them right. Where the first mask is set and another
#           is not, memory is read that the program does not read.
# Versions: gcc 12.2.0-14+deb12u1 of Debian 12, unpacked; x86-64 Linux, a processor with AVX2.
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
cat > "$folder/rows.c" <<'CODE'
#include <stdio.h>

enum { kRows = 40, kWidth = 16, kCount = kRows * kWidth };

__attribute__((noinline)) void Choose(float *restrict y, const float *restrict a,
                                      const int *restrict m, int rows) {
  for (int i = 0; i < rows; ++i)
    for (int c = 0; c < kWidth; ++c) y[kWidth * i + c] = m[kWidth * i + c] ? a[kWidth * i + c] : 0;
}

int main(void) {
  static float a[kCount], y[kCount];
  static int m[kCount];
  for (int k = 0; k < kCount; ++k) {
    a[k] = k + 1;
    m[k] = k * 7 % 5 < 2;
  }
  Choose(y, a, m, kRows);
  int wrong = 0;
  for (int k = 0; k < kCount; ++k) wrong += y[k] != (m[k] ? a[k] : 0);
  printf("%d of %d wrong\n", wrong, kCount);
}
CODE
for flags in -O0 "-O2 -mavx2" "-O3 -mavx2" "-O3 -mavx2 -fno-tree-loop-if-convert"; do
  # shellcheck disable=SC2086
  "$gcc" $flags "$folder/rows.c" -o "$folder/rows"
  echo "gcc $("$gcc" -dumpfullversion) $flags: $("$folder/rows")"
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
gcc 12.2.0 -O0: 0 of 640 wrong
gcc 12.2.0 -O2 -mavx2: 0 of 640 wrong
gcc 12.2.0 -O3 -mavx2: 64 of 640 wrong
gcc 12.2.0 -O3 -mavx2 -fno-tree-loop-if-convert: 0 of 640 wrong
RECORDED
