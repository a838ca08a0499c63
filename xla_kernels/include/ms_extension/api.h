// ms_extension/api.h: MindSpore's extension API, for modules that CustomOpBuilder builds.
#ifndef MS_EXTENSION_API_H_
#define MS_EXTENSION_API_H_

#include "msops_extension/accessor.h"
#include "msops_extension/function.h"
#include "msops_extension/launch.h"
#include "msops_extension/log.h"
#include "msops_extension/ms_tensor.h"
#include "msops_extension/runner.h"
#include "msops_extension/tensor.h"
#include "msops_extension/value.h"

#endif  // MS_EXTENSION_API_H_
