// ms_extension/api.h: MindSpore's extension API, for modules that CustomOpBuilder builds.
#ifndef MS_EXTENSION_API_H_
#define MS_EXTENSION_API_H_

// What kernels use in their loops comes before the pragmas, and is compiled as the kernels are.
#include "msops_extension/accessor.h"
#include "msops_extension/standard.h"

// The rest runs once a call. Of a small module's code nearly all is pybind11's, and optimising that
// took a third of the build; it is not worth a microsecond of a call.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O0")
#endif

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1")
#endif

#include "msops_extension/dispatch.h"
#include "msops_extension/function.h"
#include "msops_extension/graph/aclnn_kernel_mod.h"
#include "msops_extension/graph/names.h"
#include "msops_extension/launch.h"
#include "msops_extension/libraries.h"
#include "msops_extension/log.h"
#include "msops_extension/ms_tensor.h"
#include "msops_extension/pyboost.h"
#include "msops_extension/runner.h"
#include "msops_extension/silent_exceptions.h"
#include "msops_extension/tensor.h"
#include "msops_extension/value.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#endif  // MS_EXTENSION_API_H_
