// ms_tensor.h: ms::Tensor, the value that PyboostRunner works with, and what makes one.
#ifndef MSOPS_EXTENSION_MS_TENSOR_H_
#define MSOPS_EXTENSION_MS_TENSOR_H_

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "msops_extension/accessor.h"
#include "msops_extension/element.h"
#include "msops_extension/tensor.h"

namespace ms {

using TypeId = mindspore::TypeId;
using ShapeVector = mindspore::ShapeVector;

namespace inner {
using msops::extension::Ask;
using msops::extension::FromHandle;
using msops::extension::Gil;
using msops::extension::Number;
using msops::extension::Numbers;
using msops::extension::Text;
}  // namespace inner

// A handle that copies share; one without a tensor is undefined.
class Tensor {
 public:
  Tensor() = default;
  Tensor(TypeId type_id, const ShapeVector& shape)
      : Tensor(std::make_shared<mindspore::tensor::Tensor>(type_id, shape)) {}
  explicit Tensor(const mindspore::ValuePtr& value) {
    if (!value) return;
    auto tensor = std::dynamic_pointer_cast<mindspore::tensor::Tensor>(value);
    if (!tensor) throw pybind11::type_error("ms::Tensor: expected a value that is a tensor.");
    holder_ = std::make_shared<Holder>(Holder{std::move(tensor)});
  }

  bool is_defined() const { return holder_ != nullptr; }
  TypeId data_type() const { return tensor()->data_type(); }
  const ShapeVector& shape() const { return tensor()->shape(); }
  size_t numel() const { return tensor()->DataSize(); }
  std::vector<int64_t> stride() const { return tensor()->stride(); }
  int64_t storage_offset() const { return tensor()->storage_offset(); }
  bool is_contiguous() const { return tensor()->is_contiguous(); }

  // false: a runner sees the memory as it lies, by stride(). Set it before Run.
  void SetNeedContiguous(bool flag) const {
    tensor();
    holder_->need_contiguous = flag;
  }
  bool need_contiguous() const {
    tensor();
    return holder_->need_contiguous;
  }

  // Address of the first entry, whatever its dtype.
  void* GetDataPtr() const { return tensor()->data_c(); }
  // The same for entries of type T; a type_error if the tensor's entries are of another.
  template <typename T>
  T* data_ptr() const {
    using Entry = std::remove_cv_t<T>;
    if constexpr (!std::is_void_v<Entry>) {
      if (!msops::extension::Holds<Entry>(data_type())) {
        throw pybind11::type_error("ms::Tensor::data_ptr: expected a tensor of " +
                                   msops::extension::NameOf(msops::extension::ElementOf<Entry>()) +
                                   ", as T is; got " + msops::extension::NameOf(data_type()) +
                                   ". Ask for the T of its data_type(), or cast the tensor first; "
                                   "GetDataPtr() gives the memory as bytes.");
      }
    }
    return static_cast<T*>(GetDataPtr());
  }
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const {
    if (shape().size() != N) {
      throw std::runtime_error("TensorAccessor: expected a tensor of " + std::to_string(N) +
                               " dimensions; got one of " + std::to_string(shape().size()) + ".");
    }
    return TensorAccessor<T, N>(data_ptr<T>(), shape().data(),
                                std::make_shared<ShapeVector>(stride()));
  }

  // Data layouts of Ascend; all memory here is row-major.
  std::string format() const { return "DefaultFormat"; }
  void set_format(const std::string&) const {}

  Tensor cast(TypeId type_id) const {
    const inner::Gil gil;
    return Method("cast", {inner::Number(type_id)});
  }
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const {
    const inner::Gil gil;
    const py::object parts = CallMethod("chunk", {inner::Number(chunks), inner::Number(dim)});
    const auto tensors = msops::extension::FromHandles(parts);
    return std::vector<Tensor>(tensors.begin(), tensors.end());
  }
  Tensor contiguous() const {
    const inner::Gil gil;
    return Method("contiguous", {});
  }
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const {
    const inner::Gil gil;
    return Method("flatten", {inner::Number(start_dim), inner::Number(end_dim)});
  }
  Tensor index_select(int64_t dim, const Tensor& index) const {
    const inner::Gil gil;
    return Method("index_select", {inner::Number(dim), index.tensor()->ToPython()});
  }
  Tensor reshape(const std::vector<int64_t>& shape) const {
    const inner::Gil gil;
    return Method("reshape", {inner::Numbers(shape)});
  }
  Tensor repeat(const std::vector<int64_t>& repeats) const {
    const inner::Gil gil;
    return Method("repeat", {inner::Numbers(repeats)});
  }
  Tensor repeat_interleave(const Tensor& repeats, const std::optional<int64_t>& dim = std::nullopt,
                           const std::optional<int64_t>& output_size = std::nullopt) const {
    const inner::Gil gil;
    return Method("repeat_interleave",
                  {repeats.tensor()->ToPython(), NumberOrNone(dim), NumberOrNone(output_size)});
  }
  Tensor repeat_interleave(int64_t repeats, const std::optional<int64_t>& dim = std::nullopt,
                           const std::optional<int64_t>& output_size = std::nullopt) const {
    const inner::Gil gil;
    return Method("repeat_interleave",
                  {inner::Number(repeats), NumberOrNone(dim), NumberOrNone(output_size)});
  }

