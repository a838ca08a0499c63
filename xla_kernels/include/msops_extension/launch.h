// launch.h: aclnn operators by name. They become operations of JAX, eagerly or in the program that
// is being traced, and their results the arrays of the output tensors.
#ifndef MSOPS_EXTENSION_LAUNCH_H_
#define MSOPS_EXTENSION_LAUNCH_H_

#include <complex>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "msops_extension/ms_tensor.h"

// Names that kernels pass on and never look into.
namespace mindspore::device {
class DeviceContext;
}  // namespace mindspore::device

namespace mindspore::kernel {
class KernelTensor;
}  // namespace mindspore::kernel

namespace msops::extension {

template <typename Type>
struct IsVector : std::false_type {};
template <typename Type>
struct IsVector<std::vector<Type>> : std::true_type {};
template <typename Type>
struct IsOptional : std::false_type {};
template <typename Type>
struct IsOptional<std::optional<Type>> : std::true_type {};
template <typename Type>
struct IsFlagged : std::false_type {};
template <typename Type>
struct IsFlagged<std::pair<Type, bool>> : std::true_type {};

// An argument of LAUNCH_ACLNN as a Python object; needs the GIL. It is a tensor, a number, text, a
// vector or an optional of these, or a pair of one and a flag, which is for Ascend.
template <typename Type>
py::object Argument(const Type& value) {
  if constexpr (std::is_same_v<Type, ms::Tensor>) {
    return value.is_defined() ? value.tensor()->ToPython() : py::none();
  } else if constexpr (std::is_convertible_v<Type, mindspore::ValuePtr>) {
    const mindspore::ValuePtr pointer = value;
    return pointer ? pointer->ToPython() : py::none();
  } else if constexpr (std::is_same_v<Type, mindspore::kernel::KernelTensor*>) {
    return value ? Argument(value->GetValue()) : py::none();
  } else if constexpr (IsOptional<Type>::value) {
    return value ? Argument(*value) : py::none();
  } else if constexpr (IsFlagged<Type>::value) {
    return Argument(value.first);
  } else if constexpr (IsVector<Type>::value) {
    std::vector<py::object> items;
    for (const auto& item : value) {
      items.push_back(Argument(static_cast<typename Type::value_type>(item)));
    }
    return Tuple(std::move(items));
  } else if constexpr (std::is_enum_v<Type>) {
    return Number(static_cast<int64_t>(value));
  } else {
    return py::cast(value);
  }
}

// The operator's signature says which of the arguments are outputs.
template <typename... Arguments>
void LaunchAclnn(const char* name, const Arguments&... arguments) {
  const Gil gil;
  Ask(kMsopsLaunchAclnn, {Text(name), Tuple({Argument(arguments)...}), py::none()});
}

}  // namespace msops::extension

namespace mindspore::custom {

// Args: the operator's name, its inputs in aclnn's order, and tensors for its outputs.
inline void CustomLaunchAclnn(const std::string& aclnn_api, const ValuePtrList& inputs,
                              const tensor::TensorPtrList& outputs) {
  using namespace msops::extension;
  const Gil gil;
  Ask(kMsopsLaunchAclnn, {Text(aclnn_api), Argument(inputs), Handles(outputs)});
}

}  // namespace mindspore::custom

// The device and the stream are XLA's to choose.
#define LAUNCH_ACLNN(aclnn_api, device_context, stream_id, ...) \
  do {                                                          \
    static_cast<void>(device_context);                          \
    static_cast<void>(stream_id);                               \
    ::msops::extension::LaunchAclnn(#aclnn_api, __VA_ARGS__);   \
  } while (false)

// A function of device and stream that launches with the arguments as they are now.
#define LAUNCH_ACLNN_FUNC(aclnn_api, ...)                                                   \
  [](auto&&... arguments) {                                                                 \
    return [kept = std::make_tuple(arguments...)](auto* device_context, size_t stream_id) { \
      std::apply(                                                                           \
          [&](const auto&... each) {                                                        \
            LAUNCH_ACLNN(aclnn_api, device_context, stream_id, each...);                    \
          },                                                                                \
          kept);                                                                            \
    };                                                                                      \
  }(__VA_ARGS__)

#endif  // MSOPS_EXTENSION_LAUNCH_H_
