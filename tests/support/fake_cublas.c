// A stand-in for cuBLAS: the calls that the backend `cuda` makes, with products in plain loops.
//
// Memory is host memory, as in fake_driver.c. Sums are taken in double, and rounded once; types are those of
// library_types.h that the backend uses.
#include <complex.h>
#include <stdlib.h>
#include <string.h>

typedef long long i64;
enum { F32 = 0, F64 = 1, F16 = 2, C64 = 4, C128 = 5, BF16 = 14 };

static size_t size_of(int type) {
  return type == F16 || type == BF16 ? 2 : type == F32 ? 4 : type == C128 ? 16 : 8;
}
static double complex load(const char* array, i64 index, int type) {
  const char* place = array + index * size_of(type);
  unsigned short half;
  unsigned wide;
  float single;
  memcpy(&half, place, 2);
  switch (type) {
    case F32: return *(const float*)place;
    case F64: return *(const double*)place;
    case C64: return *(const float complex*)place;
    case C128: return *(const double complex*)place;
    case BF16: wide = (unsigned)half << 16; memcpy(&single, &wide, 4); return single;
  }
  _Float16 small;
  memcpy(&small, place, 2);
  return (double)small;
}
static void store(char* array, i64 index, int type, double complex value) {
  char* place = array + index * size_of(type);
  const float single = (float)creal(value);
  unsigned wide;
  switch (type) {
    case F32: *(float*)place = single; return;
    case F64: *(double*)place = creal(value); return;
    case C64: *(float complex*)place = (float complex)value; return;
    case C128: *(double complex*)place = value; return;
    case BF16:
      memcpy(&wide, &single, 4);
      wide = (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
      memcpy(place, &wide, 2);
      return;
  }
  const _Float16 small = (_Float16)single;
  memcpy(place, &small, 2);
}

int cublasCreate_v2(void** handle) { *handle = malloc(1); return 0; }
int cublasSetStream_v2(void* handle, void* stream) { return stream ? 7 : 0; }
int cublasSetWorkspace_v2(void* handle, void* workspace, size_t size) { return workspace && size ? 0 : 7; }
int cublasSetMathMode(void* handle, int mode) { return mode == 16 ? 0 : 7; }

int cublasGemmStridedBatchedEx_64(
    void* handle, int transpose_a, int transpose_b, i64 m, i64 n, i64 k, const void* alpha, const char* a,
    int type_a, i64 lda, i64 stride_a, const char* b, int type_b, i64 ldb, i64 stride_b, const void* beta,
    char* c, int type_c, i64 ldc, i64 stride_c, i64 count, int compute, int algorithm) {
  const int is_double = type_a == F64 || type_a == C128;
  const double one = is_double ? *(const double*)alpha : *(const float*)alpha;
  if (one != 1 || compute != (is_double ? 70 : 68) || algorithm != -1 || type_a != type_b) return 7;
  if (lda < (transpose_a ? k : m) || ldb < (transpose_b ? n : k) || ldc < m) return 7;
  for (i64 batch = 0; batch < count; ++batch)
    for (i64 column = 0; column < n; ++column)
      for (i64 row = 0; row < m; ++row) {
        double complex sum = 0;
        for (i64 term = 0; term < k; ++term)
          sum += load(a, batch * stride_a + (transpose_a ? row * lda + term : term * lda + row), type_a) *
                 load(b, batch * stride_b + (transpose_b ? term * ldb + column : column * ldb + term), type_b);
        store(c, batch * stride_c + column * ldc + row, type_c, sum);
      }
  return getenv("FAKE_CUBLAS_FAIL") ? 13 : 0;
}
