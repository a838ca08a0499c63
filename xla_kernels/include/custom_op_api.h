// custom_op_api.h: the name of ms_extension/api.h in MindSpore 2.10, without a folder.
#ifndef CUSTOM_OP_API_H_
#define CUSTOM_OP_API_H_

#include "ms_extension/api.h"

#endif  // CUSTOM_OP_API_H_
