// libraries.h: operators of Ascend Transformer Boost by structs of parameters (enable_atb), and
// Fourier transforms of its signal processing library (enable_asdsip), which are JAX's.
#ifndef MSOPS_EXTENSION_LIBRARIES_H_
#define MSOPS_EXTENSION_LIBRARIES_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/runner.h"

namespace ms::pynative {

// A runner that launches an operator of a library: its name, then values behind the tensors.
class LibraryRunner : public PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    if (!launch_) throw std::runtime_error("Runner " + op_name() + ": call Init before Run.");
    launch_();
  }

 protected:
  void _Run() override { RunNow(); }

  std::function<void()> launch_;
};

}  // namespace ms::pynative

#ifdef CUSTOM_ENABLE_ATB
namespace atb {

// Specialised by code for MindSpore, which keeps operators by their parameters.
template <typename Param>
struct HashOpParam;
template <typename Value>
void add_param_to_buf(const std::string&, const Value&) {}

namespace infer {

enum InputLayout : int { TYPE_BSND = 0, TYPE_BNSD };
enum QuantType : int { QUANT_UNDEFINED = 0, QUANT_UNQUANT = 0, QUANT_INT8 = 2 };
enum ActivationType : int {
  ACTIVATION_UNDEFINED = 0,
  ACTIVATION_RELU,
  ACTIVATION_GELU,
  ACTIVATION_FAST_GELU,
  ACTIVATION_SWISH,
  ACTIVATION_LOG,
  ACTIVATION_SWIGLU_FORWARD,
  ACTIVATION_SWIGLU_BACKWARD,
  ACTIVATION_SIGMOID,
  ACTIVATION_FASTER_GELU_FORWARD,
};

struct ActivationParam {
  enum GeLUMode : int { TANH_MODE = 0, NONE_MODE };
  ActivationType activationType = ACTIVATION_UNDEFINED;
  float scale = 1.0f;  // of swish
  int32_t dim = -1;    // of SwiGLU
  GeLUMode geluMode = TANH_MODE;
};

struct RopeParam {
  int32_t rotaryCoeff = 4;
  int32_t cosFormat = 0;
};

struct RmsNormParam {
  enum RmsNormType : int {
    RMS_NORM_UNDEFINED = 0,
    RMS_NORM_NORM,
    RMS_NORM_PRENORM,
    RMS_NORM_POSTNORM
  };
  enum PrecisionMode : int { HIGH_PRECISION_MODE = 0, HIGH_PERFORMANCE_MODE };
  enum ModelType : int { LLAMA_MODEL = 0, GEMMA_MODEL };
  struct NormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5f;
    double layerNormEps = 1e-5;
    bool rstd = false;
    PrecisionMode precisionMode = HIGH_PRECISION_MODE;
    ModelType modelType = LLAMA_MODEL;
  };
  struct PreNormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5f;
    bool hasBias = false;
  };
  RmsNormType layerType = RMS_NORM_UNDEFINED;
  NormParam normParam;
  PreNormParam preNormParam;
};

struct ReshapeAndCacheParam {
  enum CompressType : int { COMPRESS_TYPE_UNDEFINED = 0, COMPRESS_TYPE_KVHEAD };
  enum KvCacheCfg : int { K_CACHE_V_CACHE = 0, K_CACHE_V_BYPASS, K_CACHE_V_CACHE_NZ };
  CompressType compressType = COMPRESS_TYPE_UNDEFINED;
  KvCacheCfg kvCacheCfg = K_CACHE_V_CACHE;
};

struct SelfAttentionParam {
  enum CalcType : int { UNDEFINED = 0, ENCODER, DECODER, PA_ENCODER, PREFIX_ENCODER };
  enum KernelType : int { KERNELTYPE_DEFAULT = 0, KERNELTYPE_HIGH_PRECISION };
  enum ClampType : int { CLAMP_TYPE_UNDEFINED = 0, CLAMP_TYPE_MIN_MAX };
  enum MaskType : int {
    MASK_TYPE_UNDEFINED = 0,
    MASK_TYPE_NORM,
    MASK_TYPE_ALIBI,
    MASK_TYPE_NORM_COMPRESS
  };
  enum QuantType : int { TYPE_QUANT_UNDEFINED = 0, TYPE_QUANT_UNQUANT = 0 };
  QuantType quantType = TYPE_QUANT_UNQUANT;
  int32_t headNum = 0;
  int32_t kvHeadNum = 0;
  float qScale = 1;
  float qkScale = 1;
  bool batchRunStatusEnable = false;
  uint32_t isTriuMask = 0;  // only makes Ascend faster
  CalcType calcType = UNDEFINED;
  KernelType kernelType = KERNELTYPE_DEFAULT;
  ClampType clampType = CLAMP_TYPE_UNDEFINED;
  float clampMin = 0;
  float clampMax = 0;
  MaskType maskType = MASK_TYPE_UNDEFINED;
  InputLayout inputLayout = TYPE_BSND;
  uint32_t mlaVHeadSize = 0;
  uint32_t windowSize = 0;
};

}  // namespace infer
}  // namespace atb

