// ---- products of tiles: 16 x 16 threads, each with 4 x 4 sums, that read columns of one factor and rows of the other ----
#define SIDE 64   // rows and columns of a tile of the result
#define DEPTH 16  // terms that lie in shared memory at a time

// f(t, row, column, k) for every k < DEPTH, by the thread in that row and column.
template <class F> FN void each_term(F f) {
#ifdef __CUDACC__
#pragma unroll 4
  for (int k = 0; k < DEPTH; ++k) f((int)threadIdx.x, (int)threadIdx.x / 16, (int)threadIdx.x % 16, k);
#else
  for (int k = 0; k < DEPTH; ++k)
    EACH(int, row, 0, 16) {
#pragma GCC ivdep
      EACH(int, column, 0, 16) f(16 * row + column, row, column, k);
    }
#endif
}

// ---- tiles that are turned: 32 * V rows and columns, in units of V neighbours, 33 of them to a row ----
// Neighbours in memory lie V rows apart: whether threads write neighbours of a column or read those of a row, they meet
// 32 banks.
template <int V> FN int turned(int row, int column) { return (row % V * 32 + row / V) * 33 * V + column; }
// at(column) is where the elements of a column lie, the rows below each other; `rows` and `columns` are multiples of V.
template <int V, class T, class At> FN void turn_tile(T* tile, int rows, int columns, At at) {
#ifdef __CUDACC__
  const int rounds = 32 * 32 / NT, row = threadIdx.x % 32 * V, first = threadIdx.x / 32 * V, step = NT / 32 * V;
  typename Vector<T, V>::Elements loaded[rounds][V];
#pragma unroll
  for (int i = 0; i < rounds; ++i)
#pragma unroll
    for (int k = 0; k < V; ++k)
      if (row < rows && first + i * step < columns)
        loaded[i][k] = *(const typename Vector<T, V>::Elements*)(at(first + i * step + k) + row);
#pragma unroll
  for (int i = 0; i < rounds; ++i)
#pragma unroll
    for (int lane = 0; lane < V; ++lane)
      if (row < rows && first + i * step < columns) {
        Stores<T, V> to(tile, turned<V>(row + lane, first + i * step));
#pragma unroll
        for (int k = 0; k < V; ++k) to[k] = loaded[i][k].at[lane];
      }
#else
  EACH(int, column, 0, columns) {
    const T* const from = at(column);
#pragma GCC ivdep
    EACH(int, row, 0, rows) tile[turned<V>(row, column)] = from[row];
  }
#endif
}
