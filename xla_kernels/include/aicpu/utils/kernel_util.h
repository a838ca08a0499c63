// kernel_util.h: checks and small helpers that nearly every kernel uses. Where newer kernels pass
// the context first, both forms are there.
#ifndef MSOPS_AICPU_UTILS_KERNEL_UTIL_H_
#define MSOPS_AICPU_UTILS_KERNEL_UTIL_H_

#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#endif

// More than this header needs: kernels lean on what MindSpore's brings along.
#include <algorithm>
#include <climits>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../cpu_context.h"
#include "../cpu_kernel_utils.h"
#include "../cpu_types.h"
#include "../kernel_log.h"
#include "../status.h"

namespace aicpu {

constexpr uint32_t kFirstInputIndex = 0;
constexpr uint32_t kSecondInputIndex = 1;
constexpr uint32_t kThirdInputIndex = 2;
constexpr uint32_t kFourthInputIndex = 3;
constexpr uint32_t kFirstOutputIndex = 0;
constexpr uint32_t kSecondOutputIndex = 1;
constexpr uint32_t kDynamicInput = static_cast<uint32_t>(-1);
constexpr uint32_t kDynamicOutput = static_cast<uint32_t>(-2);
constexpr uint32_t kResvCpuNum = 2;
constexpr uint32_t kThreadNum = 32;
constexpr uint64_t kEigenAlignmentBytes = 16;

constexpr int32_t kFormatNCHWIndexN = 0;
constexpr int32_t kFormatNCHWIndexC = 1;
constexpr int32_t kFormatNCHWIndexH = 2;
constexpr int32_t kFormatNCHWIndexW = 3;
constexpr int32_t kFormatNHWCIndexN = 0;
constexpr int32_t kFormatNHWCIndexH = 1;
constexpr int32_t kFormatNHWCIndexW = 2;
constexpr int32_t kFormatNHWCIndexC = 3;
constexpr int32_t kFormatNC1HWC0IndexN = 0;
constexpr int32_t kFormatNC1HWC0IndexC1 = 1;
constexpr int32_t kFormatNC1HWC0IndexH = 2;
constexpr int32_t kFormatNC1HWC0IndexW = 3;
constexpr int32_t kFormatNC1HWC0IndexC0 = 4;
constexpr int32_t kFormatCHWIndexC = 0;
constexpr int32_t kFormatCHWIndexH = 1;
constexpr int32_t kFormatCHWIndexW = 2;
constexpr int32_t kFormatHWCIndexH = 0;
constexpr int32_t kFormatHWCIndexW = 1;
constexpr int32_t kFormatHWCIndexC = 2;

constexpr int INPUT_NUM0 = 0;
constexpr int INPUT_NUM1 = 1;
constexpr int INPUT_NUM2 = 2;
constexpr int INPUT_NUM3 = 3;
constexpr int INPUT_NUM4 = 4;
constexpr int INPUT_NUM5 = 5;
constexpr int INPUT_NUM6 = 6;
constexpr int INPUT_NUM7 = 7;
constexpr int INPUT_NUM8 = 8;
constexpr int INPUT_NUM9 = 9;
constexpr int INPUT_NUM32 = 32;

// Texts.

template <typename... Args>
std::string ConcatString(const Args&... args) {
  std::ostringstream text;
  (text << ... << args);
  return text.str();
}

template <typename T>
std::string VectorToString(const std::vector<T>& values) {
  std::ostringstream text;
  for (size_t i = 0; i < values.size(); ++i) text << (i ? ", " : "") << values[i];
  return text.str();
}

template <typename T>
std::string FmtToStr(const T& value) {
  return ConcatString(value);
}

// Returns the name of a format without "FORMAT_".
MSOPS_AICPU_ONCE inline std::string FormatToSerialString(Format format) {
  static const char* const kNames[] = {
      "NCHW",
      "NHWC",
      "ND",
      "NC1HWC0",
      "FRACTAL_Z",
      "NC1C0HWPAD",
      "NHWC1C0",
      "FSR_NCHW",
      "FRACTAL_DECONV",
      "C1HWNC0",
      "FRACTAL_DECONV_TRANSPOSE",
      "FRACTAL_DECONV_SP_STRIDE_TRANS",
      "NC1HWC0_C04",
      "FRACTAL_Z_C04",
      "CHWN",
      "FRACTAL_DECONV_SP_STRIDE8_TRANS",
      "HWCN",
      "NC1KHKWHWC0",
      "BN_WEIGHT",
      "FILTER_HWCK",
      "HASHTABLE_LOOKUP_LOOKUPS",
      "HASHTABLE_LOOKUP_KEYS",
      "HASHTABLE_LOOKUP_VALUE",
      "HASHTABLE_LOOKUP_OUTPUT",
      "HASHTABLE_LOOKUP_HITS",
      "C1HWNCoC0",
      "MD",
      "NDHWC",
      "FRACTAL_ZZ",
      "FRACTAL_NZ",
      "NCDHW",
      "DHWCN",
      "NDC1HWC0",
      "FRACTAL_Z_3D",
      "CN",
      "NC",
      "DHWNC",
      "FRACTAL_Z_3D_TRANSPOSE",
      "FRACTAL_ZN_LSTM",
      "FRACTAL_Z_G",
      "RESERVED",
      "ALL",
      "NULL",
  };
  const auto index = static_cast<size_t>(format);
  return index < std::size(kNames) ? kNames[index] : "RESERVED";
}

MSOPS_AICPU_ONCE inline std::string FormatToSerialString(CpuKernelContext&, Format format) {
  return FormatToSerialString(format);
}

// A format's number has the format in its lowest byte, and what it is split into above.
inline int32_t GetPrimaryFormat(int32_t format) { return format & 0xff; }
inline int32_t GetSubFormat(int32_t format) { return (format & 0xffff00) >> 8; }
inline bool HasSubFormat(int32_t format) { return GetSubFormat(format) != 0; }

struct DataTypeName {
  const char* name;
  DataType type;
};

constexpr DataTypeName kDataTypeNames[] = {
    {"DT_FLOAT", DT_FLOAT},
    {"DT_FLOAT16", DT_FLOAT16},
    {"DT_BFLOAT16", DT_BFLOAT16},
    {"DT_INT8", DT_INT8},
    {"DT_INT16", DT_INT16},
    {"DT_INT32", DT_INT32},
    {"DT_INT64", DT_INT64},
    {"DT_UINT8", DT_UINT8},
    {"DT_UINT16", DT_UINT16},
    {"DT_UINT32", DT_UINT32},
    {"DT_UINT64", DT_UINT64},
    {"DT_DOUBLE", DT_DOUBLE},
    {"DT_BOOL", DT_BOOL},
    {"DT_STRING", DT_STRING},
    {"DT_DUAL_SUB_INT8", DT_DUAL_SUB_INT8},
    {"DT_DUAL_SUB_UINT8", DT_DUAL_SUB_UINT8},
    {"DT_COMPLEX64", DT_COMPLEX64},
    {"DT_COMPLEX128", DT_COMPLEX128},
    {"DT_QINT8", DT_QINT8},
    {"DT_QINT16", DT_QINT16},
    {"DT_QINT32", DT_QINT32},
    {"DT_QUINT8", DT_QUINT8},
    {"DT_QUINT16", DT_QUINT16},
    {"DT_RESOURCE", DT_RESOURCE},
    {"DT_STRING_REF", DT_STRING_REF},
    {"DT_DUAL", DT_DUAL},
    {"DT_UNDEFINED", DT_UNDEFINED},
};

// Returns the dtype of a name such as "DT_FLOAT", else DT_UNDEFINED.
MSOPS_AICPU_ONCE inline DataType DType(std::string name) {
  for (const DataTypeName& known : kDataTypeNames) {
    if (name == known.name) return known.type;
  }
  return DT_UNDEFINED;
}

MSOPS_AICPU_ONCE inline std::string DTypeStr(DataType dtype) {
  for (const DataTypeName& known : kDataTypeNames) {
    if (known.type == dtype) return known.name;
  }
  return "DT_UNDEFINED";
}

// Returns the name of an op without the "Cust" it may be registered with.
MSOPS_AICPU_ONCE inline std::string GetOpName(std::string name) {
  constexpr char kPrefix[] = "Cust";
  constexpr size_t kLength = sizeof kPrefix - 1;
  return name.compare(0, kLength, kPrefix) == 0 ? name.substr(kLength) : name;
}

MSOPS_AICPU_ONCE inline std::string GetOpName(const CpuKernelContext& ctx) {
  return GetOpName(ctx.GetOpType());
}

// Numbers.

// Return false where the result does not fit.
template <typename T>
bool MulWithoutOverflow(T x, T y, T& product) {
  return !__builtin_mul_overflow(x, y, &product);
}

template <typename T>
bool AddWithoutOverflow(T x, T y, T& sum) {
  return !__builtin_add_overflow(x, y, &sum);
}

// The form with a context says why, and is for numbers of elements.
inline bool MulWithoutOverflow(CpuKernelContext& ctx, int64_t x, int64_t y, int64_t& product) {
  if (x >= 0 && y >= 0 && MulWithoutOverflow(x, y, product)) return true;
  CUST_KERNEL_LOG_ERROR(ctx, "%lld times %lld is no number of elements.", static_cast<long long>(x),
                        static_cast<long long>(y));
  return false;
}

// Returns a number as another integer type; 0, with an error logged, if it does not fit.
template <typename Target, typename Source>
Target IntegerCast(CpuKernelContext& ctx, Source value) {
  static_assert(std::is_integral_v<Target> && std::is_integral_v<Source>);
  Target cast = 0;
  if (!__builtin_add_overflow(value, Source{0}, &cast)) return cast;
  CUST_KERNEL_LOG_ERROR(ctx, "%s does not fit into an integer of %zu bytes.",
                        std::to_string(value).c_str(), sizeof(Target));
  return 0;
}

// Returns whether two floats are equal up to rounding: 1e-9 for doubles, 1e-5 for others, of the
// greater of the two or of one.
template <typename T, typename S>
bool FloatEqual(T lhs, S rhs) {
  constexpr bool kIsDouble = std::is_same_v<T, double> || std::is_same_v<S, double>;
  using Wide = std::conditional_t<kIsDouble, double, float>;
  const Wide a = static_cast<Wide>(lhs), b = static_cast<Wide>(rhs);
  const Wide scale = std::fmax(Wide{1}, std::fmax(std::fabs(a), std::fabs(b)));
  return std::fabs(a - b) <= scale * static_cast<Wide>(kIsDouble ? 1e-9 : 1e-5);
}

// Returns the lowest multiple of `base` that is not less than `x`.
template <typename T>
T CeilMultiple(T x, T base) {
  return base == 0 ? 0 : (x + base - 1) / base * base;
}

inline size_t IntToSize(int value) { return static_cast<size_t>(value); }
inline size_t LongToSize(int64_t value) { return static_cast<size_t>(value); }
inline int SizeToInt(size_t value) { return static_cast<int>(value); }
inline int64_t SizeToLong(size_t value) { return static_cast<int64_t>(value); }
inline int LongToInt(int64_t value) { return static_cast<int>(value); }
inline int64_t IntToLong(int value) { return value; }
// Those with a context log what does not fit, and return the nearest number that does.
inline size_t LongToSize(CpuKernelContext& ctx, int64_t value) {
  if (value >= 0) return static_cast<size_t>(value);
  CUST_KERNEL_LOG_ERROR(ctx, "%lld is no size.", static_cast<long long>(value));
  return 0;
}
inline size_t IntToSize(CpuKernelContext& ctx, int value) { return LongToSize(ctx, value); }
inline int SizeToInt(CpuKernelContext& ctx, size_t value) {
  if (value <= static_cast<size_t>(INT_MAX)) return static_cast<int>(value);
  CUST_KERNEL_LOG_ERROR(ctx, "%zu does not fit into an int.", value);
  return INT_MAX;
}
inline int32_t LongToInt(CpuKernelContext& ctx, int64_t value) {
  const int64_t nearest = std::clamp<int64_t>(value, INT_MIN, INT_MAX);
  if (nearest != value) {
    CUST_KERNEL_LOG_ERROR(ctx, "%lld does not fit into an int.", static_cast<long long>(value));
  }
  return static_cast<int32_t>(nearest);
}
inline uint32_t IntToUint(int value) { return static_cast<uint32_t>(value); }
inline int UintToInt(uint32_t value) { return static_cast<int>(value); }
inline size_t UlongToSize(uint64_t value) { return static_cast<size_t>(value); }
inline uint64_t SizeToUlong(size_t value) { return static_cast<uint64_t>(value); }
inline uint64_t LongToUlong(int64_t value) { return static_cast<uint64_t>(value); }
inline int64_t UlongToLong(uint64_t value) { return static_cast<int64_t>(value); }
inline size_t FloatToSize(float value) { return static_cast<size_t>(value); }
inline int FloatToInt(float value) { return static_cast<int>(value); }
inline float IntToFloat(int value) { return static_cast<float>(value); }
inline float SizeToFloat(size_t value) { return static_cast<float>(value); }
inline float LongToFloat(int64_t value) { return static_cast<float>(value); }
inline double LongToDouble(int64_t value) { return static_cast<double>(value); }
inline float DoubleToFloat(double value) { return static_cast<float>(value); }

inline bool AddrAlignedCheck(const void* address, uint64_t alignment = kEigenAlignmentBytes) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

// Shapes.

inline bool IsScalar(const std::vector<int64_t>& shape) { return shape.empty(); }
inline bool IsVector(const std::vector<int64_t>& shape) { return shape.size() == 1; }
inline bool IsMatrix(const std::vector<int64_t>& shape) { return shape.size() == 2; }
inline bool IsVectorOrHigher(const std::vector<int64_t>& shape) { return !shape.empty(); }
inline bool IsSquareMatrix(const std::vector<int64_t>& shape) {
  return shape.size() == 2 && shape[0] == shape[1];
}

inline bool ShapeVectorIsSame(const std::vector<int64_t>& shape,
                              const std::vector<int64_t>& other) {
  return shape == other;
}

// A tensor is empty if it has no memory and an axis of size 0.
MSOPS_AICPU_ONCE inline bool IsEmptyTensor(Tensor* tensor) {
  if (tensor->GetData() != nullptr) return false;
  for (const int64_t dim : tensor->GetTensorShape()->GetDimSizes()) {
    if (dim == 0) return true;
  }
  return false;
}

// Checks of a call; each logs what it finds and returns KERNEL_STATUS_PARAM_INVALID for it.

// Checks that there are at least `inputs_num` inputs and exactly `outputs_num` outputs, all with
// memory unless they are empty. kDynamicInput and kDynamicOutput ask for one or more.
MSOPS_AICPU_ONCE inline uint32_t NormalCheck(CpuKernelContext& ctx, const uint32_t inputs_num,
                                             const uint32_t outputs_num) {
  if (inputs_num != kDynamicInput) {
    CUST_KERNEL_CHECK_FALSE(ctx, ctx.GetInputsSize() >= inputs_num, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] needs at least %u inputs, but has %u.", ctx.GetOpType().c_str(),
                            inputs_num, ctx.GetInputsSize());
  }
  if (outputs_num != kDynamicOutput) {
    CUST_KERNEL_CHECK_FALSE(ctx, ctx.GetOutputsSize() == outputs_num, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] needs %u outputs, but has %u.", ctx.GetOpType().c_str(),
                            outputs_num, ctx.GetOutputsSize());
  }
  const uint32_t inputs = inputs_num == kDynamicInput ? ctx.GetInputsSize() : inputs_num;
  for (uint32_t i = 0; i < inputs; ++i) {
    Tensor* const input = ctx.Input(i);
    CUST_KERNEL_CHECK_FALSE(ctx, input && (input->GetData() || IsEmptyTensor(input)),
                            KERNEL_STATUS_PARAM_INVALID, "[%s] input %u has no data.",
                            ctx.GetOpType().c_str(), i);
  }
  for (uint32_t i = 0; i < ctx.GetOutputsSize(); ++i) {
    Tensor* const output = ctx.Output(i);
    CUST_KERNEL_CHECK_FALSE(ctx, output && (output->GetData() || IsEmptyTensor(output)),
                            KERNEL_STATUS_PARAM_INVALID, "[%s] output %u has no data.",
                            ctx.GetOpType().c_str(), i);
  }
  return KERNEL_STATUS_OK;
}

