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

// ---- tiles that are turned: 32 * V rows and columns ----
#ifdef __CUDACC__
// Units of V neighbours of a row, 33 of them to a row; neighbours in memory lie V rows apart. So threads that write
// neighbours of a column and threads that read those of a row meet 32 banks.
template <class T> struct Cell { typedef T type; };
template <int V> FN int turned(int row, int column) { return (row % V * 32 + row / V) * 33 * V + column; }
// at(column) is where the elements of a column lie, the rows below each other; `rows` and `columns` are multiples of V.
template <class T, int V, class At> FN void turn_tile(T* tile, int rows, int columns, At at) {
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
}
// V neighbours of a row.
template <class T, int V> struct Turned : Lanes<T, V> {
  FN Turned(const T* tile, int row, i64 column) : Lanes<T, V>(tile, turned<V>(row, (int)column)) {}
};
#else
// Columns as they lie in memory, in elements that vectors of a CPU gather: of 4 bytes at least.
template <class T, bool IS_NARROW = (sizeof(T) < 4)> struct Cell {
  typedef T type;
  static FN T of(T element) { return element; }
  static FN T element(T cell) { return cell; }
};
template <class T> struct Cell<T, true> {
  typedef u32 type;
  static FN u32 of(T element) { return bits_as<EXACT(T)>(element); }
  static FN T element(u32 cell) { return bits_as<T>((EXACT(T))cell); }
};
template <class T, int V, class At> FN void turn_tile(typename Cell<T>::type* tile, int rows, int columns, At at) {
  EACH(int, column, 0, columns) {
    const T* const from = at(column);
    typename Cell<T>::type* const to = tile + column * (33 * V);
#pragma GCC ivdep
    for (int row = 0; row < rows; ++row) to[row] = Cell<T>::of(from[row]);
  }
}
template <class T, int V> struct Turned {
  const typename Cell<T>::type* from;
  FN Turned(const typename Cell<T>::type* tile, int row, i64 column) : from(tile + column * (33 * V) + row) {}
  FN T operator[](int lane) const { return Cell<T>::element(from[lane * (33 * V)]); }
};
#endif
