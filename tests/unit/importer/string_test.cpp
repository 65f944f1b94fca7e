// Strings as data of a run: models of one string operator, imported and evaluated. What a
// model gives is compared with plain C++ on the same strings.
#include "importer/text/regex.h"
#include "importer/text/string_case.h"
#include "tests/support/import_model.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <regex>

using namespace svod;
using namespace svod::import_test;

namespace {

using Strings = std::vector<std::string>;

std::string texts_attribute(const std::string& name, const Strings& values) {
  return data(1, name) + list(9, values) + number(20, 8);
}

Tensor bytes_of(const Strings& strings, const Shape& shape) {
  Tensor tensor{DType::U8, shape, {}};
  const auto width = static_cast<size_t>(shape.back());
  tensor.bytes.resize(strings.size() * width);
  for (size_t i = 0; i < strings.size(); ++i)
    std::memcpy(tensor.bytes.data() + i * width, strings[i].data(), strings[i].size());
  return tensor;
}

Strings strings_of(const Tensor& tensor) {
  REQUIRE(tensor.dtype == DType::U8);
  Strings out;
  const auto width = static_cast<size_t>(tensor.shape.back());
  for (size_t row = 0; row < tensor.bytes.size(); row += width) {
    const std::string all(reinterpret_cast<const char*>(tensor.bytes.data()) + row,
                          width);
    out.push_back(all.substr(0, all.find('\0')));
  }
  return out;
}

template <class T> std::vector<T> values_of(const Tensor& tensor) {
  std::vector<T> out(tensor.bytes.size() / sizeof(T));
  std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
  return out;
}

// A node of string inputs x0, x1 ... of shape [n] each.
Evaluated run_node(const std::string& op, const std::vector<Strings>& inputs, int type,
                   const Strings& attributes = {}, const std::string& domain = "",
                   const std::vector<Dim>& declared = {""}, int64_t string_bytes = 64) {
  GraphParts parts;
  Strings names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    parts.inputs.push_back(
        value(names.back(), {static_cast<int64_t>(inputs[i].size())}, kString));
  }
  parts.nodes = {node(op, names, {"y"}, attributes, domain)};
  parts.outputs = {value("y", declared, type)};
  ImportOptions options;
  options.string_bytes = string_bytes;
  const Imported result = import(
      model(parts, 21, opset("ai.onnx.ml", 4) + opset("com.microsoft", 1)), options);
  INFO(result.text());
  REQUIRE(result.graph);
  std::vector<Tensor> fed;
  for (size_t i = 0; i < inputs.size(); ++i)
    fed.push_back(
        bytes_of(inputs[i], (*result.graph)[result.graph->inputs()[i].node].shape));
  return evaluate(*result.graph, fed);
}

std::vector<float> parsed(const Strings& texts) {
  const Evaluated run = run_node("Cast", {texts}, kF32, {attribute("to", int64_t{1})});
  REQUIRE(run.failed == kNoNode);
  return values_of<float>(run.outputs[0]);
}

// Numbers as strings, by Cast.
template <class T>
Strings printed(DType dtype, int onnx_type, const std::vector<T>& values) {
  const auto n = static_cast<int64_t>(values.size());
  const Imported result =
      import(model({{node("Cast", {"x"}, {"y"}, {attribute("to", int64_t{8})})},
                    {value("x", {n}, onnx_type)},
                    {value("y", {n}, kString)},
                    {}},
                   19));
  INFO(result.text());
  REQUIRE(result.graph);
  Tensor x{dtype, {n}, {}};
  x.bytes.resize(values.size() * sizeof(T));
  std::memcpy(x.bytes.data(), values.data(), x.bytes.size());
  return strings_of(evaluate(*result.graph, {x}).outputs[0]);
}

// The fewest digits that read back as the same float.
template <class T> std::string shortest(T value) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific)
          .ptr;
  return {buffer, end};
}

} // namespace

