#!/usr/bin/env bash
# gcc 12.2 makes minus zero out of an int.
#
# Guess:    (float)(int)x of -0.25 is 0.0: an int has no minus zero, whatever is promised about traps.
# Seen:     with SSE4.1 and -fno-trapping-math it is -0.0 from -O1 on, and 1 / it is -inf, since the
#           two conversions become one rounding.
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
cat > "$folder/whole.c" <<'CODE'
#include <stdio.h>

__attribute__((noinline)) float Whole(float x) { return (float)(int)x; }

int main(void) {
  volatile float x = -0.25f;
  const float y = Whole(x);
  printf("%g, one by it %g\n", y, 1 / y);
}
CODE
for flags in -O0 "-O1 -msse4.1" "-O1 -fno-trapping-math" "-O1 -msse4.1 -fno-trapping-math"; do
  # shellcheck disable=SC2086
  "$gcc" $flags "$folder/whole.c" -o "$folder/whole"
  echo "gcc $("$gcc" -dumpfullversion) $flags: $("$folder/whole")"
done | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
gcc 12.2.0 -O0: 0, one by it inf
gcc 12.2.0 -O1 -msse4.1: 0, one by it inf
gcc 12.2.0 -O1 -fno-trapping-math: 0, one by it inf
gcc 12.2.0 -O1 -msse4.1 -fno-trapping-math: -0, one by it -inf
RECORDED
