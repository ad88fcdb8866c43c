// ---- functions of complex numbers: computed in f64, C99's answers for zeros, infinities and NaN ----
typedef Complex<double> Wide;
FN bool is_finite(double a) { return a - a == 0; }
FN bool is_infinite(double a) { return a == a && a - a != 0; }
FN double infinite() { return bits_as<double>(0x7ff0000000000000ull); }
FN double not_a_number() { return bits_as<double>(0x7ff8000000000000ull); }
FN double signed_as(double size, double sign) { return bits_as<double>(bits_as<u64>(fabs(size)) | (bits_as<u64>(sign) >> 63 << 63)); }
template <class T> FN Wide widened(Complex<T> z) { return make_complex((double)z.re, (double)z.im); }
template <class T> FN Complex<T> narrowed(Wide z) { return make_complex((T)z.re, (T)z.im); }
// e to the x times a, which may be finite where the power is not.
FN double scaled_exp(double x, double a) { return fabs(x) > 700 && is_finite(x) ? exp(x / 2) * a * exp(x / 2) : exp(x) * a; }

FN double length(Wide z) {
  const double a = fabs(z.re), b = fabs(z.im);
  if (is_infinite(a) || is_infinite(b)) return infinite();
  return hypot(a, b);
}
// Smith's quotient in the type itself, as NumPy divides; annex G of C99 where both parts got lost.
template <class T> FN Complex<T> operator/(Complex<T> a, Complex<T> b) {
  Complex<T> q;
  const T size_re = fabs(b.re), size_im = fabs(b.im);
  if (size_re >= size_im) {
    if (size_re == 0 && size_im == 0) {
      q = make_complex(a.re / size_re, a.im / size_re);
    } else {
      const T ratio = b.im / b.re, scale = (T)1 / (b.re + b.im * ratio);
      q = make_complex((a.re + multiplied(a.im, ratio)) * scale, (a.im - multiplied(a.re, ratio)) * scale);
    }
  } else {
    const T ratio = b.re / b.im, scale = (T)1 / (b.im + b.re * ratio);
    q = make_complex((multiplied(a.re, ratio) + a.im) * scale, (multiplied(a.im, ratio) - a.re) * scale);
  }
  if (q.re == q.re || q.im == q.im) return q;
  const bool a_infinite = is_infinite(a.re) || is_infinite(a.im), b_infinite = is_infinite(b.re) || is_infinite(b.im);
  if (a_infinite && is_finite(b.re) && is_finite(b.im)) {
    const Complex<T> box = make_complex((T)signed_as(is_infinite(a.re), a.re), (T)signed_as(is_infinite(a.im), a.im));
    const T large = (T)infinite();
    q = make_complex(large * (multiplied(box.re, b.re) + multiplied(box.im, b.im)),
                     large * (multiplied(box.im, b.re) - multiplied(box.re, b.im)));
  }
  if (b_infinite && is_finite(a.re) && is_finite(a.im)) {
    const Complex<T> box = make_complex((T)signed_as(is_infinite(b.re), b.re), (T)signed_as(is_infinite(b.im), b.im));
    q = make_complex((T)0 * (a.re * box.re + a.im * box.im), (T)0 * (a.im * box.re - a.re * box.im));
  }
  return q;
}

