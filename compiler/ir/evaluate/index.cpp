// Gather and scatter: each position of the index tensor names one element of the data, at
// the same place but for the coordinate along the axis. Indices are checked before they
// are used; so are those on the way down a decision tree.
#include "compiler/ir/evaluate/parts.h"

#include <cstring>
#include <span>

namespace svod {
namespace {

std::vector<int64_t> load_index(const Tensor& index) {
  SVOD_CHECK(index.dtype == DType::I64 || index.dtype == DType::I32) << "index dtype";
  std::vector<int64_t> result(size_t(element_count(index.shape)));
  if (index.dtype == DType::I64 && !result.empty())
    std::memcpy(result.data(), index.bytes.data(), index.bytes.size());
  const int32_t* narrow = reinterpret_cast<const int32_t*>(index.bytes.data());
  if (index.dtype == DType::I32)
    std::copy(narrow, narrow + result.size(), result.begin());
  return result;
}

// For each position of the index tensor, row-major, the element of the data it names.
// False: one lies outside.
struct Walk {
  const Shape& shape;  // of the index
  const Shape strides; // of the data
  int64_t axis, extent;
  std::vector<int64_t>&
      index; // in: coordinates along the axis; out: elements of the data

  bool run(size_t depth, int64_t& position, int64_t element) const {
    const bool last = depth + 1 == shape.size();
    for (int64_t i = 0; i < shape[depth]; i++) {
      const int64_t here = element + (int64_t(depth) == axis ? 0 : i * strides[depth]);
      if (!last) {
        if (!run(depth + 1, position, here)) return false;
        continue;
      }
      int64_t& entry = index[position++];
      if (entry < 0 || entry >= extent) return false;
      entry = here + entry * strides[axis];
    }
    return true;
  }
};

bool resolve(const Tensor& data, const Shape& shape, int64_t axis,
             std::vector<int64_t>& index) {
  SVOD_CHECK(shape.size() == data.shape.size() && !shape.empty()) << "index rank";
  for (size_t i = 0; i < shape.size(); i++)
    SVOD_CHECK(int64_t(i) == axis || shape[i] <= data.shape[i]) << "index shape";
  int64_t position = 0;
  return Walk{shape, row_major_strides(data.shape), axis, data.shape[axis], index}.run(
      0, position, 0);
}

template <class E>
void take(const std::vector<int64_t>& from, const Tensor& data, Tensor& out) {
  const E* in = reinterpret_cast<const E*>(data.bytes.data());
  E* to = reinterpret_cast<E*>(out.bytes.data());
  for (size_t i = 0; i < from.size(); i++) to[i] = in[from[i]];
}
template <class E>
void put(const std::vector<int64_t>& where, const Tensor& update, Tensor& out) {
  const E* in = reinterpret_cast<const E*>(update.bytes.data());
  E* to = reinterpret_cast<E*>(out.bytes.data());
  for (size_t i = 0; i < where.size(); i++) to[where[i]] = in[i];
}

// The combiners of scatter, as in the payload.
enum How : int64_t { kSet, kAdd, kMultiply, kMinimum, kMaximum };

template <class T> T combine(int64_t how, T a, T b) {
  switch (how) {
  case kAdd:
    return T(a + b);
  case kMultiply:
    return T(a * b);
  case kMinimum:
    return scalar::min_(a, b);
  default:
    return scalar::max_(a, b);
  }
}

// In index order, each result rounded to the dtype: an element may be met many times.
template <class T>
void combine_all(int64_t how, const std::vector<int64_t>& where, const Tensor& update,
                 Tensor& out) {
  for (size_t i = 0; i < where.size(); i++) {
    T room_old, room_new, room;
    T old = *load_piece<T>(out, where[i], 1, &room_old);
    T add = *load_piece<T>(update, int64_t(i), 1, &room_new);
    T* to = piece_room<T>(out, where[i], &room);
    *to = combine(how, old, add);
    store_piece<T>(out, where[i], 1, to);
  }
}

template <class F> void with_element(DType dtype, F&& f) {
  switch (byte_size(dtype)) {
  case 1:
    return f(uint8_t());
  case 2:
    return f(uint16_t());
  case 4:
    return f(uint32_t());
  default:
    return f(uint64_t());
  }
}

// The value of the node that is reached from `root`; none when the walk leaves the
// tables.
template <class K>
std::optional<K> descend(std::span<const K> keys, std::span<const K> nodes, int64_t root,
                         int64_t steps) {
  constexpr int kHalf = 4 * sizeof(K);
  uint64_t at = uint64_t(root);
  for (int64_t step = 0;; step++) {
    if (at >= nodes.size() / 2) return std::nullopt;
    if (step == steps) return nodes[2 * at];
    uint64_t link = nodes[2 * at + 1];
    uint64_t feature = link & ((uint64_t(1) << kHalf) - 1);
    if (feature >= keys.size()) return std::nullopt;
    at += (link >> kHalf) + (keys[feature] > nodes[2 * at] ? 1 : 0);
  }
}

template <class K> std::span<const K> elements(const Tensor& t) {
  return {reinterpret_cast<const K*>(t.bytes.data()), size_t(element_count(t.shape))};
}

template <class K> bool descend_all(int64_t steps, const Inputs& in, Tensor& out) {
  std::span<const K> keys = elements<K>(*in[0]), nodes = elements<K>(*in[1]);
  std::span<const int64_t> roots = elements<int64_t>(*in[2]);
  const size_t width = size_t(in[0]->shape[1]);
  K* to = reinterpret_cast<K*>(out.bytes.data());
  for (int64_t row = 0; row < in[0]->shape[0]; row++)
    for (int64_t root : roots) {
      std::optional<K> value =
          descend<K>(keys.subspan(size_t(row) * width, width), nodes, root, steps);
      if (!value) return false;
      *to++ = *value;
    }
  return true;
}

} // namespace

bool evaluate_descend(const Node& node, const Inputs& in, Tensor& out) {
  return out.dtype == DType::U64 ? descend_all<uint64_t>(node.payload[0], in, out)
                                 : descend_all<uint32_t>(node.payload[0], in, out);
}

bool evaluate_gather(const Inputs& in, int64_t axis, Tensor& out) {
  std::vector<int64_t> index = load_index(*in[1]);
  if (!resolve(*in[0], in[1]->shape, axis, index)) return false;
  with_element(out.dtype, [&]<class E>(E) { take<E>(index, *in[0], out); });
  return true;
}

bool evaluate_scatter(const Node& node, const Inputs& in, Tensor& out) {
  const int64_t axis = node.payload[0], how = node.payload[1];
  std::vector<int64_t> index = load_index(*in[1]);
  if (!resolve(*in[0], in[1]->shape, axis, index)) return false;
  out.bytes = in[0]->bytes;
  if (how == kSet)
    with_element(out.dtype, [&]<class E>(E) { put<E>(index, *in[2], out); });
  else
    with_compute_type(out.dtype,
                      [&]<class T>(T) { combine_all<T>(how, index, *in[2], out); });
  return true;
}

} // namespace svod
