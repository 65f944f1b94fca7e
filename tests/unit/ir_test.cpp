// Interning, the builder's folding, and the verifier.
#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/ir/shape_rules.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/support/check.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <thread>

using namespace svod;
using namespace svod::test;

namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + '\n';
  return all;
}

} // namespace

TEST_CASE("equal nodes are one node", "[ir]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2, 3});
  NodeId y = g.add_input("y", DType::F32, {2, 3});
  CHECK(x != y); // inputs are distinct even when equal in type
  NodeId sum = map(g, Op::Add, {x, y});
  size_t size = g.size();
  CHECK(map(g, Op::Add, {x, y}) == sum);
  CHECK(g.size() == size);
  CHECK(map(g, Op::Add, {y, x}) != sum);
  CHECK(map(g, Op::Sub, {x, y}) != sum);
  CHECK(verify(g).empty());
}

TEST_CASE("the hash only filters: nodes that collide stay apart", "[ir]") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    RandomGraph random = random_graph(seed);
    Graph poor([](const Node&) { return uint64_t{7}; });
    for (NodeId id = 0; id < random.graph.size(); ++id) {
      Node node = random.graph[id];
      if (node.op == Op::Input)
        REQUIRE(poor.add_input("x", node.dtype, node.shape) == id);
      else
        REQUIRE(poor.intern(node) == id);
    }
    for (NodeId id = 0; id < random.graph.size(); ++id)
      REQUIRE(poor.intern(random.graph[id]) == id);
  }
}

TEST_CASE("every part of a node is part of its identity", "[ir]") {
  // Whatever is changed in a node of a random graph, it becomes another node.
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Graph g = random_graph(seed).graph;
    size_t size = g.size();
    for (NodeId id = 0; id < size; ++id) {
      const Node node = g[id];
      INFO(info(node.op).text);
      auto differs = [&](const Node& changed) { return g.intern(changed) != id; };
      for (size_t i = 0; i < node.payload.size(); ++i) {
        Node changed = node;
        changed.payload[i] += 1000;
        CHECK(differs(changed));
      }
      for (size_t i = 0; i < node.shape.size(); ++i) {
        Node changed = node;
        changed.shape[i] += 1000;
        CHECK(differs(changed));
      }
      Node changed = node;
      changed.dtype = node.dtype == DType::F64 ? DType::F32 : DType::F64;
      CHECK(differs(changed));
      changed = node;
      changed.payload.push_back(0);
      CHECK(differs(changed));
    }
  }
}

TEST_CASE("threads build the same graphs", "[ir]") {
  std::vector<std::string> texts(8);
  std::vector<std::thread> threads;
  for (std::string& text : texts)
    threads.emplace_back([&text] {
      for (uint64_t seed = 1; seed <= 40; ++seed)
        text += print_graph(random_graph(seed).graph);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) CHECK(text == texts[0]);
}

TEST_CASE("blobs of equal bytes are one blob", "[ir]") {
  Graph g;
  std::vector<std::byte> bytes(12, std::byte{3});
  uint32_t blob = g.add_blob(bytes);
  CHECK(g.add_blob(bytes) == blob);
  CHECK(g.add_blob(g.blob(blob)) == blob);
  bytes[5] = std::byte{4};
  CHECK(g.add_blob(bytes) != blob);
  CHECK(g.blob_count() == 2);
}

TEST_CASE("random graphs are valid and reach every op", "[ir][property]") {
  std::vector<bool> seen(256);
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    RandomGraph random = random_graph(seed);
    INFO("seed " << seed << '\n' << print_graph(random.graph));
    REQUIRE(joined(verify(random.graph)) == "");
    REQUIRE(evaluate(random.graph, random.inputs).failed == kNoNode);
    for (NodeId id : random.graph.live_nodes())
      seen[static_cast<size_t>(random.graph[id].op)] = true;
  }
  for (size_t op = 0; op <= static_cast<size_t>(Op::Select); ++op) {
    if (static_cast<Op>(op) == Op::Call) continue; // the evaluator cannot run it
    if (info(static_cast<Op>(op)).op_class == OpClass::Region) continue;
    INFO(info(static_cast<Op>(op)).text);
    CHECK(seen[op]);
  }
}

