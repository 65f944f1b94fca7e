// JSON that a user gives: taken apart where it is JSON, refused where it is not.
#include "packager/report/json_reader.h"

#include <catch2/catch.hpp>

using svod::packager::json_members;

TEST_CASE("members of an object are their own JSON", "[json]") {
  const std::string text =
      R"( {"a": [1, -0.5e+3, {"b": "}\"\u003c"}], "c": {}, "d": null , "e":[ ]} )";
  const auto members = json_members(text);
  REQUIRE(members);
  CHECK(members->size() == 4);
  CHECK(members->at("a").starts_with("[1, -0.5e+3, {"));
  CHECK(members->at("c").starts_with("{}"));
  CHECK(members->at("d").starts_with("null"));
  CHECK(json_members("{}"));
}

TEST_CASE("what is no JSON object is refused", "[json]") {
  for (const char* text : {"",
                           "[]",
                           "{",
                           "{}}",
                           "{\"a\"}",
                           "{\"a\": }",
                           "{\"a\": 1,}",
                           "{\"a\": 01}",
                           "{\"a\": 1.}",
                           "{\"a\": 1e}",
                           "{\"a\": -}",
                           "{\"a\": \"\n\"}",
                           "{\"a\": \"\\x\"}",
                           "{\"a\": \"\\u00g0\"}",
                           "{\"a\": \"",
                           "{a: 1}",
                           "{\"a\": [1 2]}",
                           "{\"a\": tru}",
                           "{\"a\": NaN}",
                           "<!-- -->",
                           "{\"a\": \"\\u00"}) {
    INFO(text);
    CHECK(!json_members(text));
  }
  CHECK(!json_members("{\"a\": " + std::string(100000, '[')));
}