// Checks also that the attributes are there.
MSOPS_AICPU_ONCE inline uint32_t NormalCheck(CpuKernelContext& ctx, const uint32_t inputs_num,
                                             const uint32_t outputs_num,
                                             const std::vector<std::string>& attr_names) {
  RETURN_IF_FAILURE(NormalCheck(ctx, inputs_num, outputs_num))
  for (const std::string& name : attr_names) {
    CUST_KERNEL_CHECK_NULLPTR(ctx, ctx.GetAttr(name), KERNEL_STATUS_PARAM_INVALID,
                              "[%s] attribute [%s] is missing.", ctx.GetOpType().c_str(),
                              name.c_str());
  }
  return KERNEL_STATUS_OK;
}

// Checks a function of two inputs of one dtype.
MSOPS_AICPU_ONCE inline uint32_t NormalMathCheck(CpuKernelContext& ctx) {
  RETURN_IF_FAILURE(NormalCheck(ctx, 2, 1))
  const DataType first = ctx.Input(0)->GetDataType();
  const DataType second = ctx.Input(1)->GetDataType();
  CUST_KERNEL_CHECK_FALSE(ctx, first == second, KERNEL_STATUS_PARAM_INVALID,
                          "[%s] needs inputs of one dtype, but has %s and %s.",
                          ctx.GetOpType().c_str(), DTypeStr(first).c_str(),
                          DTypeStr(second).c_str());
  return KERNEL_STATUS_OK;
}

