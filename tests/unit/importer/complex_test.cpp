// Complex tensors through the importer: what operators do to them by their parts, and how
// they cross branches, loops and the model's border. Expected values are worked out by
// hand from the specification.
#include "tests/support/import_model.h"

using namespace svod;
using namespace svod::import_test;

namespace {

constexpr int kC64 = 14, kC128 = 15;

// Two complex numbers a row: x = [[1+2i, 3-4i], [5+6i, 1+2i]].
const std::vector<float> kPairs = {1, 2, 3, -4, 5, 6, 1, 2};

// The first output's parts for complex x [2, 2].
std::vector<float> run_complex(const std::vector<std::string>& nodes,
                               const std::vector<std::string>& initializers = {},
                               int64_t opset = 17) {
  const Imported result = imported(
      model({nodes, {value("x", {2, 2}, kC64)}, {value("y", {"n"}, kC64)}, initializers},
            opset));
  const Graph& g = *result.graph;
  CHECK(g.inputs()[0].seen == Interface{kC64, {2, 2}});
  return floats_of(evaluate(g, {f32({2, 2, 2}, kPairs)}).outputs.at(0));
}

std::string c64(const std::string& name, const std::vector<int64_t>& dims,
                const std::vector<float>& parts) {
  return tensor(name, kC64, dims, data(9, raw(parts)));
}

} // namespace

TEST_CASE("complex elements are moved, and added by their parts", "[complex]") {
  CHECK(run_complex({node("Transpose", {"x"}, {"y"})}) ==
        std::vector<float>{1, 2, 5, 6, 3, -4, 1, 2});
  CHECK(run_complex({node("Pad", {"x", "p", "v"}, {"y"})},
                    {ints("p", {4}, {0, 1, 0, 0}), c64("v", {}, {7, -8})}) ==
        std::vector<float>{7, -8, 1, 2, 3, -4, 7, -8, 5, 6, 1, 2});
  const std::vector<std::string> scatter = {
      node("ScatterND", {"x", "i", "u"}, {"y"}, {text_attribute("reduction", "add")})};
  CHECK(run_complex(scatter,
                    {ints("i", {2, 2}, {0, 1, 0, 1}), c64("u", {2}, {1, 1, 10, 20})}) ==
        std::vector<float>{1, 2, 14, 17, 5, 6, 1, 2});
}

TEST_CASE("complex numbers are sorted by their real parts first", "[complex]") {
  // 1+2i twice, 3-4i, 5+6i; bounded by the number of elements.
  const std::vector<float> y = run_complex({node("Unique", {"x"}, {"y"})});
  REQUIRE(y.size() == 8);
  CHECK(std::vector<float>(y.begin(), y.begin() + 6) ==
        std::vector<float>{1, 2, 3, -4, 5, 6});
}

TEST_CASE("complex64 has the bits of a 64-bit number, the real part low", "[complex]") {
  const std::vector<std::string> nodes = {
      node("BitCast", {"x"}, {"bits"}, {attribute("to", int64_t{13})}),
      node("BitCast", {"bits"}, {"y"}, {attribute("to", int64_t{kC64})})};
  CHECK(run_complex(nodes, {}, 26) == kPairs);
  const Imported bits = imported(model(
      {{nodes[0]}, {value("x", {2, 2}, kC64)}, {value("bits", {2, 2}, 13)}, {}}, 26));
  const Tensor out = evaluate(*bits.graph, {f32({2, 2, 2}, kPairs)}).outputs.at(0);
  CHECK(out.dtype == DType::U64);
  CHECK(out.bytes == f32({2, 2, 2}, kPairs).bytes);
}

TEST_CASE("a sequence of complex tensors gives them back", "[complex]") {
  CHECK(run_complex({node("SplitToSequence", {"x"}, {"s"}),
                     node("SequenceAt", {"s", "i"}, {"y"})},
                    {ints("i", {}, {1})}) == std::vector<float>{5, 6, 1, 2});
}

TEST_CASE("a branch and a loop of the run carry complex values", "[complex]") {
  const std::string yes =
      graph({{node("Transpose", {"x"}, {"a"})}, {}, {value("a", {2, 2}, kC64)}, {}});
  const std::string no =
      graph({{node("Identity", {"w"}, {"b"})}, {}, {value("b", {2, 2}, kC64)}, {}});
  const std::string body = graph(
      {{node("Where", {"m", "w", "state"}, {"next"}), node("Identity", {"go"}, {"on"})},
       {value("i", {}, kI64), value("go", {}, kBool), value("state", {2, 2}, kC64)},
       {value("on", {}, kBool), value("next", {2, 2}, kC64)},
       {}});
  const std::string w = c64("w", {2, 2}, {0, 1, 0, 2, 0, 3, 0, 4});
  const std::string m = tensor("m", kBool, {2, 1}, data(9, std::string("\1\0", 2)));
  const std::string bytes = model(
      {{node("If", {"c"}, {"t"},
             {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)}),
        node("Loop", {"n", "", "t"}, {"y"}, {graph_attribute("body", body)})},
       {value("c", {}, kBool), value("n", {}, kI64), value("x", {2, 2}, kC64)},
       {value("y", {2, 2}, kC64)},
       {w, m}});
  const Imported result = imported(bytes); // its weights stay where they are
  const auto run = [&](bool condition, int64_t trips) {
    Tensor c{DType::Bool, {}, {std::byte{condition}}}, n{DType::I64, {}, {}};
    n.bytes.resize(8);
    std::memcpy(n.bytes.data(), &trips, 8);
    const Tensor x = f32({2, 2, 2}, kPairs);
    return floats_of(evaluate(*result.graph, {c, n, x}).outputs.at(0));
  };
  CHECK(run(true, 0) == std::vector<float>{1, 2, 5, 6, 3, -4, 1, 2});
  CHECK(run(true, 2) == std::vector<float>{0, 1, 0, 2, 3, -4, 1, 2});
  CHECK(run(false, 1) == std::vector<float>{0, 1, 0, 2, 0, 3, 0, 4});
}

TEST_CASE("complex128 is pairs of doubles; what has no meaning by parts is refused",
          "[complex]") {
  const Imported wide = imported(model({{node("Identity", {"x"}, {"y"})},
                                        {value("x", {3}, kC128)},
                                        {value("y", {3}, kC128)},
                                        {}}));
  const GraphOutput& y = wide.graph->outputs()[0];
  CHECK((*wide.graph)[y.node].dtype == DType::F64);
  CHECK(y.seen == Interface{kC128, {3}});
  CHECK(byte_size(y.seen) == 48);
  refused(model({{node("ScatterND", {"x", "i", "x"}, {"y"},
                       {text_attribute("reduction", "mul")})},
                 {value("x", {3}, kC64)},
                 {value("y", {3}, kC64)},
                 {ints("i", {3, 1}, {0, 1, 2})}}),
          Exit::Unsupported, "products and extremes of complex numbers");
  refused(model({{node("Concat", {"x", "z"}, {"y"}, {attribute("axis", int64_t{0})})},
                 {value("x", {3}, kC64), value("z", {3}, kC128)},
                 {value("y", {6}, kC64)},
                 {}}),
          Exit::InvalidModel, "input 1 is c128, an input before it is c64");
}
