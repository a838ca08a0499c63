// cuda_emulation.cc: runs generated CUDA kernels on the CPU, a thread at a time.
//
// Each thread of a block is a fiber that runs until the next barrier. The order in which fibers get
// their turn is the caller's choice, so what depends on it (a missing barrier, two threads that
// write one element) gives other results in another order. A barrier that only some of the threads
// reach ends the process.
#include "cuda_emulation.h"

#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

EmulatedDim threadIdx, blockIdx, blockDim, gridDim;

// Put there by the linker, where a kernel has shared memory.
extern "C" char __start_emulated_shared[] __attribute__((weak));
extern "C" char __stop_emulated_shared[] __attribute__((weak));

namespace {

constexpr size_t kStackBytes = 96 << 10;
constexpr int kRubbish = 0xA5;

ucontext_t scheduler;
std::vector<ucontext_t> fibers;
std::vector<char> stacks;
std::vector<bool> has_ended;
void (*current_kernel)(void**);
void** current_arguments;
int votes;

void Enter() {
  current_kernel(current_arguments);
  has_ended[threadIdx.x] = true;
  swapcontext(&fibers[threadIdx.x], &scheduler);
}

// Lets every thread of the block run up to its next barrier; tells whether there was one.
bool RunToBarrier(const std::vector<unsigned>& order) {
  size_t ended = 0;
  for (unsigned thread : order) {
    threadIdx.x = thread;
    swapcontext(&scheduler, &fibers[thread]);
    ended += has_ended[thread];
  }
  if (ended != 0 && ended != order.size()) {
    std::fprintf(stderr, "a barrier was reached by %zu of %zu threads\n", order.size() - ended,
                 order.size());
    std::abort();
  }
  return ended == 0;
}

void RunBlock(const std::vector<unsigned>& order) {
  fibers.resize(order.size());
  stacks.resize(order.size() * kStackBytes);
  has_ended.assign(order.size(), false);
  for (size_t i = 0; i < order.size(); ++i) {
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = &stacks[i * kStackBytes];
    fibers[i].uc_stack.ss_size = kStackBytes;
    fibers[i].uc_link = nullptr;
    makecontext(&fibers[i], Enter, 0);
  }
  while (RunToBarrier(order)) {
  }
}

std::vector<unsigned> Order(unsigned count, unsigned seed) {
  std::vector<unsigned> order(count);
  for (unsigned i = 0; i < count; ++i) order[i] = i;
  if (seed == 1) std::reverse(order.begin(), order.end());
  if (seed > 1) std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

void WaitForOthers() {
  const unsigned thread = threadIdx.x;
  swapcontext(&fibers[thread], &scheduler);
}

}  // namespace

void __syncthreads() { WaitForOthers(); }

int __syncthreads_or(int vote) {
  votes |= vote;
  WaitForOthers();
  const int result = votes;
  WaitForOthers();
  votes = 0;
  WaitForOthers();
  return result;
}

void EmulateLaunch(void (*kernel)(void**), void** arguments, unsigned blocks, unsigned threads,
                   unsigned seed, bool has_barriers) {
  current_kernel = kernel;
  current_arguments = arguments;
  gridDim.x = blocks;
  blockDim.x = threads;
  const std::vector<unsigned> order = Order(threads, seed);
  for (unsigned block : Order(blocks, seed)) {
    blockIdx.x = block;
    if (__start_emulated_shared) {
      memset(__start_emulated_shared, kRubbish, __stop_emulated_shared - __start_emulated_shared);
    }
    if (has_barriers) {
      RunBlock(order);
      continue;
    }
    for (unsigned thread : order) {
      threadIdx.x = thread;
      kernel(arguments);
    }
  }
}
