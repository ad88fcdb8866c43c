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
template <class T> FN T float_max(T a, T b) {
  typedef EXACT(T) Bits;
  const Bits x = bits_as<Bits>(a), y = bits_as<Bits>(b);
  const Bits found = where<Bits>(a == b, x & y, where<Bits>(a > b, x, y));  // y where b is NaN
  return bits_as<T>(where<Bits>(a != a, x, found));
}
template <class T> FN T float_min(T a, T b) {
  typedef EXACT(T) Bits;
  const Bits x = bits_as<Bits>(a), y = bits_as<Bits>(b);
  const Bits found = where<Bits>(a == b, x | y, where<Bits>(a < b, x, y));  // y where b is NaN
  return bits_as<T>(where<Bits>(a != a, x, found));
}
template <class T> FN T integer_max(T a, T b) { return a > b ? a : b; }
template <class T> FN T integer_min(T a, T b) { return a < b ? a : b; }
template <class T> FN T float_sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a; }
template <class T> FN typename Word<sizeof(T)>::integer order_key(T a) {  // integers in total order
  typedef typename Word<sizeof(T)>::integer Integer;
  const Integer bits = bits_as<Integer>(a);
  return bits ^ ((bits >> (8 * sizeof(T) - 1)) & (Integer)((EXACT(T))~0ull >> 1));
}
// Patterns of OWN_E exponent and OWN_M mantissa bits, rounded to E and M; what is subnormal in the new exponent is 0.
template <int E, int M, int OWN_E, int OWN_M, class Bits> FN Bits reduced_pattern(Bits pattern) {
  const Bits one = 1, sign = (Bits)(one << (OWN_E + OWN_M)), infinity = (Bits)(((one << OWN_E) - 1) << OWN_M);
  Bits size = (Bits)(pattern & ~sign);
  if (size > infinity) return pattern;
  if (M < OWN_M) {
    const int dropped = M < OWN_M ? OWN_M - M : 1;
    size = (Bits)(size + ((size >> dropped) & 1) + ((one << (dropped - 1)) - 1));
    size = (Bits)(size & ~((one << dropped) - 1));
  }
  if (E < OWN_E) {
    const Bits own_bias = (Bits)((one << (OWN_E - 1)) - 1), bias = (Bits)((one << (E - 1)) - 1);
    if (size >= (Bits)(own_bias + bias + 1) << OWN_M) size = infinity;
    else if (size < (Bits)(own_bias - bias + 1) << OWN_M) size = 0;
  }
  return (Bits)(size | (pattern & sign));
}
template <int E, int M, class T> FN T reduce_precision(T value) {
  const int own_e = sizeof(T) == 8 ? 11 : 8, own_m = sizeof(T) == 8 ? 52 : 23;
  return bits_as<T>(reduced_pattern<E, M, own_e, own_m>(bits_as<EXACT(T)>(value)));
}
template <int E, int M> FN float reduce_precision_f16(float value) {
  const f16 reduced = {reduced_pattern<E, M, 5, 10>(Pack<f16>::of(value).bits)};
  return unpack(reduced);
}
// Truncated, then one further from zero where the random bits are below as many bits of the dropped fraction.
template <int BITS, class T, class Noise> FN T stochastically_rounded(T x, Noise noise) {
  if (x - x != 0) return x;
  const T whole = trunc(x);
  const double fraction = ldexp(fabs((double)x - (double)whole), BITS);
  return (u64)noise < (u64)fraction ? whole + (x < 0 ? (T)-1 : (T)1) : whole;
}
// Only what has no sign is truncated by a cast: g++ makes (float)(int)x to trunc(x), which keeps that of -0.5.
template <class To, class From> FN To truncated(From x) {
  const To size = (To)fabs(x);
  return x < 0 ? wrap_negate(size) : size;
}
// Truncated, saturated at the limits of the type; NaN becomes 0. LIMIT is 2 to the number of value bits.
template <class To, class From> FN To float_to_integer(From x, From below, From limit, To low, To high) {
  return x != x ? (To)0 : x <= below ? low : x >= limit ? high : truncated<To>(x);
}

// ---- indices ----
FN i64 clamped(i64 start, i64 limit) { return start < 0 ? 0 : start > limit ? limit : start; }
FN i64 index_of(u64 start) { return start >> 63 ? (i64)(~0ull >> 1) : (i64)start; }