  // Gives this tensor the array of another.
  void AssignTensor(const Tensor& source) const {
    const inner::Gil gil;
    inner::Ask(kMsopsAssign, {tensor()->ToPython(), source.tensor()->ToPython()});
    tensor()->ReadLayout();
  }

  const mindspore::tensor::TensorPtr& tensor() const {
    if (!holder_) throw std::runtime_error("ms::Tensor: the tensor is undefined.");
    return holder_->tensor;
  }
  // MindSpore computes on another thread; here a tensor is always there.
  mindspore::ValuePtr stub_node() const { return tensor(); }
  void ConvertStubNodeToTensor() const {}

 private:
  struct Holder {
    mindspore::tensor::TensorPtr tensor;
    bool need_contiguous = true;
  };

  static py::object NumberOrNone(const std::optional<int64_t>& value) {
    return value ? inner::Number(*value) : py::none();
  }

  py::object CallMethod(const char* name, std::initializer_list<py::object> arguments) const {
    std::vector<py::object> all = {inner::Text(name), tensor()->ToPython()};
    all.insert(all.end(), arguments);
    return inner::Ask(kMsopsMethod, all.data(), all.size());
  }
  Tensor Method(const char* name, std::initializer_list<py::object> arguments) const {
    return Tensor(inner::FromHandle(CallMethod(name, arguments)));
  }

  std::shared_ptr<Holder> holder_;
};

namespace inner {

// Needs the GIL.
inline Tensor Make(const char* name, py::object value, TypeId dtype) {
  return Tensor(FromHandle(Ask(kMsopsFactory, {Text(name), std::move(value), Number(dtype)})));
}

inline py::object Real(double value) { return msops::extension::Own(PyFloat_FromDouble(value)); }

}  // namespace inner

inline Tensor tensor(int64_t value, TypeId dtype = TypeId::kNumberTypeInt64) {
  const inner::Gil gil;
  return inner::Make("tensor", inner::Number(value), dtype);
}
inline Tensor tensor(const std::vector<int64_t>& value, TypeId dtype = TypeId::kNumberTypeInt64) {
  const inner::Gil gil;
  return inner::Make("tensor", inner::Numbers(value), dtype);
}
inline Tensor tensor(double value, TypeId dtype = TypeId::kNumberTypeFloat64) {
  const inner::Gil gil;
  return inner::Make("tensor", inner::Real(value), dtype);
}
inline Tensor tensor(const std::vector<double>& value, TypeId dtype = TypeId::kNumberTypeFloat64) {
  const inner::Gil gil;
  std::vector<py::object> items;
  for (const double item : value) items.push_back(inner::Real(item));
  return inner::Make("tensor", msops::extension::Tuple(std::move(items)), dtype);
}
inline Tensor ones(const ShapeVector& shape, TypeId dtype = TypeId::kNumberTypeFloat32) {
  const inner::Gil gil;
  return inner::Make("ones", inner::Numbers(shape), dtype);
}
inline Tensor zeros(const ShapeVector& shape, TypeId dtype = TypeId::kNumberTypeFloat32) {
  const inner::Gil gil;
  return inner::Make("zeros", inner::Numbers(shape), dtype);
}

}  // namespace ms

// None is no ms::Tensor: a parameter that may be absent is a std::optional<ms::Tensor>.
template <>
struct pybind11::detail::type_caster<ms::Tensor> {
  PYBIND11_TYPE_CASTER(ms::Tensor, const_name("Tensor"));

  bool load(handle source, bool) {
    mindspore::tensor::TensorPtr tensor;
    if (source.is_none() || !msops::extension::ReadTensor(source, &tensor)) return false;
    value = ms::Tensor(tensor);
    return true;
  }

  static handle cast(const ms::Tensor& tensor, return_value_policy, handle) {
    if (!tensor.is_defined()) return none().release();
    return msops::extension::WriteTensor(tensor.tensor()).release();
  }
};

#endif  // MSOPS_EXTENSION_MS_TENSOR_H_
