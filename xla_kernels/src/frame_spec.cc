#include "frame_spec.h"

namespace msops {

std::string FrameSpec::DescribeArrays() const {
  const auto list = [this](size_t begin, size_t end) {
    std::string text;
    for (size_t i = begin; i < end; ++i) {
      std::string shape;
      for (int64_t extent : shapes[i]) {
        shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
      }
      text += (i == begin ? "" : ", ") + dtypes[i] + "[" + shape + "]";
    }
    return text.empty() ? "none" : text;
  };
  return "inputs: " + list(0, operand_count) + "; outputs: " + list(operand_count, shapes.size());
}

}  // namespace msops
