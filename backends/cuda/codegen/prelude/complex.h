// ---- complex numbers ----
template <class T> struct Complex { T re, im; };
template <class T> FN Complex<T> make_complex(T re, T im) { Complex<T> z = {re, im}; return z; }
template <class T> FN Complex<T> operator+(Complex<T> a, Complex<T> b) { return make_complex(a.re + b.re, a.im + b.im); }
template <class T> FN Complex<T> operator-(Complex<T> a, Complex<T> b) { return make_complex(a.re - b.re, a.im - b.im); }
template <class T> FN Complex<T> operator-(Complex<T> a) { return make_complex(-a.re, -a.im); }
template <class T> FN Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return make_complex(multiplied(a.re, b.re) - multiplied(a.im, b.im), multiplied(a.re, b.im) + multiplied(a.im, b.re));
}
template <class T> FN bool operator==(Complex<T> a, Complex<T> b) { return a.re == b.re && a.im == b.im; }
template <class T> FN bool operator!=(Complex<T> a, Complex<T> b) { return !(a == b); }

