// Normalisations, recurrent layers and attention along an axis whose size only the run
// knows: the same values and sizes as for a tensor that has this size when packing.
#include "tests/support/bounded_model.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::import_test;

namespace {

// `wide` [1, 4, n] of v, which `made` makes `z` of.
std::vector<std::string> of_channels(const std::string& made) {
  return {node("Mul", {"v", "columns"}, {"wide"}), made, node("Identity", {"z"}, {"y"})};
}

std::vector<std::string> with_columns(std::vector<std::string> constants) {
  constants.push_back(tensor_of("columns", {1, 4, 1}));
  return constants;
}

// The same as rows [1, n, 4], and back.
std::vector<std::string> of_rows(const std::vector<std::string>& made) {
  const auto turned = [](const char* x, const char* y) {
    return node("Transpose", {x}, {y}, {ints_attribute("perm", {0, 2, 1})});
  };
  std::vector<std::string> nodes{node("Mul", {"v", "columns"}, {"wide"}),
                                 turned("wide", "rows")};
  nodes.insert(nodes.end(), made.begin(), made.end());
  nodes.push_back(turned("z", "y"));
  return nodes;
}

} // namespace

TEST_CASE("means and deviations are those of what is meant", "[bounded]") {
  const auto constants = with_columns({tensor_of("scale", {4}), tensor_of("shift", {4})});
  check_close(
      of_channels(node("InstanceNormalization", {"wide", "scale", "shift"}, {"z"})),
      constants);
  check_close(of_channels(node("GroupNormalization", {"wide", "scale", "shift"}, {"z"},
                               {attribute("num_groups", int64_t{2})})),
              with_columns({tensor_of("scale", {2}), tensor_of("shift", {2})}), 18);
  check_close(of_channels(node("LpNormalization", {"wide"}, {"z"})), constants);
  check_close(of_channels(node("LRN", {"wide"}, {"z"}, {attribute("size", int64_t{3})})),
              constants);
}

TEST_CASE("a global pooling takes what is meant", "[bounded]") {
  for (const char* pool : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"})
    check_close({node(pool, {"v"}, {"one"}), node("Add", {"v", "one"}, {"y"})});
}

TEST_CASE("a sequence ends where what is meant ends", "[bounded]") {
  const std::vector<std::string> directions{"forward", "reverse", "bidirectional"};
  for (const auto& [kind, gates] :
       {std::pair{"RNN", int64_t{1}}, {"GRU", int64_t{3}}, {"LSTM", int64_t{4}}})
    for (const std::string& direction : directions) {
      CAPTURE(kind, direction);
      const int64_t both = direction == "bidirectional" ? 2 : 1;
      const std::vector<std::string> made{
          node("Transpose", {"rows"}, {"steps"}, {ints_attribute("perm", {1, 0, 2})}),
          node(kind, {"steps", "w", "r", "b"}, {"all", "last"},
               {text_attribute("direction", direction),
                attribute("hidden_size", int64_t{2})}),
          // Both what every step gives and what the last one leaves.
          node("Add", {"all", "last"}, {"sum"}),
          node("Transpose", {"sum"}, {"first"}, {ints_attribute("perm", {2, 0, 1, 3})}),
          node("Reshape", {"first", "flat"}, {"z"})};
      check_close(of_rows(made), with_columns({tensor_of("w", {both, gates * 2, 4}),
                                               tensor_of("r", {both, gates * 2, 2}),
                                               tensor_of("b", {both, gates * 4}),
                                               ints("flat", {3}, {0, 0, -1})}));
    }
}

TEST_CASE("queries see the keys that are meant", "[bounded]") {
  for (int64_t causal : {0, 1})
    check_close(of_rows({node("Attention", {"rows", "rows", "rows"}, {"z"},
                              {attribute("q_num_heads", int64_t{2}),
                               attribute("kv_num_heads", int64_t{2}),
                               attribute("is_causal", causal)})}),
                with_columns({}), 23);
}
