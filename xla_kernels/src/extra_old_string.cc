// AotExtra for libraries built with _GLIBCXX_USE_CXX11_ABI=0, as MindSpore's own toolchain does.
#undef _GLIBCXX_USE_CXX11_ABI
#define _GLIBCXX_USE_CXX11_ABI 0
#define MSOPS_ABI_NAMESPACE old_string
#define MSOPS_MAKE_EXTRA MakeOldStringExtra
#include "extra_host.inc"
