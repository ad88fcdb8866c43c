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
template <class F> FN void phase(F f, int active = NT) {  // the first `active` threads run f
  if (threadIdx.x < active) f((int)threadIdx.x);
  __syncthreads();
}
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
template <class F> FN void phase(F f, int active = NT) {
#pragma GCC ivdep
  EACH(int, t, 0, active) f(t);
}
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

// A tree over the block, of the same shape on both machines; the result is in thread 0.
template <class T, class F> FN void block_reduce(Private<T>& value, F f) {
  SHARED(T, shared, NT);
  phase([&](int t) { shared[t] = value(t); });
  for (int half = NT / 2; half; half >>= 1)
    phase([&](int t) { shared[t] = f(shared[t], shared[t + half]); }, half);
  phase([&](int t) { value(t) = shared[0]; }, 1);
}

// ---- bits ----
template <class To, class From> FN To bits_as(From from) {
  union Both { From from; To to; FN Both() {} } both;
  both.from = from;
  return both.to;
}
template <int BYTES> struct Word;
template <> struct Word<1> { typedef u8 exact; typedef u32 wide; typedef s8 integer; };
template <> struct Word<2> { typedef u16 exact; typedef u32 wide; typedef s16 integer; };
template <> struct Word<4> { typedef u32 exact; typedef u32 wide; typedef s32 integer; };
template <> struct Word<8> { typedef u64 exact; typedef u64 wide; typedef s64 integer; };
#define EXACT(T) typename Word<sizeof(T)>::exact
#define WIDE(T) typename Word<sizeof(T)>::wide

// ---- floats narrower than f32: stored as bits, computed in f32, rounded to nearest even by `pack` ----
enum Family { IEEE, FN_, FNUZ, SATURATING };  // infinities and NaN; one NaN; one NaN in place of -0; neither
template <int EXPONENT, int MANTISSA, int BIAS, int FAMILY, class Bits> struct Narrow {
  Bits bits;
  static const u32 sign = 1u << (EXPONENT + MANTISSA);
  static const u32 top = ((1u << EXPONENT) - 1) << MANTISSA;
  static const u32 largest = FAMILY == IEEE ? top - 1 : FAMILY == FN_ ? sign - 2 : sign - 1;
};
typedef Narrow<5, 10, 15, IEEE, u16> f16;
typedef Narrow<8, 7, 127, IEEE, u16> bf16;
typedef Narrow<3, 4, 3, IEEE, u8> f8e3m4;
typedef Narrow<4, 3, 7, IEEE, u8> f8e4m3;
typedef Narrow<4, 3, 7, FN_, u8> f8e4m3fn;
typedef Narrow<4, 3, 8, FNUZ, u8> f8e4m3fnuz;
typedef Narrow<4, 3, 11, FNUZ, u8> f8e4m3b11fnuz;
typedef Narrow<5, 2, 15, IEEE, u8> f8e5m2;
typedef Narrow<5, 2, 16, FNUZ, u8> f8e5m2fnuz;
typedef Narrow<2, 1, 1, SATURATING, u8> f4e2m1fn;

