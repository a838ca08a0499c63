// Kernels that tests look at the API with; none needs Eigen.
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "cpu_kernel.h"
#include "cpu_kernel_utils.h"
#include "utils/kernel_util.h"

namespace {
const char* const kAttributes = "Attributes";
const char* const kCores = "Cores";
const char* const kCrop = "Crop";
const char* const kFail = "Fail";
const char* const kLog = "Log";
const char* const kReshape = "Reshape";
const char* const kThrow = "Throw";
const char* const kTensors = "Tensors";

template <typename T>
std::string Join(const std::vector<T>& values) {
  std::ostringstream text;
  for (const T& value : values) text << value << ";";
  return text.str();
}

std::string AsText(aicpu::AttrValue* attr, const std::string& type) {
  using aicpu::ConcatString;
  if (type == "int") return ConcatString(attr->GetInt());
  if (type == "float") return ConcatString(attr->GetFloat());
  if (type == "bool") return ConcatString(attr->GetBool());
  if (type == "str") return attr->GetString();
  if (type == "dtype") return aicpu::DTypeStr(attr->GetDataType());
  if (type == "shape") return Join(attr->GetTensorShape()->GetDimSizes());
  if (type == "listInt") return ConcatString(attr->ListIntSize(), ":", Join(attr->GetListInt()));
  if (type == "listFloat") {
    return ConcatString(attr->ListFloatSize(), ":", Join(attr->GetListFloat()));
  }
  if (type == "listBool") return ConcatString(attr->ListBoolSize(), ":", Join(attr->GetListBool()));
  if (type == "listStr") {
    return ConcatString(attr->ListStringSize(), ":", Join(attr->GetListString()));
  }
  if (type == "listListInt") {
    std::string text;
    for (const auto& row : attr->GetListListInt()) text += "[" + Join(row) + "]";
    return text;
  }
  throw std::runtime_error("no type " + type);
}
}  // namespace

namespace aicpu {

// Writes the text that attribute "value" makes when it is read as the type that attribute "as"
// names, a character an entry.
class AttributesCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    AttrValue* const value = ctx.GetAttr("value");
    const std::string text = value ? AsText(value, ctx.GetAttr("as")->GetString()) : "none";
    auto* out = static_cast<int32_t*>(ctx.Output(0)->GetData());
    for (int64_t i = 0; i < ctx.Output(0)->NumElements(); ++i) {
      out[i] = i < static_cast<int64_t>(text.size()) ? text[static_cast<size_t>(i)] : 0;
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_CPU_KERNEL(kAttributes, AttributesCpuKernel);

// Counts how often ParallelFor visits each entry; output 1 has GetCPUNum, the number of threads
// that took part, and what a loop inside a loop adds up to.
class CoresCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    auto* visits = static_cast<int32_t*>(ctx.Output(0)->GetData());
    const int64_t count = ctx.Output(0)->NumElements();
    std::fill_n(visits, count, 0);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    const uint32_t status =
        CpuKernelUtils::ParallelFor(ctx, count, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[i];
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          std::lock_guard<std::mutex> lock(mutex);
          threads.insert(std::this_thread::get_id());
        });
    std::atomic<int32_t> sum{0};
    CpuKernelUtils::ParallelFor(ctx, 10, 1, [&](int64_t begin, int64_t end) {
      CpuKernelUtils::ParallelFor(ctx, end - begin, 0, [&](int64_t first, int64_t last) {
        sum += static_cast<int32_t>(last - first);
      });
    });
    CpuKernelUtils::ParallelFor(ctx, 0, 1, [&](int64_t, int64_t) { sum += 100; });
    auto* facts = static_cast<int32_t*>(ctx.Output(1)->GetData());
    facts[0] = static_cast<int32_t>(CpuKernelUtils::GetCPUNum(ctx));
    facts[1] = static_cast<int32_t>(threads.size());
    facts[2] = sum;
    return status;
  }
};
REGISTER_CPU_KERNEL(kCores, CoresCpuKernel);

// Copies the corner of the shape "dims" to the output.
class CropCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    const std::vector<int64_t> dims = ctx.GetAttr("dims")->GetListInt();
    const std::vector<int64_t> room = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    const auto* x = static_cast<int16_t*>(ctx.Input(0)->GetData());
    auto* y = static_cast<int16_t*>(ctx.Output(0)->GetData());
    std::fill_n(y, ctx.Output(0)->NumElements(), int16_t{-1});
    ctx.Output(0)->GetTensorShape()->SetDimSizes(dims);
    for (int64_t i = 0; i < ctx.Output(0)->NumElements(); ++i) {
      int64_t rest = i, position = 0, stride = 1;
      for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis], stride *= room[axis]) {
        position += rest % dims[axis] * stride;
      }
      y[i] = x[position];
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_CPU_KERNEL(kCrop, CropCpuKernel);

