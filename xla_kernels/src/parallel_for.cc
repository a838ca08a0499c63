#include "parallel_for.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace msops {
namespace {

// A thread takes about so many blocks, so that none is left with a long one at the end.
constexpr int64_t kBlocksPerThread = 4;

thread_local ThreadPool* current_pool = nullptr;

// One loop. Helpers hold it, too: one may start long after the loop has ended.
//
// Each thread has a segment of its own and takes blocks of others when that is done. So in a loop
// that runs again over the same arrays, a thread finds much of its segment in its cache.
class Loop {
 public:
  Loop(int64_t begin, int64_t end, int64_t block, int64_t segments, LoopBody body, void* argument)
      : segments_(segments), block_(block), body_(body), argument_(argument) {
    const int64_t blocks = (end - begin - 1) / block + 1;
    const auto start = [&](int64_t i) {
      return i == segments ? end : begin + blocks * i / segments * block;
    };
    for (int64_t i = 0; i < segments; ++i) {
      segments_[i].next = start(i);
      segments_[i].end = start(i + 1);
    }
  }

  // Runs blocks until none is left, those of segment `own` first.
  void RunBlocks(size_t own) {
    for (size_t i = 0; i < segments_.size(); ++i) {
      Segment& segment = segments_[(own + i) % segments_.size()];
      while (!failed_.load(std::memory_order_relaxed)) {
        const int64_t first = segment.next.fetch_add(block_, std::memory_order_relaxed);
        if (first >= segment.end) break;
        RunBlock(first, std::min(first + block_, segment.end));
      }
    }
  }

  // What a helper does. `body_` and `argument_` are gone once the loop is closed.
  void Help(size_t own) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (is_closed_) return;
      ++helpers_;
    }
    // Loops inside a block run on the spot: the pool is busy with this one.
    const PoolScope scope(nullptr);
    RunBlocks(own);
    std::lock_guard<std::mutex> lock(mutex_);
    if (--helpers_ == 0) done_.notify_one();
  }

  // Waits for the helpers that have started, and returns the loop's code.
  int Close() {
    std::unique_lock<std::mutex> lock(mutex_);
    is_closed_ = true;
    done_.wait(lock, [this] { return helpers_ == 0; });
    if (exception_) std::rethrow_exception(exception_);
    return code_;
  }

 private:
  // Counters that threads write to lie in lines of their own.
  struct alignas(64) Segment {
    std::atomic<int64_t> next;
    int64_t end;
  };

  void RunBlock(int64_t first, int64_t last) {
    int code = 0;
    std::exception_ptr exception;
    try {
      code = body_(argument_, first, last);
    } catch (...) {
      exception = std::current_exception();
    }
    if (code == 0 && !exception) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (failed_.exchange(true)) return;
    code_ = code;
    exception_ = std::move(exception);
  }

  std::vector<Segment> segments_;
  const int64_t block_;
  const LoopBody body_;
  void* const argument_;

  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable done_;
  int helpers_ = 0;
  bool is_closed_ = false;
  int code_ = 0;
  std::exception_ptr exception_;
};

struct Helper {
  std::shared_ptr<Loop> loop;
  size_t own;
};

void HelpAndRelease(void* argument) {
  const std::unique_ptr<Helper> helper(static_cast<Helper*>(argument));
  helper->loop->Help(helper->own);
}

}  // namespace

PoolScope::PoolScope(ThreadPool* pool) : outer_(std::exchange(current_pool, pool)) {}

PoolScope::~PoolScope() { current_pool = outer_; }

int ParallelFor(int64_t begin, int64_t end, int64_t grain, LoopBody body, void* argument) {
  if (begin >= end) return 0;
  ThreadPool* const pool = current_pool;
  const int64_t threads = pool ? pool->num_threads() : 1;
  const int64_t count = end - begin;
  const int64_t share = count / (threads * kBlocksPerThread) + 1;
  const int64_t block = std::max({grain, share, int64_t{1}});
  const int64_t blocks = (count - 1) / block + 1;
  if (threads <= 1 || blocks <= 1) return body(argument, begin, end);

  const int64_t segments = std::min(threads, blocks);
  std::shared_ptr<Loop> loop;
  try {
    loop = std::make_shared<Loop>(begin, end, block, segments, body, argument);
    for (int64_t i = 1; i < segments; ++i) {
      auto helper = std::make_unique<Helper>(Helper{loop, static_cast<size_t>(i)});
      pool->Schedule(HelpAndRelease, helper.get());
      static_cast<void>(helper.release());
    }
  } catch (const std::bad_alloc&) {
    // This thread runs what no helper does. Those that there are must not outlive the loop.
  }
  if (!loop) return body(argument, begin, end);
  {
    const PoolScope scope(nullptr);
    loop->RunBlocks(0);
  }
  return loop->Close();
}

}  // namespace msops
