// infer_info.h: mindspore::ops::InferInfo, as MindSpore names the header.
#ifndef OPS_INFER_INFO_INFER_INFO_H_
#define OPS_INFER_INFO_INFER_INFO_H_

#include "ms_extension/api.h"

#endif  // OPS_INFER_INFO_INFER_INFO_H_
