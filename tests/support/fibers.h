// CUDA's threads on a CPU: every thread of a block is a context of its own, which runs until it waits for others.
//
// The kernels are compiled as for CUDA. Threads take turns in ascending order, or descending where `backward` is
// set; shared memory starts as 0xff bytes in each block. Barriers can be left out, one by its number in the order in
// which a block comes to them, or all that stand at one place of the source.
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __CUDACC__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__ __restrict
#define __launch_bounds__(...)

enum { FIBERS = 256, WARP = 32, STACK = 1 << 17 };
static struct { unsigned x, y, z; } threadIdx, blockIdx, gridDim, blockDim = {FIBERS, 1, 1};

struct Fiber {
  ucontext_t context;  // where it starts
  jmp_buf place;       // where it goes on; swapcontext would ask the kernel at every change
  long long barriers, meetings;  // of the block, of the warp: how many it has come to
  bool waits_for_block, waits_for_warp, is_started, is_done;
};
static Fiber fibers[FIBERS];
static char stacks[FIBERS][STACK];
static jmp_buf turn;
static void (*body)(void**);
static void** arguments;
extern "C" {
long long left_out = -1, place_left_out = -1;  // where nobody waits
long long most_barriers, place_count;          // of any block so far
int backward;
}
static void* places[64];
static long long place_of(void* address) {
  for (long long i = 0; i < place_count; ++i)
    if (places[i] == address) return i;
  places[place_count] = address;
  return place_count++;
}

static Fiber& own() { return fibers[threadIdx.x]; }
static void give_way() {
  if (!_setjmp(own().place)) _longjmp(turn, 1);
}
static void __attribute__((noinline)) __syncthreads() {
  Fiber& fiber = own();
  const long long place = place_of(__builtin_return_address(0));
  if (fiber.barriers++ == left_out || place == place_left_out) return;
  fiber.waits_for_block = true;
  give_way();
}
static void __syncwarp(unsigned = ~0u) {
  own().meetings++;
  own().waits_for_warp = true;
  give_way();
}

// ---- shuffles: all lanes write, meet, read, meet ----
static long long exchanged[FIBERS];
template <class T> static T lane_value(T value, unsigned lane) {
  static_assert(sizeof(T) <= sizeof(long long), "shuffled word by word");
  memcpy(&exchanged[threadIdx.x], &value, sizeof value);
  __syncwarp();
  T result;
  memcpy(&result, &exchanged[threadIdx.x / WARP * WARP + lane], sizeof result);
  __syncwarp();
  return result;
}
template <class T> static T __shfl_sync(unsigned, T value, int lane, int width = WARP) {
  const unsigned own = threadIdx.x % WARP;
  return lane_value(value, own / width * width + (unsigned)lane % width);
}
template <class T> static T __shfl_down_sync(unsigned, T value, unsigned delta, int width = WARP) {
  const unsigned own = threadIdx.x % WARP;
  return lane_value(value, own % width + delta < (unsigned)width ? own + delta : own);
}
template <class T> static T __shfl_xor_sync(unsigned, T value, int mask, int = WARP) {
  return lane_value(value, (threadIdx.x % WARP) ^ mask);
}

// ---- shared memory: poisoned before each block ----
struct Shared {
  void* memory;
  size_t size;
};
static Shared shared_arrays[64];
static int shared_count;
static bool noted(void* memory, size_t size) {
  shared_arrays[shared_count++] = {memory, size};
  memset(memory, 0xff, size);
  return true;
}
#define HLO_SHARED(T, name, count) \
  alignas(16) static char name##_bytes[sizeof(T) * (count)]; \
  static const bool name##_noted = noted(name##_bytes, sizeof name##_bytes); \
  (void)name##_noted; \
  T* const name = (T*)name##_bytes

static void start() {
  body(arguments);
  own().is_done = true;
  _longjmp(turn, 1);
}
static void __attribute__((noinline)) go_on(Fiber& fiber) {
  if (_setjmp(turn)) return;
  if (fiber.is_started) _longjmp(fiber.place, 1);
  fiber.is_started = true;
  setcontext(&fiber.context);
}
static bool may_run(int t) {
  Fiber& fiber = fibers[t];
  if (fiber.is_done) return false;
  const int first = fiber.waits_for_warp ? t / WARP * WARP : 0, count = fiber.waits_for_warp ? WARP : FIBERS;
  if (!fiber.waits_for_warp && !fiber.waits_for_block) return true;
  for (int other = first; other < first + count; ++other) {
    if (fibers[other].is_done) continue;
    if (fiber.waits_for_warp && fibers[other].meetings < fiber.meetings) return false;
    if (fiber.waits_for_block && fibers[other].barriers < fiber.barriers) return false;
  }
  return true;
}
static void run_block() {
  for (int i = 0; i < shared_count; ++i) memset(shared_arrays[i].memory, 0xff, shared_arrays[i].size);
  for (int t = 0; t < FIBERS; ++t) {
    Fiber& fiber = fibers[t];
    fiber.barriers = fiber.meetings = 0;
    fiber.waits_for_block = fiber.waits_for_warp = fiber.is_started = fiber.is_done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks[t];
    fiber.context.uc_stack.ss_size = STACK;
    makecontext(&fiber.context, start, 0);
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < FIBERS; ++i) {
      const int t = backward ? FIBERS - 1 - i : i;
      if (!may_run(t)) continue;
      fibers[t].waits_for_block = fibers[t].waits_for_warp = false;
      threadIdx.x = t;
      go_on(fibers[t]);
      moved = true;
    }
  }
  for (int t = 0; t < FIBERS; ++t) {
    if (!fibers[t].is_done || fibers[t].barriers != fibers[0].barriers) abort();  // they wait for different things
    if (fibers[t].barriers > most_barriers) most_barriers = fibers[t].barriers;
  }
}
static void run_grid(void (*kernel)(void**), void** pointers, long long grid) {
  body = kernel;
  arguments = pointers;
  gridDim = {(unsigned)grid, 1, 1};
  most_barriers = place_count = 0;
  for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) run_block();
}
