// Vectors for compilers without Clang's: what --emit=source takes in their place. A
// vector is two halves down to its lanes, so that each of its operations is one of the
// lanes' with nothing left to unroll, and a compiler sees as many scalars as there are
// lanes. Stands in scalar_functions.h, where SVOD_PLAIN is defined.
//
// Signed numbers wrap, as the compiler is told (source_file.cpp).
template <class E, int kLanes> struct Vector;

template <class E, int kLanes> struct HalfVector {
  using Type = Vector<E, kLanes / 2>;
};
template <class E> struct HalfVector<E, 2> {
  using Type = E;
};

// What a comparison of lanes gives, and a choice of a lane's number.
template <class M, class B> SVOD_INLINE M lane_mask(B holds) {
  if constexpr (Traits<M>::kLanes == 1)
    return M(-M(holds));
  else
    return holds;
}

template <class E, int kCount> struct Vector {
  static_assert(kCount > 1 && (kCount & (kCount - 1)) == 0, "a power of two");
  using Half = typename HalfVector<E, kCount>::Type;
  using Mask = Vector<typename Lane<E>::Int, kCount>;
  using HalfMask = typename HalfVector<typename Lane<E>::Int, kCount>::Type;

  Half lo, hi;

  Vector() = default;
  SVOD_INLINE Vector(E all) : lo(all), hi(all) {}
  SVOD_INLINE Vector(Half low, Half high) : lo(low), hi(high) {}
  // The same bits.
  template <class F, int kOther> SVOD_INLINE explicit Vector(Vector<F, kOther> bits) {
    *this = bits_<Vector>(bits);
  }

  SVOD_INLINE E operator[](int lane) const {
    if constexpr (kCount == 2)
      return lane == 0 ? lo : hi;
    else
      return lane < kCount / 2 ? lo[lane] : hi[lane - kCount / 2];
  }
  SVOD_INLINE E& operator[](int lane) {
    if constexpr (kCount == 2)
      return lane == 0 ? lo : hi;
    else
      return lane < kCount / 2 ? lo[lane] : hi[lane - kCount / 2];
  }

#define SVOD_LANES(op)                                                                   \
  SVOD_INLINE friend Vector operator op(Vector a, Vector b) {                            \
    return Vector(Half(a.lo op b.lo), Half(a.hi op b.hi));                               \
  }                                                                                      \
  SVOD_INLINE Vector& operator op##=(Vector b) { return *this = *this op b; }
  SVOD_LANES(+)
  SVOD_LANES(-)
  SVOD_LANES(*)
  SVOD_LANES(/)
  SVOD_LANES(%)
  SVOD_LANES(&)
  SVOD_LANES(|)
  SVOD_LANES(^)
  SVOD_LANES(<<)
  SVOD_LANES(>>)
#undef SVOD_LANES
#define SVOD_LANES(op)                                                                   \
  SVOD_INLINE friend Mask operator op(Vector a, Vector b) {                              \
    return Mask(lane_mask<HalfMask>(a.lo op b.lo), lane_mask<HalfMask>(a.hi op b.hi));   \
  }
  SVOD_LANES(<)
  SVOD_LANES(>)
  SVOD_LANES(<=)
  SVOD_LANES(>=)
  SVOD_LANES(==)
  SVOD_LANES(!=)
#undef SVOD_LANES
  SVOD_INLINE Vector operator-() const { return Vector(Half(-lo), Half(-hi)); }
  SVOD_INLINE Vector operator~() const { return Vector(Half(~lo), Half(~hi)); }
  SVOD_INLINE Mask operator!() const { return *this == Vector(E(0)); }
};

template <class E, int kCount> struct Traits<Vector<E, kCount>> {
  using Element = E;
  template <class F> using Like = Vector<F, kCount>;
  static constexpr int kLanes = kCount;
};

// Lanes from memory, and into it.
template <class T, class E> SVOD_INLINE T gathered(const E* from) {
  constexpr int kLanes = Traits<T>::kLanes;
  if constexpr (kLanes == 1)
    return *from;
  else
    return T(gathered<typename T::Half>(from),
             gathered<typename T::Half>(from + kLanes / 2));
}
template <class E> SVOD_INLINE void scattered(E* to, E value) { *to = value; }
template <class E, int kCount>
SVOD_INLINE void scattered(E* to, Vector<E, kCount> value) {
  scattered(to, value.lo);
  scattered(to + kCount / 2, value.hi);
}

// Lanes of a and, counted on, of b by their numbers.
template <int kAt, class E, int kCount>
SVOD_INLINE E lane_of(Vector<E, kCount> a, Vector<E, kCount> b) {
  return kAt < kCount ? a[kAt % kCount] : b[kAt % kCount];
}
template <int... kAt, class E, int kCount>
SVOD_INLINE Vector<E, sizeof...(kAt)> shuffle_(Vector<E, kCount> a, Vector<E, kCount> b) {
  const E lanes[] = {lane_of<kAt>(a, b)...};
  return gathered<Vector<E, sizeof...(kAt)>>(lanes);
}

template <class E, int kCount> SVOD_INLINE E sum_of_lanes(Vector<E, kCount> x) {
  if constexpr (kCount == 2)
    return E(x.lo + x.hi);
  else
    return E(sum_of_lanes(x.lo) + sum_of_lanes(x.hi));
}
