// fault_report.h: how a process that runs a foreign kernel says what killed it.
#ifndef MSOPS_FAULT_REPORT_H_
#define MSOPS_FAULT_REPORT_H_

namespace msops {

// Has the signals of a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) write one record into a
// file before they terminate the process as they would have: int32 signal, int32 code, uint64
// address, int32 access (0 read, 1 write, -1 not known), in native byte order and without padding.
//
// Meant for a process that does nothing else: the handlers stay. Throws std::runtime_error if the
// system refuses.
void ReportFaults(int file_descriptor);

}  // namespace msops

#endif  // MSOPS_FAULT_REPORT_H_
