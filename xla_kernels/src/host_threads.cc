#include "host_threads.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "message.h"

namespace msops {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<double> default_patience_s{60};

// XLA's, on one CPU device.
constexpr size_t kPlaces = 32;

size_t CoreCount() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return static_cast<size_t>(CPU_COUNT(&cores));
}

// What functions on several threads have done so far. Its objects are never destroyed: threads may
// outlive the module's other objects.
class Progress {
 public:
  // Of the functions on our threads.
  static Progress& Get() {
    static auto* const progress = new Progress;
    return *progress;
  }

  // Adds the calling thread; returns how many run now.
  size_t Enter(clockid_t clock) {
    const std::lock_guard<std::mutex> lock(mutex_);
    clocks_.insert(clock);
    return clocks_.size();
  }

  // Removes the calling thread, before it ends: its clock ends with it.
  void Leave(clockid_t clock) {
    const std::lock_guard<std::mutex> lock(mutex_);
    clocks_.erase(clock);
    ++ended_count_;
  }

  // Returns whether no function has computed or ended since `earlier`, which it updates.
  bool IsSame(std::pair<size_t, double>* earlier) {
    // A thread that waits wakes up now and then.
    constexpr double kNothing_s = 0.005;
    const std::lock_guard<std::mutex> lock(mutex_);
    double used_s = 0;
    for (const clockid_t clock : clocks_) {
      timespec time{};
      if (clock_gettime(clock, &time) == 0) used_s += time.tv_sec + 1e-9 * time.tv_nsec;
    }
    const bool is_same = earlier->first == ended_count_ && used_s - earlier->second < kNothing_s;
    if (!is_same) *earlier = {ended_count_, used_s};
    return is_same;
  }

  // Returns for how many seconds nothing may happen. Once a call has failed in this way, the
  // next ones wait for a shorter time.
  double patience_s() {
    constexpr double kShare = 0.05;
    const std::lock_guard<std::mutex> lock(mutex_);
    return abandoned_at_ == ended_count_ ? kShare * default_patience_s : default_patience_s.load();
  }

  void SetAbandoned() {
    const std::lock_guard<std::mutex> lock(mutex_);
    abandoned_at_ = ended_count_;
  }

 private:
  std::mutex mutex_;
  std::multiset<clockid_t> clocks_;
  size_t ended_count_ = 0;
  size_t abandoned_at_ = std::numeric_limits<size_t>::max();
};

// One call, shared by the thread that runs it and the one that watches it.
struct Run {
  std::string who;
  HostArrays arrays;
  std::function<void(void**)> call;
  std::function<void(const std::string&)> done;

  std::mutex mutex;
  std::condition_variable has_ended;
  bool is_over = false;  // ended, or its call failed

  // Returns whether this is the one that says how the call went. `last` runs before another may.
  template <typename Last>
  bool Finish(Last&& last) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (is_over) return false;
      is_over = true;
      last();
    }
    has_ended.notify_all();
    return true;
  }
};

// Returns the error of a call that got no thread or no memory.
std::string ExplainShortage(const Run& run, const std::string& needs, const std::exception& error) {
  try {
    return Explain(run.who, "its function needs " + needs + "; got " + TextOf(error), {},
                   "Run fewer functions at once, or leave more memory or threads.");
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  }
}

std::string ExplainWaiting(const Run& run, double patience_s) {
  try {
    std::ostringstream waited;
    waited << patience_s;
    return Explain(
        run.who,
        "its function waits on one of XLA's threads, as functions do on all of them, and nothing "
        "happened for " +
            waited.str() + " s",
        {},
        "Have JAX compute in the calling thread, so that functions may wait for it: "
        "jax.config.update('jax_cpu_enable_async_dispatch', False), before the first "
        "computation.");
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  }
}

std::string ExplainPlaces(const std::string& who, double patience_s) {
  std::ostringstream problem;
  problem << "its program has the last of XLA's " << kPlaces
          << " places for programs, as functions "
          << "hold the others, and none of these computed or ended for " << patience_s << " s";
  return Explain(who, problem.str(), {},
                 "Call programs whose functions wait for JAX from fewer threads at once.");
}

// The functions that run on the threads that called their programs: each holds a place of XLA's.
class Places {
 public:
  static Places& Get() {
    static auto* const places = new Places;
    return *places;
  }

  // One function, on the calling thread. `who` gives its name for the error.
  template <typename Who>
  class Held {
   public:
    explicit Held(const Who& who) : places_(Get()) {
      const size_t count = ++places_.count_;
      if (count < kMany) return;
      try {
        pthread_getcpuclockid(pthread_self(), &clock_);
        // Before: this thread would be one that computes.
        if (count >= kPlaces) places_.AwaitEnd(who);
        places_.progress_.Enter(clock_);
        is_watched_ = true;
      } catch (...) {
        Leave();
        throw;
      }
    }
    ~Held() { Leave(); }

