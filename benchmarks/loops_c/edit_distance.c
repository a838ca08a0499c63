// Edit distances of all prefixes of two texts: int32 (n), (m) -> (n + 1, m + 1).
#include "aot.h"

static int32_t Min(int32_t a, int32_t b) { return a < b ? a : b; }

static void EditDistance(const int32_t* restrict s, const int32_t* restrict t, int32_t* restrict d,
                         int64_t n, int64_t m) {
  const int64_t width = m + 1;
  for (int64_t j = 0; j <= m; ++j) d[j] = (int32_t)j;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t* const above = d + i * width;
    int32_t* const row = d + (i + 1) * width;
    int32_t left = row[0] = (int32_t)(i + 1);
    for (int64_t j = 0; j < m; ++j) {
      const int32_t change = 1 + Min(above[j], Min(above[j + 1], left));
      row[j + 1] = left = s[i] == t[j] ? above[j] : change;
    }
  }
}

KERNEL(edit_distance) {
  EditDistance(params[0], params[1], params[2], shapes[0][0], shapes[1][0]);
  return 0;
}
