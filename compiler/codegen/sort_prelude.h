// What kernels that sort start with, after the prelude. A key becomes an unsigned number
// that orders as the sort wants it, and a word is that number with the position below it:
// no two words are equal, so any sort of them is stable, and the smallest positions come
// first among equals.
namespace kernel {
// NaN comes after everything in both directions; zeros are equal.
template <class T> SVOD_INLINE auto sort_key(T x, bool descending) {
  if constexpr (sizeof(T) < 4) {
    return sort_key(i32(x), descending);
  } else {
    using U = UintOf<T>;
    constexpr U kTop = U(1) << (kWidth<T> - 1);
    U key = Floating<T> ? bits_<U>(T(x + T(0))) : bits_<U>(x);
    if constexpr (Floating<T>)
      key ^= (key & kTop) != 0 ? ~U(0) : kTop;
    else if constexpr (Signed<T>)
      key ^= kTop;
    if (descending) key = ~key;
    return x == x ? key : ~U(0);
  }
}
struct WideWord {
  u64 key;
  u32 at;
};
SVOD_INLINE u64 make_word(u32 key, iptr at) { return u64(key) << 32 | u32(at); }
SVOD_INLINE WideWord make_word(u64 key, iptr at) { return {key, u32(at)}; }
SVOD_INLINE bool before(u64 a, u64 b) { return a < b; }
SVOD_INLINE bool before(const WideWord& a, const WideWord& b) {
  return a.key < b.key || (a.key == b.key && a.at < b.at);
}
SVOD_INLINE u32 key_of(u64 word) { return u32(word >> 32); }
SVOD_INLINE u64 key_of(const WideWord& word) { return word.key; }
SVOD_INLINE i64 position_of(u64 word) { return i64(u32(word)); }
SVOD_INLINE i64 position_of(const WideWord& word) { return i64(word.at); }

// Sorts words[start, end) into to[start, end), both halves being sorted. As many words as
// the shorter half has come from each end at once: the two wait for different words, and
// neither runs out of a half. No branch depends on the words before one half is used up.
template <class W>
SVOD_INLINE void merge_words(const W* words, W* to, iptr start, iptr middle, iptr end) {
  iptr i = start, j = middle, k = start, a = middle - 1, b = end - 1, z = end - 1;
  const iptr left = middle - start, right = end - middle;
  for (iptr both = left < right ? left : right; both > 0; --both) {
    const bool after = before(words[j], words[i]), behind = before(words[b], words[a]);
    to[k++] = words[after ? j : i];
    to[z--] = words[behind ? a : b];
    j += after, i += !after;
    a -= behind, b -= !behind;
  }
  while (i <= a && j <= b) {
    const bool after = before(words[j], words[i]);
    to[k++] = words[after ? j : i];
    j += after, i += !after;
  }
  while (i <= a) to[k++] = words[i++];
  while (j <= b) to[k++] = words[j++];
}
template <class W> SVOD_INLINE void order_words(W& a, W& b) {
  const bool swap = before(b, a);
  const W first = swap ? b : a;
  b = swap ? a : b;
  a = first;
}
// Runs of four without a branch, the last ones by insertion, then runs merged in pairs.
// Returns which of the two lists holds the result.
template <class W> SVOD_INLINE W* sort_words(W* words, W* room, iptr count) {
  constexpr iptr kRun = 4;
  iptr start = 0;
  for (; start + kRun <= count; start += kRun) {
    W a = words[start], b = words[start + 1], c = words[start + 2], d = words[start + 3];
    order_words(a, b), order_words(c, d);
    order_words(a, c), order_words(b, d);
    order_words(b, c);
    words[start] = a, words[start + 1] = b, words[start + 2] = c, words[start + 3] = d;
  }
  for (iptr i = start + 1; i < count; ++i) {
    const W word = words[i];
    iptr at = i;
    for (; at > start && before(word, words[at - 1]); --at) words[at] = words[at - 1];
    words[at] = word;
  }
  for (iptr width = kRun; width < count; width *= 2) {
    for (iptr start = 0; start < count; start += 2 * width) {
      const iptr middle = start + width < count ? start + width : count;
      const iptr end = middle + width < count ? middle + width : count;
      merge_words(words, room, start, middle, end);
    }
    W* sorted = room;
    room = words, words = sorted;
  }
  return words;
}
template <class U> SVOD_INLINE bool any_below(const U* keys, U limit) {
  if constexpr (kLanes == 1)
    return keys[0] < limit;
  else
    return any_(load(keys) < limit);
}
// The `wanted` first of all keys, sorted. The lists have room for `most` words, more than
// wanted: when one is full only the first of it stay, and from then on keys that are not
// below the last of them are passed over, a vector at a time.
template <class U, class W>
SVOD_INLINE W* select_words(const U* keys, iptr count, iptr wanted, W* words, W* room,
                            iptr most) {
  iptr have = 0;
  U limit = ~U(0);
  bool passing = false;
  for (iptr start = 0; start < count; start += kLanes) {
    const iptr end = start + kLanes < count ? start + kLanes : count;
    if (passing && end - start == kLanes && !any_below(keys + start, limit)) continue;
    for (iptr at = start; at < end; ++at) {
      if (passing && keys[at] >= limit) continue;
      words[have++] = make_word(keys[at], at);
      if (have < most) continue;
      W* sorted = sort_words(words, room, have);
      if (sorted != words) room = words, words = sorted;
      have = wanted, passing = true;
      limit = wanted == 0 ? U(0) : key_of(words[wanted - 1]);
    }
  }
  return sort_words(words, room, have);
}
} // namespace kernel
