// equal_util.h: the kernels Equal and NotEqual, which differ in one flag.
#ifndef MSOPS_AICPU_UTILS_EQUAL_UTIL_H_
#define MSOPS_AICPU_UTILS_EQUAL_UTIL_H_

#include "bcast.h"

namespace aicpu {

// Writes to each entry whether the entries of two inputs are equal, or with `flag` false differ.
template <typename T>
uint32_t EqualCalculate(CpuKernelContext& ctx, BCalcInfo& calc_info, bool flag) {
  const T* const x = static_cast<const T*>(calc_info.input_0->GetData());
  const T* const y = static_cast<const T*>(calc_info.input_1->GetData());
  bool* const out = static_cast<bool*>(calc_info.output->GetData());
  return CpuKernelUtils::ParallelFor(
      ctx, static_cast<int64_t>(calc_info.x_indexes.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          out[i] = (x[calc_info.x_indexes[i]] == y[calc_info.y_indexes[i]]) == flag;
        }
      });
}

// The same for the inputs of a call, which are broadcast.
template <typename T>
uint32_t EqualCompute(CpuKernelContext& ctx, bool flag) {
  BCalcInfo calc_info;
  calc_info.input_0 = ctx.Input(0);
  calc_info.input_1 = ctx.Input(1);
  calc_info.output = ctx.Output(0);
  const DataType x = calc_info.input_0->GetDataType(), y = calc_info.input_1->GetDataType();
  CUST_KERNEL_CHECK_FALSE(ctx, x == y, KERNEL_STATUS_PARAM_INVALID,
                          "[%s] needs inputs of one dtype, but has %s and %s.",
                          ctx.GetOpType().c_str(), DTypeStr(x).c_str(), DTypeStr(y).c_str())
  Bcast bcast(ctx);
  RETURN_IF_FAILURE(bcast.GenerateBcastInfo(calc_info))
  bcast.BCastIndexes(calc_info.x_indexes, calc_info.y_indexes);
  bcast.GetBcastVec(calc_info);
  return EqualCalculate<T>(ctx, calc_info, flag);
}

}  // namespace aicpu

#endif  // MSOPS_AICPU_UTILS_EQUAL_UTIL_H_
