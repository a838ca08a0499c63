// tensor.h: mindspore::tensor::Tensor, a handle on an array of msops, or on a kernel's memory.
#ifndef MSOPS_EXTENSION_TENSOR_H_
#define MSOPS_EXTENSION_TENSOR_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/value.h"

namespace mindspore::tensor {
class Tensor;
}  // namespace mindspore::tensor

namespace msops::extension {

// Where a program has the tensors of the kernel that this thread runs, as long as it exists.
class BoundMemory {
 public:
  BoundMemory() : outer_(std::exchange(current_, this)) {}
  ~BoundMemory() { current_ = outer_; }
  BoundMemory(const BoundMemory&) = delete;
  BoundMemory& operator=(const BoundMemory&) = delete;

  void Bind(const mindspore::tensor::Tensor* tensor, void* memory) { memory_[tensor] = memory; }
  bool Has(const mindspore::tensor::Tensor* tensor) const { return memory_.count(tensor) != 0; }

  // Returns whether the tensor is one of them, and sets its memory.
  static bool Find(const mindspore::tensor::Tensor* tensor, void** memory) {
    if (!current_ || !current_->Has(tensor)) return false;
    *memory = current_->memory_.at(tensor);
    return true;
  }

 private:
  BoundMemory* outer_;
  std::map<const mindspore::tensor::Tensor*, void*> memory_;
  static inline thread_local BoundMemory* current_ = nullptr;
};

}  // namespace msops::extension

namespace mindspore::tensor {

using TensorPtr = std::shared_ptr<Tensor>;
using TensorPtrList = std::vector<TensorPtr>;
// The names of MindSpore 2.6.
using BaseTensor = Tensor;
using BaseTensorPtr = TensorPtr;
using BaseTensorPtrList = TensorPtrList;

// Outside a kernel it refers to an object of msops, which holds a concrete or a traced array, and
// needs the GIL for most of what it does. In LaunchKernel it is plain memory and needs
// none.
class Tensor final : public Value {
 public:
  // A tensor without data yet; an operator or a kernel gives it some.
  Tensor(TypeId type_id, ShapeVector shape) : type_id_(type_id), shape_(std::move(shape)) {
    using namespace msops::extension;
    const Gil gil;
    handle_ = Reference(Ask(kMsopsEmpty, {Number(type_id_), Numbers(shape_)}));
  }

  // The tensor of a handle of msops. Needs the GIL.
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
  ShapeVector stride() const {
    strides_are_known_ = true;
    return is_view_ ? strides_ : DenseStrides();
  }
  int64_t storage_offset() const { return offset_; }
  bool is_contiguous() const { return !is_view_ || strides_ == DenseStrides(); }

  size_t DataSize() const {
    size_t count = 1;
    for (const int64_t extent : shape_) count *= static_cast<size_t>(extent);
    return count;
  }

  // Address of the first entry. Outside a kernel an error if the tensor is being traced.
  void* data_c() const {
    void* memory = data_;
    if (!handle_ || msops::extension::BoundMemory::Find(this, &memory)) return memory;
    const msops::extension::Gil gil;
    memory = PyLong_AsVoidPtr(msops::extension::Ask(kMsopsAddress, {handle_.get()}).ptr());
    if (is_view_) BecomeDense();
    return memory;
  }

  bool is_memory() const { return !handle_; }
  void set_data(void* data) { data_ = data; }

