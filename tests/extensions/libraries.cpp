// libraries.cpp: operators of ATB and SiP, as code for MindSpore launches them.
#include <string>
#include <vector>

#include "ms_extension/api.h"

namespace atb {
template <>
struct HashOpParam<infer::RopeParam> {
  void operator()(const infer::RopeParam& param) const {
    add_param_to_buf("rotaryCoeff", param.rotaryCoeff);
  }
};
}  // namespace atb

using ms::pynative::RunAtbOp;
using Tensors = std::vector<ms::Tensor>;

ms::Tensor Like(const ms::Tensor& x) { return ms::Tensor(x.data_type(), x.shape()); }

ms::Tensor Activate(const ms::Tensor& x, int64_t type, int64_t dim) {
  auto shape = x.shape();
  if (type == atb::infer::ACTIVATION_SWIGLU_FORWARD) shape[dim < 0 ? dim + shape.size() : dim] /= 2;
  ms::Tensor y(x.data_type(), shape);
  atb::infer::ActivationParam param;
  param.activationType = static_cast<atb::infer::ActivationType>(type);
  param.dim = static_cast<int32_t>(dim);
  param.scale = 1.5f;
  RunAtbOp("Activation", param, {x}, {y});
  return y;
}

// Turns query and key in place.
void Rope(const ms::Tensor& query, const ms::Tensor& key, const ms::Tensor& cos,
          const ms::Tensor& sin, int64_t coefficient) {
  atb::infer::RopeParam param;
  param.rotaryCoeff = static_cast<int32_t>(coefficient);
  const auto length = ms::tensor(cos.shape()[0], ms::TypeId::kNumberTypeInt32);
  RunAtbOp("Rope", param, {query, key, cos, sin, length}, {query, key});
}

ms::Tensor Turned(const ms::Tensor& query, const ms::Tensor& cos, const ms::Tensor& sin,
                  int64_t coefficient) {
  atb::infer::RopeParam param;
  param.rotaryCoeff = static_cast<int32_t>(coefficient);
  const auto length = ms::tensor(int64_t{1}, ms::TypeId::kNumberTypeInt32);
  auto out = Like(query), other = Like(query);
  RunAtbOp("Rope", param, {query, query, cos, sin, length}, {out, other});
  return out;
}

Tensors Norm(const Tensors& inputs, int64_t type, bool gemma) {
  atb::infer::RmsNormParam param;
  param.layerType = static_cast<atb::infer::RmsNormParam::RmsNormType>(type);
  param.normParam.epsilon = 1e-6f;
  param.preNormParam.epsilon = 1e-6f;
  if (gemma) param.normParam.modelType = atb::infer::RmsNormParam::GEMMA_MODEL;
  Tensors outputs = {Like(inputs[0])};
  if (type == 2) outputs.push_back(Like(inputs[0]));
  RunAtbOp("RmsNorm", param, inputs, outputs);
  return outputs;
}

void Store(const Tensors& inputs) {
  atb::infer::ReshapeAndCacheParam param;
  if (inputs.size() == 3) param.kvCacheCfg = atb::infer::ReshapeAndCacheParam::K_CACHE_V_BYPASS;
  const size_t half = inputs.size() / 2;
  RunAtbOp("ReshapeAndCache", param, inputs, Tensors(inputs.begin() + half, inputs.end() - 1));
}

ms::Tensor Attend(const Tensors& inputs, int64_t heads, int64_t key_heads, int64_t clamp) {
  atb::infer::SelfAttentionParam param;
  param.calcType = atb::infer::SelfAttentionParam::PA_ENCODER;
  param.headNum = static_cast<int32_t>(heads);
  param.kvHeadNum = static_cast<int32_t>(key_heads);
  param.qkScale = 0.25f;
  param.clampType = static_cast<atb::infer::SelfAttentionParam::ClampType>(clamp);
  if (inputs.size() == 5) param.maskType = atb::infer::SelfAttentionParam::MASK_TYPE_NORM;
  auto out = Like(inputs[0]);
  auto runner = std::make_shared<ms::pynative::AtbOpRunner>("SelfAttention");
  runner->Init(param);
  runner->Run(inputs, {out});
  return out;
}

ms::Tensor Transform(const ms::Tensor& x, const std::string& name,
                     const std::vector<int64_t>& sizes, bool forward, int64_t batch,
                     int64_t dim_type) {
  using namespace ms::pynative;
  FFTParam param;
  param.fftXSize = sizes[0];
  param.fftYSize = sizes.size() > 1 ? sizes[1] : 0;
  param.batchSize = batch;
  param.direction = forward ? ASCEND_FFT_FORWARD : ASCEND_FFT_BACKWARD;
  param.dimType = static_cast<asdFft1dDimType>(dim_type);
  auto shape = x.shape();
  auto type = x.data_type();
  if (name == "asdFftExecR2C") {
    param.fftType = ASCEND_FFT_R2C;
    shape.back() = sizes.back() / 2 + 1;
    type = ms::TypeId::kNumberTypeComplex64;
  } else if (name == "asdFftExecC2R") {
    param.fftType = ASCEND_FFT_C2R;
    shape.back() = sizes.back();
    type = ms::TypeId::kNumberTypeFloat32;
  }
  ms::Tensor out(type, shape);
  RunAsdSipFFTOp(name, param, x, out);
  return out;
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("activate", PYBOOST_CALLER(1, Activate));
  m.def("rope", PYBOOST_CALLER(0, Rope));
  m.def("turned", PYBOOST_CALLER(1, Turned));
  m.def("norm", &Norm);
  m.def("store", PYBOOST_CALLER(0, Store));
  m.def("attend", PYBOOST_CALLER(1, Attend));
  m.def("transform", PYBOOST_CALLER(1, Transform));
}