TEST_CASE("strings are equal by their bytes", "[strings]") {
  const Evaluated run =
      run_node("Equal", {{"a", "ab", "", "x"}, {"a", "abc", "", "y"}}, kBool);
  CHECK(values_of<uint8_t>(run.outputs[0]) == std::vector<uint8_t>{1, 0, 1, 0});
}

TEST_CASE("strings are joined, whatever their lengths", "[strings]") {
  const Evaluated run =
      run_node("StringConcat", {{"a", "", "long", ""}, {"b", "c", "", ""}}, kString);
  CHECK(strings_of(run.outputs[0]) == Strings{"ab", "c", "long", ""});
  CHECK(run.outputs[0].shape == Shape{4, 128});
}

TEST_CASE("text of numbers is read", "[strings]") {
  CHECK(parsed({"1", "-2.5", "+3e2", ".5", "5.", " 7 ", "1e-3", "0", "-0", "00012"}) ==
        std::vector<float>{1, -2.5f, 300, .5f, 5, 7, 1e-3f, 0, -0.f, 12});
  CHECK(std::signbit(parsed({"-0"})[0]));
  CHECK(parsed({"INF", "-inf", "1e39", "-1e999999", "1e-60"}) ==
        std::vector<float>{INFINITY, -INFINITY, INFINITY, -INFINITY, 0});
  CHECK(std::isnan(parsed({"NaN"})[0]));
  // Halves between two floats go to the even one, with more digits behind they do not.
  CHECK(parsed({"16777217", "16777217.0", "16777219", "8388609.5",
                "16777217.0000000000000000000001"}) ==
        std::vector<float>{16777216, 16777216, 16777220, 8388610, 16777218});
  CHECK(parsed({"1.17549435e-38", "1e-45", "7.1e-46", "3.4028235e38"}) ==
        std::vector<float>{1.17549435e-38f, 1e-45f, 1e-45f, 3.4028235e38f});
}

TEST_CASE("text that is no number stops the run", "[strings]") {
  for (const char* text : {"", "abc", "1x", "--1", "1e", ".", "1.2.3", "1 2", "e5"}) {
    INFO(text);
    const Evaluated run =
        run_node("Cast", {{"1", text}}, kF32, {attribute("to", int64_t{1})});
    CHECK(run.failed != kNoNode);
  }
}

TEST_CASE("random floats are printed shortest and read back", "[strings]") {
  std::mt19937 random(7);
  std::vector<float> floats{0.3f,   1e-45f,    3.4028235e38f, 1.17549435e-38f,
                            8.5e9f, 33554432.f};
  while (floats.size() < 3000) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(value)) floats.push_back(value);
  }
  const Strings texts = printed(DType::F32, kF32, floats);
  std::vector<float> back;
  for (size_t i = 0; i < texts.size(); ++i) {
    float value = 0;
    std::from_chars(texts[i].data(), texts[i].data() + texts[i].size(), value);
    back.push_back(value);
    if (shortest(value) != shortest(floats[i]) || texts[i].size() > 24)
      FAIL(texts[i] << " for " << shortest(floats[i]));
    // As many digits as the shortest form has.
    const auto digits = [](const std::string& text) {
      std::string all;
      for (char c : text.substr(0, text.find('e')))
        if (c >= '0' && c <= '9' && (c != '0' || !all.empty())) all += c;
      while (all.size() > 1 && all.back() == '0') all.pop_back();
      return all;
    };
    CHECK(digits(texts[i]) == digits(shortest(floats[i])));
  }
  CHECK(back == floats);
  CHECK(parsed(texts) == floats);
}

