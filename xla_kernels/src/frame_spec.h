// frame_spec.h: what a program says of every call. Knows no framework.
#ifndef MSOPS_FRAME_SPEC_H_
#define MSOPS_FRAME_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace msops {

// Arrays are listed inputs first, then outputs.
struct FrameSpec {
  std::string op;                // for messages
  std::string platform = "CPU";  // for messages
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> dtypes;
  size_t operand_count = 0;

  // "Custom '<op>' on <platform>", the beginning of every message.
  std::string Who() const { return "Custom '" + op + "' on " + platform; }

  // "inputs: float32[2, 3], int32[]; outputs: float32[3]".
  std::string DescribeArrays() const;
};

}  // namespace msops

#endif  // MSOPS_FRAME_SPEC_H_
