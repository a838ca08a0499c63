// graph_memory.cpp: graph operators with optional arguments, tuples, several results, workspaces,
// shapes that depend on values, and every way to fail.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ms_extension/api.h"
#include "ops/ops_func_impl/op_func_impl.h"

namespace graph_tests {
using namespace mindspore;
using namespace mindspore::kernel;
using namespace mindspore::ops;
using Tensors = std::vector<KernelTensor*>;

const float* Floats(const KernelTensor* tensor) {
  return static_cast<const float*>(tensor->device_ptr());
}
float* Writable(KernelTensor* tensor) { return static_cast<float*>(tensor->device_ptr()); }
size_t Count(const KernelTensor* tensor) { return tensor->size() / sizeof(float); }

// The results are like the first argument.
class SameInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[kInputIndex0]->GetShape()};
  }
  TypeIdList InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[kInputIndex0]->GetType()};
  }
  bool GeneralInferRegistered() const override { return true; }
};

class CpuKernel : public KernelMod {
 public:
  std::vector<KernelAttr> GetOpSupport() override { return {}; }
};

// y = x + bias, and x without a bias.
class AddBias : public CpuKernel {
 public:
  bool Launch(const Tensors& inputs, const Tensors&, const Tensors& outputs, void*) override {
    const bool has_bias = inputs[1]->type_id() != kMetaTypeNone;
    for (size_t i = 0; i < Count(outputs[0]); ++i) {
      Writable(outputs[0])[i] = Floats(inputs[0])[i] + (has_bias ? Floats(inputs[1])[i] : 0);
    }
    return true;
  }
};

// The sum of a tuple of tensors, weighted.
class WeighInfer : public SameInfer {
 public:
  ShapeArray InferShape(const PrimitivePtr& primitive,
                        const InferInfoPtrList& infos) const override {
    const auto elements = infos[0]->GetSequenceElements();
    MS_CHECK_VALUE(elements.size() == infos[1]->GetArrayValue<int64_t>()->size(),
                   primitive->name() + ": one weight per tensor");
    return {elements.at(0)->GetShape()};
  }
  TypeIdList InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[0]->GetSequenceElements().at(0)->GetType()};
  }
};
class Weigh : public CpuKernel {
 public:
  bool Launch(const Tensors& inputs, const Tensors&, const Tensors& outputs, void*) override {
    const auto weights = inputs.back()->GetValueWithCheck<std::vector<int64_t>>();
    for (size_t i = 0; i < Count(outputs[0]); ++i) {
      float sum = 0;
      for (size_t n = 0; n < weights.size(); ++n) {
        sum += static_cast<float>(weights[n]) * Floats(inputs[n])[i];
      }
      Writable(outputs[0])[i] = sum;
    }
    return true;
  }
};

// Least and greatest entry, through a workspace; `mode` says which come first.
class ExtremesInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList&) const override {
    return {ShapeVector{}, ShapeVector{}};
  }
  TypeIdList InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[0]->GetType(), infos[0]->GetType()};
  }
  int32_t CheckValidation(const PrimitivePtr& primitive,
                          const InferInfoPtrList& infos) const override {
    const auto mode = infos[1]->GetScalarValueWithCheck<std::string>();
    if (mode != "up" && mode != "down") {
      MS_EXCEPTION(ValueError) << primitive->name() << ": mode is up or down, got " << mode;
    }
    return OP_CHECK_SUCCESS;
  }
  bool GeneralInferRegistered() const override { return true; }
};
class Extremes : public CpuKernel {
 public:
  int Resize(const Tensors& inputs, const Tensors& outputs) override {
    const int code = KernelMod::Resize(inputs, outputs);
    SetWorkspaceSizeList({3, input_size_list_[0]});
    return code;
  }
  bool Launch(const Tensors& inputs, const Tensors& workspace, const Tensors& outputs,
              void*) override {
    float* const sorted = Writable(workspace[1]);
    if (workspace[0]->size() != 3 || workspace[1]->size() != inputs[0]->size()) return false;
    std::copy_n(Floats(inputs[0]), Count(inputs[0]), sorted);
    std::sort(sorted, sorted + Count(inputs[0]));
    const bool is_up = inputs[1]->GetValueWithCheck<std::string>() == "up";
    for (size_t i = 0; i < Count(inputs[0]); ++i)
      sorted[i] += inputs[2]->GetValueWithCheck<float>();
    Writable(outputs[is_up ? 0 : 1])[0] = sorted[0];
    Writable(outputs[is_up ? 1 : 0])[0] = sorted[Count(inputs[0]) - 1];
    return true;
  }
};

