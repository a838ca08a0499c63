#!/usr/bin/env bash
# A library that was linked without libc gets the memcpy of 2002, not today's.
#
# Guess:    a reference to memcpy without a version takes the default one, as the linker does.
# Seen:     linked against libc it is memcpy of GLIBC_2.14. Linked with -nostdlib, as small kernels
#           are, the reference has no version, and the loader takes the oldest, GLIBC_2.2.5.
# Versions: Debian 12's gcc 12.2.0, binutils 2.40 and glibc 2.36; x86-64 Linux.
# Needs:    Debian 12 with gcc, a second.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/kernel.c" <<'CODE'
typedef void *(*Copy)(void *, const void *, unsigned long);
void *memcpy(void *, const void *, unsigned long);
Copy WhichCopy(void) { return memcpy; }
CODE
cat > "$folder/load.c" <<'CODE'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **paths) {
  void *libc = dlopen("libc.so.6", RTLD_NOW);
  const char *versions[] = {"GLIBC_2.2.5", "GLIBC_2.14"};
  for (int k = 1; k < count; ++k) {
    void *(*which)(void) = (void *(*)(void))dlsym(dlopen(paths[k], RTLD_NOW), "WhichCopy");
    for (int v = 0; v < 2; ++v) {
      if (which() == dlvsym(libc, "memcpy", versions[v])) {
        printf("glibc %s, %s: %s\n", gnu_get_libc_version(), strrchr(paths[k], '/') + 1, versions[v]);
      }
    }
  }
}
CODE
gcc -O1 -shared -fPIC "$folder/kernel.c" -o "$folder/with_libc.so"
gcc -O1 -shared -fPIC -nostdlib "$folder/kernel.c" -o "$folder/without_libc.so"
gcc "$folder/load.c" -o "$folder/load"
"$folder/load" "$folder"/with{,out}_libc.so | tee "$folder/seen"
diff "$folder/seen" - <<'RECORDED' && echo 'As recorded.'
glibc 2.36, with_libc.so: GLIBC_2.14
glibc 2.36, without_libc.so: GLIBC_2.2.5
RECORDED