FN Wide wide_exp(Wide z) {
  if (z.im == 0) return make_complex(exp(z.re), z.im);
  if (is_finite(z.im)) {
    if (z.re == -infinite()) return make_complex(signed_as(0, cos(z.im)), signed_as(0, sin(z.im)));
    return make_complex(scaled_exp(z.re, cos(z.im)), scaled_exp(z.re, sin(z.im)));
  }
  if (z.re == -infinite()) return make_complex(0.0, signed_as(0, z.im));
  if (z.re == infinite()) return make_complex(infinite(), not_a_number());
  return make_complex(not_a_number(), not_a_number());
}
FN Wide wide_log(Wide z) {
  const double a = fabs(z.re), b = fabs(z.im), large = a > b ? a : b, small = a > b ? b : a;
  const double size = length(z);
  // Near the unit circle the logarithm of the length has none of the length's digits.
  const bool near = size > 0.5 && size < 2;
  return make_complex(near ? log1p((large - 1) * (large + 1) + small * small) / 2 : log(size), atan2(z.im, z.re));
}
FN Wide wide_sqrt(Wide z) {
  if (is_infinite(z.im)) return make_complex(infinite(), z.im);
  if (z.re == 0 && z.im == 0) return make_complex(0.0, z.im);
  if (z.re != z.re) return make_complex(z.re, not_a_number());
  if (is_infinite(z.re)) {
    const double other = z.im != z.im ? z.im : 0;
    return z.re > 0 ? make_complex(z.re, z.im != z.im ? z.im : signed_as(0, z.im)) : make_complex(fabs(other), signed_as(infinite(), z.im));
  }
  const bool huge = fabs(z.re) > 1e307 || fabs(z.im) > 1e307, tiny = fabs(z.re) < 1e-300 && fabs(z.im) < 1e-300;
  const double before = huge ? 0.25 : tiny ? 0x1p108 : 1, after = huge ? 2 : tiny ? 0x1p-54 : 1;
  const double x = z.re * before, y = z.im * before, root = sqrt((fabs(x) + hypot(x, y)) * 0.5);
  const double other = y / (2 * root);
  return x >= 0 ? make_complex(root * after, other * after) : make_complex(fabs(other) * after, signed_as(root, y) * after);
}
// cosh x · cos y + i · sinh x · sin y, or with sinh and cosh exchanged: what sines and cosines are made of.
FN Wide wide_sinh(Wide z) {
  if (is_finite(z.re) && is_finite(z.im)) {
    if (z.im == 0) return make_complex(sinh(z.re), z.im);
    if (fabs(z.re) < 22) return make_complex(sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im));
    return make_complex(signed_as(1, z.re) * scaled_exp(fabs(z.re), cos(z.im) / 2), scaled_exp(fabs(z.re), sin(z.im) / 2));
  }
  if (z.re == 0) return make_complex(z.re, not_a_number());
  if (z.im == 0) return make_complex(z.re, z.im);
  if (!is_infinite(z.re)) return make_complex(not_a_number(), not_a_number());
  if (!is_finite(z.im)) return make_complex(-infinite(), not_a_number());  // either sign is right
  return make_complex(signed_as(infinite(), z.re * cos(z.im)), signed_as(infinite(), sin(z.im)));
}
FN Wide wide_cosh(Wide z) {
  if (is_finite(z.re) && is_finite(z.im)) {
    if (z.im == 0) return make_complex(cosh(z.re), signed_as(0, z.re) * signed_as(1, z.im));
    if (fabs(z.re) < 22) return make_complex(cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im));
    return make_complex(scaled_exp(fabs(z.re), cos(z.im) / 2), signed_as(1, z.re) * scaled_exp(fabs(z.re), sin(z.im) / 2));
  }
  if (z.re == 0) return make_complex(not_a_number(), 0.0);
  if (z.im == 0) return make_complex(z.re * z.re, z.re != z.re ? z.im : signed_as(0, z.re) * signed_as(1, z.im));
  if (!is_infinite(z.re)) return make_complex(not_a_number(), not_a_number());
  if (!is_finite(z.im)) return make_complex(infinite(), not_a_number());
  return make_complex(signed_as(infinite(), cos(z.im)), signed_as(infinite(), z.re * sin(z.im)));
}
// Kahan, Branch cuts for complex elementary functions (1987).
FN Wide wide_tanh(Wide z) {
  if (!is_finite(z.re)) {
    if (z.re != z.re) return make_complex(z.re, z.im == 0 ? z.im : not_a_number());
    const double angle = is_finite(z.im) ? sin(2 * z.im) : z.im;
    return make_complex(signed_as(1, z.re), signed_as(0, angle));
  }
  if (!is_finite(z.im)) return make_complex(z.re == 0 ? z.re : not_a_number(), not_a_number());
  if (fabs(z.re) >= 22) {
    const double decay = exp(-fabs(z.re));
    return make_complex(signed_as(1, z.re), 4 * sin(z.im) * cos(z.im) * decay * decay);
  }
  const double t = tan(z.im), beta = 1 + t * t, s = sinh(z.re), rho = sqrt(1 + s * s), below = 1 + beta * s * s;
  return make_complex(beta * rho * s / below, t / below);
}
FN Wide turned(Wide z) { return make_complex(-z.im, z.re); }       // times i
FN Wide turned_back(Wide z) { return make_complex(z.im, -z.re); }  // times -i

