// cpu_tensor.h: a tensor: shape, dtype, and memory that is not its own.
#ifndef MSOPS_AICPU_CPU_TENSOR_H_
#define MSOPS_AICPU_CPU_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cpu_tensor_shape.h"
#include "cpu_types.h"

namespace aicpu {

class Tensor {
 public:
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  bool SetTensorShape(const TensorShape* shape) {
    if (!shape) return false;
    shape_->Assign(*shape);
    return true;
  }

  // The shape is the tensor's own: what is set on it is set on the tensor.
  std::shared_ptr<TensorShape> GetTensorShape() const { return shape_; }

  void SetDataType(DataType type) { dtype_ = type; }
  DataType GetDataType() const { return dtype_; }

  void SetData(void* address) { data_ = address; }
  void* GetData() const { return data_; }

  // Sizes are in bytes.
  void SetDataSize(uint64_t size) { size_bytes_ = size; }
  uint64_t GetDataSize() const { return size_bytes_; }

  // Returns the bytes that shape and dtype make, -1 if that is unknown.
  int64_t CalcDataSizeByShape() const {
    const int64_t count = NumElements();
    const int size_bytes = GetSizeByDataType(dtype_);
    int64_t total = 0;
    if (count < 0 || size_bytes < 0 || __builtin_mul_overflow(count, size_bytes, &total)) return -1;
    return total;
  }

  int64_t NumElements() const { return shape_->NumElements(); }

 private:
  friend class AttrValue;
  friend class CpuKernelContext;
  friend class CpuKernelUtils;
  friend class NodeDefBuilder;

  Tensor() : shape_(new TensorShape()) {}
  explicit Tensor(TensorShape* shape) : shape_(shape) {}

  std::shared_ptr<TensorShape> shape_;
  void* data_ = nullptr;
  uint64_t size_bytes_ = 0;
  DataType dtype_ = DT_UNDEFINED;
  std::string name_;
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_CPU_TENSOR_H_