TEST_CASE("numbers are printed as the specification's reference does", "[strings]") {
  CHECK(printed<float>(DType::F32, kF32,
                       {0, -0.f, 1, -1.5f, 0.1f, 1e16f, 1e-5f, 0.0001f, 123456.f,
                        INFINITY, -INFINITY, NAN}) ==
        Strings{"0.0", "-0.0", "1.0", "-1.5", "0.1", "1e+16", "1e-05", "0.0001",
                "123456.0", "inf", "-inf", "nan"});
  CHECK(printed<int64_t>(DType::I64, kI64, {0, -5, INT64_MAX, INT64_MIN}) ==
        Strings{"0", "-5", "9223372036854775807", "-9223372036854775808"});
  CHECK(printed<double>(DType::F64, 11,
                        {0.1, 5e-324, 1.7976931348623157e308, 9007199254740993.0,
                         -2e100}) == Strings{"0.1", "5e-324", "1.7976931348623157e+308",
                                             "9007199254740992.0", "-2e+100"});
  CHECK(printed<uint8_t>(DType::Bool, kBool, {1, 0}) == Strings{"1", "0"});
}

TEST_CASE("a regular expression matches whole strings", "[strings]") {
  struct Row {
    const char* pattern;
    Strings yes, no;
  };
  const Row rows[] = {
      {"a*b", {"b", "aaab"}, {"", "ba", "aab "}},
      {"(ab|c){2,3}", {"abc", "ccc", "abab"}, {"c", "cccc"}},
      {"[^a-c\\d]+", {"xyz", "é"}, {"a", "x1", ""}},
      {"\\bfoo\\b.*", {"foo", "foo bar"}, {"foobar"}},
      {"^x?$", {"", "x"}, {"xx"}},
      {"(?i)AbC", {"abc", "ABC"}, {"abd"}},
      {"\\Qa.b\\E", {"a.b"}, {"axb"}},
      {".", {"é", "中", "😀"}, {"", "ab", "\n", "\xff"}},
      {"[α-ω]+", {"αβγ", "ω"}, {"Α", "a"}},
      {"x*?y+?", {"xxy", "yy"}, {"x"}},
  };
  for (const Row& row : rows) {
    INFO(row.pattern);
    Strings all = row.yes;
    all.insert(all.end(), row.no.begin(), row.no.end());
    const Evaluated run = run_node("RegexFullMatch", {all}, kBool,
                                   {text_attribute("pattern", row.pattern)});
    std::vector<uint8_t> want(all.size());
    std::fill_n(want.begin(), row.yes.size(), 1);
    CHECK(values_of<uint8_t>(run.outputs[0]) == want);
  }
}

TEST_CASE("regular expressions beyond the limits are refused", "[strings]") {
  for (const char* bomb :
       {"(a|b)*a(a|b){20}", "((((a{100}){100}){100}){100})", "(x+x+)+y{1000}{1000}"})
    CHECK(compile_regex(bomb).failure != "");
  for (const char* wrong :
       {"(", ")", "a**b(", "[a", "\\1", "(?=x)", "a{2,1}", "\\", "*", "[z-a]"}) {
    INFO(wrong);
    CHECK(compile_regex(wrong).malformed);
  }
  CHECK(compile_regex(std::string(1000, '(')).failure != "");
  CHECK_FALSE(compile_regex("\\pL").malformed);
}

TEST_CASE("a label leads to its value, another one to the default", "[strings]") {
  Strings keys;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 500; ++i) {
    keys.push_back("key" + std::to_string(i * 7919 % 1000));
    numbers.push_back(i);
  }
  const Evaluated run = run_node(
      "LabelEncoder", {{keys[0], keys[499], "other", "", keys[250]}}, kI64,
      {texts_attribute("keys_strings", keys), ints_attribute("values_int64s", numbers),
       attribute("default_int64", int64_t{-7})},
      "ai.onnx.ml");
  CHECK(values_of<int64_t>(run.outputs[0]) == std::vector<int64_t>{0, 499, -7, -7, 250});
}

