// Operators of com.microsoft that no CPU build of ONNX Runtime has. What they must give
// comes from the operator that they are a form of, which has tests of its own, or is
// worked out by hand from the contract.
#include "tests/support/run_rule.h"

using namespace svod;
using namespace svod::rule_test;

namespace {

Operator vendor(const std::string& name, std::vector<ModelAttribute> attributes = {},
                size_t known = 0, size_t outputs = 1) {
  return {name, 1, std::move(attributes), known, outputs, "com.microsoft"};
}

Tensor i32(Shape shape, const std::vector<int32_t>& values) {
  return tensor(DType::I32, std::move(shape), values);
}
Tensor flag(bool value) { return tensor(DType::Bool, {1}, std::vector<uint8_t>{value}); }

// Numbers without a pattern that a wrong axis would keep.
Tensor mixed(Shape shape, int seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(static_cast<float>((i * 37 + seed * 11) % 23 - 11) / 8);
  return f32(std::move(shape), values);
}

Tensor reshaped(Tensor tensor, Shape shape) {
  tensor.shape = std::move(shape);
  return tensor;
}

const ModelAttribute kTwoHeads = attribute("num_heads", int64_t{2});

// Two sequences of 3 places, of 2 and 3 tokens; the place in padding is 2.
const Tensor kOffsets = i32({2, 3}, {0, 1, 3, 4, 5, 2}), kStarts = i32({3}, {0, 2, 5});

// The rows of [2, 3, width] that are tokens.
std::vector<float> tokens_of(const std::vector<float>& all, size_t width) {
  std::vector<float> out;
  for (size_t place : {0, 1, 3, 4, 5})
    out.insert(out.end(), all.begin() + static_cast<std::ptrdiff_t>(place * width),
               all.begin() + static_cast<std::ptrdiff_t>((place + 1) * width));
  return out;
}

} // namespace

TEST_CASE("packed attention is attention over the tokens alone", "[importer][contrib]") {
  const Tensor q = mixed({2, 3, 4}, 1), k = mixed({2, 3, 4}, 2), v = mixed({2, 3, 6}, 3);
  const Tensor none = f32({14}, std::vector<float>(14));
  const std::vector<float> want =
      apply(vendor("MultiHeadAttention", {kTwoHeads}), {q, k, v, none, i32({2}, {2, 3})});
  const auto packed = [](const Tensor& x, int64_t width) {
    return f32({5, width}, tokens_of(values<float>(x), static_cast<size_t>(width)));
  };
  const std::vector<float> got =
      apply(vendor("PackedMultiHeadAttention", {kTwoHeads}),
            {packed(q, 4), packed(k, 4), packed(v, 6), none, kOffsets, kStarts});
  check_close(got, tokens_of(want, 6));

  const Tensor x = mixed({2, 3, 4}, 4), w = mixed({4, 12}, 5), bias = mixed({12}, 6);
  const std::vector<float> whole =
      apply(vendor("Attention", {kTwoHeads}), {x, w, bias, i32({2}, {2, 3})});
  check_close(apply(vendor("PackedAttention", {kTwoHeads}),
                    {packed(x, 4), w, bias, kOffsets, kStarts}),
              tokens_of(whole, 4));
}

TEST_CASE("padding goes and comes back as zeros", "[importer][contrib]") {
  const Tensor x = mixed({2, 3, 2}, 1);
  Operator remove = vendor("RemovePadding", {}, 1, 4);
  remove.run({x, i32({2}, {2, 3})});
  INFO(remove.failure);
  REQUIRE(remove.results.size() == 4);
  CHECK(remove.results[0].shape == Shape{5, 2});
  CHECK(remove.results[1].bytes == kOffsets.bytes);
  CHECK(remove.results[2].bytes == kStarts.bytes);
  CHECK(values<int32_t>(remove.results[3]) == std::vector<int32_t>{3});
  std::vector<float> want = values<float>(x);
  want[4] = want[5] = 0;
  CHECK(apply(vendor("RestorePadding"), {remove.results[0], kOffsets}) == want);
}

