// DFT and STFT as contractions with known matrices of cosines and sines. Real and
// imaginary parts are the last axis on both sides, so one matrix [length * parts, bins *
// parts] does it all.
#include "importer/formula/formula.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace svod::importer {
namespace {

constexpr int64_t kMostEntries = int64_t{1} << 24; // of a transform's matrix

struct Transform {
  int64_t length = 0, in_count = 0, out_count = 0; // in_count: elements read per line
  int64_t in_parts = 1, out_parts = 2;
  bool inverse = false;
};

// What the element (n, part) adds to (k, part) of the result. An inverse from half a
// spectrum to real numbers counts the mirrored half by doubling all bins but the ends.
double entry(const Transform& t, int64_t n, int64_t in_part, int64_t k,
             int64_t out_part) {
  double angle = 2 * std::numbers::pi * static_cast<double>(n * k % t.length) /
                 static_cast<double>(t.length);
  double c = std::cos(angle), s = t.inverse ? std::sin(angle) : -std::sin(angle);
  double value = in_part == out_part ? c : in_part == 0 ? s : -s;
  if (!t.inverse) return value;
  bool mirrored = t.out_parts == 1 && n != 0 && 2 * n != t.length;
  return value * (mirrored ? 2 : 1) / static_cast<double>(t.length);
}

Expr transform_matrix(NodeImport& node, const Transform& t, DType dtype) {
  int64_t rows = t.in_count * t.in_parts, columns = t.out_count * t.out_parts;
  if (rows > 0 && columns > kMostEntries / rows)
    node.unsupported("a transform of length " + std::to_string(t.length));
  std::vector<double> values;
  for (int64_t n = 0; n < t.in_count; ++n)
    for (int64_t in = 0; in < t.in_parts; ++in)
      for (int64_t k = 0; k < t.out_count; ++k)
        for (int64_t out = 0; out < t.out_parts; ++out)
          values.push_back(entry(t, n, in, k, out));
  std::vector<std::byte> bytes(values.size() * sizeof(double));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  NodeId id =
      weight(node.g, DType::F64, {rows, columns}, node.g.add_blob(std::move(bytes)));
  return convert({&node.g, id}, dtype);
}

// x [.., n, parts] -> [.., bins, parts]; lines are cut or filled with zeros to in_count.
Expr transform(NodeImport& node, Expr x, const Transform& t) {
  int64_t axis = x.rank() - 2, have = extent(x, axis);
  if (have > t.in_count) x = cut(x, axis, 0, t.in_count);
  if (have < t.in_count) {
    Shape low(x.shape().size(), 0), high = low;
    high[static_cast<size_t>(axis)] = t.in_count - have;
    x = pad(x, low, high, 0);
  }
  Shape outer(x.shape().begin(), x.shape().end() - 2);
  Expr lines = reshape(x, {element_count(outer), t.in_count * t.in_parts});
  Expr y = matmul(lines, transform_matrix(node, t, x.dtype()));
  outer.insert(outer.end(), {t.out_count, t.out_parts});
  return reshape(y, outer);
}

// dft_length where it is known, or as the declared shape of a whole transform shows it.
int64_t dft_length(NodeImport& node, int64_t axis, bool onesided, bool inverse) {
  int64_t have = node.shape(0)[static_cast<size_t>(axis)];
  if (!node.has_input(1)) return onesided && inverse ? 2 * (have - 1) : have;
  if (ints_if_known(node, 1) || (onesided && !inverse)) return known_int(node, 1);
  return declared_instead(node, 1, 0, node.rank(0))[static_cast<size_t>(axis)];
}

} // namespace

