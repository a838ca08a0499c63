// standard.h: the standard headers that the others, pybind11 and Python bring along.
//
// They come first, since what follows them is compiled with less effort, and kernels use them too.
#ifndef MSOPS_EXTENSION_STANDARD_H_
#define MSOPS_EXTENSION_STANDARD_H_

#include <cxxabi.h>
#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cctype>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <forward_list>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <stack>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <valarray>
#include <variant>
#include <vector>
#include <version>

#endif  // MSOPS_EXTENSION_STANDARD_H_