MSOPS_AICPU_ONCE inline uint32_t CheckTensorTypeSame(CpuKernelContext& ctx,
                                                     const std::map<std::string, DataType>& types,
                                                     const DataType& check_type,
                                                     const std::string& prim_name) {
  for (const auto& [name, type] : types) {
    CUST_KERNEL_CHECK_FALSE(ctx, type == check_type, KERNEL_STATUS_PARAM_INVALID,
                            "For primitive[%s], the dtype of [%s] should be %s, but got %s.",
                            prim_name.c_str(), name.c_str(), DTypeStr(check_type).c_str(),
                            DTypeStr(type).c_str());
  }
  return KERNEL_STATUS_OK;
}

MSOPS_AICPU_ONCE inline uint32_t CheckTensorTypeSame(const std::map<std::string, DataType>& types,
                                                     const DataType& check_type,
                                                     const std::string& prim_name) {
  CpuKernelContext none(HOST);
  return CheckTensorTypeSame(none, types, check_type, prim_name);
}

inline bool IsComplexDataType(DataType dtype) {
  return dtype == DT_COMPLEX64 || dtype == DT_COMPLEX128;
}

// Checks that the dtypes are one and the same complex dtype.
MSOPS_AICPU_ONCE inline uint32_t CheckComplexTensorTypeSame(
    CpuKernelContext& ctx, const std::map<std::string, DataType>& types, const DataType& check_type,
    const std::string& prim_name) {
  CUST_KERNEL_CHECK_FALSE(ctx, IsComplexDataType(check_type), KERNEL_STATUS_PARAM_INVALID,
                          "For primitive[%s], the dtype should be complex, but got %s.",
                          prim_name.c_str(), DTypeStr(check_type).c_str());
  return CheckTensorTypeSame(ctx, types, check_type, prim_name);
}

