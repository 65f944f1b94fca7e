// Dimensions that are named by what they are of others.
#include "importer/inputs/dimension_expression.h"

#include <catch2/catch.hpp>

#include <map>

using namespace svod::importer;

namespace {

// "least..most" under these ranges, or what there is instead.
std::string range_text(const std::string& text,
                       const std::map<std::string, SizeRange>& ranges) {
  const auto expression = DimensionExpression::parse(text);
  if (!expression) return "no expression";
  const auto range =
      range_of(*expression, [&](const std::string& name) -> std::optional<SizeRange> {
        const auto at = ranges.find(name);
        if (at == ranges.end()) return std::nullopt;
        return at->second;
      });
  return range ? std::to_string(range->least) + ".." + std::to_string(range->most)
               : "no range";
}

} // namespace

TEST_CASE("sizes that follow from others", "[import][shapes]") {
  const std::map<std::string, SizeRange> ranges = {
      {"past", {0, 63}}, {"seq", {1, 8}}, {"batch", {2, 2}}, {"a.b_1", {5, 5}}};
  CHECK(range_text("past + 1", ranges) == "1..64");
  CHECK(range_text("past+seq", ranges) == "1..71");
  CHECK(range_text("2*past - seq + 8", ranges) == "0..133");
  CHECK(range_text("batch * (past + seq)", ranges) == "2..142");
  CHECK(range_text("floor(past/4)", ranges) == "0..15");
  CHECK(range_text("(past + 1)//2", ranges) == "0..32");
  CHECK(range_text("a.b_1*3", ranges) == "15..15");
  CHECK(DimensionExpression::parse("seq + past + seq")->names() ==
        std::vector<std::string>{"seq", "past"});
}

TEST_CASE("names that are no expression, and expressions without a size",
          "[import][shapes]") {
  const std::map<std::string, SizeRange> ranges = {{"n", {1, INT64_MAX / 2}},
                                                   {"k", {0, 3}}};
  for (const char* text : {"", "n", "12", "n +", "+ n", "n n", "(n + 1", "n + 1)",
                           "n + é", "max(n, 1)", "n ** 2", "unk__12"})
    CHECK(range_text(text, ranges) == "no expression");
  std::string deep(40, '(');
  deep.append("n+1").append(40, ')');
  CHECK(range_text(deep, ranges) == "no expression");
  CHECK(range_text("n + 99999999999999999999", ranges) == "no expression");
  CHECK(range_text("m + 1", ranges) == "no range");
  CHECK(range_text("k - 1", ranges) == "no range"); // may be negative
  CHECK(range_text("n / k", ranges) == "no range"); // by zero
  CHECK(range_text("3 * n", ranges) == "no range"); // is too large to count
}
