#include "frame_check.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "message.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

constexpr std::pair<const char*, ffi::DataType> kDtypes[] = {
    {"bool", ffi::DataType::PRED},
    {"int8", ffi::DataType::S8},
    {"int16", ffi::DataType::S16},
    {"int32", ffi::DataType::S32},
    {"int64", ffi::DataType::S64},
    {"uint8", ffi::DataType::U8},
    {"uint16", ffi::DataType::U16},
    {"uint32", ffi::DataType::U32},
    {"uint64", ffi::DataType::U64},
    {"float16", ffi::DataType::F16},
    {"bfloat16", ffi::DataType::BF16},
    {"float32", ffi::DataType::F32},
    {"float64", ffi::DataType::F64},
    {"complex64", ffi::DataType::C64},
    {"complex128", ffi::DataType::C128},
    {"float8_e3m4", ffi::DataType::F8E3M4},
    {"float8_e4m3", ffi::DataType::F8E4M3},
    {"float8_e4m3b11fnuz", ffi::DataType::F8E4M3B11FNUZ},
    {"float8_e4m3fn", ffi::DataType::F8E4M3FN},
    {"float8_e4m3fnuz", ffi::DataType::F8E4M3FNUZ},
    {"float8_e5m2", ffi::DataType::F8E5M2},
    {"float8_e5m2fnuz", ffi::DataType::F8E5M2FNUZ},
    {"float8_e8m0fnu", ffi::DataType::F8E8M0FNU},
    // XLA packs these, and programs unpack them around the call: see sub_byte.py.
    {"float4_e2m1fn", ffi::DataType::U8},
    {"int4", ffi::DataType::S8},
    {"uint4", ffi::DataType::U8},
    {"int2", ffi::DataType::S8},
    {"uint2", ffi::DataType::U8},
};

template <typename Shape>
std::string Describe(ffi::DataType dtype, const Shape& shape) {
  std::ostringstream text;
  text << dtype << "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    text << (i ? ", " : "");
    if (shape[i] == FrameCheck::kOpen) {
      text << "any";
    } else {
      text << shape[i];
    }
  }
  text << ")";
  return text.str();
}

constexpr char kRemedy[] =
    "The program was changed after it was lowered, by partitioning for example. Wrap the call in "
    "jax.shard_map, or lower it again for these arrays.";

}  // namespace

ffi::DataType FindDtype(const std::string& name, const std::string& who) {
  for (const auto& [known, dtype] : kDtypes) {
    if (name == known) return dtype;
  }
  throw std::runtime_error(Explain(who, "'" + name + "' is no dtype that kernels are given", {},
                                   "Cast to a dtype of msops.common.dtype."));
}

FrameCheck::FrameCheck(std::string who, const std::vector<std::vector<int64_t>>& shapes,
                       const std::vector<std::string>& dtypes)
    : who_(std::move(who)) {
  if (shapes.size() != dtypes.size()) {
    throw std::runtime_error(Explain(who_,
                                     "the program lists " + std::to_string(shapes.size()) +
                                         " shapes and " + std::to_string(dtypes.size()) +
                                         " dtypes, expected equal counts",
                                     {}, "Lower the program again with this version of msops."));
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    arrays_.push_back({FindDtype(dtypes[i], who_), shapes[i]});
  }
}

size_t ArrayCount(const ffi::RemainingArgs& inputs) {
  const size_t count = inputs.size();
  const bool has_token =
      count && inputs.get<ffi::AnyBuffer>(count - 1)->element_type() == ffi::DataType::TOKEN;
  return count - has_token;
}

size_t ArrayCount(const ffi::RemainingRets& outputs) {
  const size_t count = outputs.size();
  const bool has_token =
      count && (*outputs.get<ffi::AnyBuffer>(count - 1))->element_type() == ffi::DataType::TOKEN;
  return count - has_token;
}

void FrameCheck::CheckCount(const ffi::RemainingArgs& inputs,
                            const ffi::RemainingRets& outputs) const {
  const size_t count = ArrayCount(inputs) + ArrayCount(outputs);
  if (XLA_FFI_PREDICT_FALSE(count != arrays_.size())) {
    throw std::runtime_error(Explain(who_,
                                     "got " + std::to_string(count) +
                                         " inputs and outputs, expected " +
                                         std::to_string(arrays_.size()),
                                     {}, kRemedy));
  }
}

void FrameCheck::Refuse(const ffi::AnyBuffer& buffer, size_t position) const {
  const Array& expected = arrays_[position];
  throw std::runtime_error(Explain(who_,
                                   "array " + std::to_string(position) + " is " +
                                       Describe(buffer.element_type(), buffer.dimensions()) +
                                       ", expected " + Describe(expected.dtype, expected.shape),
                                   {}, kRemedy));
}

void* FrameCheck::Take(const ffi::AnyBuffer& buffer, size_t position) const {
  const Array& expected = arrays_[position];
  const auto dims = buffer.dimensions();
  if (XLA_FFI_PREDICT_FALSE(
          buffer.element_type() != expected.dtype ||
          !std::equal(dims.begin(), dims.end(), expected.shape.begin(), expected.shape.end()))) {
    Refuse(buffer, position);
  }
  return buffer.untyped_data();
}

void FrameCheck::Fill(const ffi::RemainingArgs& inputs, const ffi::RemainingRets& outputs,
                      void** parameters) const {
  CheckCount(inputs, outputs);
  size_t position = 0;
  for (size_t i = 0; i < ArrayCount(inputs); ++i, ++position) {
    parameters[position] = Take(inputs.get<ffi::AnyBuffer>(i).value(), position);
  }
  for (size_t i = 0; i < ArrayCount(outputs); ++i, ++position) {
    parameters[position] = Take(*outputs.get<ffi::AnyBuffer>(i).value(), position);
  }
}

std::vector<std::vector<int64_t>> FrameCheck::Shapes(const ffi::RemainingArgs& inputs,
                                                     const ffi::RemainingRets& outputs) const {
  CheckCount(inputs, outputs);
  std::vector<std::vector<int64_t>> shapes;
  const auto add = [&](const ffi::AnyBuffer& buffer) {
    const Array& expected = arrays_[shapes.size()];
    const auto dims = buffer.dimensions();
    const auto agrees = [](int64_t size, int64_t described) {
      return described == kOpen || size == described;
    };
    if (buffer.element_type() != expected.dtype ||
        !std::equal(dims.begin(), dims.end(), expected.shape.begin(), expected.shape.end(),
                    agrees)) {
      Refuse(buffer, shapes.size());
    }
    shapes.emplace_back(dims.begin(), dims.end());
  };
  for (size_t i = 0; i < ArrayCount(inputs); ++i) add(inputs.get<ffi::AnyBuffer>(i).value());
  for (size_t i = 0; i < ArrayCount(outputs); ++i) add(*outputs.get<ffi::AnyBuffer>(i).value());
  return shapes;
}

}  // namespace msops
