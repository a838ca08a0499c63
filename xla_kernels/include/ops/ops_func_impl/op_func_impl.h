// op_func_impl.h: mindspore::ops::OpFuncImpl, as MindSpore names the header.
#ifndef OPS_OPS_FUNC_IMPL_OP_FUNC_IMPL_H_
#define OPS_OPS_FUNC_IMPL_OP_FUNC_IMPL_H_

#include "ms_extension/api.h"
#include "msops_extension/graph/dtype_sets.h"

#endif  // OPS_OPS_FUNC_IMPL_OP_FUNC_IMPL_H_
