// ms_extension/all.h: another name of ms_extension/api.h, as in MindSpore.
#ifndef MS_EXTENSION_ALL_H_
#define MS_EXTENSION_ALL_H_

#include "ms_extension/api.h"

#endif  // MS_EXTENSION_ALL_H_