template <class T> FN T complex_abs(Complex<T> z) { return (T)length(widened(z)); }
template <class T> FN Complex<T> complex_sign(Complex<T> z) {
  const T size = complex_abs(z), divisor = size == 0 ? (T)1 : size;
  return make_complex(z.re / divisor, z.im / divisor);
}
template <class T> FN Complex<T> complex_exp(Complex<T> z) { return narrowed<T>(wide_exp(widened(z))); }
template <class T> FN Complex<T> complex_log(Complex<T> z) { return narrowed<T>(wide_log(widened(z))); }
template <class T> FN Complex<T> complex_sqrt(Complex<T> z) { return narrowed<T>(wide_sqrt(widened(z))); }
template <class T> FN Complex<T> complex_sin(Complex<T> z) { return narrowed<T>(turned_back(wide_sinh(turned(widened(z))))); }
template <class T> FN Complex<T> complex_cos(Complex<T> z) { return narrowed<T>(wide_cosh(turned(widened(z)))); }
template <class T> FN Complex<T> complex_tanh(Complex<T> z) { return narrowed<T>(wide_tanh(widened(z))); }
template <class T> FN Complex<T> complex_tan(Complex<T> z) { return narrowed<T>(turned_back(wide_tanh(turned(widened(z))))); }
template <class T> FN Complex<T> complex_expm1(Complex<T> z) {
  const double x = z.re, y = z.im, half = sin(y / 2);
  return make_complex((T)(expm1(x) * cos(y) - 2 * half * half), (T)(exp(x) * sin(y)));
}
template <class T> FN Complex<T> complex_log1p(Complex<T> z) {
  const double x = z.re, y = z.im;
  const bool near = fabs(x) < 0.5 && fabs(y) < 0.5;
  const double size = near ? log1p(x * (x + 2) + y * y) / 2 : log(length(make_complex(x + 1, y)));
  return make_complex((T)size, (T)atan2(y, (double)(z.re + (T)1)));
}
template <class T> FN Complex<T> complex_rsqrt(Complex<T> z) { return make_complex((T)1, (T)0) / complex_sqrt(z); }
template <class T> FN Complex<T> complex_logistic(Complex<T> z) {
  return make_complex((T)1, (T)0) / (complex_exp(-z) + make_complex((T)1, (T)0));
}
template <class T> FN Complex<T> complex_power(Complex<T> base, Complex<T> exponent) {
  const bool real = exponent.im == 0, positive = exponent.re > 0;
  if ((base.re == 1 && base.im == 0) || (exponent.re == 0 && real)) return make_complex((T)1, (T)0);
  if (base.re == (T)infinite() && base.im == 0 && real && exponent.re != 0 && exponent.re == exponent.re)
    return make_complex(positive ? (T)infinite() : (T)0, (T)0);
  if (base.re == 0 && base.im == 0 && real && positive) return make_complex((T)0, (T)0);
  return complex_exp(exponent * complex_log(base));
}
template <class T> FN Complex<T> complex_atan2(Complex<T> y, Complex<T> x) {
  const Complex<T> i = make_complex((T)0, (T)1), minus_i = make_complex((T)-0.0, (T)-1);
  return minus_i * complex_log((x + i * y) / complex_sqrt(x * x + y * y));
}
