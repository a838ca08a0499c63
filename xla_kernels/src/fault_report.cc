#include "fault_report.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace msops {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// A kernel that overflows its stack leaves none for the handler.
constexpr size_t kStackBytes = 64 * 1024;
alignas(16) char handler_stack[kStackBytes];

int report_descriptor = -1;

#pragma pack(push, 1)
struct Record {
  int32_t signal;
  int32_t code;
  uint64_t address;
  int32_t access;
};
#pragma pack(pop)

// Bit 1 of the error code of a page fault means a write.
int32_t Access(const void* context) {
#if defined(__x86_64__)
  const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return (registers[REG_ERR] & 2) != 0;
#else
  static_cast<void>(context);
  return -1;
#endif
}

// Calls only what is safe in a signal handler.
void Report(int signal, siginfo_t* info, void* context) {
  const bool is_memory = signal == SIGSEGV || signal == SIGBUS;
  const Record record = {signal, info->si_code, reinterpret_cast<uint64_t>(info->si_addr),
                         is_memory ? Access(context) : -1};
  // A failed write cannot be reported to anyone.
  if (write(report_descriptor, &record, sizeof record) < 0) errno = 0;
  // SA_RESETHAND restored the default action: the signal comes again, and terminates the process.
  if (signal == SIGABRT || info->si_code <= 0) raise(signal);
}

void Require(bool succeeded, const char* what) {
  if (!succeeded) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

void ReportFaults(int file_descriptor) {
  report_descriptor = file_descriptor;
  stack_t stack = {};
  stack.ss_sp = handler_stack;
  stack.ss_size = kStackBytes;
  Require(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  struct sigaction action = {};
  action.sa_sigaction = Report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (int signal : kSignals) Require(sigaction(signal, &action, nullptr) == 0, "sigaction");
}

}  // namespace msops
