// ---- scatters: updates sorted by the row that they change, and the blocks that own these rows ----

// Numbers, a power of two of them, none of which is there twice but the largest, in ascending order; a bitonic sort.
FN void sort_keys(u64* keys, int count) {
  for (int size = 2; size <= count; size *= 2)
    for (int step = size / 2; step; step /= 2)
      phase([&](int t) INLINE {
        for (int i = t; i < count / 2; i += NT) {
          const int low = 2 * i - (i & (step - 1));
          const u64 a = keys[low], b = keys[low + step];
          const bool is_swapped = (a > b) != ((low & size) != 0);
          keys[low] = is_swapped ? b : a;
          keys[low + step] = is_swapped ? a : b;
        }
      });
}
// How many of SIZE sorted numbers are below a limit.
template <int SIZE> FN int count_below(const u64* keys, u64 limit) {
  int low = 0, high = SIZE;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (keys[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
// The first COUNT of a block's numbers become the sums of those up to each.
template <int COUNT> FN void sum_up(int* numbers) {
  Private<int> before;
  for (int step = 1; step < COUNT; step *= 2) {
    phase([&](int t) INLINE { before(t) = t < step ? 0 : numbers[t - step]; }, COUNT);
    phase([&](int t) INLINE { numbers[t] += before(t); }, COUNT);
  }
}
// Of rows from `begin` to `end`, up to MOST updates at a time: apply(list, count), the list sorted by row - begin in the
// upper 32 bits, and the number of the update in the lower ones. Those of each row come in their order. CHUNKS chunks of
// SIZE keys are sorted, each key a row times SIZE plus the place in the chunk.
template <int SIZE, int MOST, int CHUNKS, class Apply> FN void each_update(const u64* keys, i64 begin, i64 end, Apply apply) {
  SHARED(int, ends, NT);
  SHARED(u64, list, MOST);
  Private<int> first, count;
  for (int chunk = 0; chunk < CHUNKS; chunk += NT) {
    if (chunk) barrier();  // all have read the total
    phase([&](int t) INLINE {
      const u64* const mine = keys + (i64)(chunk + t) * SIZE;
      first(t) = chunk + t < CHUNKS ? count_below<SIZE>(mine, (u64)begin * SIZE) : 0;
      count(t) = chunk + t < CHUNKS ? count_below<SIZE>(mine, (u64)end * SIZE) - first(t) : 0;
      ends[t] = count(t);
    });
    const int most = CHUNKS < NT ? CHUNKS : NT;
    sum_up<most>(ends);
    const int total = ends[most - 1];
    for (int from = 0; from < total; from += MOST) {
      const int here = total - from < MOST ? total - from : MOST;
      int sorted = 1;
      while (sorted < here) sorted *= 2;
      phase([&](int t) INLINE {
        const int start = ends[t] - count(t) - from;
        for (int i = start < 0 ? -start : 0; i < count(t) && start + i < MOST; ++i) {
          const u64 key = keys[(i64)(chunk + t) * SIZE + first(t) + i];
          list[start + i] = (key / SIZE - (u64)begin) << 32 | ((u64)(chunk + t) * SIZE + key % SIZE);
        }
        for (int i = here + t; i < sorted; i += NT) list[i] = ~0ull;
      });
      sort_keys(list, sorted);
      apply(list, here);
      barrier();
    }
  }
}
// f(group, groups, lane, lanes): groups of threads whose lanes go through `width` elements of a row together.
template <class F> FN void each_group(i64 width, F f) {
#ifdef __CUDACC__
  const int lanes = width < NT ? (int)width : NT, groups = NT / lanes, group = (int)threadIdx.x / lanes;
  if (group < groups) f(group, groups, (i64)(threadIdx.x % lanes), (i64)lanes);
#else
  f(0, 1, (i64)0, (i64)1);
#endif
}
#ifdef __CUDACC__
#define EACH_OF_BATCH(size) _Pragma("unroll") for (int k = 0; k < size; ++k)
#else
#define EACH_OF_BATCH(size) for (int k = 0; k < size; ++k)
#endif