namespace msops::extension {

// What msops takes of each struct, behind the tensors.
inline std::vector<py::object> Fields(const atb::infer::ActivationParam& param) {
  return {Number(param.activationType), py::float_(param.scale), Number(param.dim),
          Number(param.geluMode)};
}
inline std::vector<py::object> Fields(const atb::infer::RopeParam& param) {
  return {Number(param.rotaryCoeff), Number(param.cosFormat)};
}
inline std::vector<py::object> Fields(const atb::infer::RmsNormParam& param) {
  const auto& norm = param.normParam;
  const auto& pre = param.preNormParam;
  const bool is_plain = norm.quantType == 0 && !norm.rstd && pre.quantType == 0 && !pre.hasBias;
  return {Number(param.layerType), py::float_(norm.epsilon), py::float_(pre.epsilon),
          py::bool_(norm.modelType == atb::infer::RmsNormParam::GEMMA_MODEL), py::bool_(is_plain)};
}
inline std::vector<py::object> Fields(const atb::infer::ReshapeAndCacheParam& param) {
  return {Number(param.compressType), Number(param.kvCacheCfg)};
}
inline std::vector<py::object> Fields(const atb::infer::SelfAttentionParam& param) {
  const bool is_plain = param.quantType == 0 && !param.batchRunStatusEnable &&
                        param.clampType == 0 && param.inputLayout == 0 && !param.mlaVHeadSize &&
                        !param.windowSize;
  return {Number(param.calcType),
          Number(param.maskType),
          Number(param.headNum),
          Number(param.kvHeadNum),
          py::float_(param.qScale * param.qkScale),
          py::bool_(is_plain)};
}

}  // namespace msops::extension

namespace ms::pynative {

class AtbOpRunner : public LibraryRunner {
 public:
  using LibraryRunner::LibraryRunner;

  // Chooses the operator, by the type of its parameters: ActivationParam, RopeParam, RmsNormParam,
  // ReshapeAndCacheParam or SelfAttentionParam.
  template <typename Param>
  void Init(const Param& param) {
    launch_ = [this, param] {
      using namespace msops::extension;
      const Gil gil;
      std::vector<py::object> arguments = Fields(param);
      arguments.insert(arguments.begin(), Argument(inputs()));
      Ask(kMsopsLaunchAclnn, {Text(ms::pynative::inner::TypeName(typeid(Param))),
                              Tuple(std::move(arguments)), Argument(outputs())});
    };
  }
};

// Runs the operator that belongs to `param`; the name is for messages.
template <typename Param>
void RunAtbOp(const std::string& op_name, const Param& param, const std::vector<Tensor>& inputs,
              const std::vector<Tensor>& outputs) {
  auto runner = std::make_shared<AtbOpRunner>(op_name);
  runner->Init(param);
  runner->Run(inputs, outputs);
}

}  // namespace ms::pynative
#endif  // CUSTOM_ENABLE_ATB

#ifdef CUSTOM_ENABLE_ASDSIP
namespace ms::pynative {

enum asdFftType {
  ASCEND_FFT_C2C = 0x10,
  ASCEND_FFT_C2R = 0x11,
  ASCEND_FFT_R2C = 0x12,
  ASCEND_STFT_C2C = 0x20,
  ASCEND_STFT_C2R = 0x21,
  ASCEND_STFT_R2C = 0x22,
};
enum asdFftDirection { ASCEND_FFT_FORWARD = 0x10, ASCEND_FFT_BACKWARD = 0x11 };
enum asdFft1dDimType { ASCEND_FFT_HORIZONTAL = 0x10, ASCEND_FFT_VERTICAL = 0x11 };

struct FFTParam {
  int64_t fftXSize = 0;
  int64_t fftYSize = 0;  // 0: one dimension
  asdFftType fftType = asdFftType::ASCEND_FFT_C2C;
  asdFftDirection direction = asdFftDirection::ASCEND_FFT_FORWARD;
  int64_t batchSize = 0;
  asdFft1dDimType dimType = asdFft1dDimType::ASCEND_FFT_HORIZONTAL;
};

class AsdSipFFTOpRunner : public LibraryRunner {
 public:
  using LibraryRunner::LibraryRunner;

  void Init(const FFTParam& param) {
    launch_ = [this, param] {
      using namespace msops::extension;
      const Gil gil;
      Ask(kMsopsLaunchAclnn,
          {Text(op_name()),
           Tuple({Argument(inputs().at(0)), Number(param.fftXSize), Number(param.fftYSize),
                  Number(param.fftType), Number(param.direction), Number(param.batchSize),
                  Number(param.dimType)}),
           Argument(outputs())});
    };
  }
};

// Runs asdFftExecC2C, asdFftExecC2R or asdFftExecR2C.
inline void RunAsdSipFFTOp(const std::string& op_name, const FFTParam& fft_param,
                           const ms::Tensor& input, const ms::Tensor& output) {
  auto runner = std::make_shared<AsdSipFFTOpRunner>(op_name);
  runner->Init(fft_param);
  runner->Run({input}, {output});
}

}  // namespace ms::pynative
#endif  // CUSTOM_ENABLE_ASDSIP

#endif  // MSOPS_EXTENSION_LIBRARIES_H_