TEST_CASE("a window that reaches everywhere is full attention", "[importer][contrib]") {
  const Tensor x = mixed({1, 4, 4}, 1), w = mixed({4, 12}, 2), bias = mixed({12}, 3);
  const Tensor mask = f32({1, 4}, {0, 0, 0, 0});
  const std::vector<float> full = apply(vendor("Attention", {kTwoHeads}), {x, w, bias});
  const auto longformer = [&](int64_t window, const std::vector<int32_t>& global) {
    const Tensor other = mixed({4, 12}, 7);
    return apply(vendor("LongformerAttention", {kTwoHeads, attribute("window", window)}),
                 {x, w, bias, mask, other, bias, i32({1, 4}, global)});
  };
  check_close(longformer(3, {0, 0, 0, 0}), full);
  // The first token sees the second only; the third is seen by all once it is global.
  const std::vector<float> near = longformer(1, {0, 0, 0, 0});
  CHECK(near[0] != Approx(full[0]));
  const std::vector<float> all = longformer(1, {1, 1, 1, 1});
  check_close(all, apply(vendor("Attention", {kTwoHeads}), {x, mixed({4, 12}, 7), bias}));
}

TEST_CASE("attention of a decoder by its flags", "[importer][contrib]") {
  const Tensor x = mixed({3, 1, 4}, 1), key = mixed({2, 1, 4}, 2);
  const Tensor w = mixed({4, 4}, 3), pair = mixed({4, 8}, 4), bias = mixed({12}, 5);
  const Tensor hidden = tensor(DType::Bool, {1, 3}, std::vector<uint8_t>{0, 0, 0});
  const Tensor cache = mixed({1, 2, 3, 2}, 6), other = mixed({1, 2, 3, 2}, 7);
  const auto run = [&](bool cross, bool past) {
    Operator op = vendor("DecoderAttention", {kTwoHeads}, 4, 3);
    op.run({x, key, w, pair, bias, hidden, cache, other, flag(cross), flag(past),
            flag(past), flag(false)});
    INFO(op.failure);
    REQUIRE(op.results.size() == 3);
    return op.results;
  };
  CHECK(run(false, false)[1].shape == Shape{1, 2, 3, 2}); // its own positions
  CHECK(run(true, false)[1].shape == Shape{1, 2, 2, 2});  // the encoder's
  CHECK(run(false, true)[1].shape == Shape{1, 2, 6, 2});  // behind the cache
  CHECK(run(true, true)[1].bytes == cache.bytes);
  // Self-attention is Attention with both weights side by side.
  std::vector<float> joined;
  for (size_t row = 0; row < 4; ++row) {
    const auto a = values<float>(w), b = values<float>(pair);
    joined.insert(joined.end(), a.begin() + row * 4, a.begin() + row * 4 + 4);
    joined.insert(joined.end(), b.begin() + row * 8, b.begin() + row * 8 + 8);
  }
  check_close(values<float>(run(false, false)[0]),
              apply(vendor("Attention", {kTwoHeads}),
                    {reshaped(x, {1, 3, 4}), f32({4, 12}, joined), bias}));
}

TEST_CASE("a shared cache of a decoder keeps its keys in groups of 16 bytes",
          "[importer][contrib]") {
  const Tensor x = mixed({1, 1, 8}, 1), w = mixed({8, 24}, 2), bias = mixed({24}, 3);
  const std::vector<ModelAttribute> one = {attribute("num_heads", int64_t{1})};
  const Tensor past = mixed({2, 1, 1, 2, 8}, 4);
  Operator plain = vendor("Attention", one, 0, 2);
  plain.run({x, w, bias, i32({1}, {3}), past});
  REQUIRE(plain.results.size() == 2);
  // Room for four: keys as [size / 4, room, 4], values as ever.
  const auto lying = [](const std::vector<float>& from, size_t count) {
    std::vector<float> out(2 * 4 * 8);
    for (size_t at = 0; at < count; ++at)
      for (size_t i = 0; i < 8; ++i) {
        out[i / 4 * 16 + at * 4 + i % 4] = from[at * 8 + i];
        out[32 + at * 8 + i] = from[(count + at) * 8 + i];
      }
    return out;
  };
  std::vector<ModelAttribute> shared = one;
  shared.push_back(attribute("past_present_share_buffer", int64_t{1}));
  Operator op = vendor("DecoderMaskedSelfAttention", shared, 0, 2);
  op.run({x, w, bias, i32({1, 3}, {1, 1, 1}),
          f32({2, 1, 1, 4, 8}, lying(values<float>(past), 2)),
          f32({1, 1, 1, 3}, {0, 0, 0}), i32({1}, {2})});
  INFO(op.failure);
  REQUIRE(op.results.size() == 2);
  check_close(values<float>(op.results[0]), values<float>(plain.results[0]));
  check_close(values<float>(op.results[1]), lying(values<float>(plain.results[1]), 3));
}

