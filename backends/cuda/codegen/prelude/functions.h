// ---- functions of f32: polynomials without branches, the same bits on every machine ----
//
// Within 3 units in the last place. `fma` rounds once everywhere; nothing else here is contracted.
FN float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
FN float power_of_two(s32 exponent) { return bits_as<float>((u32)(exponent + 127) << 23); }

// x = count * log(2) + rest; the nearest count is read off the low bits of a sum.
struct Halvings { s32 count; float rest; };
FN Halvings halvings(float x) {
  const float shifted = multiply_add(x, 1.44269502f, 12582912.0f), count = shifted - 12582912.0f;
  const float rest = multiply_add(count, -0.693145752f, x);
  Halvings found = {bits_as<s32>(shifted) - 0x4b400000, multiply_add(count, -1.42860677e-6f, rest)};
  return found;
}
FN float expm1_near_zero(float x) {  // |x| <= log(2) / 2
  float p = multiply_add(1.991363242e-04f, x, 1.394106424e-03f);
  p = multiply_add(p, x, 8.333274163e-03f);
  p = multiply_add(p, x, 4.166635498e-02f);
  p = multiply_add(p, x, 1.666666716e-01f);
  p = multiply_add(p, x, 0.5f);
  return multiply_add(x * x, p, x);
}
FN float at_most(float x, float high) { return x > high ? high : x; }  // NaN stays
FN float limited(float x, float low, float high) { return at_most(x < low ? low : x, high); }
FN float exponential(float x) {
  const Halvings found = halvings(limited(x, -105.0f, 90.0f));
  const s32 half = found.count >> 1;
  return (expm1_near_zero(found.rest) + 1.0f) * power_of_two(half) * power_of_two(found.count - half);
}
FN float normal_exponential(float x) {  // the same where the result is a normal number
  const Halvings found = halvings(x);
  return (expm1_near_zero(found.rest) + 1.0f) * power_of_two(found.count);
}
FN float normal_exponential_minus_one(float x) {  // from -30 to 89; -0 becomes +0
  const Halvings found = halvings(x);
  const float scale = power_of_two(found.count - 1);
  return 2.0f * multiply_add(scale, expm1_near_zero(found.rest), scale - 0.5f);
}
FN float exponential_minus_one(float x) {
  const float result = normal_exponential_minus_one(limited(x, -30.0f, 89.0f));
  return x == 0 ? x : result;
}
FN float natural_log(float x) {
  const bool is_tiny = x < 1.17549435e-38f;
  const float larger = x * 8388608.0f, scaled = is_tiny ? larger : x;
  const s32 bits = (s32)(bits_as<u32>(scaled) - 0x3f3504f3u), exponent = bits >> 23;
  const float f = bits_as<float>((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const float count = (float)(exponent - (is_tiny ? 23 : 0)), square = f * f;
  float p = multiply_add(-7.860873640e-02f, f, 1.288347095e-01f);
  p = multiply_add(p, f, -1.312911361e-01f);
  p = multiply_add(p, f, 1.418096125e-01f);
  p = multiply_add(p, f, -1.662449837e-01f);
  p = multiply_add(p, f, 2.000229508e-01f);
  p = multiply_add(p, f, -2.500081062e-01f);
  p = multiply_add(p, f, 3.333331645e-01f);
  p = multiply_add(p * f, square, multiply_add(count, 1.42860677e-6f, -0.5f * square));
  const u32 pattern = bits_as<u32>(x);
  u32 found = bits_as<u32>(multiply_add(count, 0.693145752f, p + f));
  found = where<u32>(pattern >= 0x7f800000u, where<u32>(pattern > 0x80000000u, 0x7fc00000u, pattern), found);
  return bits_as<float>(where<u32>((pattern & 0x7fffffffu) == 0, 0xff800000u, found));
}
FN float log_plus_one(float x) {
  const float sum = 1.0f + x, lost = x - (sum - 1.0f), share = lost / sum;
  const u32 pattern = bits_as<u32>(share), small = bits_as<u32>(x);
  const bool is_lost = (pattern & 0x7fffffffu) > 0x7f800000u;  // of -1 and of infinity
  const float result = natural_log(sum) + bits_as<float>(where<u32>(is_lost, 0, pattern));
  return bits_as<float>(where<u32>((small & 0x7fffffffu) == 0, small, bits_as<u32>(result)));
}
FN float hyperbolic_tangent(float x) {
  const float t = normal_exponential_minus_one(2.0f * at_most(fabsf(x), 10.0f));
  return copysignf(t / (t + 2.0f), x);
}
FN float error_function(float x) {
  const float size = at_most(fabsf(x), 4.0f), square = size * size;
  float p = multiply_add(8.215423441e-05f, square, -8.105965098e-04f);
  p = multiply_add(p, square, 5.197796971e-03f);
  p = multiply_add(p, square, -2.685810439e-02f);
  p = multiply_add(p, square, 1.128367260e-01f);
  p = multiply_add(p, square, -3.761263192e-01f);
  p = multiply_add(p, square, 1.283791661e-01f);
  float g = multiply_add(1.982206741e-04f, size, -3.065499477e-03f);
  g = multiply_add(g, size, 2.231524698e-02f);
  g = multiply_add(g, size, -1.041137427e-01f);
  g = multiply_add(g, size, -6.369760036e-01f);
  g = multiply_add(g, size, -1.127797246e+00f);
  g = multiply_add(g, size, -1.664393203e-04f);
  const float result = size < 0.9f ? multiply_add(size, p, size) : 1.0f - normal_exponential(g);
  return copysignf(result, x);
}
FN double exponential(double x) { return exp(x); }
FN double exponential_minus_one(double x) { return expm1(x); }
FN double natural_log(double x) { return log(x); }
FN double log_plus_one(double x) { return log1p(x); }
FN double hyperbolic_tangent(double x) { return tanh(x); }
FN double error_function(double x) { return erf(x); }
