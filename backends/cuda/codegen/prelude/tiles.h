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

// ---- shares: f(share, shares, lane, lanes), where lanes go through elements in a row together ----
template <class F> FN void each_share(i64 width, F f) {
#ifdef __CUDACC__
  const i64 lanes = width < NT ? width : NT, thread = block_id() * NT + threadIdx.x, shares = grid_size() * NT / lanes;
  if (thread / lanes < shares) f(thread / lanes, shares, thread % lanes, lanes);
#else
  // Few shares, since each looks at everything: the first of the blocks of each.
  const i64 blocks = grid_size(), shares = blocks < 4 ? blocks : 4, share = block_id() * shares / blocks;
  if (block_id() == 0 || share != (block_id() - 1) * shares / blocks) f(share, shares, 0, 1);
#endif
}