TEST_CASE("views of views become one node", "[ir]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {4, 6});
  CHECK(reshape(g, reshape(g, x, {24}), {4, 6}) == x);
  CHECK(permute(g, permute(g, x, {1, 0}), {1, 0}) == x);
  CHECK(slice(g, x, {0, 0}, {1, 1}, {4, 6}) == x);
  CHECK(pad(g, x, {0, 0}, {0, 0}, 1) == x);
  CHECK(expand(g, x, {4, 6}) == x);
  CHECK(cast(g, x, DType::F32) == x);

  // Every second, reversed, of every second.
  NodeId once = slice(g, x, {0, 5}, {1, -2}, {4, 3});
  NodeId twice = slice(g, once, {0, 2}, {1, -1}, {4, 3});
  CHECK(g[twice].inputs == std::vector<NodeId>{x});
  CHECK(g[twice].payload == Payload{0, 1, 1, 2});

  NodeId padded = pad(g, pad(g, x, {1, 0}, {0, 0}, 0), {0, 2}, {1, 0}, 0);
  CHECK(g[padded].inputs == std::vector<NodeId>{x});
  CHECK(g[padded].payload == Payload{1, 2, 1, 0, 0});
  // Other padding values stay two nodes.
  NodeId other = pad(g, pad(g, x, {1, 0}, {0, 0}, 0), {0, 2}, {1, 0}, 1);
  CHECK(g[g[other].inputs[0]].op == Op::Pad);

  // A permutation that only moves an axis of extent 1 is a reshape.
  NodeId row = g.add_input("row", DType::F32, {1, 5});
  CHECK(g[permute(g, row, {1, 0})].op == Op::Reshape);
}

TEST_CASE("what is known is folded", "[ir]") {
  Graph g;
  std::vector<int64_t> shape{2, 3, 4};
  NodeId dims = tensor_i64(g, {3}, shape);
  NodeId batch = gather(g, dims, constant_int(g, DType::I64, {1}, 1), 0);
  NodeId target = concat(g, {batch, constant_int(g, DType::I64, {1}, 8)}, 0);
  CHECK(known_ints(g, target) == std::vector<int64_t>{3, 8});

  NodeId ones = constant(g, DType::F32, {1000, 1000, 1000}, 1);
  NodeId twos = map(g, Op::Add, {ones, ones}); // a splat of any size
  CHECK(splat_bits(g, twos) == scalar_bits(DType::F32, 2));
  CHECK(splat_bits(g, permute(g, reshape(g, twos, {1000000, 1000}), {1, 0})) ==
        scalar_bits(DType::F32, 2));

  NodeId positions = map(
      g, Op::Add, {iota(g, DType::I64, {4}, 0), constant_int(g, DType::I64, {4}, 10)});
  CHECK(known_ints(g, positions) == std::vector<int64_t>{10, 11, 12, 13});

  // Weights with equal elements are constants; one blob may have many shapes.
  std::vector<float> same{2, 2, 2};
  CHECK(g[tensor_f32(g, {3}, same)].op == Op::Constant);
  NodeId x = g.add_input("x", DType::F32, {3});
  CHECK_FALSE(known_ints(g, x));
  CHECK_FALSE(known_floats(g, map(g, Op::Add, {x, constant(g, DType::F32, {3}, 1)})));
}