FN u32 round_off(u32 value, int dropped) {  // the upper bits of `value`, ties to even
  return dropped > 24 ? 0 : (value + ((1u << (dropped - 1)) - 1) + ((value >> dropped) & 1)) >> dropped;
}
template <int E, int M, int B, int F, class Bits> FN float unpack(Narrow<E, M, B, F, Bits> packed) {
  typedef Narrow<E, M, B, F, Bits> T;
  const u32 size = packed.bits & (T::sign - 1), sign = (packed.bits & T::sign) ? 0x80000000u : 0;
  const u32 infinity = sign | 0x7f800000u, nan = sign | 0x7fc00000u;
  if (E == 8) return bits_as<float>((u32)packed.bits << 16);
  if (F == IEEE && size >= T::top) return bits_as<float>(infinity | (size & ((1u << M) - 1)) << (23 - M));
  if (F == FN_ && size > T::largest) return bits_as<float>(nan);
  if (F == FNUZ && sign && !size) return bits_as<float>(nan);
  if (size >> M) return bits_as<float>(sign | ((size >> M) + 127 - B) << 23 | (size & ((1u << M) - 1)) << (23 - M));
  const float unit = bits_as<float>((u32)(128 - B - M) << 23);
  return (sign ? -1.0f : 1.0f) * ((float)size * unit);
}
template <class T> struct Pack;
template <int E, int M, int B, int F, class Bits> struct Pack<Narrow<E, M, B, F, Bits> > {
  typedef Narrow<E, M, B, F, Bits> T;
  static FN T of(float value) { T packed = {(Bits)code(bits_as<u32>(value))}; return packed; }
  static FN u32 code(u32 pattern) {
    const u32 size = pattern & 0x7fffffffu, sign = pattern >> 31 ? T::sign : 0;
    if (size > 0x7f800000u) {
      if (F == IEEE) return sign | T::top | 1u << (M - 1) | (E == 5 && M == 10 ? (size & 0x7fffffu) >> 13 : 0);
      return F == FN_ ? sign | (T::sign - 1) : T::sign;
    }
    u32 rounded;
    if (E == 8) {
      rounded = round_off(size, 16);
    } else {
      const int exponent = (int)(size >> 23) - 127 + B;
      if (exponent >= 1)
        rounded = round_off((size & 0x7fffffu) + 0u, 23 - M) + ((u32)exponent << M);
      else
        rounded = round_off((size & 0x7fffffu) | 0x800000u, 24 - M - exponent > 25 ? 25 : 24 - M - exponent);
      if (size >= 0x7f800000u) rounded = T::largest + 1;
    }
    if (rounded > T::largest) return F == FNUZ ? T::sign : sign | (F == IEEE ? T::top : F == FN_ ? T::sign - 1 : T::largest);
    return F == FNUZ && !rounded ? 0 : sign | rounded;
  }
};
template <class T> FN float rounded(float value) { return unpack(Pack<T>::of(value)); }
template <> FN float rounded<bf16>(float value) {
  const u32 bits = bits_as<u32>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits_as<float>((bits & 0x80000000u) | 0x7fc00000u);
  return bits_as<float>((bits + 0x7fffu + ((bits >> 16) & 1)) & 0xffff0000u);
}
FN float round_to_odd(double value) {  // the f32 that rounds to narrower types as `value` itself does
  const float near = (float)value;
  if ((double)near == value || value != value || value - value != 0) return near;
  const u32 bits = bits_as<u32>(near);
  return bits_as<float>((bits - (fabs((double)near) > fabs(value))) | 1u);
}

// ---- complex numbers ----
template <class T> struct Complex { T re, im; };
template <class T> FN Complex<T> make_complex(T re, T im) { Complex<T> z = {re, im}; return z; }
template <class T> FN Complex<T> operator+(Complex<T> a, Complex<T> b) { return make_complex(a.re + b.re, a.im + b.im); }
template <class T> FN Complex<T> operator-(Complex<T> a, Complex<T> b) { return make_complex(a.re - b.re, a.im - b.im); }
template <class T> FN Complex<T> operator-(Complex<T> a) { return make_complex(-a.re, -a.im); }
template <class T> FN Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return make_complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
template <class T> FN bool operator==(Complex<T> a, Complex<T> b) { return a.re == b.re && a.im == b.im; }
template <class T> FN bool operator!=(Complex<T> a, Complex<T> b) { return !(a == b); }

