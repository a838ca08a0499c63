// tensor.h: mindspore::tensor::Tensor, a handle on an array of msops, or on a kernel's memory.
#ifndef MSOPS_EXTENSION_TENSOR_H_
#define MSOPS_EXTENSION_TENSOR_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/value.h"

namespace mindspore::tensor {

class Tensor;
using TensorPtr = std::shared_ptr<Tensor>;
using TensorPtrList = std::vector<TensorPtr>;
// The names of MindSpore 2.6.
using BaseTensor = Tensor;
using BaseTensorPtr = TensorPtr;
using BaseTensorPtrList = TensorPtrList;

// Outside a kernel it refers to an object of msops, which holds a concrete or a traced array, and
// needs the GIL for most of what it does. In LaunchKernel it stands for plain memory and needs
// none.
class Tensor final : public Value {
 public:
  // A tensor without data yet; an operator or a kernel gives it some.
  Tensor(TypeId type_id, ShapeVector shape)
      : handle_(msops::extension::Ask(kMsopsEmpty, py::int_(static_cast<int>(type_id)),
                                      py::cast(shape))),
        type_id_(type_id),
        shape_(std::move(shape)) {}

  // The tensor of a handle of msops.
  explicit Tensor(py::object handle) : handle_(std::move(handle)) { ReadLayout(); }

  // A kernel's view of memory.
  explicit Tensor(const MsopsArray& array)
      : type_id_(static_cast<TypeId>(array.type_id)),
        shape_(array.shape, array.shape + array.rank),
        offset_(array.offset) {
    if (array.strides) strides_.assign(array.strides, array.strides + array.rank);
    is_view_ = array.strides != nullptr;
  }

  TypeId data_type() const { return type_id_; }
  const ShapeVector& shape() const { return shape_; }
  ShapeVector stride() const { return is_view_ ? strides_ : DenseStrides(); }
  int64_t storage_offset() const { return offset_; }
  bool is_contiguous() const { return !is_view_ || strides_ == DenseStrides(); }

  size_t DataSize() const {
    size_t count = 1;
    for (const int64_t extent : shape_) count *= static_cast<size_t>(extent);
    return count;
  }

  // Address of the first entry. Outside a kernel an error if the tensor is being traced.
  void* data_c() const {
    if (!handle_) return data_;
    const py::gil_scoped_acquire gil;
    return PyLong_AsVoidPtr(msops::extension::Ask(kMsopsAddress, handle_.get()).ptr());
  }

  bool is_memory() const { return !handle_; }
  void set_data(void* data) { data_ = data; }

  // Reads shape and dtype again after its handle was given another array.
  void ReadLayout() {
    const py::tuple layout = msops::extension::Ask(kMsopsLayout, handle_.get());
    type_id_ = static_cast<TypeId>(layout[0].cast<int>());
    shape_ = layout[1].cast<ShapeVector>();
    is_view_ = !layout[2].is_none();
    if (is_view_) strides_ = layout[2].cast<ShapeVector>();
    offset_ = layout[3].cast<int64_t>();
  }

  py::object ToPython() const override {
    if (!handle_) {
      throw std::runtime_error(
          "A tensor of inputs() or outputs() serves the kernel only; operators take the tensors "
          "that were passed to Run.");
    }
    return handle_.get();
  }

 private:
  ShapeVector DenseStrides() const {
    ShapeVector strides(shape_.size(), 1);
    for (size_t i = shape_.size(); i-- > 1;) strides[i - 1] = strides[i] * shape_[i];
    return strides;
  }

  msops::extension::Reference handle_;
  void* data_ = nullptr;
  TypeId type_id_ = kTypeUnknown;
  ShapeVector shape_;
  ShapeVector strides_;
  int64_t offset_ = 0;
  bool is_view_ = false;
};

}  // namespace mindspore::tensor

namespace msops::extension {

// Handles of tensors, None for null.
template <typename Tensors>
py::tuple Handles(const Tensors& tensors) {
  py::tuple handles(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    handles[i] = tensors[i] ? tensors[i]->ToPython() : py::none();
  }
  return handles;
}

inline mindspore::tensor::TensorPtr FromHandle(const py::handle& handle) {
  if (handle.is_none()) return nullptr;
  return std::make_shared<mindspore::tensor::Tensor>(py::reinterpret_borrow<py::object>(handle));
}

inline mindspore::tensor::TensorPtrList FromHandles(const py::tuple& handles) {
  mindspore::tensor::TensorPtrList tensors;
  for (const py::handle& handle : handles) tensors.push_back(FromHandle(handle));
  return tensors;
}

}  // namespace msops::extension

// Python's None is null for a TensorPtr, as in MindSpore.
template <>
struct pybind11::detail::type_caster<mindspore::tensor::TensorPtr> {
  PYBIND11_TYPE_CASTER(mindspore::tensor::TensorPtr, const_name("Tensor"));

  bool load(handle source, bool) {
    if (source.is_none()) return true;
    const object found = msops::extension::Ask(kMsopsFromPython, source);
    if (found.is_none()) return false;
    value = msops::extension::FromHandle(found);
    return true;
  }

  static handle cast(const mindspore::tensor::TensorPtr& tensor, return_value_policy, handle) {
    if (!tensor) return none().release();
    return msops::extension::Ask(kMsopsToPython, tensor->ToPython()).release();
  }
};

#endif  // MSOPS_EXTENSION_TENSOR_H_
