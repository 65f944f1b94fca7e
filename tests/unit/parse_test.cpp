// The text form: it reads back what it prints, and any other text is refused with a line
// number.
#include "compiler/ir/digest.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

namespace {

std::string fault(const std::string& text) {
  Diags diags;
  auto graph = parse_graph(text, diags);
  CHECK(graph.has_value() == !diags.failed());
  return diags.failed() ? diags.all()[0].message : "";
}

} // namespace

TEST_CASE("the text form of each kind of node", "[ir][parse]") {
  const char* text = R"(%0 = input "x" : f32[4,4]
%1 = weight #0 {1, -0.5, inf, nan} : f32[1,4]
%2 = pad %0 low=[0,1] high=[0,1] value=-1.5 : f32[4,6]
%3 = window %2 axis=1 size=3 stride=2 dilation=1 : f32[4,2,3]
%4 = slice %3 start=[3,0,0] step=[-1,1,1] : f32[2,2,3]
%5 = sum %4 axes=[1,2] : f32[2,1,1]
%6 = argmax %4 axis=2 last=1 : i64[2,2,1]
%7 = constant value=-3 : i64[2,2,1]
%8 = iota axis=0 : i64[2,2,1]
%9 = gather %7 %8 axis=2 : i64[2,2,1]
%10 = cast %9 : f16[2,2,1]
%11 = weight #1 {0, 255} : u8[2]
%12 = expand %1 : f32[4,4]
%13 = constant value=0.099975586 : f16[]
output "y" %5
output "a \x22quoted\x22 name \xc3\xa9" %10
output "z" %6
output "w" %11
output "v" %12
output "u" %13
)";
  Diags diags;
  auto graph = parse_graph(text, diags);
  INFO(diags.text("text"));
  REQUIRE(graph);
  CHECK(verify(*graph).empty());
  CHECK(print_graph(*graph) == text);
  CHECK(graph->outputs()[1].name == "a \"quoted\" name \xc3\xa9");
}

TEST_CASE("random graphs print and parse back", "[ir][parse][property]") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Graph graph = random_graph(seed).graph;
    std::string text = print_graph(graph);
    INFO(text);
    Diags diags;
    auto again = parse_graph(text, diags, &graph);
    INFO(diags.text("text"));
    REQUIRE(again);
    REQUIRE(print_graph(*again) == text);
    REQUIRE(graph_digest(*again) == graph_digest(graph));
  }
}

TEST_CASE("large weights are found by digest", "[ir][parse]") {
  Graph g;
  std::vector<std::byte> bytes(400, std::byte{1});
  uint32_t blob = g.add_blob(bytes);
  g.add_output("y", g.intern({Op::Weight, DType::F32, {100}, {blob}, {}}));
  std::string text = print_graph(g);
  CHECK(text == "%0 = weight #0 sha256=" + g.blob(blob).digest.hex() +
                    " : f32[100]\noutput \"y\" %0\n");
  Diags diags;
  auto again = parse_graph(text, diags, &g);
  REQUIRE(again);
  CHECK(print_graph(*again) == text);
  CHECK(fault(text) ==
        "line 1: the weight's values are not in the text, and no blob with its "
        "digest is at hand");
}

TEST_CASE("inputs and outputs may be seen as another type", "[ir][parse]") {
  const std::string text = "%0 = input \"x\" seen=string dims=[2] : u8[2,7]\n"
                           "%1 = input \"n\" seen=i32 dims=[] : u8[4]\n"
                           "%2 = neg %0 : u8[2,7]\n"
                           "output \"y\" %2 seen=string dims=[1,2]\n"
                           "output \"n\" %1\n";
  Diags diags;
  auto graph = parse_graph(text, diags);
  INFO(diags.text("text"));
  REQUIRE(graph);
  CHECK(verify(*graph).empty());
  CHECK(print_graph(*graph) == text);
  CHECK(graph->inputs()[0].seen == Interface{8, {2}});
  CHECK(graph->inputs()[1].seen == Interface{6, {}});
  CHECK(graph->outputs()[0].seen == Interface{8, {1, 2}});
  CHECK(graph->outputs()[1].seen == Interface{2, {4}});
  // Passes keep it, and it is part of what the digest tells apart.
  CHECK(print_graph(rewrite::simplify(*graph)) == text);
  auto other =
      parse_graph(text.substr(0, text.find("[1,2]")) + "[2,1]\noutput \"n\" %1\n", diags);
  REQUIRE(other);
  CHECK(graph_digest(*other) != graph_digest(*graph));

  const std::string x = "%0 = input \"x\" : f32[2,3]\n";
  CHECK(fault(x + "output %0 seen=i32") ==
        "line 2: 'seen' and 'dims' say together what the caller sees");
  CHECK(fault(x + "output %0 seen=i7 dims=[]") == "line 2: no element type 'i7'");
  CHECK(fault(x + "output %0 axes=[]") == "line 2: something follows the output");
  CHECK(fault(x + "output %0 seen=f32 dims=[2,2]") ==
        "line 2: its interface has 16 bytes, its node has 24");
  CHECK(fault(x + "output %0 seen=f32 dims=[-2,-3]") ==
        "line 2: its interface: negative extent");
  CHECK(fault("%0 = input \"x\" seen=i4 dims=[3,5] : u8[8]\noutput %0") == "");
  CHECK(fault("%0 = input \"x\" : i4[3]") ==
        "line 1: its interface has 2 bytes, its node has 3");
  CHECK(fault("%0 = input \"x\" seen=u2 dims=[3,5] : u8[8]\noutput %0") ==
        "line 1: its interface has 4 bytes, its node has 8");
}

