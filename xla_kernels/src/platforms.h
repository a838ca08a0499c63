// platforms.h: XLA's platforms, for handlers that are templates of them.
//
// Each has a state type of its own, since a platform in a plugin numbers its types by itself.
#ifndef MSOPS_PLATFORMS_H_
#define MSOPS_PLATFORMS_H_

namespace msops {

struct Cpu {
  static constexpr char kName[] = "cpu";
  static constexpr char kShownName[] = "CPU";
};
struct Cuda {
  static constexpr char kName[] = "CUDA";
  static constexpr char kShownName[] = "GPU";
};
struct Rocm {
  static constexpr char kName[] = "ROCM";
  static constexpr char kShownName[] = "GPU";
};

}  // namespace msops

#endif  // MSOPS_PLATFORMS_H_
