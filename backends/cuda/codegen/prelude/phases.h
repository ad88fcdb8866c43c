// What every generated kernel is built on: phases, element types, and HLO's arithmetic.
//
// One source, two machines. A kernel is a list of phases, each a function of the thread number with a barrier
// behind it, and of loops whose iterations do not wait for each other. nvcc and NVRTC compile it for CUDA; g++
// compiles it as plain C++ that runs the threads of a block one after the other, forward, or backward where
// HLO_BACKWARD is defined.
typedef long long i64;
typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;

#define NT 256  // threads of a block

#ifdef __CUDACC__
#define FN __device__ __forceinline__
#define RESTRICT __restrict__
#define KERNEL(name, ...) extern "C" __global__ __launch_bounds__(NT) void name(__VA_ARGS__)
#define SHARED(T, name, count) __shared__ T name[count]
FN i64 block_id() { return blockIdx.x; }
FN i64 grid_size() { return gridDim.x; }
template <class T> struct Private {  // one value for each thread
  T value;
  FN T& operator()(int) { return value; }
};
// The first `active` threads run f, and go on without waiting for each other.
template <class F> FN void each_thread(F f, int active = NT) {
  if (threadIdx.x < active) f((int)threadIdx.x);
}
FN void barrier() { __syncthreads(); }
// f(i / columns, i % columns) for every i below rows * columns.
template <class F> FN void each_element(i64 rows, i64 columns, F f) {
  for (i64 i = block_id() * NT + threadIdx.x; i < rows * columns; i += grid_size() * NT) f(i / columns, i % columns);
}
// Thread t runs f(t, i) for i = begin + t, begin + t + NT, ... in this order.
template <class F> FN void strided(i64 begin, i64 end, F f) {
  for (i64 i = begin + threadIdx.x; i < end; i += NT) f((int)threadIdx.x, i);
}
// Each of the first `active` threads runs f(t, i) for i = begin, begin + 1, ... in this order.
template <class F> FN void stepwise(i64 begin, i64 end, i64 active, F f) {
  if (threadIdx.x < active)
    for (i64 i = begin; i < end; ++i) f((int)threadIdx.x, i);
}
#else
#include <math.h>
#include <string.h>
#define FN inline __attribute__((always_inline))
#define RESTRICT __restrict
#define KERNEL(name, ...) static void name(__VA_ARGS__)
#define SHARED(T, name, count) static thread_local T name[count]; memset((void*)name, 0xff, sizeof name)
static thread_local i64 current_block, current_grid;
FN i64 block_id() { return current_block; }
FN i64 grid_size() { return current_grid; }
template <class T> struct Private {
  T value[NT];
  FN T& operator()(int t) { return value[t]; }
};
#ifdef HLO_BACKWARD
#define EACH(type, i, begin, end) for (type i = (end); i-- > (begin);)
#else
#define EACH(type, i, begin, end) for (type i = (begin); i < (end); ++i)
#endif
template <class F> FN void each_thread(F f, int active = NT) {
#pragma GCC ivdep
  EACH(int, t, 0, active) f(t);
}
FN void barrier() {}
template <class F> FN void each_element(i64 rows, i64 columns, F f) {
  const i64 total = rows * columns, part = (total + grid_size() - 1) / grid_size();
  const i64 begin = block_id() * part, end = begin + part < total ? begin + part : total;
  if (begin >= end) return;
  EACH(i64, row, begin / columns, (end - 1) / columns + 1) {
    const i64 first = row * columns < begin ? begin - row * columns : 0;
    const i64 last = (row + 1) * columns > end ? end - row * columns : columns;
#pragma GCC ivdep
    EACH(i64, column, first, last) f(row, column);
  }
}
template <class F> FN void strided(i64 begin, i64 end, F f) {
  for (i64 tile = begin; tile < end; tile += NT) {
    const int count = end - tile < NT ? (int)(end - tile) : NT;
#pragma GCC ivdep
    EACH(int, t, 0, count) f(t, tile + t);
  }
}
template <class F> FN void stepwise(i64 begin, i64 end, i64 active, F f) {
  const int count = active < NT ? (int)active : NT;
  for (i64 i = begin; i < end; ++i) {
#pragma GCC ivdep
    EACH(int, t, 0, count) f(t, i);
  }
}
#endif

// The same, and all threads of the block wait until the last of them is done.
template <class F> FN void phase(F f, int active = NT) {
  each_thread(f, active);
  barrier();
}

// A tree over the block, of the same shape on both machines; the result is in thread 0.
template <class T, class F> FN void block_reduce(Private<T>& value, F f) {
  SHARED(T, shared, NT);
  phase([&](int t) { shared[t] = value(t); });
  for (int half = NT / 2; half > 1; half >>= 1)
    phase([&](int t) { shared[t] = f(shared[t], shared[t + half]); }, half);
  each_thread([&](int t) { value(t) = f(shared[0], shared[1]); }, 1);
}

