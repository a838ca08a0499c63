// extra_host.h: the AotExtra objects that kernels are given, in both std::string ABIs of libstdc++.
//
// A kernel built with _GLIBCXX_USE_CXX11_ABI=0 passes another std::string than one built with 1.
// So AotExtra is implemented in one file, extra_host.inc, that two translation units compile, one
// per ABI. They and the rest of the module meet here, in terms that hold no std::string.
#ifndef MSOPS_EXTRA_HOST_H_
#define MSOPS_EXTRA_HOST_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "attributes.h"

namespace msops {

// One AotExtra and what its owner may ask of it. Destroying it deletes attached kernel data.
class ExtraHost {
 public:
  virtual ~ExtraHost() = default;

  // The AotExtra* to pass to the library.
  virtual void* pointer() = 0;

  // What the kernel asked for with SetWorkSpace, in bytes.
  virtual const std::vector<size_t>& workspace_sizes_bytes() const = 0;

  virtual bool has_kernel_data() const = 0;
};

// Both keep a reference to `attributes`.
std::unique_ptr<ExtraHost> MakeOldStringExtra(const Attributes& attributes);
std::unique_ptr<ExtraHost> MakeNewStringExtra(const Attributes& attributes);

inline std::unique_ptr<ExtraHost> MakeExtra(const Attributes& attributes, bool old_string_abi) {
  return old_string_abi ? MakeOldStringExtra(attributes) : MakeNewStringExtra(attributes);
}

}  // namespace msops

#endif  // MSOPS_EXTRA_HOST_H_
