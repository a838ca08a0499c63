#include "call_frame.h"

#include <stdexcept>

#include "call_table.h"
#include "message.h"
#include "workspace_pool.h"

namespace msops {

void CallAttributes::Refuse(std::string_view name, const std::string& problem) {
  throw std::runtime_error(Explain("msops",
                                   "a program's call lacks the attribute '" + std::string(name) +
                                       "', or has one of another type",
                                   {problem},
                                   "Lower the program again with this version of msops."));
}

void CallAttributes::ReadFrame(const char* platform, FrameSpec* spec) const {
  spec->op = Text("op");
  spec->platform = platform;
  spec->shapes = SplitRows(Numbers("dims"), Numbers("ranks"));
  spec->dtypes = SplitNames(Text("dtypes"));
  const int64_t operand_count = Number("operands");
  // A program is text, which anyone may have written.
  if (operand_count < 0 || static_cast<size_t>(operand_count) > spec->shapes.size()) {
    throw std::runtime_error(Explain(spec->Who(),
                                     "the program lists " + std::to_string(operand_count) +
                                         " operands of " + std::to_string(spec->shapes.size()) +
                                         " arrays",
                                     {}, "Lower the program again with this version of msops."));
  }
  spec->operand_count = static_cast<size_t>(operand_count);
}

void ReplaceNull(void** arrays, size_t count) {
  alignas(WorkspacePool::kAlignment) static char nothing[WorkspacePool::kAlignment];
  for (size_t i = 0; i < count; ++i) {
    if (!arrays[i]) arrays[i] = nothing;
  }
}

}  // namespace msops
