// frame_check.h: takes the buffers of XLA's call frame, which must be those that were promised.
#ifndef MSOPS_FRAME_CHECK_H_
#define MSOPS_FRAME_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace msops {

// Returns the dtype that XLA hands arrays of a name over in. Throws std::runtime_error if kernels
// are given none of that name.
xla::ffi::DataType FindDtype(const std::string& name, const std::string& who);

// Return how many arrays a frame has. A call that keeps the order of a program has a token behind
// them, which is no array.
size_t ArrayCount(const xla::ffi::RemainingArgs& inputs);
size_t ArrayCount(const xla::ffi::RemainingRets& outputs);

// The arrays of a call as its program describes them. XLA may hand over others: it cuts buffers
// when it partitions a program by itself. A kernel that was given the old shapes would then write
// out of bounds, so every call compares.
class FrameCheck {
 public:
  // Instead of a size: the program leaves it open. Fill takes no array of such a shape.
  static constexpr int64_t kOpen = -1;

  // Throws std::runtime_error if the program's description does not agree with itself.
  FrameCheck(std::string who, const std::vector<std::vector<int64_t>>& shapes,
             const std::vector<std::string>& dtypes);

  // Writes the pointers of inputs, then outputs, to `parameters`, as they come. Throws
  // std::runtime_error if count, dtype or shape of a buffer is not the described one.
  void Fill(const xla::ffi::RemainingArgs& inputs, const xla::ffi::RemainingRets& outputs,
            void** parameters) const;

  // Returns the shapes of a frame. Throws std::runtime_error if they, the count or a dtype are not
  // as described, whatever the sizes that were left open.
  std::vector<std::vector<int64_t>> Shapes(const xla::ffi::RemainingArgs& inputs,
                                           const xla::ffi::RemainingRets& outputs) const;

 private:
  struct Array {
    xla::ffi::DataType dtype;
    std::vector<int64_t> shape;
  };

  void CheckCount(const xla::ffi::RemainingArgs& inputs,
                  const xla::ffi::RemainingRets& outputs) const;
  void* Take(const xla::ffi::AnyBuffer& buffer, size_t position) const;
  [[noreturn]] void Refuse(const xla::ffi::AnyBuffer& buffer, size_t position) const;

  const std::string who_;
  std::vector<Array> arrays_;
};

}  // namespace msops

#endif  // MSOPS_FRAME_CHECK_H_