TEST_CASE("numbers that lie close together lead by a table, others by a search",
          "[strings]") {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(),
                    kMost = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> close{-3, 9, 4000}, wide{kLeast, 9, kMost},
      top{kMost - 2, kMost, 9 - kMost},
      x{kLeast, -4, -3, 9, 4000, 4001, kMost - 2, kMost};
  for (const std::vector<int64_t>& keys : {close, wide, top}) {
    std::vector<int64_t> want;
    for (int64_t label : x) {
      const auto at = std::ranges::find(keys, label);
      want.push_back(at == keys.end() ? -7 : 10 * (at - keys.begin()));
    }
    const auto n = static_cast<int64_t>(x.size());
    const Imported result =
        import(model({{node("LabelEncoder", {"x"}, {"y"},
                            {ints_attribute("keys_int64s", keys),
                             ints_attribute("values_int64s", {0, 10, 20}),
                             attribute("default_int64", int64_t{-7})},
                            "ai.onnx.ml")},
                      {value("x", {n}, kI64)},
                      {value("y", {n}, kI64)},
                      {}},
                     21, opset("ai.onnx.ml", 4)));
    INFO(result.text());
    REQUIRE(result.graph);
    Tensor in{DType::I64, {n}, {}};
    in.bytes.resize(x.size() * sizeof x[0]);
    std::memcpy(in.bytes.data(), x.data(), in.bytes.size());
    const Evaluated run = evaluate(*result.graph, {in});
    CHECK(values_of<int64_t>(run.outputs[0]) == want);
  }
}

TEST_CASE("letters change their case with their length", "[strings]") {
  const Strings words{"Monday", "ÄÖÜß", "Ⱥ", "ⱥ", "ΣΊΣΥΦΟΣ", "İI", "\xff\xc3", "😀a", ""},
      ascii{"Monday", "@AMZ[`amz{", "", "0-9~\x7f", std::string(64, 'q')};
  for (LetterCase to : {LetterCase::Lower, LetterCase::Upper})
    for (const Strings& texts : {words, ascii}) {
      Strings want;
      for (const std::string& word : texts) want.push_back(in_case(word, to));
      const Evaluated run =
          run_node("StringNormalizer", {texts}, kString,
                   {text_attribute("case_change_action",
                                   to == LetterCase::Lower ? "LOWER" : "UPPER")});
      CHECK(strings_of(run.outputs[0]) == want);
    }
  CHECK(in_case("@AMZ[`amz{", LetterCase::Lower) == "@amz[`amz{");
  CHECK(in_case("ÄÖÜß", LetterCase::Lower) == "äöüß");
  CHECK(in_case("Ⱥx", LetterCase::Lower) == "ⱥx");
  CHECK(in_case("ıſ", LetterCase::Upper) == "IS");
}

TEST_CASE("strings are split as often as the model says", "[strings]") {
  const auto split = [](const Strings& texts, const std::string& separator,
                        int64_t parts) {
    const Evaluated run = run_node("StringSplit", {texts}, kString,
                                   {text_attribute("delimiter", separator)}, "",
                                   {static_cast<int64_t>(texts.size()), parts});
    return run.failed == kNoNode ? strings_of(run.outputs[0]) : Strings{"failed"};
  };
  CHECK(split({"a,b", ",", "c"}, ",", 2) == Strings{"a", "b", "", "", "c", ""});
  CHECK(split({" a  b ", "c"}, "", 2) == Strings{"a", "b", "c", ""});
  CHECK(split({"aaaaa", "baab"}, "aa", 3) == Strings{"", "", "a", "b", "b", ""});
  CHECK(split({"a,b,c", "d"}, ",", 2) == Strings{"failed"});
}

TEST_CASE("stop words leave as many strings as the model declares", "[strings]") {
  const auto rest = [](const Strings& words, int64_t count) {
    const Evaluated run =
        run_node("StringNormalizer", {words}, kString,
                 {texts_attribute("stopwords", {"the", "A"})}, "", {count});
    return run.failed == kNoNode ? strings_of(run.outputs[0]) : Strings{"failed"};
  };
  CHECK(rest({"The", "cat", "a", "dog"}, 2) == Strings{"cat", "dog"});
  CHECK(rest({"the", "a", "A"}, 1) == Strings{""});
  CHECK(rest({"the", "x", "A"}, 1) == Strings{"x"});
  CHECK(rest({"x", "y", "the"}, 1) == Strings{"failed"});
}

