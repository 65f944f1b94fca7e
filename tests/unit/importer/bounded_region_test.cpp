// Sizes of the run inside loops and branches that only the run decides: what a body takes
// from around it, branches that give different extents, lists that a loop grows.
#include "tests/support/import_model.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::import_test;

namespace {

using Values = std::vector<float>;

const Values kMixed = {1, -1, 2, 0, -3, 4}; // positive: 1, 2, 4
const Values kNone = {-1, -1, -1, 0, -3, -4};

// Of x [6] the positive elements are v [n]; `nodes` make y.
std::string over_kept(const std::vector<std::string>& nodes,
                      std::vector<std::string> constants = {}) {
  std::vector<std::string> all{node("Greater", {"x", "zero"}, {"c"}),
                               node("Compress", {"x", "c"}, {"v"}),
                               node("Shape", {"v"}, {"n"})};
  all.insert(all.end(), nodes.begin(), nodes.end());
  constants.push_back(floats("zero", {}, {0}));
  return model({all, {value("x", {6})}, {value("y", {""})}, constants}, 13);
}

struct Run {
  bool failed = false;
  int64_t count = -1; // of y's first axis, -1: known
  Values values;      // of y, as far as they are meant
};

Run run_sized(const std::string& bytes, const Values& x) {
  const Imported model = imported(bytes);
  const Evaluated run = evaluate(*model.graph, {f32({6}, x)});
  Run out;
  out.failed = run.failed != kNoNode;
  if (out.failed) return out;
  const Tensor& y = run.outputs.at(0);
  out.values = floats_of(y);
  if (!model.interface.extents.contains(0)) return out;
  std::memcpy(&out.count, run.outputs[model.interface.extents.at(0)].bytes.data(),
              sizeof out.count);
  const int64_t each = y.shape[0] == 0 ? 0 : element_count(y.shape) / y.shape[0];
  REQUIRE(out.count <= y.shape[0]);
  out.values.resize(static_cast<size_t>(out.count * each));
  return out;
}

std::string branch(const char* name, const std::vector<std::string>& nodes,
                   const std::string& output, std::vector<std::string> constants = {}) {
  return graph_attribute(name, graph({nodes, {}, {value(output, {""})}, constants}));
}

// If nothing was kept, then one branch, else the other.
std::string if_none(const std::string& yes, const std::string& no) {
  return over_kept({node("Squeeze", {"n"}, {"n0"}),
                    node("Equal", {"n0", "nil"}, {"none"}),
                    node("If", {"none"}, {"y"}, {yes, no})},
                   {ints("nil", {}, {0})});
}

} // namespace

TEST_CASE("branches may differ in how long their result is", "[bounded][region]") {
  const std::string two = branch("then_branch", {node("Identity", {"pair"}, {"t"})}, "t",
                                 {floats("pair", {2}, {7, 8})});
  const std::string kept = branch("else_branch", {node("Neg", {"v"}, {"e"})}, "e");
  const std::string bytes = if_none(two, kept);
  const Run some = run_sized(bytes, kMixed), none = run_sized(bytes, kNone);
  CHECK(some.count == 3);
  CHECK(some.values == Values{-1, -2, -4});
  CHECK(none.count == 2);
  CHECK(none.values == Values{7, 8});
  // Lengths that are known, and differ.
  const std::string four = branch("else_branch", {node("Identity", {"more"}, {"e"})}, "e",
                                  {floats("more", {4}, {1, 2, 3, 4})});
  CHECK(run_sized(if_none(two, four), kMixed).values == Values{1, 2, 3, 4});
  CHECK(run_sized(if_none(two, four), kNone).values == Values{7, 8});
}

TEST_CASE("branches must agree in rank", "[bounded][region]") {
  const std::string row = branch("then_branch", {node("Identity", {"pair"}, {"t"})}, "t",
                                 {floats("pair", {1, 2}, {7, 8})});
  const std::string kept = branch("else_branch", {node("Neg", {"v"}, {"e"})}, "e");
  refused(if_none(row, kept), Exit::Unsupported,
          "its branches give results of different shapes");
}

TEST_CASE("branches that give a number and a list of one agree", "[bounded][region]") {
  const std::string number = branch("then_branch", {node("Identity", {"one"}, {"t"})},
                                    "t", {floats("one", {}, {7})});
  const std::string list = branch("else_branch", {node("Identity", {"two"}, {"e"})}, "e",
                                  {floats("two", {1}, {8})});
  CHECK(run_sized(if_none(number, list), kMixed).values == Values{8});
  CHECK(run_sized(if_none(number, list), kNone).values == Values{7});
}

namespace {

// A Loop that runs as often as v has elements, and what its body does with v and the
// list.
std::string listing(const std::vector<std::string>& body, const std::string& start,
                    const std::vector<std::string>& constants = {}) {
  std::vector<std::string> nodes{node("Identity", {"go"}, {"on"})};
  nodes.insert(nodes.end(), body.begin(), body.end());
  const std::string loop =
      graph({nodes,
             {value("i", {}, kI64), value("go", {}, kBool), value("list", {""})},
             {value("on", {}, kBool), value("longer", {""})},
             {}});
  std::vector<std::string> all = constants;
  all.push_back(start);
  all.push_back(ints("front", {1}, {0}));
  all.push_back(tensor("yes", kBool, {}, packed<int64_t>(5, {1})));
  return over_kept(
      {node("Squeeze", {"n"}, {"n0"}),
       node("Loop", {"n0", "yes", "start"}, {"y"}, {graph_attribute("body", loop)})},
      all);
}

const std::vector<std::string> kAppendSquare = {
    node("Gather", {"v", "i"}, {"one"}), node("Mul", {"one", "one"}, {"square"}),
    node("Unsqueeze", {"square", "front"}, {"item"}),
    node("Concat", {"list", "item"}, {"longer"}, {attribute("axis", int64_t{0})})};

} // namespace

