#!/usr/bin/env bash
# gcc 12.2 leaves out the vector that a gather starts from where it knows that all lanes are on.
#
# Guess:    The builtin of AVX2's gather takes a vector for the lanes that are off. With zeros there
#           the compiler clears a register before each gather, whatever the mask is: the instruction
#           reads its destination, so without that a gather waits for what was there before.
# Seen:     With a constant mask of all lanes nothing is written to the register before it. It is the
#           one that held the quotient of the iteration before, so that a loop runs one iteration
#           after the other. With a mask that gcc cannot see through, the register gets the zeros,
#           and iterations overlap. In a loop that picks by bytes and divides, on an AMD
#           EPYC with AVX-512, that took 0.6 of the time.
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
cat > "$folder/pick.c" <<'CODE'
typedef float Floats __attribute__((vector_size(32), aligned(4)));
typedef int Ints __attribute__((vector_size(32), aligned(4)));

static Floats pick(const float *table, Ints at, Ints on) {
  return __builtin_ia32_gathersiv8sf((Floats){}, table, at, (Floats)on, 4);
}

void all_lanes(float *y, const float *table, const int *at, long n) {
  for (long i = 0; i < n; i += 8)
    *(Floats *)(y + i) = 1.0f / pick(table, *(const Ints *)(at + i), (Ints){} - 1);
}

void hidden_mask(float *y, const float *table, const int *at, long n) {
  for (long i = 0; i < n; i += 8) {
    Ints on = (Ints){} - 1;
    __asm__("" : "+x"(on));
    *(Floats *)(y + i) = 1.0f / pick(table, *(const Ints *)(at + i), on);
  }
}
CODE
# Prints whether a loop writes to the destination of its gather before it.
"$gcc" -O3 -march=haswell -fno-tree-vectorize -fno-asynchronous-unwind-tables -S "$folder/pick.c" \
  -o "$folder/pick.s"
python3 - "$folder/pick.s" > "$folder/seen" <<'PYTHON'
import re
import sys

name, inside = "", []
for line in open(sys.argv[1]):
    if found := re.match(r"([a-z_]+):", line):
        name = found[1]
    if re.match(r"\.L\d+:", line):
        inside = []
    if found := re.match(r"\tvgatherdps\t.*(%ymm\d+)$", line):
        writers = [each for each in inside if each.split(",")[-1].strip().endswith(found[1][4:])]
        print(name, "clears" if writers else "keeps")
    elif line.startswith("\t"):
        inside.append(line)
PYTHON
cat "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
all_lanes keeps
hidden_mask clears
RECORDED
