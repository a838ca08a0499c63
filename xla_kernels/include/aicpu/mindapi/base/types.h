// types.h: enumerations whose numbers attributes carry.
#ifndef MSOPS_AICPU_MINDAPI_BASE_TYPES_H_
#define MSOPS_AICPU_MINDAPI_BASE_TYPES_H_

#include <cstdint>

namespace mindspore {

enum CoordinateTransformMode : int64_t {
  ASYMMETRIC = 0,
  ALIGN_CORNERS = 1,
  HALF_PIXEL = 2,
  CROP_AND_RESIZE = 3,
};

enum class ResizeMethod : int64_t { UNKNOWN = -1, LINEAR = 0, NEAREST = 1, CUBIC = 2, AREA = 3 };

enum class NearestMode : int64_t {
  NORMAL = 0,
  ROUND_HALF_DOWN = 1,
  ROUND_HALF_UP = 2,
  FLOOR = 3,
  CEIL = 4,
};

enum RoundMode : int64_t { FLOOR = 0, CEIL = 1 };

enum ReduceMode : int64_t {
  Reduce_Mean = 0,
  Reduce_Max = 1,
  Reduce_Min = 2,
  Reduce_Prod = 3,
  Reduce_Sum = 4,
  Reduce_Sum_Square = 5,
  Reduce_ASum = 6,
  Reduce_All = 7,
  Reduce_L2 = 8,
  Reduce_L1 = 9,
  Reduce_Log_Sum = 10,
  Reduce_Log_Sum_Exp = 11,
};

enum Reduction : int64_t { REDUCTION_SUM = 0, MEAN = 1, NONE = 2, UPDATE = 3 };

enum Reduce : int64_t { REDUCE_NONE = 0, ADD = 1, MULTIPLY = 2, REDUCE_UPDATE = 3 };

enum PadMode : int64_t { PAD = 0, SAME = 1, VALID = 2, FULL = 3 };

enum PaddingMode : int64_t { CONSTANT = 0, REFLECT = 1, SYMMETRIC = 2, MODE_RESERVED = 3 };

enum PoolMode : int64_t { MAX_POOLING = 0, MEAN_POOLING = 1 };

enum NormMode : int64_t { BACKWARD = 0, FORWARD = 1, ORTHO = 2 };

enum DriverName : int64_t { GELS = 0, GELSY = 1, GELSD = 2, GELSS = 3 };

using pyfloat = float;
using pyint = int32_t;

}  // namespace mindspore

#endif  // MSOPS_AICPU_MINDAPI_BASE_TYPES_H_
