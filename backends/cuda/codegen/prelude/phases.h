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

// Quotients and remainders of numbers that are not negative.
#define UNSIGNED(T) typename Unsigned<sizeof(T)>::type
template <int BYTES> struct Unsigned { typedef u32 type; };
template <> struct Unsigned<8> { typedef u64 type; };

#ifdef __CUDACC__
#define FN __device__ __forceinline__
#define INLINE
#define RESTRICT __restrict__
#define KERNEL(name, ...) extern "C" __global__ __launch_bounds__(NT) void name(__VA_ARGS__)
#define SHARED(T, name, count) __shared__ alignas(16) T name[count]
#define EACH_LANE _Pragma("unroll") for (int lane = 0; lane < lanes.count; ++lane)
FN i64 block_id() { return blockIdx.x; }
FN i64 grid_size() { return gridDim.x; }
template <class T, int V = 1> struct Private {  // V values for each thread
  T value[V];
  FN T& operator()(int, int lane = 0) { return value[lane]; }
  FN void fill(T start) {
#pragma unroll
    for (int lane = 0; lane < V; ++lane) value[lane] = start;
  }
};
template <int V> struct Run { static const int count = V; };
// V neighbours in memory whose place is a multiple of V.
template <class T, int V> struct Vector {
  static const int bytes = sizeof(T) * V;
  struct alignas(bytes < 16 ? bytes : 16) Elements { T at[V]; } elements;
};
template <class T, int V> struct Lanes : Vector<T, V> {
  FN Lanes(const T* base, i64 place) { this->elements = *(const typename Vector<T, V>::Elements*)(base + place); }
  FN const T& operator[](int lane) const { return this->elements.at[lane]; }
};
// V neighbours at any place of memory that is a multiple of V long: the two vectors that hold them, shifted.
template <class T, int V> struct Shifted {
  static const int bytes = sizeof(T) * V, words = bytes / 4;
  union Elements { T at[V]; u32 word[words]; FN Elements() {} } elements;
  FN Shifted(const T* base, i64 place) {
    union Both { typename Vector<T, V>::Elements half[2]; u32 word[2 * words]; FN Both() {} } both;
    const int shift = (int)(place % V), bits = shift * (int)sizeof(T) * 8;
    const typename Vector<T, V>::Elements* const from = (const typename Vector<T, V>::Elements*)(base + (place - shift));
    both.half[0] = from[0];
    both.half[1] = from[shift != 0];
#pragma unroll
    for (int step = words / 2; step; step /= 2)
#pragma unroll
      for (int i = 0; i + step < 2 * words; ++i)
        if (bits / 32 & step) both.word[i] = both.word[i + step];
#pragma unroll
    for (int i = 0; i < words; ++i)
      elements.word[i] = (u32)(((u64)both.word[i + 1] << 32 | both.word[i]) >> (bits % 32));
  }
  FN const T& operator[](int lane) const { return elements.at[lane]; }
};
template <class T, int V> struct Stores : Vector<T, V> {
  T* to;
  FN Stores(T* base, i64 place) : to(base + place) {}
  FN T& operator[](int lane) { return this->elements.at[lane]; }
  FN ~Stores() { *(typename Vector<T, V>::Elements*)to = this->elements; }
};
// The first `active` threads run f, and go on without waiting for each other.
template <class F> FN void each_thread(F f, int active = NT) {
  if (threadIdx.x < active) f((int)threadIdx.x);
}
FN void barrier() { __syncthreads(); }
// f(row, first, run) for runs of V columns that together are all elements of ROWS x COLUMNS; a thread takes up to AHEAD
// of them at once.
template <class Index, i64 ROWS, i64 COLUMNS, int V, int AHEAD, class F> FN void each_run(F f) {
  typedef UNSIGNED(Index) Number;
  const Number columns = (Number)(COLUMNS / V), total = (Number)(ROWS * (COLUMNS / V));
  const Number step = (Number)grid_size() * NT;
  const auto at = [&](Number i) INLINE {
    f((Index)(ROWS == 1 ? 0 : i / columns), (Index)((ROWS == 1 ? i : i % columns) * V), Run<V>());
  };
  Number i = (Number)block_id() * NT + threadIdx.x;
  if (AHEAD > 1)
    for (; i + (AHEAD - 1) * step < total; i += AHEAD * step)
#pragma unroll
      for (int ahead = 0; ahead < AHEAD; ++ahead) at(i + ahead * step);
  for (; i < total; i += step) at(i);
}
// Teams of TEAM threads: thread t runs f(t, first, run) for each TEAM-th run from its place in the team on.
template <int TEAM, int V, class Index, class F> FN void each_in_team(int teams, Index begin, Index end, F f) {
  if (threadIdx.x / TEAM < teams)
    for (Index i = begin + threadIdx.x % TEAM * V; i < end; i += TEAM * V) f((int)threadIdx.x, i, Run<V>());
}
// The first thread of each team runs f.
template <int TEAM, class F> FN void each_team(int teams, F f) {
  if (threadIdx.x % TEAM == 0 && threadIdx.x / TEAM < teams) f((int)threadIdx.x);
}
// 32 runs of neighbouring columns, 8 rows at a time: f(t, row, first, run).
template <int V, class Index, class F> FN void each_in_columns(Index begin, Index end, Index left, Index right, F f) {
  const Index first = left + threadIdx.x % 32 * V;
  if (first < right)
    for (Index i = begin + threadIdx.x / 32; i < end; i += NT / 32) f((int)threadIdx.x, i, first, Run<V>());
}
// The threads of the first row run f(t, first, run).
template <int V, class Index, class F> FN void each_column(Index left, Index right, F f) {
  const Index first = left + threadIdx.x * V;
  if (threadIdx.x < 32 && first < right) f((int)threadIdx.x, first, Run<V>());
}
// The elements of a tile of 32 runs in a row, with `rows` and `count` at its edges: f(row, first, run) from `left` on.
template <int V, class Index, class F> FN void each_in_tile(int rows, Index left, int count, F f) {
  if (threadIdx.x % 32 * V < count)
    for (int row = threadIdx.x / 32; row < rows; row += NT / 32) f(row, (Index)(left + threadIdx.x % 32 * V), Run<V>());
}
template <class T> FN T from_lane(T value, int distance) {  // of the thread so many lanes on
  const int words = (sizeof(T) + 3) / 4;
  union Words { T value; int word[words]; FN Words() {} } words_of;
  words_of.value = value;
#pragma unroll
  for (int i = 0; i < words; ++i) words_of.word[i] = __shfl_down_sync(0xffffffffu, words_of.word[i], distance);
  return words_of.value;
}
// Lanes of each thread, then groups of COUNT threads; the first `active` threads have values.
template <int COUNT, class T, int V, class F> FN void warps_reduce(Private<T, V>& values, int active, F f) {
#pragma unroll
  for (int half = V / 2; half; half >>= 1)
#pragma unroll
    for (int lane = 0; lane < half; ++lane) values(0, lane) = f(values(0, lane), values(0, lane + half));
#pragma unroll
  for (int half = COUNT / 2; half; half >>= 1) values(0) = f(values(0), from_lane(values(0), half));
}
#else
#include <math.h>
#include <string.h>
#define FN inline __attribute__((always_inline))
#define INLINE __attribute__((always_inline))
#define RESTRICT __restrict
#define KERNEL(name, ...) static void name(__VA_ARGS__)
#define SHARED(T, name, count) static thread_local T name[count]; memset((void*)name, 0xff, sizeof name)
static thread_local i64 current_block, current_grid;
FN i64 block_id() { return current_block; }
FN i64 grid_size() { return current_grid; }
template <class T, int V = 1> struct Private {
  T value[NT * V];
  FN T& operator()(int t, int lane = 0) { return value[t * V + lane]; }
  FN void fill(T start) { for (int i = 0; i < NT * V; ++i) value[i] = start; }
};
template <int V> struct Run { int count; };
#ifdef HLO_BACKWARD
#define EACH(type, i, begin, end) for (type i = (end); i-- > (begin);)
#define EACH_LANE for (int lane = lanes.count; lane-- > 0;)
#else
#define EACH(type, i, begin, end) for (type i = (begin); i < (end); ++i)
#define EACH_LANE _Pragma("GCC ivdep") for (int lane = 0; lane < lanes.count; ++lane)
#endif
template <class T, int V> FN T* vector_at(T* base, i64 place) {
#ifdef HLO_BACKWARD
  if (place % V) __builtin_trap();
#endif
  return base + place;
}
template <class T, int V> struct Lanes {
  const T* from;
  FN Lanes(const T* base, i64 place) : from(vector_at<const T, V>(base, place)) {}
  FN const T& operator[](int lane) const { return from[lane]; }
};
template <class T, int V> struct Shifted {
  const T* from;
  FN Shifted(const T* base, i64 place) : from(base + place) {}
  FN const T& operator[](int lane) const { return from[lane]; }
};
template <class T, int V> struct Stores {
  T* to;
  FN Stores(T* base, i64 place) : to(vector_at<T, V>(base, place)) {}
  FN T& operator[](int lane) const { return to[lane]; }
};
template <class F> FN void each_thread(F f, int active = NT) {
#pragma GCC ivdep
  EACH(int, t, 0, active) f(t);
}
FN void barrier() {}
// Columns [left, right) of a row: one run, or backward, runs as short as on a GPU.
template <int V, class F> FN void each_part(i64 left, i64 right, F f) {
#ifdef HLO_BACKWARD
  for (i64 first = left + (right - left - 1) / V * V; first >= left; first -= V)
    f(first, Run<V>{(int)(right - first < V ? right - first : V)});
#else
  f(left, Run<V>{(int)(right - left)});
#endif
}
template <class Index, i64 ROWS, i64 COLUMNS, int V, int AHEAD, class F> FN void each_run(F f) {
  const i64 part = ((ROWS * COLUMNS / V + grid_size() - 1) / grid_size()) * V;
  const i64 begin = block_id() * part, end = begin + part < ROWS * COLUMNS ? begin + part : ROWS * COLUMNS;
  if (begin >= end) return;
  EACH(i64, row, begin / COLUMNS, (end - 1) / COLUMNS + 1) {
    const i64 left = row * COLUMNS < begin ? begin - row * COLUMNS : 0;
    const i64 right = (row + 1) * COLUMNS > end ? end - row * COLUMNS : COLUMNS;
    each_part<V>(left, right, [&](i64 first, Run<V> run) INLINE { f((Index)row, (Index)first, run); });
  }
}
template <int TEAM, int V, class Index, class F> FN void each_in_team(int teams, Index begin, Index end, F f) {
  EACH(int, team, 0, teams)
    for (i64 tile = begin; tile < end; tile += TEAM * V) {
      const i64 right = end - tile < TEAM * V ? end : tile + TEAM * V;
      each_part<V>(tile, right, [&](i64 first, Run<V> run) INLINE {
        f((int)(team * TEAM + (first - tile) / V), (Index)first, run);
      });
    }
}
template <int TEAM, class F> FN void each_team(int teams, F f) { EACH(int, team, 0, teams) f(team * TEAM); }
template <int V, class Index, class F> FN void each_in_columns(Index begin, Index end, Index left, Index right, F f) {
  const i64 last = left + 32 * V < right ? left + 32 * V : right;
  for (i64 row = begin; row < end; ++row)
    each_part<V>(left, last, [&](i64 first, Run<V> run) INLINE {
      f((int)((row - begin) % (NT / 32) * 32 + (first - left) / V), (Index)row, (Index)first, run);
    });
}
template <int V, class Index, class F> FN void each_column(Index left, Index right, F f) {
  const i64 last = left + 32 * V < right ? left + 32 * V : right;
  each_part<V>(left, last, [&](i64 first, Run<V> run) INLINE {
    f((int)((first - left) / V), (Index)first, run);
  });
}
template <int V, class Index, class F> FN void each_in_tile(int rows, Index left, int count, F f) {
  EACH(int, row, 0, rows)
    each_part<V>(left, left + count, [&](i64 first, Run<V> run) INLINE { f(row, (Index)first, run); });
}
template <int COUNT, class T, class F> FN void halves(T* values, F f) {
#pragma GCC unroll 8
  for (int half = COUNT / 2; half; half >>= 1)
#pragma GCC ivdep
    for (int i = 0; i < half; ++i) values[i] = f(values[i], values[i + half]);
}
template <int COUNT, class T, int V, class F> FN void warps_reduce(Private<T, V>& values, int active, F f) {
  for (int first = 0; first < active; first += COUNT) {
    T of_lanes[V][COUNT];
    for (int lane = 0; lane < V; ++lane)
      for (int t = 0; t < COUNT; ++t) of_lanes[lane][t] = values(first + t, lane);
    for (int half = V / 2; half; half >>= 1)
      for (int lane = 0; lane < half; ++lane)
#pragma GCC ivdep
        for (int t = 0; t < COUNT; ++t) of_lanes[lane][t] = f(of_lanes[lane][t], of_lanes[lane + half][t]);
    halves<COUNT>(of_lanes[0], f);
    values(first) = of_lanes[0][0];
  }
}
#endif
// GCC from 12 on makes one rounding of products and the sums and differences of them that lie side by side, as in
// complex numbers, even where it is told not to contract; not across this.
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && !defined(__CUDACC__)
#define ROUNDED(product) __builtin_assoc_barrier(product)
#else
#define ROUNDED(product) (product)
#endif
template <class T> FN T multiplied(T a, T b) { return ROUNDED(a * b); }