TEST_CASE("strings move like numbers", "[strings]") {
  // Where over an input and a constant, then the rows of both in one table.
  const std::string constant = tensor("c", kString, {2}, list(6, {"yes", "no"}));
  const Imported result =
      import(model({{node("Where", {"t", "x", "c"}, {"w"}),
                     node("Concat", {"w", "c"}, {"y"}, {attribute("axis", int64_t{0})})},
                    {value("t", {2}, kBool), value("x", {2}, kString)},
                    {value("y", {4}, kString)},
                    {constant}}));
  INFO(result.text());
  REQUIRE(result.graph);
  const Tensor t{DType::Bool, {2}, {std::byte{1}, std::byte{0}}};
  const Evaluated run =
      evaluate(*result.graph, {t, bytes_of({"input", "unused"}, {2, 64})});
  CHECK(strings_of(run.outputs[0]) == Strings{"input", "no", "yes", "no"});
  CHECK(result.graph->outputs()[0].seen == Interface{8, {4}});
}

// The longest matches of a pattern, from left to right.
static Strings matches_in(const std::string& text, const std::regex& pattern) {
  Strings out;
  for (size_t at = 0; at < text.size();) {
    std::smatch match;
    const bool found =
        std::regex_search(text.begin() + static_cast<ptrdiff_t>(at), text.end(), match,
                          pattern, std::regex_constants::match_continuous);
    const size_t length = found ? static_cast<size_t>(match.length()) : 0;
    if (length > 0) out.push_back(match.str());
    at += std::max<size_t>(length, 1);
  }
  return out;
}

TEST_CASE("tokens are the longest matches of a pattern", "[strings]") {
  std::mt19937 random(11);
  const std::string letters = "aab1, ";
  for (const char* pattern :
       {"[ab]+", "[ab1]", "ab|a|aba", "(ab)+1?", "b*a", "1|a(b,)*"}) {
    Strings texts;
    for (int i = 0; i < 8; ++i) {
      std::string text(random() % 17, ' ');
      for (char& c : text) c = letters[random() % letters.size()];
      texts.push_back(text);
    }
    std::vector<Strings> want;
    size_t most = 0;
    for (const std::string& text : texts) {
      want.push_back(matches_in(text, std::regex(pattern, std::regex::extended)));
      most = std::max(most, want.back().size());
    }
    const Evaluated run =
        run_node("Tokenizer", {texts}, kString,
                 {text_attribute("tokenexp", pattern), text_attribute("pad_value", "#")},
                 "com.microsoft", {"", ""}, 16);
    REQUIRE(run.failed == kNoNode);
    const Strings got = strings_of(run.outputs[0]);
    const size_t room = got.size() / texts.size();
    REQUIRE(room >= most);
    for (size_t i = 0; i < texts.size(); ++i) {
      INFO(pattern << " in '" << texts[i] << "'");
      want[i].resize(most, "#");
      const auto first = got.begin() + static_cast<ptrdiff_t>(i * room);
      CHECK(Strings(first, first + static_cast<ptrdiff_t>(most)) == want[i]);
    }
    CHECK(values_of<int64_t>(run.outputs[1]) ==
          std::vector<int64_t>{8, static_cast<int64_t>(most)});
  }
}

TEST_CASE("a pattern that looks around finds no tokens", "[strings]") {
  const Strings attributes{text_attribute("tokenexp", "\\bab\\b"),
                           text_attribute("pad_value", "#")};
  const Imported result =
      import(model({{node("Tokenizer", {"x"}, {"y"}, attributes, "com.microsoft")},
                    {value("x", {2}, kString)},
                    {value("y", {"", ""}, kString)},
                    {}},
                   21, opset("com.microsoft", 1)));
  CHECK(result.text().find("a pattern with ^, $ or \\b inside longer strings") !=
        std::string::npos);
}