void import_dft(NodeImport& node) {
  Expr x = wide(node, 0);
  int64_t rank = x.rank();
  require(node, rank >= 2 && is_float(x.dtype()),
          "the input needs a signal and a parts axis");
  int64_t given = node.opset < 20 ? node.get_int("axis") : -2;
  if (node.opset >= 20 && node.has_input(2)) given = known_int(node, 2);
  int64_t axis = node.axis(given, rank);
  require(node, axis != rank - 1,
          "axis must not be the axis of real and imaginary parts");
  bool onesided = node.get_int("onesided") != 0;
  Transform t;
  t.inverse = node.get_int("inverse") != 0;
  t.in_parts = extent(x, rank - 1);
  require(node, t.in_parts == 1 || t.in_parts == 2,
          "the last axis must have extent 1 or 2");
  t.length = dft_length(node, axis, onesided, t.inverse);
  require(node, within_reach(node, t.length, "the length") > 0,
          "the length must be positive");
  int64_t half = t.length / 2 + 1;
  t.in_count = onesided && t.inverse ? half : t.length;
  t.out_count = onesided && !t.inverse ? half : t.length;
  t.out_parts = onesided && t.inverse ? 1 : 2;
  std::vector<int64_t> perm = axes_from(0, rank);
  std::swap(perm[static_cast<size_t>(axis)], perm[static_cast<size_t>(rank - 2)]);
  finish(node, permute(transform(node, permute(x, perm), t), perm));
}

namespace {

// What com.microsoft's transforms ask for beyond one dimension was never given.
void check_plain_transform(const NodeImport& node) {
  if (node.get_int("signal_ndim") != 1) node.unsupported("signal_ndim other than 1");
  require(node, node.get_int("onesided") == 1 && node.get_int("normalized") == 0,
          "onesided must be 1, normalized 0");
}

} // namespace

// com.microsoft: real numbers along the last axis to half their spectrum, and back.
void import_rfft(NodeImport& node) {
  check_plain_transform(node);
  const Expr x = wide(node, 0);
  require(node, x.rank() >= 1 && extent(x, x.rank() - 1) > 0, "the signal is empty");
  const int64_t length = extent(x, x.rank() - 1);
  finish(node, transform(node, unsqueeze(x, x.rank()), {length, length, length / 2 + 1}));
}

void import_irfft(NodeImport& node) {
  check_plain_transform(node);
  const Expr x = wide(node, 0);
  const int64_t rank = x.rank();
  require(node, rank >= 2 && extent(x, rank - 1) == 2 && extent(x, rank - 2) > 1,
          "the spectrum must be [.., bins, 2]");
  const int64_t bins = extent(x, rank - 2), length = 2 * (bins - 1);
  finish(node, squeeze(transform(node, x, {length, bins, length, 2, 1, true}), rank - 1));
}

// Frames are a window view of the signal; the window function joins the frames, not the
// matrix, since it may depend on the model's inputs.
void import_stft(NodeImport& node) {
  Expr x = wide(node, 0);
  if (x.rank() == 2) x = unsqueeze(x, 2);
  require(node, x.rank() == 3 && is_float(x.dtype()), "the signal must have 2 or 3 axes");
  int64_t step = known_int(node, 1);
  bool has_window = node.has_input(2);
  int64_t length = has_window ? element_count(node.shape(2)) : extent(x, 1);
  if (node.has_input(3)) length = known_int(node, 3);
  require(node, step > 0 && length > 0 && length <= extent(x, 1),
          "frame_step or frame_length does not fit the signal");
  Transform t{length, length, node.get_int("onesided") ? length / 2 + 1 : length};
  t.in_parts = extent(x, 2);
  require(node, t.in_parts == 1 || t.in_parts == 2,
          "the last axis must have extent 1 or 2");
  Expr frames =
      permute(with(x, window(node.g, x.id, 1, length, std::min(step, extent(x, 1)), 1)),
              {0, 1, 3, 2});
  if (has_window) {
    Expr shape = wide(node, 2);
    require(node, shape.shape() == Shape{length},
            "the window must be as long as a frame");
    frames = frames * along(convert(shape, x.dtype()), 2, 4);
  }
  finish(node, transform(node, frames, t));
}

} // namespace svod::importer