// Returns the code "code" after two lines of errors, or one without.
class FailCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    const auto code = static_cast<uint32_t>(ctx.GetAttr("code")->GetInt());
    if (code != 5) {
      KERNEL_LOG_ERROR("the first line");
      CUST_KERNEL_LOG_ERROR(ctx, "the last line, 100%% of %d", 7);
    }
    return code;
  }
};
REGISTER_CPU_KERNEL(kFail, FailCpuKernel);

// Logs a line at each level, by macros of both generations, and one from another thread.
class LogCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    KERNEL_LOG_DEBUG("old debug %d", 1);
    KERNEL_LOG_INFO("old info");
    KERNEL_LOG_EVENT("old event");
    KERNEL_LOG_WARN("old warning");
    AICPU_LOGE("old error");
    CUST_KERNEL_LOG_DEBUG(ctx, "new debug");
    CUST_KERNEL_LOG_INFO(ctx, "new info %s", "\xff");
    CUST_AICPU_LOGW(ctx, "new warning");
    const std::thread::id main = std::this_thread::get_id();
    std::atomic<int> lines{0};
    CpuKernelUtils::ParallelFor(ctx, 64, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (std::this_thread::get_id() != main && lines.fetch_add(1) == 0) {
        KERNEL_LOG_WARN("from another thread");
      }
    });
    *static_cast<int32_t*>(ctx.Output(0)->GetData()) = lines;
    return KERNEL_STATUS_OK;
  }
};
REGISTER_CPU_KERNEL(kLog, LogCpuKernel);

// Gives its output the shape "dims" and writes nothing.
class ReshapeCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    ctx.Output(0)->GetTensorShape()->SetDimSizes(ctx.GetAttr("dims")->GetListInt());
    return KERNEL_STATUS_OK;
  }
};
REGISTER_CPU_KERNEL(kReshape, ReshapeCpuKernel);

struct Silent : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

// Throws in the way "how" names.
class ThrowCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    const std::string how = ctx.GetAttr("how")->GetString();
    if (how == "number") throw 7;
    if (how == "nothing") throw Silent();
    if (how == "loop") {
      return CpuKernelUtils::ParallelFor(
          ctx, 100, 1, [](int64_t, int64_t) { throw std::out_of_range("from a loop"); });
    }
    throw std::runtime_error("on purpose");
  }
};
REGISTER_CPU_KERNEL(kThrow, ThrowCpuKernel);

// Checks what tensors say of themselves; returns the number of the first thing that is wrong.
class TensorsCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    Tensor* const x = ctx.Input(0);
    const auto shape = x->GetTensorShape();
    const bool facts[] = {
        ctx.GetOpType() == "Tensors",
        ctx.GetInputsSize() == 2 && ctx.GetOutputsSize() == 1,
        ctx.Input(2) == nullptr && ctx.Output(1) == nullptr && ctx.GetAttr("none") == nullptr,
        shape->GetDims() == 2 && shape->GetDimSize(0) == 2 && shape->GetDimSize(1) == 3,
        shape->GetDimSize(2) == 0 && shape->GetDimSize(-1) == 0,
        shape->NumElements() == 6 && x->NumElements() == 6 && !shape->GetUnknownRank(),
        x->GetDataSize() == 12 && x->CalcDataSizeByShape() == 12,
        x->GetDataType() == DT_FLOAT16 && shape->GetFormat() == FORMAT_NCHW,
        AddrAlignedCheck(x->GetData(), 16) && AddrAlignedCheck(ctx.Output(0)->GetData(), 16),
        ctx.Input(1)->GetTensorShape()->GetDims() == 0 && ctx.Input(1)->NumElements() == 1,
        CpuKernelUtils::GetTensorName(x) == "x0",
        !IsEmptyTensor(x) && IsEmptyTensor(ctx.Output(0)) == (ctx.Output(0)->NumElements() == 0),
    };
    uint32_t number = 0;
    for (const bool fact : facts) {
      ++number;
      KERNEL_CHECK_FALSE(fact, number, "fact %u is wrong", number);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_CPU_KERNEL(kTensors, TensorsCpuKernel);

}  // namespace aicpu
