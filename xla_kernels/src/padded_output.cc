#include "padded_output.h"

#include <cstring>

namespace msops {

void SpreadIntoRoom(char* data, const std::vector<int64_t>& dims, const std::vector<int64_t>& room,
                    size_t entry_bytes) {
  // Trailing axes that are full make one long entry.
  size_t rank = dims.size();
  size_t bytes = entry_bytes;
  for (; rank > 0 && dims[rank - 1] == room[rank - 1]; --rank) bytes *= room[rank - 1];
  if (rank == 0) return;
  const size_t row_bytes = dims[rank - 1] * bytes;
  size_t rows = 1, end = room[rank - 1] * bytes;
  for (size_t axis = 0; axis + 1 < rank; ++axis) {
    rows *= dims[axis];
    end *= room[axis];
  }
  // Backwards: a row never moves to a lower address, so none is overwritten that is still to be
  // moved.
  for (size_t row = rows; row-- > 0;) {
    size_t offset = 0, stride = room[rank - 1], rest = row;
    for (size_t axis = rank - 1; axis-- > 0; rest /= dims[axis]) {
      offset += rest % dims[axis] * stride;
      stride *= room[axis];
    }
    offset *= bytes;
    if (row_bytes) std::memmove(data + offset, data + row * row_bytes, row_bytes);
    std::memset(data + offset + row_bytes, 0, end - offset - row_bytes);
    end = offset;
  }
  if (end) std::memset(data, 0, end);
}

}  // namespace msops
