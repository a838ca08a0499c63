#include "parallel_for.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace msops {
namespace {

// How long a thread that has nothing to do looks for work before it sleeps or leaves. Waking it
// takes about as long.
constexpr std::chrono::microseconds kPatience{50};

// A thread takes about so many blocks, so that none is left with a long one at the end.
constexpr int64_t kBlocksPerThread = 4;

thread_local PoolScope* current_scope = nullptr;

// Waits until something holds, for a while. Returns whether it does.
template <typename Condition>
bool WaitBriefly(const Condition& holds) {
  const auto last = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int i = 0; i < 32; ++i) {
      if (holds()) return true;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < last);
  return holds();
}

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
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_closed_ = true;
    }
    const auto is_done = [this] { return helpers_ == 0; };
    WaitBriefly(is_done);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, is_done);
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
  std::atomic<int> helpers_{0};
  bool is_closed_ = false;
  int code_ = 0;
  std::exception_ptr exception_;
};

}  // namespace

// The helpers of one scope. They hold it, too: one may start long after the scope has ended.
class Team : public std::enable_shared_from_this<Team> {
 public:
  explicit Team(ThreadPool* pool) : pool_(pool), num_threads_(pool->num_threads()) {}

  int64_t num_threads() const { return num_threads_; }

  // Has up to so many helpers take part in a loop: those that are still there, and new ones.
  void Share(std::shared_ptr<Loop> loop, int64_t helpers) {
    int64_t first, last;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      loop_ = std::move(loop);
      ++loops_;
      first = present_;
      last = present_ = std::max(first, helpers);
    }
    for (int64_t i = first; i < last; ++i) {
      std::unique_ptr<Helper> helper;
      try {
        helper = std::make_unique<Helper>(Helper{shared_from_this(), static_cast<size_t>(i + 1)});
        pool_->Schedule(&Team::Serve, helper.get());
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex_);
        present_ -= last - i;
        throw;
      }
      static_cast<void>(helper.release());
    }
  }

  // Sends the helpers away.
  void Dismiss() {
    std::lock_guard<std::mutex> lock(mutex_);
    loop_ = nullptr;
    loops_ = kDismissed;
  }

 private:
  struct Helper {
    std::shared_ptr<Team> team;
    size_t own;
  };

  static constexpr uint64_t kDismissed = ~uint64_t{0};

  static void Serve(void* argument) {
    const std::unique_ptr<Helper> helper(static_cast<Helper*>(argument));
    helper->team->HelpWithLoops(helper->own);
  }

  // Takes part in one loop after the other, until there is none for a while. Whether this helper
  // is there is decided under the lock, so a new loop has this one or another.
  void HelpWithLoops(size_t own) {
    uint64_t seen = 0;
    while (true) {
      WaitBriefly([&] { return loops_.load(std::memory_order_relaxed) != seen; });
      std::shared_ptr<Loop> loop;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (loops_ == seen || loops_ == kDismissed) {
          --present_;
          return;
        }
        seen = loops_;
        loop = loop_;
      }
      loop->Help(own);
    }
  }

  // Of the scope: helpers that are not dismissed have no use for it.
  ThreadPool* const pool_;
  const int64_t num_threads_;
  std::atomic<uint64_t> loops_{0};
  std::mutex mutex_;
  std::shared_ptr<Loop> loop_;
  int64_t present_ = 0;
};

PoolScope::PoolScope(ThreadPool* pool) : pool_(pool), outer_(std::exchange(current_scope, this)) {}

PoolScope::~PoolScope() {
  current_scope = outer_;
  if (team_) team_->Dismiss();
}

Team* PoolScope::team() {
  if (!team_ && pool_ && pool_->num_threads() > 1) team_ = std::make_shared<Team>(pool_);
  return team_.get();
}

int ParallelFor(int64_t begin, int64_t end, int64_t grain, LoopBody body, void* argument) {
  if (begin >= end) return 0;
  const int64_t count = end - begin;
  if (count <= grain || !current_scope) return body(argument, begin, end);
  std::shared_ptr<Loop> loop;
  try {
    Team* const team = current_scope->team();
    const int64_t threads = team ? team->num_threads() : 1;
    grain = std::max(grain, int64_t{1});
    int64_t blocks = std::min(threads * kBlocksPerThread, count / grain);
    if (blocks < threads) {
      blocks = std::min(threads, (count - 1) / grain + 1);
    } else {
      // About the same number for each: a thread has the same part of all loops over an array.
      blocks -= blocks % threads;
    }
    if (threads > 1 && blocks > 1) {
      const int64_t block = std::max(grain, (count - 1) / blocks + 1);
      const int64_t segments = std::min(threads, blocks);
      loop = std::make_shared<Loop>(begin, end, block, segments, body, argument);
      team->Share(loop, segments - 1);
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