  // Reads shape and dtype again after its handle was given another array.
  void ReadLayout() {
    using namespace msops::extension;
    const Gil gil;
    const py::object layout = Ask(kMsopsLayout, {handle_.get()});
    PyObject* const strides = PyTuple_GET_ITEM(layout.ptr(), 2);
    type_id_ = static_cast<TypeId>(AsNumber(PyTuple_GET_ITEM(layout.ptr(), 0)));
    shape_ = AsNumbers(PyTuple_GET_ITEM(layout.ptr(), 1));
    is_view_ = strides != Py_None;
    if (is_view_) strides_ = AsNumbers(strides);
    offset_ = AsNumber(PyTuple_GET_ITEM(layout.ptr(), 3));
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
  // Outside a runner a tensor's memory is its own, and row-major: that of a slice is no view.
  void BecomeDense() const {
    if (strides_are_known_) {
      throw std::runtime_error(
          "The strides of a slice were read, and its memory here is row-major. Call contiguous() "
          "before stride(), or read it by strides in a PyboostRunner.");
    }
    const_cast<Tensor*>(this)->ReadLayout();
  }

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
  mutable bool strides_are_known_ = false;
};

}  // namespace mindspore::tensor

namespace mindspore {
using tensor::Tensor;
using tensor::TensorPtr;
}  // namespace mindspore

namespace msops::extension {

inline py::object HandleOf(const mindspore::tensor::TensorPtr& tensor) {
  return tensor ? tensor->ToPython() : py::none();
}

// Handles of tensors, None for null. Needs the GIL.
inline py::object Handles(const mindspore::tensor::TensorPtrList& tensors) {
  std::vector<py::object> handles;
  for (const auto& tensor : tensors) handles.push_back(HandleOf(tensor));
  return Tuple(std::move(handles));
}

inline mindspore::tensor::TensorPtr FromHandle(py::object handle) {
  if (handle.is_none()) return nullptr;
  return std::make_shared<mindspore::tensor::Tensor>(std::move(handle));
}

inline mindspore::tensor::TensorPtrList FromHandles(const py::handle& handles) {
  mindspore::tensor::TensorPtrList tensors;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(handles.ptr()); ++i) {
    tensors.push_back(
        FromHandle(py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(handles.ptr(), i))));
  }
  return tensors;
}

// A handle, a number, text, or a tuple of these as a value; None is null. Needs the GIL.
inline mindspore::ValuePtr ValueOf(PyObject* object) {
  using mindspore::MakeValue;
  if (object == Py_None) return nullptr;
  if (PyBool_Check(object)) return MakeValue(object == Py_True);
  if (PyLong_Check(object)) return MakeValue(AsNumber(object));
  if (PyFloat_Check(object)) return MakeValue(PyFloat_AS_DOUBLE(object));
  if (PyUnicode_Check(object)) return MakeValue(TextOf(object));
  if (!PyTuple_Check(object)) return FromHandle(py::reinterpret_borrow<py::object>(object));
  mindspore::ValuePtrList items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    items.push_back(ValueOf(PyTuple_GET_ITEM(object, i)));
  }
  return std::make_shared<mindspore::ValueTuple>(std::move(items));
}

// The tensor that a Python object is; nothing if it is none. None is null, as in MindSpore.
inline bool ReadTensor(const py::handle& source, mindspore::tensor::TensorPtr* tensor) {
  if (source.is_none()) return true;
  py::object found = Ask(kMsopsFromPython, {py::reinterpret_borrow<py::object>(source)});
  if (found.is_none()) return false;
  *tensor = FromHandle(std::move(found));
  return true;
}

inline py::object WriteTensor(const mindspore::tensor::TensorPtr& tensor) {
  if (!tensor) return py::none();
  return Ask(kMsopsToPython, {tensor->ToPython()});
}

}  // namespace msops::extension

template <>
struct pybind11::detail::type_caster<mindspore::tensor::TensorPtr> {
  PYBIND11_TYPE_CASTER(mindspore::tensor::TensorPtr, const_name("Tensor"));

  bool load(handle source, bool) { return msops::extension::ReadTensor(source, &value); }

  static handle cast(const mindspore::tensor::TensorPtr& tensor, return_value_policy, handle) {
    return msops::extension::WriteTensor(tensor).release();
  }
};

#endif  // MSOPS_EXTENSION_TENSOR_H_