TEST_CASE("algebra of the builder", "[ir]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2});
  auto scalar = [&](double value) { return constant(g, DType::F32, {2}, value); };
  CHECK(map(g, Op::Add, {x, scalar(0)}) == x);
  CHECK(map(g, Op::Add, {scalar(0), x}) == x);
  CHECK(map(g, Op::Mul, {scalar(1), x}) == x);
  CHECK(map(g, Op::Neg, {map(g, Op::Neg, {x})}) == x);
  CHECK(g[map(g, Op::Mul, {x, scalar(0)})].op == Op::Mul); // NaN * 0 is NaN
  NodeId yes = constant(g, DType::Bool, {2}, 1);
  CHECK(map(g, Op::Select, {yes, x, scalar(3)}) == x);

  // Maps of values that repeat are computed before they repeat.
  NodeId small = g.add_input("small", DType::F32, {1, 3});
  NodeId wide = expand(g, small, {5, 3});
  NodeId root =
      map(g, Op::Sqrt, {map(g, Op::Add, {wide, constant(g, DType::F32, {5, 3}, 1)})});
  CHECK(g[root].op == Op::Expand);
}

TEST_CASE("matmul follows numpy", "[ir]") {
  struct Row {
    Shape a, b, want;
  };
  for (const Row& row :
       {Row{{2, 3}, {3, 4}, {2, 4}}, Row{{3}, {3, 4}, {4}}, Row{{2, 3}, {3}, {2}},
        Row{{3}, {3}, {}}, Row{{5, 1, 2, 3}, {7, 3, 4}, {5, 7, 2, 4}}}) {
    Graph g;
    NodeId a = g.add_input("a", DType::F32, row.a),
           b = g.add_input("b", DType::F32, row.b);
    NodeId product = matmul(g, a, b);
    CHECK(g[product].shape == row.want);
    g.add_output("y", product);
    std::vector<double> ones_a(static_cast<size_t>(element_count(row.a)), 1);
    std::vector<double> ones_b(static_cast<size_t>(element_count(row.b)), 2);
    Evaluated result = evaluate(g, {make_tensor(DType::F32, row.a, ones_a),
                                    make_tensor(DType::F32, row.b, ones_b)});
    for (int64_t i = 0; i < element_count(row.want); ++i)
      CHECK(element_value(result.outputs[0], static_cast<size_t>(i)) == 6);
    CHECK(verify(g).empty());
  }
}

TEST_CASE("invalid nodes are a bug, with a reason", "[ir]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2, 3});
  CHECK_THROWS_AS(reshape(g, x, {5}), InternalError);
  CHECK_THROWS_AS(permute(g, x, {0, 0}), InternalError);
  CHECK_THROWS_AS(slice(g, x, {0, 2}, {1, 1}, {2, 2}), InternalError);
  CHECK_THROWS_AS(map(g, Op::BitNot, {x}), InternalError);
  CHECK_THROWS_AS(window(g, x, 1, 4, 1, 1), InternalError);
  CHECK_THROWS_AS(g.intern({Op::Neg, DType::F32, {2, 3}, {}, {99}}), InternalError);
}

