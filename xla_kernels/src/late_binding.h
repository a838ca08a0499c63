// late_binding.h: a call that is bound to the shapes of its arrays as soon as they are known.
#ifndef MSOPS_LATE_BINDING_H_
#define MSOPS_LATE_BINDING_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "frame_check.h"
#include "xla/ffi/api/ffi.h"

namespace msops {

// A program may leave sizes of its arrays open (FrameCheck::kOpen): it was exported for any size. A
// compiled call always gets arrays of the same shapes, so its first frame has them.
//
// A Bound is made for shapes, inputs first, and has a FrameCheck `check` for them.
template <typename Bound>
class LateBinding {
 public:
  using Shapes = std::vector<std::vector<int64_t>>;
  using Bind = std::function<std::unique_ptr<Bound>(const Shapes&)>;

  // Binds at once if no size is open. Throws what `bind` throws, and std::runtime_error if the
  // program's description does not agree with itself.
  LateBinding(const std::string& who, const Shapes& shapes, const std::vector<std::string>& dtypes,
              Bind bind)
      : described_(who, shapes, dtypes), bind_(std::move(bind)) {
    const auto is_open = [](const std::vector<int64_t>& shape) {
      return std::count(shape.begin(), shape.end(), FrameCheck::kOpen) != 0;
    };
    if (std::none_of(shapes.begin(), shapes.end(), is_open)) Keep(bind_(shapes));
  }

  // Returns the bound call for a frame; the first one binds it. Throws what `bind` throws, again
  // at the next frame, and std::runtime_error if the arrays are not those described.
  Bound& For(const xla::ffi::RemainingArgs& inputs, const xla::ffi::RemainingRets& outputs) {
    Bound* const bound = ready_.load(std::memory_order_acquire);
    return XLA_FFI_PREDICT_TRUE(bound != nullptr) ? *bound : BindTo(inputs, outputs);
  }

 private:
  Bound& BindTo(const xla::ffi::RemainingArgs& inputs, const xla::ffi::RemainingRets& outputs) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!bound_) Keep(bind_(described_.Shapes(inputs, outputs)));
    return *bound_;
  }

  void Keep(std::unique_ptr<Bound> bound) {
    bound_ = std::move(bound);
    ready_.store(bound_.get(), std::memory_order_release);
  }

  const FrameCheck described_;
  const Bind bind_;
  std::mutex mutex_;
  std::unique_ptr<Bound> bound_;
  std::atomic<Bound*> ready_{nullptr};  // bound_, once it is whole
};

}  // namespace msops

#endif  // MSOPS_LATE_BINDING_H_
