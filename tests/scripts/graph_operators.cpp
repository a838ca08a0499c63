// graph_operators.cpp: graph operators that MindSpore builds, too.
#include <memory>
#include <vector>

#include "kernel/cpu/cpu_kernel.h"
#include "ms_extension/api.h"
#include "ops/ops_func_impl/op_func_impl.h"

namespace mindspore::ops {
class ScaleInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[0]->GetShape()};
  }
  std::vector<TypeId> InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[0]->GetType()};
  }
  bool GeneralInferRegistered() const override { return true; }
};
DECLARE_CUSTOM_OP_IMPL(scale, ScaleInfer);
DECLARE_CUSTOM_OP_IMPL(accumulate, ScaleInfer);
DECLARE_CUSTOM_OP_IMPL(kinds, ScaleInfer);
}  // namespace mindspore::ops

namespace mindspore::kernel {
class Scale : public NativeCpuKernelMod {
 public:
  std::vector<KernelAttr> GetOpSupport() override {
    return {KernelAttr()
                .AddInputAttr(kNumberTypeFloat32)
                .AddInputAttr(kObjectTypeNumber, kNumberTypeFloat32)
                .AddInputAttr(kObjectTypeNumber, kNumberTypeInt64)
                .AddOutputAttr(kNumberTypeFloat32)};
  }
  bool Init(const std::vector<KernelTensor*>&, const std::vector<KernelTensor*>&) override {
    return true;
  }
  int Resize(const std::vector<KernelTensor*>& inputs,
             const std::vector<KernelTensor*>& outputs) override {
    factor_ = inputs[1]->GetValueWithCheck<float>();
    times_ = inputs[2]->GetValueWithCheck<int64_t>();
    return KernelMod::Resize(inputs, outputs);
  }
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>&,
              const std::vector<KernelTensor*>& outputs) override {
    const auto* x = static_cast<const float*>(inputs[0]->device_ptr());
    auto* y = static_cast<float*>(outputs[0]->device_ptr());
    for (size_t i = 0; i < outputs[0]->size() / sizeof(float); ++i) {
      y[i] = x[i];
      for (int64_t n = 0; n < times_; ++n) y[i] *= factor_;
    }
    return true;
  }

 private:
  float factor_ = 1;
  int64_t times_ = 1;
};
class Accumulate : public NativeCpuKernelMod {
 public:
  std::vector<KernelAttr> GetOpSupport() override {
    return {KernelAttr()
                .AddInputAttr(kNumberTypeFloat32)
                .AddInputAttr(kNumberTypeFloat32)
                .AddOutputAttr(kNumberTypeFloat32)
                .AddOutInRef(0, 0)};
  }
  bool Init(const std::vector<KernelTensor*>&, const std::vector<KernelTensor*>&) override {
    return true;
  }
  int Resize(const std::vector<KernelTensor*>& inputs,
             const std::vector<KernelTensor*>& outputs) override {
    return KernelMod::Resize(inputs, outputs);
  }
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>&,
              const std::vector<KernelTensor*>& outputs) override {
    auto* x = static_cast<float*>(inputs[0]->device_ptr());
    const auto* y = static_cast<const float*>(inputs[1]->device_ptr());
    for (size_t i = 0; i < outputs[0]->size() / sizeof(float); ++i) x[i] += y[i];
    return true;
  }
};
MS_KERNEL_FACTORY_REG_BY_CREATOR(NativeCpuKernelMod, Custom_scale,
                                 []() { return std::make_shared<Scale>(); });
MS_KERNEL_FACTORY_REG_BY_CREATOR(NativeCpuKernelMod, Custom_accumulate,
                                 []() { return std::make_shared<Accumulate>(); });
MS_KERNEL_FACTORY_REG_BY_CREATOR(NativeCpuKernelMod, Custom_kinds,
                                 []() { return std::make_shared<Scale>(); });
}  // namespace mindspore::kernel

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("scale", [] {});
  m.def("accumulate", [] {});
  m.def("kinds", [] {});
}
