// host_threads.h: threads of our own for Python functions that XLA calls on its threads.
//
// XLA has as many threads as there are cores. A function that waits for JAX on one of them keeps
// the work that it waits for from running. So it runs on a thread of ours, and XLA gets a future.
// A program over several devices waits for that future on a thread of XLA's all the same. If as
// many functions run as there are cores, one more may be the one that all of them wait for: it gets
// copies of its arrays, and fails if none of these functions computes or ends for a
// time. Knows neither Python nor XLA.
#ifndef MSOPS_HOST_THREADS_H_
#define MSOPS_HOST_THREADS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace msops {

// Memory of a call's arrays, inputs first.
struct HostArrays {
  std::vector<void*> addresses;
  std::vector<size_t> sizes_bytes;
  size_t input_count = 0;
};

// Returns what runs `call` with the addresses of `arrays`, or of copies of them, on a thread of its
// own, and `done` once with the text of the error, empty if there is none: when the call has ended,
// after too long without progress, or if there is no thread. It does not throw, nor may `done`.
// `who` begins the texts of errors that are not those of `call`.
std::function<void()> PrepareThread(std::string who, HostArrays arrays,
                                    std::function<void(void**)> call,
                                    std::function<void(const std::string&)> done);

// Runs `call` on the calling thread, whose program holds one of XLA's places for programs until it
// returns. Where functions hold all of them, none can call JAX: then the last one waits before, and
// std::runtime_error is thrown if no function computes or ends for a time. `who` begins its text.
void CallInPlace(const std::function<std::string()>& who, const std::function<void()>& call);

// Sets after how many seconds without progress a call of a function fails.
void SetPatience(double seconds);

}  // namespace msops

#endif  // MSOPS_HOST_THREADS_H_
