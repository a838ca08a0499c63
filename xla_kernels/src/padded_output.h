// padded_output.h: results that are smaller than the arrays that hold them.
#ifndef MSOPS_PADDED_OUTPUT_H_
#define MSOPS_PADDED_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace msops {

// Moves a row-major array of shape `dims` from the beginning of `data` to the corner of the array
// of shape `room` that `data` is, and clears the rest. Both have one rank, and no axis of `dims` is
// longer than that of `room`.
void SpreadIntoRoom(char* data, const std::vector<int64_t>& dims, const std::vector<int64_t>& room,
                    size_t entry_bytes);

}  // namespace msops

#endif  // MSOPS_PADDED_OUTPUT_H_
