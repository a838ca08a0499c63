// AotExtra for libraries built with _GLIBCXX_USE_CXX11_ABI=1, the default of g++.
#undef _GLIBCXX_USE_CXX11_ABI
#define _GLIBCXX_USE_CXX11_ABI 1
#define MSOPS_ABI_NAMESPACE new_string
#define MSOPS_MAKE_EXTRA MakeNewStringExtra
#include "extra_host.inc"
