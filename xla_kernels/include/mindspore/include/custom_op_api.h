// custom_op_api.h: the name of ms_extension/api.h in MindSpore 2.10.
#ifndef MINDSPORE_INCLUDE_CUSTOM_OP_API_H_
#define MINDSPORE_INCLUDE_CUSTOM_OP_API_H_

#include "ms_extension/api.h"

#endif  // MINDSPORE_INCLUDE_CUSTOM_OP_API_H_
