#include "interleave.h"

#include <signal.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace msops {
namespace {

constexpr long kNapNs = 50 * 1000;

// POSIX allows nanosleep in a handler; the kernel's errno is kept.
void Nap(int) {
  const int kept = errno;
  const timespec duration = {0, kNapNs};
  nanosleep(&duration, nullptr);
  errno = kept;
}

}  // namespace

void NapOnSignal(int signal_number) {
  struct sigaction action = {};
  action.sa_handler = Nap;
  action.sa_flags = SA_RESTART;
  if (sigaction(signal_number, &action, nullptr) != 0) {
    throw std::runtime_error(std::string("sigaction: ") + std::strerror(errno));
  }
}

}  // namespace msops
