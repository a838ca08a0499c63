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

  Tensor cast(TypeId type_id) const { return Method("cast", py::int_(static_cast<int>(type_id))); }
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const {
    return Methods("chunk", py::int_(chunks), py::int_(dim));
  }
  Tensor contiguous() const { return Method("contiguous"); }
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const {
    return Method("flatten", py::int_(start_dim), py::int_(end_dim));
  }
  Tensor index_select(int64_t dim, const Tensor& index) const {
    return Method("index_select", py::int_(dim), index.tensor()->ToPython());
  }
  Tensor reshape(const std::vector<int64_t>& shape) const {
    return Method("reshape", py::cast(shape));
  }
  Tensor repeat(const std::vector<int64_t>& repeats) const {
    return Method("repeat", py::cast(repeats));
  }
  Tensor repeat_interleave(const Tensor& repeats, const std::optional<int64_t>& dim = std::nullopt,
                           const std::optional<int64_t>& output_size = std::nullopt) const {
    return Method("repeat_interleave", repeats.tensor()->ToPython(), py::cast(dim),
                  py::cast(output_size));
  }
  Tensor repeat_interleave(int64_t repeats, const std::optional<int64_t>& dim = std::nullopt,
                           const std::optional<int64_t>& output_size = std::nullopt) const {
    return Method("repeat_interleave", py::int_(repeats), py::cast(dim), py::cast(output_size));
  }

  // Gives this tensor the array of another.
  void AssignTensor(const Tensor& source) const {
    msops::extension::Ask(kMsopsAssign, tensor()->ToPython(), source.tensor()->ToPython());
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

  template <typename... Arguments>
  py::object CallMethod(const char* name, const Arguments&... arguments) const {
    return msops::extension::Ask(kMsopsMethod, py::str(name), tensor()->ToPython(), arguments...);
  }
  template <typename... Arguments>
  Tensor Method(const char* name, const Arguments&... arguments) const {
    return Tensor(msops::extension::FromHandle(CallMethod(name, arguments...)));
  }
  template <typename... Arguments>
  std::vector<Tensor> Methods(const char* name, const Arguments&... arguments) const {
    std::vector<Tensor> results;
    for (const py::handle& handle : py::tuple(CallMethod(name, arguments...))) {
      results.emplace_back(msops::extension::FromHandle(handle));
    }
    return results;
  }

  std::shared_ptr<Holder> holder_;
};

namespace inner {
inline Tensor Make(const char* name, const py::object& value, TypeId dtype) {
  return Tensor(msops::extension::FromHandle(msops::extension::Ask(
      kMsopsFactory, py::str(name), value, py::int_(static_cast<int>(dtype)))));
}
}  // namespace inner

inline Tensor tensor(int64_t value, TypeId dtype = TypeId::kNumberTypeInt64) {
  return inner::Make("tensor", py::int_(value), dtype);
}
inline Tensor tensor(const std::vector<int64_t>& value, TypeId dtype = TypeId::kNumberTypeInt64) {
  return inner::Make("tensor", py::cast(value), dtype);
}
inline Tensor tensor(double value, TypeId dtype = TypeId::kNumberTypeFloat64) {
  return inner::Make("tensor", py::float_(value), dtype);
}
inline Tensor tensor(const std::vector<double>& value, TypeId dtype = TypeId::kNumberTypeFloat64) {
  return inner::Make("tensor", py::cast(value), dtype);
}
inline Tensor ones(const ShapeVector& shape, TypeId dtype = TypeId::kNumberTypeFloat32) {
  return inner::Make("ones", py::cast(shape), dtype);
}
inline Tensor zeros(const ShapeVector& shape, TypeId dtype = TypeId::kNumberTypeFloat32) {
  return inner::Make("zeros", py::cast(shape), dtype);
}

}  // namespace ms

// None is no ms::Tensor: a parameter that may be absent is a std::optional<ms::Tensor>.
template <>
struct pybind11::detail::type_caster<ms::Tensor> {
  PYBIND11_TYPE_CASTER(ms::Tensor, const_name("Tensor"));

  bool load(handle source, bool convert) {
    if (source.is_none()) return false;
    make_caster<mindspore::tensor::TensorPtr> tensor;
    if (!tensor.load(source, convert)) return false;
    value = ms::Tensor(cast_op<mindspore::tensor::TensorPtr>(tensor));
    return true;
  }

  static handle cast(const ms::Tensor& tensor, return_value_policy policy, handle parent) {
    if (!tensor.is_defined()) return none().release();
    return make_caster<mindspore::tensor::TensorPtr>::cast(tensor.tensor(), policy, parent);
  }
};

#endif  // MSOPS_EXTENSION_MS_TENSOR_H_
