// cpu_kernel_utils.h: what a kernel may ask for beside its context.
#ifndef MSOPS_AICPU_CPU_KERNEL_UTILS_H_
#define MSOPS_AICPU_CPU_KERNEL_UTILS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cpu_context.h"
#include "cpu_nodedef_builder.h"
#include "host_call.h"
#include "status.h"

namespace aicpu {

// Here an object is its own implementation.
using TensorImpl = Tensor;
using TensorShapeImpl = TensorShape;
using AttrValueImpl = AttrValue;

class CpuKernelUtils {
 public:
  static std::shared_ptr<Tensor> CreateTensor() { return std::shared_ptr<Tensor>(new Tensor()); }

  static std::shared_ptr<Tensor> CreateTensor(TensorImpl* implementation) {
    return Borrow(implementation);
  }

  static std::shared_ptr<TensorShape> CreateTensorShape() {
    return std::shared_ptr<TensorShape>(new TensorShape());
  }

  static std::shared_ptr<AttrValue> CreateAttrValue() {
    return std::shared_ptr<AttrValue>(new AttrValue());
  }

  static std::shared_ptr<NodeDef> CreateNodeDef() { return NodeDefBuilder::CreateNodeDef(); }

  static std::shared_ptr<TensorImpl> GetImpl(const Tensor* tensor) { return Borrow(tensor); }
  static std::shared_ptr<TensorShapeImpl> GetImpl(const TensorShape* shape) {
    return Borrow(shape);
  }
  static std::shared_ptr<AttrValueImpl> GetImpl(const AttrValue* value) { return Borrow(value); }

  static std::string GetTensorName(const Tensor* tensor) { return tensor ? tensor->name_ : ""; }
  static void SetTensorName(const std::string& name, std::shared_ptr<Tensor>& tensor) {
    if (tensor) tensor->name_ = name;
  }

  // Runs `work(begin, end)` over blocks of [0, total) that are at least `perUnitSize` long, in any
  // order and at the same time, on the threads of XLA. An exception of `work` comes out here.
  static uint32_t ParallelFor(const CpuKernelContext& ctx, int64_t total, int64_t perUnitSize,
                              const std::function<void(int64_t, int64_t)>& work) {
    if (!work) return KERNEL_STATUS_PARAM_INVALID;
    HostCall::ParallelFor(HostCall::Of(ctx), total, perUnitSize, work);
    return KERNEL_STATUS_OK;
  }

  // Returns two more than there are threads for ParallelFor, and at least four: kernels take two
  // off, in unsigned arithmetic, and divide their work by what is left.
  static uint32_t GetCPUNum(const CpuKernelContext& ctx) {
    const int64_t threads = HostCall::ThreadCount(HostCall::Of(ctx));
    return static_cast<uint32_t>(std::max<int64_t>(threads + 2, 4));
  }

 private:
  template <typename T>
  static std::shared_ptr<T> Borrow(const T* object) {
    return std::shared_ptr<T>(std::shared_ptr<void>(), const_cast<T*>(object));
  }
};

// Newer kernels name it so where they are built for users.
class CustCpuKernelUtils : public CpuKernelUtils {};

}  // namespace aicpu

#endif  // MSOPS_AICPU_CPU_KERNEL_UTILS_H_
