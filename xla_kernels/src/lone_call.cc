#include "lone_call.h"

#include <algorithm>
#include <utility>

#include "frame_check.h"
#include "handler_api.h"

namespace msops {
namespace {

XLA_FFI_DataType DtypeOf(const std::string& name, const ForeignSpec& spec) {
  return static_cast<XLA_FFI_DataType>(FindDtype(name, spec.Who()));
}

std::vector<LoneAttribute> Sorted(std::vector<LoneAttribute> attributes) {
  std::sort(attributes.begin(), attributes.end(),
            [](const LoneAttribute& a, const LoneAttribute& b) { return a.name < b.name; });
  return attributes;
}

XLA_FFI_ByteSpan SpanOf(const std::string& text) { return {text.data(), text.size()}; }

// A handler has no reason to write to what it is given as attributes, and XLA's has no const.
void* Writable(const std::string& bytes) { return const_cast<char*>(bytes.data()); }

}  // namespace

LoneCall::LoneCall(ForeignSpec spec, std::vector<LoneAttribute> attributes)
    : handler_(std::move(spec)), attributes_(Sorted(std::move(attributes))) {
  for (const LoneAttribute& attribute : attributes_) AddAttribute(attribute);
  const ForeignSpec& own = handler_.spec();
  for (size_t i = 0; i < own.shapes.size(); ++i) {
    XLA_FFI_Buffer buffer{};
    buffer.struct_size = XLA_FFI_Buffer_STRUCT_SIZE;
    buffer.dtype = DtypeOf(own.dtypes[i], own);
    buffer.rank = static_cast<int64_t>(own.shapes[i].size());
    buffer.dims = const_cast<int64_t*>(own.shapes[i].data());
    buffers_.push_back(buffer);
  }
}

void LoneCall::AddAttribute(const LoneAttribute& attribute) {
  texts_.push_back(SpanOf(attribute.name));
  names_.push_back(&texts_.back());
  if (attribute.dtype.empty()) {
    texts_.push_back(SpanOf(attribute.bytes));
    types_.push_back(XLA_FFI_AttrType_STRING);
    values_.push_back(&texts_.back());
    return;
  }
  const XLA_FFI_DataType dtype = DtypeOf(attribute.dtype, spec());
  if (attribute.is_list) {
    const size_t width = xla::ffi::ByteWidth(static_cast<xla::ffi::DataType>(dtype));
    lists_.push_back({dtype, attribute.bytes.size() / width, Writable(attribute.bytes)});
    types_.push_back(XLA_FFI_AttrType_ARRAY);
    values_.push_back(&lists_.back());
  } else {
    scalars_.push_back({dtype, Writable(attribute.bytes)});
    types_.push_back(XLA_FFI_AttrType_SCALAR);
    values_.push_back(&scalars_.back());
  }
}

void LoneCall::Run(const std::vector<void*>& pointers) const {
  std::vector<XLA_FFI_Buffer> buffers = buffers_;
  std::vector<void*> arrays;
  for (size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].data = pointers[i];
    arrays.push_back(&buffers[i]);
  }
  const size_t inputs = spec().operand_count;
  std::vector<XLA_FFI_ArgType> arg_types(inputs, XLA_FFI_ArgType_BUFFER);
  std::vector<XLA_FFI_RetType> ret_types(arrays.size() - inputs, XLA_FFI_RetType_BUFFER);
  // XLA makes them for each call, too.
  auto types = types_;
  auto names = names_;
  auto values = values_;
  XLA_FFI_CallFrame frame{};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame.api = LoneHandlerApi();
  frame.stage = XLA_FFI_ExecutionStage_EXECUTE;
  frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, static_cast<int64_t>(inputs), arg_types.data(),
                arrays.data()};
  frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, static_cast<int64_t>(ret_types.size()),
                ret_types.data(), arrays.data() + inputs};
  frame.attrs = {XLA_FFI_Attrs_STRUCT_SIZE,
                 nullptr,
                 static_cast<int64_t>(types.size()),
                 types.data(),
                 names.data(),
                 values.data()};
  handler_.Run(&frame);
}

}  // namespace msops