TEST_CASE("a loop of the run grows a list", "[bounded][region]") {
  const std::string bytes = listing(kAppendSquare, floats("start", {0}, {}));
  CHECK(run_sized(bytes, kMixed).values == Values{1, 4, 16});
  CHECK(run_sized(bytes, kNone).count == 0);
  const std::string behind = listing(kAppendSquare, floats("start", {2}, {8, 9}));
  CHECK(run_sized(behind, kMixed).values == Values{8, 9, 1, 4, 16});
  CHECK(run_sized(behind, kNone).values == Values{8, 9});
}

TEST_CASE("a list that its own loop reads is no such list", "[bounded][region]") {
  std::vector<std::string> body = kAppendSquare;
  body[1] = node("ReduceSum", {"list"}, {"all"}, {attribute("keepdims", int64_t{0})});
  body.insert(body.begin() + 2, node("Add", {"one", "all"}, {"square"}));
  refused(listing(body, floats("start", {0}, {})), Exit::Unsupported,
          "carried value 0 changes from f32[0] to f32[1]");
}

namespace {

// Doubles x until its sum exceeds 100, and says what half of it is; `half` begins as a
// number that nobody reads.
std::string doubling(const std::vector<std::string>& halves) {
  std::vector<std::string> nodes{
      node("Add", {"x1", "x1"}, {"twice"}),
      node("ReduceSum", {"twice"}, {"all"}, {attribute("keepdims", int64_t{0})}),
      node("Less", {"all", "enough"}, {"on"})};
  nodes.insert(nodes.end(), halves.begin(), halves.end());
  const std::string body =
      graph({nodes,
             {value("i", {}, kI64), value("go", {}, kBool), value("x1", {""}),
              value("h0", {""})},
             {value("on", {}, kBool), value("twice", {""}), value("h", {""})},
             {}});
  return model({{node("Loop", {"", "yes", "x", "half"}, {"last", "y"},
                      {graph_attribute("body", body)})},
                {value("x", {3})},
                {value("y", {3})},
                {floats("half", {}, {1e27F}), floats("enough", {}, {100}),
                 tensor("yes", kBool, {}, packed<int64_t>(5, {1}))}},
               13);
}

} // namespace

TEST_CASE("a loop may set a carried number to a list first", "[bounded][region]") {
  const std::string kept = doubling({node("Identity", {"x1"}, {"h"})});
  const auto halves = [&](const Values& x) {
    return floats_of(evaluate(*imported(kept).graph, {f32({3}, x)}).outputs.at(0));
  };
  CHECK(halves({1, 2, 3}) == Values{16, 32, 48});
  CHECK(halves({100, 2, 3}) == Values{100, 2, 3}); // one iteration is all
  // Whoever counts iterations would count the first one twice.
  refused(doubling({node("Cast", {"i"}, {"step"}, {attribute("to", int64_t{kF32})}),
                    node("Add", {"x1", "step"}, {"h"})}),
          Exit::Unsupported, "carried value 1 changes from f32[] to f32[3]");
}

TEST_CASE("a range to the smaller of a number and the next one has one element",
          "[bounded]") {
  const auto part = [](const char* end) {
    return model({{node("ReduceSum", {"x"}, {"all"}, {attribute("keepdims", int64_t{0})}),
                   node("Cast", {"all"}, {"from"}, {attribute("to", int64_t{kI64})}),
                   node("Cast", {"from"}, {"start"}, {attribute("to", int64_t{kF32})}),
                   node("Add", {"start", "one"}, {"next"}),
                   node("Cast", {"next"}, {"behind"}, {attribute("to", int64_t{kI64})}),
                   node("Min", {"behind", "ten"}, {"least"}),
                   node("Range", {"from", end, "step"}, {"r"}),
                   node("Cast", {"r"}, {"y"}, {attribute("to", int64_t{kF32})})},
                  {value("x", {6})},
                  {value("y", {""})},
                  {floats("one", {}, {1}), ints("ten", {}, {10}), ints("step", {}, {1})}},
                 13);
  };
  const std::string bytes = part("least");
  const Run inside = run_sized(bytes, {4, 0, 0, 0, 0, 0});
  CHECK(inside.count == 1);
  CHECK(inside.values == Values{4});
  CHECK(run_sized(bytes, {20, 0, 0, 0, 0, 0}).count == 0);
  // Where floats are further apart than one the run looks.
  CHECK(run_sized(part("behind"), {33554432, 0, 0, 0, 0, 0}).count == 0);
  refused(part("ten"), Exit::Unsupported, "has no bound");
}

TEST_CASE("a body takes sizes of the run from around it", "[bounded][region]") {
  // The sum of v's meant elements, in every iteration.
  const std::vector<std::string> body = {
      node("ReduceSum", {"v"}, {"all"}, {attribute("keepdims", int64_t{1})}),
      node("Concat", {"list", "all"}, {"longer"}, {attribute("axis", int64_t{0})})};
  CHECK(run_sized(listing(body, floats("start", {0}, {})), kMixed).values ==
        Values{7, 7, 7});
  // As many elements as the iteration says, of which the bound is known inside.
  const std::vector<std::string> upto = {
      node("Unsqueeze", {"i", "front"}, {"i1"}),
      node("Slice", {"v", "front", "i1"}, {"first"}),
      node("ReduceSum", {"first"}, {"all"}, {attribute("keepdims", int64_t{1})}),
      node("Concat", {"list", "all"}, {"longer"}, {attribute("axis", int64_t{0})})};
  CHECK(run_sized(listing(upto, floats("start", {0}, {})), kMixed).values ==
        Values{0, 1, 3});
}
