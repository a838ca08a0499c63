// parameters.h: the pointers of one call.
#ifndef MSOPS_PARAMETERS_H_
#define MSOPS_PARAMETERS_H_

#include <cstddef>
#include <memory>

namespace msops {

// On the stack unless they are many.
class Parameters {
 public:
  explicit Parameters(size_t count) {
    if (count > kInlineCount) {
      overflow_ = std::make_unique<void*[]>(count);
      data_ = overflow_.get();
    }
  }
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  void** data() { return data_; }

 private:
  static constexpr size_t kInlineCount = 32;

  void* inline_[kInlineCount];
  std::unique_ptr<void*[]> overflow_;
  void** data_ = inline_;
};

}  // namespace msops

#endif  // MSOPS_PARAMETERS_H_
