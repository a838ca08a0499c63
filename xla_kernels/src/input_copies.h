// input_copies.h: copies of a call's inputs, for kernels that write to them. Arrays of a program
// belong to it: they may be in use elsewhere, and must keep their values.
#ifndef MSOPS_INPUT_COPIES_H_
#define MSOPS_INPUT_COPIES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "workspace_pool.h"

namespace msops {

// Which inputs a kernel writes to, as far as its calls have shown. Calls in several threads share
// it.
class InputWrites {
 public:
  // Returns the record of a kernel in a library.
  static InputWrites& Of(const std::string& library_hash, const std::string& type);

  // Returns whether a call compares inputs with their copies: the first calls do.
  bool StartCheck();

  bool IsWritten(size_t input) const { return input >= kMostInputs || written_[input]; }

  // Notes a write; returns whether nobody has noted it before.
  bool Note(size_t input) { return input < kMostInputs && !written_[input].exchange(true); }

 private:
  // Further inputs count as written.
  static constexpr size_t kMostInputs = 64;

  std::atomic<int> calls_{0};
  std::array<std::atomic<bool>, kMostInputs> written_{};
};

// The inputs of one call. Small ones are copied in each call; others if the kernel is known to
// write to them, and in its first calls, to find out.
class InputCopies {
 public:
  // `parameters` points to inputs, of `sizes_bytes`, then to outputs. Pointers to inputs are
  // replaced by those to copies. An input that is an output as well is left as it is: the program
  // gave it away.
  InputCopies(InputWrites* writes, const std::vector<size_t>& sizes_bytes, void** parameters,
              size_t parameter_count);

  // Returns the inputs that the kernel has written to, and that were not known for it.
  std::vector<size_t> FindWrites() const;

 private:
  struct Copy {
    size_t input;
    const void* original;
    size_t size_bytes;
    size_t offset;
  };

  static std::vector<Copy> Choose(const InputWrites& writes, bool checks,
                                  const std::vector<size_t>& sizes_bytes, void** parameters,
                                  size_t parameter_count);
  static size_t EndOf(const std::vector<Copy>& copies);

  InputWrites* const writes_;
  const bool checks_;
  const std::vector<Copy> copies_;
  const WorkspaceLease memory_;
};

}  // namespace msops

#endif  // MSOPS_INPUT_COPIES_H_
