// fft_helper.h: another name of fft_helper.h.
#ifndef MSOPS_AICPU_FFT_HELPER_H_
#define MSOPS_AICPU_FFT_HELPER_H_

#include "utils/fft_helper.h"

#endif  // MSOPS_AICPU_FFT_HELPER_H_