template <i64 STEP, class T> FN T divide(T number) { return (T)((UNSIGNED(T))number / (UNSIGNED(T))STEP); }
template <i64 SIZE, class T> FN T modulo(T number) { return (T)((UNSIGNED(T))number % (UNSIGNED(T))SIZE); }

// `each_thread`, and all threads of the block wait until the last of them is done.
template <class F> FN void phase(F f, int active = NT) {
  each_thread(f, active);
  barrier();
}

// A tree over the values of each team, of the same shape on both machines: the lanes of a thread, the threads
// of a warp, the warps. The result is lane 0 of the team's first thread.
template <int TEAM, class T, int V, class F> FN void team_reduce(Private<T, V>& values, int teams, F f) {
  warps_reduce<(TEAM < 32 ? TEAM : 32)>(values, teams * TEAM, f);
  if (TEAM <= 32) return;
  SHARED(T, shared, NT / 32);
  phase([&](int t) INLINE { if (t % 32 == 0) shared[t / 32] = values(t); });
  for (int half = NT / 64; half > 1; half >>= 1)
    phase([&](int t) INLINE { shared[t] = f(shared[t], shared[t + half]); }, half);
  each_thread([&](int t) INLINE { values(t) = f(shared[0], shared[1]); }, 1);
}
// The same over the rows of threads of `each_in_columns`, for every lane; results are in the first row.
template <class T, int V, class F> FN void rows_reduce(Private<T, V>& values, F f) {
  SHARED(T, shared, NT * V);
  phase([&](int t) INLINE { for (int lane = 0; lane < V; ++lane) shared[lane * NT + t] = values(t, lane); });
  for (int half = NT / 2; half > 32; half >>= 1)
    phase([&](int t) INLINE {
      for (int i = t; i < NT * V; i += NT) shared[i] = f(shared[i], shared[i + half]);
    }, half);
  each_thread([&](int t) INLINE {
    for (int lane = 0; lane < V; ++lane) values(t, lane) = f(shared[lane * NT + t], shared[lane * NT + t + 32]);
  }, 32);
}
