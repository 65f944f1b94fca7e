// The scalar functions of ops.def, mathematics. Needs scalar_functions.h before it.
#ifndef SVOD_SCALAR_MATH
#define SVOD_SCALAR_MATH
#ifndef SVOD_SCALAR_FUNCTIONS
#include "compiler/ir/scalar_functions.h"
#endif

namespace scalar {

#define SVOD_CALL(name, builtin)                                                         \
  template <Floating T> SVOD_INLINE T name(T a) {                                        \
    if constexpr (kIsFloat<T>)                                                           \
      return __builtin_##builtin##f(a);                                                  \
    else                                                                                 \
      return __builtin_##builtin(a);                                                     \
  }
SVOD_CALL(sqrt_, sqrt)
SVOD_CALL(exp_, exp)
SVOD_CALL(log_, log) SVOD_CALL(log1p_, log1p) SVOD_CALL(sin_, sin) SVOD_CALL(cos_, cos)
    SVOD_CALL(tan_, tan) SVOD_CALL(asin_, asin) SVOD_CALL(acos_, acos)
        SVOD_CALL(atan_, atan) SVOD_CALL(sinh_, sinh) SVOD_CALL(cosh_, cosh)
            SVOD_CALL(tanh_, tanh) SVOD_CALL(asinh_, asinh) SVOD_CALL(acosh_, acosh)
                SVOD_CALL(atanh_, atanh) SVOD_CALL(erf_, erf) template <Floating T>
                SVOD_INLINE T sigmoid_(T a) {
  return T(1) / (T(1) + exp_(T(-a)));
}
template <Floating T> SVOD_INLINE T atan2_(T a, T b) {
  if constexpr (kIsFloat<T>)
    return __builtin_atan2f(a, b);
  else
    return __builtin_atan2(a, b);
}
template <class T> SVOD_INLINE T pow_(T a, T b) {
  if constexpr (kSame<T, float>)
    return __builtin_powf(a, b);
  else if constexpr (kSame<T, double>)
    return __builtin_pow(a, b);
  else {
    T result = T(1), base = a;
    if constexpr (Signed<T>)
      if (b < 0) return a == T(1) ? T(1) : a == T(-1) ? T(b & 1 ? -1 : 1) : T(0);
    for (T n = b; n != 0; n = T(n >> 1), base = T(base * base))
      if (n & 1) result = T(result * base);
    return result;
  }
}

} // namespace scalar
#endif