MSOPS_AICPU_ONCE inline uint32_t CheckComplexTensorTypeSame(
    const std::map<std::string, DataType>& types, const DataType& check_type,
    const std::string& prim_name) {
  CpuKernelContext none(HOST);
  return CheckComplexTensorTypeSame(none, types, check_type, prim_name);
}

MSOPS_AICPU_ONCE inline uint32_t CheckTensorShapeSame(
    CpuKernelContext& ctx, const std::map<std::string, TensorShapePtr>& shapes,
    const std::vector<int64_t>& check_shape, const std::string& prim_name) {
  for (const auto& [name, shape] : shapes) {
    CUST_KERNEL_CHECK_FALSE(ctx, shape && shape->GetDimSizes() == check_shape,
                            KERNEL_STATUS_PARAM_INVALID,
                            "For primitive[%s], the shape of [%s] should be [%s], but got [%s].",
                            prim_name.c_str(), name.c_str(), VectorToString(check_shape).c_str(),
                            shape ? VectorToString(shape->GetDimSizes()).c_str() : "none");
  }
  return KERNEL_STATUS_OK;
}

MSOPS_AICPU_ONCE inline uint32_t CheckTensorShapeSame(
    const std::map<std::string, TensorShapePtr>& shapes, const std::vector<int64_t>& check_shape,
    const std::string& prim_name) {
  CpuKernelContext none(HOST);
  return CheckTensorShapeSame(none, shapes, check_shape, prim_name);
}

}  // namespace aicpu

#endif  // MSOPS_AICPU_UTILS_KERNEL_UTIL_H_
