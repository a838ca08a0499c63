// ms_extension/api.h: MindSpore's extension API, for modules that CustomOpBuilder builds.
#ifndef MS_EXTENSION_API_H_
#define MS_EXTENSION_API_H_

// What kernels use in their loops comes before the pragma, and is compiled as the kernels are.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "msops_extension/accessor.h"

// The rest runs once a call. Less effort for it saves about a tenth of a build.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O1")
#endif

#include "msops_extension/function.h"
#include "msops_extension/launch.h"
#include "msops_extension/log.h"
#include "msops_extension/ms_tensor.h"
#include "msops_extension/runner.h"
#include "msops_extension/tensor.h"
#include "msops_extension/value.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#endif  // MS_EXTENSION_API_H_
