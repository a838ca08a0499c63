// declared.h: the tensors that ms::TensorToDevice and ms::TensorAllocate name, ahead of a dispatch.
#ifndef MSOPS_EXTENSION_DECLARED_H_
#define MSOPS_EXTENSION_DECLARED_H_

#include <optional>
#include <utility>
#include <vector>

#include "msops_extension/ms_tensor.h"

namespace ms::inner {

// What one call of a function has named so far. A call within the call has its own.
class Declared {
 public:
  Declared() : outer_(std::exchange(current_, this)) {}
  ~Declared() { current_ = outer_; }
  Declared(const Declared&) = delete;
  Declared& operator=(const Declared&) = delete;

  // The innermost; one of the thread's outside of Call.
  static Declared& Current() {
    if (current_) return *current_;
    static thread_local Declared outermost;
    return outermost;
  }

  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;

 private:
  Declared* outer_;
  static inline thread_local Declared* current_ = nullptr;
};

inline void Add(std::vector<Tensor>* tensors, const Tensor& tensor) {
  if (!tensor.is_defined()) return;
  for (const Tensor& known : *tensors) {
    if (known.tensor() == tensor.tensor()) return;
  }
  tensors->push_back(tensor);
}
inline void Add(std::vector<Tensor>* tensors, const std::optional<Tensor>& tensor) {
  if (tensor) Add(tensors, *tensor);
}
inline void Add(std::vector<Tensor>* tensors, const std::vector<Tensor>& list) {
  for (const Tensor& tensor : list) Add(tensors, tensor);
}

}  // namespace ms::inner

#endif  // MSOPS_EXTENSION_DECLARED_H_
