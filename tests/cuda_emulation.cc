// cuda_emulation.cc: runs generated CUDA kernels on the CPU, a thread at a time.
//
// The order in which blocks and threads run is the caller's choice: what depends on it (two threads
// of which one reads or writes what the other writes) gives other results in another order.
#include "cuda_emulation.h"

#include <algorithm>
#include <random>
#include <vector>

EmulatedDim threadIdx, blockIdx, blockDim, gridDim;

namespace {

std::vector<unsigned> Order(unsigned count, unsigned seed) {
  std::vector<unsigned> order(count);
  for (unsigned i = 0; i < count; ++i) order[i] = i;
  if (seed == 1) std::reverse(order.begin(), order.end());
  if (seed > 1) std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

}  // namespace

void EmulateLaunch(void (*kernel)(void**), void** arguments, unsigned blocks, unsigned threads,
                   unsigned seed) {
  gridDim.x = blocks;
  blockDim.x = threads;
  const std::vector<unsigned> order = Order(threads, seed);
  for (unsigned block : Order(blocks, seed)) {
    blockIdx.x = block;
    for (unsigned thread : order) {
      threadIdx.x = thread;
      kernel(arguments);
    }
  }
}