TEST_CASE("types, comments and output names may be left out", "[ir][parse]") {
  Diags diags;
  auto graph = parse_graph("# a comment\n\n  %7 = input \"x\" : f32[4] ; from \"conv\"\n"
                           "%9 = neg %7\noutput %9\n",
                           diags);
  REQUIRE(graph);
  CHECK(print_graph(*graph) ==
        "%0 = input \"x\" : f32[4]\n%1 = neg %0 : f32[4]\noutput \"\" %1\n");
}

TEST_CASE("wrong texts are refused with their line", "[ir][parse]") {
  const std::string x = "%0 = input \"x\" : f32[2,3]\n";
  CHECK(fault(x) == "");
  CHECK(fault(x + "%1 = frobnicate %0") == "line 2: no op 'frobnicate'");
  CHECK(fault(x + "%0 = neg %0") == "line 2: %0 is defined twice");
  CHECK(fault(x + "%1 = neg %5") == "line 2: %5 is not defined");
  CHECK(fault(x + "%1 = neg %0 : f32[3,2]") == "line 2: the type is f32[2,3]");
  CHECK(fault(x + "%1 = neg %0 : f33[2,3]") == "line 2: no element type 'f33'");
  CHECK(fault(x + "%1 = add %0") == "line 2: wrong number of inputs");
  CHECK(fault(x + "%1 = add") == "line 2: wrong number of inputs");
  CHECK(fault(x + "%1 = sum %0 axes=[7]") == "line 2: axis is outside the input's rank");
  CHECK(fault(x + "%1 = sum %0") == "line 2: 'axes' is missing");
  CHECK(fault(x + "%1 = neg %0 axes=[1]") == "line 2: 'axes' is unknown here");
  CHECK(fault(x + "%1 = reshape %0") == "line 2: the type of this op must be written");
  CHECK(fault(x + "%1 = reshape %0 : f32[7]") ==
        "line 2: reshape changes the number of elements");
  CHECK(fault(x + "%1 = pad %0 low=[0] high=[0,0] value=0") ==
        "line 2: 'low' is one number per axis");
  CHECK(fault(x + "%1 = pad %0 low=[0,0] high=[0,0] value=red") ==
        "line 2: 'red' is no f32");
  CHECK(fault("%0 = weight #0 {1, 2} : f32[3]") ==
        "line 1: blob has another size than the shape");
  CHECK(fault("%0 = weight #0 {1, 300} : u8[2]") == "line 1: '300' is no u8");
  CHECK(fault("%0 = input \"x : f32[2]") == "line 1: a name has no closing quote");
  CHECK(fault("%0 = constant value=0 : f32[99999999999999999999]") ==
        "line 1: '99999999999999999999' is no integer");
  CHECK(fault("%0 = constant value=0 : f32[4000000000,4000000000]") ==
        "line 1: too many elements");
  CHECK(fault("hello") == "line 1: a line is '%n = op ...' or 'output ...'");
  CHECK(fault("output %0") == "line 1: %0 is not defined");
}

TEST_CASE("mangled texts never crash the parser", "[ir][parse][property]") {
  Random random(7);
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::string text = print_graph(random_graph(seed, {8, 60}).graph);
    for (int changes = 0; changes < 6; ++changes) {
      auto at = static_cast<size_t>(random.below(static_cast<int64_t>(text.size())));
      switch (random.below(3)) {
      case 0:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.erase(at, static_cast<size_t>(random.below(6)));
        break;
      default:
        text.insert(at,
                    text.substr(static_cast<size_t>(random.below(int64_t(at) + 1)), 5));
      }
      Diags diags;
      auto graph = parse_graph(text, diags);
      REQUIRE(graph.has_value() == !diags.failed());
      if (graph) REQUIRE(verify(*graph).empty());
    }
  }
}

TEST_CASE("scalars print as the shortest text that reads back", "[ir][parse]") {
  CHECK(scalar_text(DType::F32, 0x3dcccccd) == "0.1");
  CHECK(scalar_text(DType::F32, 0x7fc00000) == "nan");
  CHECK(scalar_text(DType::F32, 0x7fc00001) == "0x7fc00001");
  CHECK(scalar_text(DType::F32, 0x80000000) == "-0");
  CHECK(scalar_text(DType::I8, 0xff) == "-1");
  CHECK(scalar_text(DType::U64, ~uint64_t{0}) == "18446744073709551615");
  Random random(1);
  for (int i = 0; i < 20000; ++i)
    for (DType dtype :
         {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::U8}) {
      uint64_t bits = random.next() >> (64 - 8 * byte_size(dtype));
      INFO(scalar_text(dtype, bits));
      REQUIRE(scalar_from_text(dtype, scalar_text(dtype, bits)) == bits);
    }
}
