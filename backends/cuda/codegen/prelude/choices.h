// ---- choices: reductions whose order counts. Neighbours are combined first, then neighbours of these, and so on,
// whatever combines them: all of [j * 2^k, (j + 1) * 2^k) before anything else joins it, as the reference does it. ----

// The first `count` of SIZE values, STEP apart; the first of them is the result.
template <int SIZE, int STEP, class T, class F> FN void neighbours_reduce(T* values, int count, F f) {
#ifdef __CUDACC__
#pragma unroll
#endif
  for (int half = 1; half < SIZE; half *= 2)
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int i = 0; i + half < SIZE; i += 2 * half)
      if (i + half < count) values[i * STEP] = f(values[i * STEP], values[(i + half) * STEP]);
}
template <class Index> FN int within(Index number, int most) { return number < 0 ? 0 : number > most ? most : (int)number; }
// Warps take tiles of 32 * SIZE neighbours of `rows` rows of `length` elements. leaf(row, first, count, values, run) loads
// what a thread has of one. Results: totals[row * TILES + tile].
template <int SIZE, int TILES, class Index, class T, class Leaf, class F>
FN void tiles_reduce(T* totals, int rows, Index length, Leaf leaf, F f) {
#ifdef __CUDACC__
  const int lane = threadIdx.x % 32;
  for (int task = threadIdx.x / 32; task < rows * TILES; task += NT / 32) {
    const Index begin = (Index)(task % TILES) * (32 * SIZE);
    const int here = within(length - begin, 32 * SIZE), count = within(here - lane * SIZE, SIZE);
    T values[SIZE];
    if (count) leaf(task / TILES, (Index)(begin + lane * SIZE), count, values, Run<SIZE>());
    neighbours_reduce<SIZE, 1>(values, count, f);
#pragma unroll
    for (int half = 1; half < 32; half *= 2) {
      const T other = from_lane(values[0], half);
      if ((lane + half) * SIZE < here) values[0] = f(values[0], other);
    }
    if (lane == 0) totals[task] = values[0];
  }
#else
  EACH(int, task, 0, rows * TILES) {
    const Index begin = (Index)(task % TILES) * (32 * SIZE);
    const int here = within(length - begin, 32 * SIZE);
    T firsts[32];
    EACH(int, lane, 0, (here + SIZE - 1) / SIZE) {
      const int count = within(here - lane * SIZE, SIZE);
      T values[SIZE];
      leaf(task / TILES, (Index)(begin + lane * SIZE), count, values, Run<SIZE>{count});
      neighbours_reduce<SIZE, 1>(values, count, f);
      firsts[lane] = values[0];
    }
    neighbours_reduce<32, 1>(firsts, (here + SIZE - 1) / SIZE, f);
    if (here) totals[task] = firsts[0];
  }
#endif
}
// The first `tiles` of TILES totals of each row; the first of them is the result, which thread `row` may read.
template <int TILES, class T, class F> FN void totals_reduce(T* totals, int rows, int tiles, F f) {
  if (TILES == 1) barrier();
  for (int half = 1; half < TILES; half *= 2) {
    barrier();
    each_thread([&](int t) INLINE {
      const int pairs = (TILES - 1) / (2 * half) + 1;
      for (int i = t; i < rows * pairs; i += NT) {
        const int tile = i % pairs * 2 * half;
        T* const of_row = totals + i / pairs * TILES;
        if (tile + half < tiles) of_row[tile] = f(of_row[tile], of_row[tile + half]);
      }
    });
  }
}
#ifdef __CUDACC__
#define EACH_OF(size, count) _Pragma("unroll") for (int term = 0; term < size; ++term) if (term < count)
#else
#define EACH_OF(size, count) EACH(int, term, 0, count)
#endif
// Columns of `length` elements: a thread has SIZE neighbours of V columns, up to ROWS threads are below each other.
// leaf(first element, count, first column, values, run) loads them, those of one column V apart. Results: totals[t * V + lane]
// of the first row of threads.
template <int SIZE, int V, int ROWS, class Index, class T, class Leaf, class F>
FN void columns_reduce(T* totals, int length, Index left, Index right, Leaf leaf, F f) {
  each_thread([&](int t) INLINE {
    const Index first = left + t % 32 * V;
    const int count = within(length - t / 32 * SIZE, SIZE);
    if (first >= right || !count) return;
    T values[SIZE * V];
#ifdef __CUDACC__
    leaf(t / 32 * SIZE, count, first, values, Run<V>());
#pragma unroll
#else
    leaf(t / 32 * SIZE, count, first, values, Run<V>{V});
#endif
    for (int lane = 0; lane < V; ++lane) {
      neighbours_reduce<SIZE, V>(values + lane, count, f);
      totals[t * V + lane] = values[lane];
    }
  });
  for (int half = 1; half < ROWS; half *= 2) {
    barrier();
    each_thread([&](int t) INLINE {
      const int row = t / 32;
      if (row % (2 * half) || (row + half) * SIZE >= length || left + t % 32 * V >= right) return;
      for (int lane = 0; lane < V; ++lane) {
        const int mine = t * V + lane;
        totals[mine] = f(totals[mine], totals[mine + half * 32 * V]);
      }
    });
  }
}
