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
typedef Narrow<2, 3, 1, SATURATING, u8> f6e2m3fn;
typedef Narrow<3, 2, 3, SATURATING, u8> f6e3m2fn;

template <class T> FN T where(bool condition, T yes, T no) {  // no branch, so that loops become vectors
  const T mask = (T)0 - (T)condition;
  return (yes & mask) | (no & ~mask);
}
FN u32 round_off(u32 value, int dropped) {  // the upper bits of `value`, ties to even
  return (value + ((1u << (dropped - 1)) - 1) + ((value >> dropped) & 1)) >> dropped;
}
template <int E, int M, int B, int F, class Bits> FN float unpack(Narrow<E, M, B, F, Bits> packed) {
  typedef Narrow<E, M, B, F, Bits> T;
  if (E == 8) return bits_as<float>((u32)packed.bits << 16);
  const u32 size = packed.bits & (T::sign - 1), sign = (packed.bits & T::sign) ? 0x80000000u : 0;
  const u32 nan = 0x7fc00000u, fraction = (size & ((1u << M) - 1)) << (23 - M);
  const float unit = bits_as<float>((u32)(128 - B - M) << 23);
  u32 found = where<u32>(size >> M, (size << (23 - M)) + ((u32)(127 - B) << 23), bits_as<u32>((float)(s32)size * unit));
  if (F == IEEE) found = where<u32>(size >= T::top, 0x7f800000u | fraction, found);
  if (F == FN_) found = where<u32>(size > T::largest, nan, found);
  if (F == FNUZ) found = where<u32>(sign && !size, nan, found);
  return bits_as<float>(sign | found);
}
// What a GPU converts by itself has the bits of the code here, but for NaN, which it makes 0x7fff: where a NaN may have
// another payload, that of the code here is selected.
#if defined(__CUDA_ARCH__)
FN u32 hardware_f16(float value) { u16 bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); return bits; }
FN float hardware_f32(u16 bits) { float value; asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits)); return value; }
template <> FN float unpack(f16 packed) {
  const u32 size = packed.bits & 0x7fffu, nan = 0x7f800000u | size << 13 | (u32)(packed.bits & 0x8000u) << 16;
  return size > 0x7c00u ? bits_as<float>(nan) : hardware_f32(packed.bits);
}
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Two results of 16 bits, of which the lower one is zero: the upper one as an f32.
FN float hardware_bf16(float value) {
  u32 bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(value), "f"(0.f));
  return bits_as<float>(bits);
}
#endif
template <class T> struct Pack;
template <int E, int M, int B, int F, class Bits> struct Pack<Narrow<E, M, B, F, Bits> > {
  typedef Narrow<E, M, B, F, Bits> T;
  static FN T of(float value) { T packed = {(Bits)code(bits_as<u32>(value))}; return packed; }
  static FN u32 code(u32 pattern) {
#if defined(__CUDA_ARCH__)
    if (E == 5 && M == 10 && (pattern & 0x7fffffffu) <= 0x7f800000u) return hardware_f16(bits_as<float>(pattern));
#endif
    const u32 size = pattern & 0x7fffffffu, sign = pattern >> 31 ? T::sign : 0;
    u32 found = round_off(size, 23 - M);
    if (E != 8) {
      // Below the normal numbers, the sum with a power of two is rounded where the result has to be.
      const u32 power = (u32)(151 - B - M) << 23;
      const u32 small = bits_as<u32>(bits_as<float>(size) + bits_as<float>(power)) - power;
      found = where<u32>(size >> 23 > (u32)(127 - B), found - ((u32)(127 - B) << M), small);
      found = where<u32>(size >= 0x7f800000u, T::largest + 1, found);
    }
    const u32 beyond = F == IEEE ? T::top : F == FN_ ? T::sign - 1 : T::largest;
    const u32 payload = (size & 0x7fffffu) >> (23 - M);  // kept, for who looks at bits
    const u32 nan = F == IEEE ? T::top | where<u32>(payload != 0, payload, 1u << (M - 1)) : F == FN_ ? T::sign - 1 : T::sign;
    if (F == FNUZ) return where<u32>(size > 0x7f800000u || found > T::largest, T::sign, where<u32>(found == 0, 0, sign | found));
    found = where<u32>(found > T::largest, beyond, found);
    if (F != SATURATING) return sign | where<u32>(size > 0x7f800000u, nan, found);
    return where<u32>(size > 0x7f800000u, nan, sign | found);
  }
};
// Powers of two and NaN; halfway is rounded up, except below the smallest of them.
struct f8e8m0fnu { u8 bits; };
FN float unpack(f8e8m0fnu packed) {
  return bits_as<float>(packed.bits == 255 ? 0x7fc00000u : packed.bits ? (u32)packed.bits << 23 : 0x400000u);
}
template <> struct Pack<f8e8m0fnu> {
  static FN f8e8m0fnu of(float value) {
    const u32 pattern = bits_as<u32>(value), exponent = pattern >> 23, rest = pattern & 0x7fffffu;
    const u32 up = rest > 0x400000u || (rest == 0x400000u && exponent);
    f8e8m0fnu packed = {(u8)(!pattern || exponent > 254 || exponent + up > 254 ? 255 : exponent + up)};
    return packed;
  }
};
template <class T> FN T of_bits(u64 bits) { T packed; packed.bits = (decltype(packed.bits))bits; return packed; }
template <class T> FN float rounded(float value) { return unpack(Pack<T>::of(value)); }
template <> FN float rounded<bf16>(float value) {
  const u32 bits = bits_as<u32>(value), upper = bits & 0xffff0000u;
  const u32 nan = upper & 0x7f0000u ? upper : upper | 0x400000u;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return value != value ? bits_as<float>(nan) : hardware_bf16(value);
#else
  const u32 near = (bits + 0x7fffu + ((bits >> 16) & 1)) & 0xffff0000u;
  const bool is_nan = value != value;
  return bits_as<float>(is_nan ? nan : near);
#endif
}
// The same of what is computed from values of T. NaN is then one of them, or what a machine makes: its low bits are
// 0 on a CPU, and rounding leaves it as it is; a GPU's is 0x7fffffff, which becomes the 0x7fff of its conversions.
template <class T> FN float rounded_result(float value) { return rounded<T>(value); }
#if !defined(__CUDACC__)
template <> FN float rounded_result<bf16>(float value) {
  const u32 bits = bits_as<u32>(value);
  return bits_as<float>((bits + 0x7fffu + ((bits >> 16) & 1)) & 0xffff0000u);
}
#elif defined(__CUDA_ARCH__)
template <> FN float rounded_result<f16>(float value) { return hardware_f32((u16)hardware_f16(value)); }
#if __CUDA_ARCH__ >= 800
template <> FN float rounded_result<bf16>(float value) { return hardware_bf16(value); }
#endif
#endif
// Sums and products of values of bf16. Rounding what f32 gives rounds once: a product of two has 16 bits, which f32
// holds wherever bf16 has to round it, and of a sum f32 keeps more than twice the bits of bf16. So hardware that adds
// pairs of bf16 gives the same; an f32 that holds one is such a pair, whose lower half stays zero.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define ON_BF16(name, instruction, software) \
  FN float name(float a, float b) { \
    u32 bits; \
    asm(instruction ".rn.bf16x2 %0, %1, %2;" : "=r"(bits) : "r"(bits_as<u32>(a)), "r"(bits_as<u32>(b))); \
    return bits_as<float>(bits); \
  }
#else
#define ON_BF16(name, instruction, software) \
  FN float name(float a, float b) { return rounded_result<bf16>(software); }
#endif
ON_BF16(bf16_sum, "add", a + b)
ON_BF16(bf16_difference, "sub", a - b)
ON_BF16(bf16_product, "mul", multiplied(a, b))
FN float round_to_odd(double value) {  // the f32 that rounds to narrower types as `value` itself does
  const float near = (float)value;
  if ((double)near == value || value != value || value - value != 0) return near;
  const u32 bits = bits_as<u32>(near);
  return bits_as<float>((bits - (fabs((double)near) > fabs(value))) | 1u);
}

