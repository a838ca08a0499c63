// parallel_for.h: loops that a kernel splits over threads. Knows neither XLA nor MindSpore's ABI.
#ifndef MSOPS_PARALLEL_FOR_H_
#define MSOPS_PARALLEL_FOR_H_

#include <cstdint>
#include <memory>

namespace msops {

// The threads that run while a call does. All functions may be called from any thread.
class ThreadPool {
 public:
  virtual ~ThreadPool() = default;

  virtual int64_t num_threads() = 0;

  // Has a thread run `task(argument)` once, now or later; it may run it before it returns.
  virtual void Schedule(void (*task)(void*), void* argument) = 0;
};

class Team;

// Makes a pool that of the calling thread, for as long as the object lives. The threads that help
// with a loop stay for a moment, to help with the next one of the same scope.
class PoolScope {
 public:
  explicit PoolScope(ThreadPool* pool);
  ~PoolScope();
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

  // The pool's threads that help this one; null without a pool of more than one thread.
  Team* team();

 private:
  ThreadPool* const pool_;
  PoolScope* const outer_;
  std::shared_ptr<Team> team_;
};

// Runs iterations [begin, end) of a loop and returns 0, or the code other than 0 that ended it.
using LoopBody = int (*)(void* argument, int64_t begin, int64_t end);

// Runs `body` over blocks of at least `grain` of the iterations [begin, end), in any order and at
// the same time, on the pool of the calling thread. Returns the code of a block that failed, else
// 0; once one has failed, no further block starts. An exception of a block is thrown again here.
//
// The calling thread takes blocks itself until none is left, and then waits only for threads that
// are in the middle of one: a pool whose threads all wait here goes on. A call from inside a block,
// or from a thread without a pool, runs the loop on the spot.
int ParallelFor(int64_t begin, int64_t end, int64_t grain, LoopBody body, void* argument);

}  // namespace msops

#endif  // MSOPS_PARALLEL_FOR_H_