TEST_CASE("blocks that no query may see have no weight", "[importer][contrib]") {
  // Two heads of size 2 over blocks of two tokens; the second layout hides block 0 from
  // block 1. Keys are 0, so what is seen has equal weights.
  const Tensor q = mixed({1, 4, 4}, 1), zeros = f32({1, 4, 4}, std::vector<float>(16));
  const Tensor v = f32({1, 4, 4}, {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4});
  const Tensor room = f32({1, 2, 4, 2}, std::vector<float>(16));
  std::vector<ModelAttribute> attributes = {kTwoHeads,
                                            attribute("kv_num_heads", int64_t{2}),
                                            attribute("sparse_block_size", int64_t{2})};
  Operator op = vendor("SparseAttention", attributes, 4, 3);
  op.run({q, zeros, v, room, room, i32({2, 3}, {0, 1, 3, 0, 1, 2}),
          i32({2, 3}, {0, 0, 1, 0, 1, -1}), i32({1}, {4}), i32({1}, {4})});
  INFO(op.failure);
  REQUIRE(op.results.size() == 3);
  check_close(values<float>(op.results[0]), {1, 1, 1, 1, 1.5, 1.5, 1.5, 1.5, //
                                             2, 2, 3, 3, 2.5, 2.5, 3.5, 3.5});
}

TEST_CASE("channels last, spectra and floats of few bits", "[importer][contrib]") {
  const Tensor x = mixed({1, 2, 3, 2}, 1), w = mixed({1, 2, 1, 1}, 2);
  const auto a = values<float>(x), k = values<float>(w);
  std::vector<float> want;
  for (size_t i = 0; i < 12; i += 2) want.push_back(a[i] * k[0] + a[i + 1] * k[1]);
  check_close(apply(vendor("NhwcConv"), {x, w}), want);

  const std::vector<ModelAttribute> one = {attribute("signal_ndim", int64_t{1})};
  const Tensor signal = f32({1, 4}, {1, 2, 3, 5});
  const std::vector<float> bins = apply(vendor("Rfft", one), {signal});
  check_close(bins, {11, 0, -2, 3, -3, 0});
  check_close(apply(vendor("Irfft", one), {f32({1, 3, 2}, bins)}), {1, 2, 3, 5});

  // 1 and -6 in one byte, times a scale of 2 (0x40 in e4m3) and one of 0.5.
  const std::vector<ModelAttribute> block = {attribute("block_size", int64_t{2})};
  const Tensor half = tensor(DType::F16, {1, 2}, std::vector<uint16_t>{0x3c00, 0x4000});
  Operator fp4 = vendor("MatMulBlockQuantizedFp4Weight", block);
  fp4.run({half, tensor(DType::U8, {1, 1}, std::vector<uint8_t>{0xf2}),
           tensor(DType::U8, {1, 1}, std::vector<uint8_t>{0x40}), f32({}, {0.5f})});
  INFO(fp4.failure);
  REQUIRE(fp4.results.size() == 1);
  CHECK(values<uint16_t>(fp4.results[0]) == std::vector<uint16_t>{0xc980}); // 1 - 12
}

TEST_CASE("streams are mixed from and into", "[importer][contrib]") {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4}), gates = f32({2}, {2, 10});
  check_close(apply(vendor("HyperConnectionPreMix"), {x, gates}), {32, 44});
  const std::vector<ModelAttribute> flat = {attribute("num_branches", int64_t{2})};
  check_close(apply(vendor("HyperConnectionPreMix", flat), {reshaped(x, {4}), gates}),
              {32, 44});
  check_close(apply(vendor("HyperConnectionPostMix"),
                    {x, f32({2}, {1, -1}), gates, f32({2, 2}, {0, 1, 1, 0})}),
              {5, 2, 11, -8});
}