TEST_CASE("the verifier finds what is wrong", "[ir]") {
  auto fault = [](Node node) {
    Graph g;
    g.add_input("x", DType::F32, {2, 3});
    g.intern(std::move(node));
    return joined(verify(g));
  };
  CHECK(fault({Op::Neg, DType::F32, {2, 3}, {}, {0}}) == "");
  CHECK(fault({Op::Neg, DType::F32, {3, 2}, {}, {0}}) ==
        "%1 (neg): its type is f32[3,2], but must be f32[2,3]\n");
  CHECK(fault({Op::Neg, DType::F64, {2, 3}, {}, {0}}) != "");
  CHECK(fault({Op::Add, DType::F32, {2, 3}, {}, {0}}) ==
        "%1 (add): wrong number of inputs\n");
  CHECK(fault({Op::ReduceSum, DType::F32, {2, 1}, {2}, {0}}) != "");
  CHECK(fault({Op::ReduceSum, DType::F32, {1, 1}, {1, 0}, {0}}) ==
        "%1 (sum): axes are not ascending\n");
  CHECK(fault({Op::Slice, DType::F32, {2, 3}, {0, 0, 1, 0}, {0}}) ==
        "%1 (slice): step is zero\n");
  CHECK(fault({Op::Expand, DType::F32, {4, 3}, {}, {0}}) != "");
  CHECK(fault({Op::Weight, DType::F32, {2}, {0}, {}}) == "%1 (weight): no such blob\n");
  CHECK(fault({Op::Input, DType::F32, {2}, {5}, {}}) ==
        "%1 (input): it is not in the list of inputs\n");
  CHECK(fault({Op::Exp, DType::I32, {2}, {}, {0}}) != "");
  CHECK(
      fault({Op::Constant, DType::F32, {int64_t{1} << 40, int64_t{1} << 40}, {0}, {}}) ==
      "%1 (constant): too many elements\n");
  CHECK(fault({Op::Constant, DType::U8, {2}, {256}, {}}) != "");
}

TEST_CASE("scalars convert as casts do", "[ir]") {
  CHECK(scalar_bits(DType::F16, 1) == 0x3c00);
  CHECK(scalar_bits(DType::F16, 65504) == 0x7bff);
  CHECK(scalar_bits(DType::F16, 65520) == 0x7c00);
  CHECK(scalar_bits(DType::F16, std::ldexp(1, -24)) == 1);
  CHECK(scalar_bits(DType::F16, std::ldexp(1, -25)) == 0); // half to even
  CHECK(scalar_bits(DType::F16, -0.0) == 0x8000);
  CHECK(scalar_bits(DType::BF16, 1) == 0x3f80);
  CHECK(scalar_bits(DType::BF16, 1 + std::ldexp(1, -8)) == 0x3f80);
  CHECK(scalar_bits(DType::BF16, 1 + 3 * std::ldexp(1, -8)) == 0x3f82);
  CHECK(scalar_bits(DType::I8, 300) == 127);
  CHECK(scalar_bits(DType::I8, -300) == 128);
  CHECK(scalar_bits(DType::U8, -1) == 0);
  CHECK(scalar_bits(DType::I64, 1e30) == 0x7fffffffffffffff);
  CHECK(scalar_bits(DType::I32, NAN) == 0);
  CHECK(scalar_bits_int(DType::I16, -2) == 0xfffe);
  // Every f16 and bf16 comes back.
  for (uint64_t bits = 0; bits < 0x10000; ++bits)
    for (DType dtype : {DType::F16, DType::BF16}) {
      double value = scalar_value(dtype, bits);
      if (!std::isnan(value)) REQUIRE(scalar_bits(dtype, value) == bits);
    }
}

TEST_CASE("provenance follows the open source", "[ir]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2});
  g.open_source("conv");
  NodeId a = map(g, Op::Exp, {x});
  g.close_source();
  g.open_source("relu");
  CHECK(map(g, Op::Exp, {x}) == a); // asked for again: credited to both
  g.close_source();
  CHECK(g.sources(a) == std::vector<int32_t>{0, 1});
  CHECK(g.sources(x).empty());
  CHECK(g.source_names() == std::vector<std::string>{"conv", "relu"});
}

TEST_CASE("shrinking keeps what fails and little else", "[ir]") {
  auto has_erf = [](const RandomGraph& random) {
    for (NodeId id : random.graph.live_nodes())
      if (random.graph[id].op == Op::Erf) return true;
    return false;
  };
  int found = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RandomGraph random = random_graph(seed);
    if (!has_erf(random)) continue;
    ++found;
    RandomGraph small = shrink(random, has_erf);
    CHECK(has_erf(small));
    CHECK(small.graph.live_nodes().size() == 2); // an input, and the function
    CHECK(joined(verify(small.graph)) == "");
  }
  CHECK(found > 0);
}