   private:
    void Leave() {
      --places_.count_;
      if (is_watched_) places_.progress_.Leave(clock_);
    }

    Places& places_;
    bool is_watched_ = false;
    clockid_t clock_;
  };

 private:
  // From this number on it is worth a lock to know what functions do.
  static constexpr size_t kMany = kPlaces / 2;

  template <typename Who>
  void AwaitEnd(const Who& who) {
    constexpr std::chrono::milliseconds kPause(20);
    std::pair<size_t, double> seen{0, 0};
    Clock::time_point since = Clock::now();
    while (count_ >= kPlaces) {
      std::this_thread::sleep_for(kPause);
      if (!progress_.IsSame(&seen)) since = Clock::now();
      const std::chrono::duration<double> idle = Clock::now() - since;
      const double patience_s = progress_.patience_s();
      if (idle.count() < patience_s) continue;
      progress_.SetAbandoned();
      throw std::runtime_error(ExplainPlaces(who(), patience_s));
    }
  }

  std::atomic<size_t> count_{0};
  Progress progress_;
};

std::string Call(const Run& run, void** addresses) {
  try {
    run.call(addresses);
    return {};
  } catch (const std::exception& error) {
    return ExplainFailure(run.who, error);
  }
}

// Runs on copies: `call` may go on after XLA has its memory back.
void CallOnCopies(Run& run) {
  const size_t count = run.arrays.addresses.size();
  auto copies = std::make_unique<std::vector<std::unique_ptr<char[]>>>();
  std::vector<void*> addresses;
  for (size_t i = 0; i < count; ++i) {
    const size_t size_bytes = run.arrays.sizes_bytes[i];
    copies->emplace_back(new char[size_bytes + 1]);
    if (size_bytes) std::memcpy(copies->back().get(), run.arrays.addresses[i], size_bytes);
    addresses.push_back(copies->back().get());
  }
  const std::string problem = Call(run, addresses.data());
  const bool is_first = run.Finish([&] {
    for (size_t i = run.arrays.input_count; problem.empty() && i < count; ++i) {
      const size_t size_bytes = run.arrays.sizes_bytes[i];
      if (size_bytes) std::memcpy(run.arrays.addresses[i], addresses[i], size_bytes);
    }
  });
  if (is_first) {
    run.done(problem);
  } else if (!problem.empty()) {
    copies.release();  // a function whose call failed first may have failed because it kept its
                       // arrays
  }
}

// Abandons a call when no function has made progress for a time.
void Watch(const std::shared_ptr<Run>& run) {
  constexpr std::chrono::milliseconds kPause(100);
  std::pair<size_t, double> seen{0, 0};
  Clock::time_point since = Clock::now();
  std::unique_lock<std::mutex> lock(run->mutex);
  while (!run->has_ended.wait_for(lock, kPause, [&] { return run->is_over; })) {
    if (!Progress::Get().IsSame(&seen)) since = Clock::now();
    const std::chrono::duration<double> idle = Clock::now() - since;
    const double patience_s = Progress::Get().patience_s();
    if (idle.count() < patience_s) continue;
    lock.unlock();
    if (run->Finish([] {})) {
      Progress::Get().SetAbandoned();
      run->done(ExplainWaiting(*run, patience_s));
    }
    return;
  }
}

}  // namespace

void CallInPlace(const std::function<std::string()>& who, const std::function<void()>& call) {
  const Places::Held held(who);
  call();
}

std::function<void()> PrepareThread(std::string who, HostArrays arrays,
                                    std::function<void(void**)> call,
                                    std::function<void(const std::string&)> done) {
  static const size_t core_count = CoreCount();
  auto run = std::make_shared<Run>();
  run->who = std::move(who);
  run->arrays = std::move(arrays);
  run->call = std::move(call);
  run->done = std::move(done);
  const auto work = [run] {
    clockid_t clock;
    pthread_getcpuclockid(pthread_self(), &clock);
    try {
      if (Progress::Get().Enter(clock) < core_count) {
        const std::string problem = Call(*run, run->arrays.addresses.data());
        if (run->Finish([] {})) run->done(problem);
      } else {
        std::thread(Watch, run).detach();
        CallOnCopies(*run);
      }
    } catch (const std::exception& error) {
      // Nothing above this function catches it.
      if (run->Finish([] {})) {
        run->done(ExplainShortage(*run, "a thread and a copy of its arrays", error));
      }
    }
    Progress::Get().Leave(clock);
  };
  return [run, work] {
    try {
      std::thread(work).detach();
    } catch (const std::exception& error) {
      run->done(ExplainShortage(*run, "a thread", error));
    }
  };
}

void SetPatience(double seconds) { default_patience_s = seconds; }

}  // namespace msops