// x, as often as a tensor says.
class TileInfer : public SameInfer {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    const auto count = infos[1]->GetArrayValue<int32_t>();
    const auto counts = infos[1]->GetArrayValue<int64_t>();
    if (!counts) return {ShapeVector{abstract::Shape::kShapeDimAny}};
    if (!count || (*count)[0] != (*counts)[0]) return {};
    return {ShapeVector{infos[0]->GetShape()[0] * (*counts)[0]}};
  }
  std::set<int64_t> GetValueDependArgIndices() const override { return {1}; }
};
class Tile : public CpuKernel {
 public:
  bool Launch(const Tensors& inputs, const Tensors&, const Tensors& outputs, void*) override {
    for (size_t i = 0; i < Count(outputs[0]); ++i) {
      Writable(outputs[0])[i] = Floats(inputs[0])[i % Count(inputs[0])];
    }
    return true;
  }
};

// Adds into a cache; its result is a placeholder, as operators without one have in graphs.
class FillInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList&) const override {
    return {ShapeVector{1}};
  }
  TypeIdList InferType(const PrimitivePtr&, const InferInfoPtrList&) const override {
    return {kNumberTypeInt8};
  }
  bool GeneralInferRegistered() const override { return true; }
};
class Fill : public CpuKernel {
 public:
  bool Init(const Tensors&, const Tensors&) override {
    return primitive_->HasAttr("side_effect_mem") &&
           GetValue<bool>(primitive_->GetAttr("side_effect_mem"));
  }
  bool Launch(const Tensors& inputs, const Tensors&, const Tensors& outputs, void*) override {
    static_cast<int8_t*>(outputs[0]->device_ptr())[0] = 0;
    for (size_t i = 0; i < Count(inputs[0]); ++i) {
      Writable(inputs[0])[i] += Floats(inputs[1])[i];
    }
    return true;
  }
};

// Fails in a way that `how` names.
class FailInfer : public SameInfer {
 public:
  ShapeArray InferShape(const PrimitivePtr& primitive,
                        const InferInfoPtrList& infos) const override {
    const auto how = infos[1]->GetScalarValueWithCheck<std::string>();
    if (how == "type") MS_EXCEPTION(TypeError) << "of infer";
    if (how == "none") return {infos[2]->GetShape()};
    if (how == "kind") return {ShapeVector{infos[1]->GetScalarValueWithCheck<int64_t>()}};
    if (how == "count") return {};
    if (how == "rank") return {ShapeVector{abstract::Shape::kShapeRankAny}};
    return SameInfer::InferShape(primitive, infos);
  }
};
class Fail : public CpuKernel {
 public:
  bool Init(const Tensors& inputs, const Tensors&) override { return !Is(inputs, "init"); }
  int Resize(const Tensors& inputs, const Tensors&) override {
    return Is(inputs, "resize") ? KRET_RESIZE_FAILED : KRET_OK;
  }
  bool Launch(const Tensors& inputs, const Tensors&, const Tensors&, void*) override {
    if (Is(inputs, "throw")) throw std::runtime_error("of launch");
    return !Is(inputs, "launch");
  }

 private:
  static bool Is(const Tensors& inputs, const char* how) {
    return inputs[1]->GetValueWithCheck<std::string>() == how;
  }
};
}  // namespace graph_tests

MS_CUSTOM_OPS_REGISTER(add_bias, graph_tests::SameInfer, graph_tests::AddBias);
MS_CUSTOM_OPS_REGISTER(weigh, graph_tests::WeighInfer, graph_tests::Weigh);
MS_CUSTOM_OPS_REGISTER(extremes, graph_tests::ExtremesInfer, graph_tests::Extremes);
MS_CUSTOM_OPS_REGISTER(tile, graph_tests::TileInfer, graph_tests::Tile);
MS_CUSTOM_OPS_REGISTER(fill, graph_tests::FillInfer, graph_tests::Fill);
MS_CUSTOM_OPS_REGISTER(fill_twin, graph_tests::FillInfer, graph_tests::Fill);
MS_CUSTOM_OPS_REGISTER(fail, graph_tests::FailInfer, graph_tests::Fail);
namespace mindspore::ops {
DECLARE_CUSTOM_OP_IMPL(no_kernel, graph_tests::SameInfer);
}

static ms::Tensor Same(const ms::Tensor& x) { return x; }

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  // What projects bind for an operator that only graphs have.
  m.def("add_bias", [] {});
  m.def("weigh", [](const py::args&) { MS_EXCEPTION(RuntimeError) << "not support PyNative"; });
  m.def("no_kernel", &Same);
  m.def("also_bound", &Same);
}