// ---- integers as HLO defines them: they wrap, x / 0 is -1, x % 0 is x, too large shifts leave nothing ----
template <class T> FN T wrap_add(T a, T b) { return (T)((WIDE(T))a + (WIDE(T))b); }
template <class T> FN T wrap_subtract(T a, T b) { return (T)((WIDE(T))a - (WIDE(T))b); }
template <class T> FN T wrap_multiply(T a, T b) { return (T)((WIDE(T))a * (WIDE(T))b); }
template <class T> FN T wrap_negate(T a) { return (T)(0 - (WIDE(T))a); }
template <class T> FN T wrap_abs(T a) { return a < 0 ? wrap_negate(a) : a; }
template <class T> FN T integer_divide(T a, T b) {
  if (b == 0) return (T)~(T)0;
  return (T)-1 < 0 && b == (T)-1 ? wrap_negate(a) : (T)(a / b);
}
template <class T> FN T integer_remainder(T a, T b) {
  if (b == 0) return a;
  return (T)-1 < 0 && b == (T)-1 ? (T)0 : (T)(a % b);
}
template <class T> FN T integer_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? (T)1 : base == (T)-1 ? (exponent & 1 ? (T)-1 : (T)1) : (T)0;
  T result = 1;
  for (; exponent; exponent = (T)(exponent >> 1), base = wrap_multiply(base, base))
    if (exponent & 1) result = wrap_multiply(result, base);
  return result;
}
template <class T> FN T integer_sign(T a) { return (T)((a > 0) - (a < 0)); }
template <int BITS, class T> FN u64 low_bits(T a) { return BITS == 64 ? (u64)a : (u64)a & ((1ull << (BITS & 63)) - 1); }
template <int BITS, class T> FN T shift_left(T a, T amount) {
  const u64 n = low_bits<BITS>(amount);
  return n >= BITS ? (T)0 : (T)((u64)a << n);
}
template <int BITS, class T> FN T shift_right_logical(T a, T amount) {
  const u64 n = low_bits<BITS>(amount);
  return n >= BITS ? (T)0 : (T)(low_bits<BITS>(a) >> n);
}
template <int BITS, class T> FN T shift_right_arithmetic(T a, T amount) {
  const u64 n = low_bits<BITS>(amount);
  return (T)((s64)((u64)a << (64 - BITS)) >> (64 - BITS) >> (n >= BITS ? 63 : n));
}
template <int BITS, class T> FN T leading_zeros(T a) {
  int count = BITS;
  for (u64 rest = low_bits<BITS>(a); rest; rest >>= 1) --count;
  return (T)count;
}
template <int BITS, class T> FN T bit_count(T a) {
  int count = 0;
  for (u64 rest = low_bits<BITS>(a); rest; rest &= rest - 1) ++count;
  return (T)count;
}
FN u64 high_product(u64 a, u64 b) {
  const u64 low = 0xffffffffu, ah = a >> 32, al = a & low, bh = b >> 32, bl = b & low;
  const u64 carry = (al * bl >> 32) + (al * bh & low) + (ah * bl & low);
  return ah * bh + (al * bh >> 32) + (ah * bl >> 32) + (carry >> 32);
}
template <int BITS, class T> FN T multiply_high(T a, T b) {
  if (BITS < 64) return (T)((T)-1 < 0 ? (u64)((s64)a * (s64)b >> (BITS & 63)) : (u64)a * (u64)b >> (BITS & 63));
  u64 high = high_product((u64)a, (u64)b);
  if (a < 0) high -= (u64)b;
  if (b < 0) high -= (u64)a;
  return (T)high;
}
// Integers narrower than a byte: computed in 8 bits, wrapped after every operation.
template <int BITS> FN s8 wrap_signed(s8 a) { return (s8)((s8)((u8)a << (8 - BITS)) >> (8 - BITS)); }
template <int BITS> FN u8 wrap_unsigned(u8 a) { return a & ((1 << BITS) - 1); }

// ---- floats: NaN wins over numbers, +0 is larger than -0 ----
template <class T> FN bool is_negative(T a) { return bits_as<typename Word<sizeof(T)>::integer>(a) < 0; }
template <class T> FN T float_max(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b > a ? b : is_negative(a) ? b : a; }
template <class T> FN T float_min(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b < a ? b : is_negative(a) ? a : b; }
template <class T> FN T integer_max(T a, T b) { return a > b ? a : b; }
template <class T> FN T integer_min(T a, T b) { return a < b ? a : b; }
template <class T> FN T float_sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a; }
template <class T> FN typename Word<sizeof(T)>::integer order_key(T a) {  // integers in total order
  typedef typename Word<sizeof(T)>::integer Integer;
  const Integer bits = bits_as<Integer>(a);
  return bits ^ ((bits >> (8 * sizeof(T) - 1)) & (Integer)((EXACT(T))~0ull >> 1));
}
template <int E, int M, class T> FN T reduce_precision(T value) {
  typedef EXACT(T) Bits;
  const int own_e = sizeof(T) == 8 ? 11 : 8, own_m = sizeof(T) == 8 ? 52 : 23;
  const Bits one = 1, sign = one << (own_e + own_m), infinity = ((one << own_e) - 1) << own_m;
  const Bits pattern = bits_as<Bits>(value);
  Bits size = pattern & ~sign;
  if (size > infinity) return value;
  if (M < own_m) {
    const int dropped = M < own_m ? own_m - M : 1;
    size += ((size >> dropped) & 1) + ((one << (dropped - 1)) - 1);
    size &= ~((one << dropped) - 1);
  }
  if (E < own_e) {
    const Bits own_bias = (one << (own_e - 1)) - 1, bias = (one << (E - 1)) - 1;
    if (size >= (own_bias + bias + 1) << own_m) size = infinity;
    else if (size < (own_bias - bias + 1) << own_m) size = 0;
  }
  return bits_as<T>((Bits)(size | (pattern & sign)));
}
// Truncated, saturated at the limits of the type; NaN becomes 0. LIMIT is 2 to the number of value bits.
template <class To, class From> FN To float_to_integer(From x, From below, From limit, To low, To high) {
  return x != x ? (To)0 : x <= below ? low : x >= limit ? high : (To)x;
}

// ---- indices ----
FN i64 clamped(i64 start, i64 limit) { return start < 0 ? 0 : start > limit ? limit : start; }
FN i64 index_of(u64 start) { return start >> 63 ? (i64)(~0ull >> 1) : (i64)start; }
