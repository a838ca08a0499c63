// interleave.h: makes threads take turns in the middle of kernels.
#ifndef MSOPS_INTERLEAVE_H_
#define MSOPS_INTERLEAVE_H_

namespace msops {

// Has a thread that receives the signal stop for 50 us where it is. Kernels that take less than a
// time slice hardly ever overlap on a busy machine; so stopped, they do on a single core. Throws
// std::runtime_error if the system refuses.
void NapOnSignal(int signal_number);

}  // namespace msops

#endif  // MSOPS_INTERLEAVE_H_
