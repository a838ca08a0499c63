// ms_extension.h: the name of ms_extension/api.h in MindSpore 2.6.
#ifndef MS_EXTENSION_H_
#define MS_EXTENSION_H_

#include "ms_extension/api.h"

#endif  // MS_EXTENSION_H_
