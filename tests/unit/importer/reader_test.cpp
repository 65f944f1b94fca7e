// The reader: every form of tensor data, every limit from both sides, and the faults that
// have been exploited in other readers.
#include "importer/check/read_model.h"
#include "tests/support/onnx_bytes.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

using namespace svod;
using namespace svod::importer;
using namespace svod::onnx_bytes;

namespace {

const std::string kRelu = node("Relu", {"x"}, {"y"});
const std::vector<std::string> kX = {value("x", {1, 4})}, kY = {value("y", {1, 4})};

std::string with_tensor(const std::string& w) {
  return model({{node("Add", {"x", "w"}, {"y"})}, kX, kY, {w}});
}

// Reads from memory; the errors are one text, empty when the model is good.
std::string errors(const std::string& bytes, const Limits& limits = {}) {
  Diags diags;
  const bool read = read_model_bytes(bytes, limits, diags).has_value();
  CHECK(read != diags.failed());
  return read ? "" : diags.text("m");
}

void refused(const std::string& bytes, const std::string& why,
             const Limits& limits = {}) {
  const std::string text = errors(bytes, limits);
  INFO(text);
  CHECK(text.find(why) != std::string::npos);
}

template <class T> std::vector<T> read_values(const std::string& w) {
  Diags diags;
  const std::string bytes = with_tensor(w);
  const std::optional<Model> model = read_model_bytes(bytes, {}, diags);
  INFO(diags.text("m"));
  REQUIRE(model);
  const ModelTensor& tensor = model->graph.initializers.at(0);
  REQUIRE(tensor.bytes.size() % sizeof(T) == 0);
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// A folder of its own for files, removed at the end.
struct Folder {
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "svod-reader-XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
  }
  std::filesystem::path path;
};

std::string
external_tensor(const std::string& location,
                const std::vector<std::pair<std::string, std::string>>& more = {}) {
  std::string entries = data(13, data(1, "location") + data(2, location));
  for (const auto& [key, value] : more)
    entries += data(13, data(1, key) + data(2, value));
  return tensor("w", kF32, {1, 4}, entries + number(14, 1));
}

} // namespace

TEST_CASE("a tensor's elements may be in any of its fields", "[reader]") {
  CHECK(read_values<float>(floats("w", {1, 2}, {1.5f, -2})) ==
        std::vector<float>{1.5f, -2});
  CHECK(read_values<float>(
            tensor("w", kF32, {2}, data(4, raw(std::vector<float>{3, 4})))) ==
        std::vector<float>{3, 4});
  // Not packed, as some writers have it.
  CHECK(read_values<float>(
            tensor("w", kF32, {1}, varint(4 << 3 | 5) + raw(std::vector<float>{7}))) ==
        std::vector<float>{7});
  CHECK(read_values<int64_t>(tensor("w", kI64, {3}, packed<int64_t>(7, {-1, 0, 300}))) ==
        std::vector<int64_t>{-1, 0, 300});
  CHECK(read_values<int64_t>(tensor("w", kI64, {2}, number(7, 5) + number(7, -5))) ==
        std::vector<int64_t>{5, -5});
  CHECK(read_values<int8_t>(tensor("w", kI8, {2}, packed<int>(5, {-128, 127}))) ==
        std::vector<int8_t>{-128, 127});
  CHECK(read_values<uint16_t>(tensor("w", kF16, {2}, packed<int>(5, {0x3c00, 0xfc00}))) ==
        std::vector<uint16_t>{0x3c00, 0xfc00});
  CHECK(read_values<double>(
            tensor("w", 11, {1}, data(10, raw(std::vector<double>{0.1})))) ==
        std::vector<double>{0.1});
  CHECK(read_values<uint32_t>(tensor("w", 12, {1}, packed<int64_t>(11, {4000000000}))) ==
        std::vector<uint32_t>{4000000000});
  // Two elements of four bits in one byte.
  CHECK(read_values<uint8_t>(tensor("w", 22, {3}, packed<int>(5, {0x21, 0x03}))) ==
        std::vector<uint8_t>{0x21, 0x03});
}

TEST_CASE("raw data is not copied", "[reader]") {
  Diags diags;
  const std::string bytes = with_tensor(floats("w", {1, 4}, {1, 2, 3, 4}));
  const std::optional<Model> model = read_model_bytes(bytes, {}, diags);
  REQUIRE(model);
  const auto* at =
      reinterpret_cast<const char*>(model->graph.initializers[0].bytes.data());
  CHECK(at > bytes.data());
  CHECK(at < bytes.data() + bytes.size());
}

TEST_CASE("a sparse tensor becomes dense", "[reader]") {
  const std::string sparse = data(1, floats("w", {2}, {5, 6})) +
                             data(2, ints("", {2, 2}, {0, 1, 1, 2})) + number(3, 2) +
                             number(3, 3);
  const GraphParts parts{{node("Add", {"x", "w"}, {"y"})}, kX, kY, {}};
  const std::string bytes =
      number(1, 8) + data(7, graph(parts) + data(15, sparse)) + opset("", 17);
  Diags diags;
  const std::optional<Model> model = read_model_bytes(bytes, {}, diags);
  REQUIRE(model);
  const ModelTensor& dense = model->graph.initializers.at(0);
  CHECK(dense.dims == Shape{2, 3});
  std::vector<float> values(6);
  REQUIRE(dense.bytes.size() == 24);
  std::memcpy(values.data(), dense.bytes.data(), 24);
  CHECK(values == std::vector<float>{0, 5, 0, 0, 0, 6});

  const std::string outside = data(1, floats("w", {1}, {5})) +
                              data(2, ints("", {1}, {6})) + number(3, 2) + number(3, 3);
  refused(number(1, 8) + data(7, graph(parts) + data(15, outside)) + opset("", 17),
          "sparse index is out of range");
}

TEST_CASE("tensors that lie about their data are refused", "[reader]") {
  const std::string four = raw(std::vector<float>{1, 2, 3, 4});
  const auto lie = [](const std::string& w, const std::string& why) {
    refused(with_tensor(w), why);
  };
  lie(tensor("w", kF32, {1, 4}, data(9, four.substr(1))), "raw_data holds 15");
  lie(tensor("w", kF32, {1, 4}, data(9, four + "x")), "raw_data holds 17");
  lie(tensor("w", kF32, {1, 4}, data(9, four) + data(4, four)), "more than one place");
  lie(tensor("w", kF32, {1, 4}, data(9, four) + data(9, four)), "more than once");
  lie(tensor("w", kF32, {1, 4}, ""), "the shape needs 16");
  lie(tensor("w", kF32, {1, 4}, packed<int>(5, {1, 2, 3, 4})),
      "field of another element type");
  lie(tensor("w", kF32, {1, 4}, data(4, four + four)), "more elements than the shape");
  lie(tensor("w", kF32, {-1, 4}, data(9, four)), "negative");
  lie(tensor("w", kF32, {int64_t{1} << 62, 4}, data(9, "")), "over the limit");
  lie(tensor("w", kF32, {int64_t{1} << 31, int64_t{1} << 33}, data(9, "")),
      "over the limit");
  lie(tensor("w", kU8, {1}, packed<int>(5, {256})), "does not fit");
  lie(tensor("w", kI8, {1}, packed<int>(5, {-129})), "does not fit");
  lie(tensor("w", 12, {1}, packed<int64_t>(11, {int64_t{1} << 32})), "does not fit");
  lie(tensor("w", 77, {1}, data(9, "x")), "unknown");
  lie(tensor("w", kF32, {1, 4}, data(9, four) + data(3, number(1, 0))), "segments");
}

TEST_CASE("two data fields are refused inside functions and attributes too", "[reader]") {
  const std::string two = tensor("v", kF32, {1}, data(9, "aaaa") + data(4, "aaaa"));
  const std::string constant =
      node("Constant", {}, {"b"}, {data(1, "value") + data(5, two) + number(20, 4)});
  refused(model({{constant, kRelu}, kX, kY, {}}),
          "attribute 'value': tensor 'v': its data is in");
  refused(model({{kRelu}, kX, kY, {}}, 17, function("f", {"a"}, {"b"}, {constant})),
          "function 'f': node 0: attribute 'value': tensor 'v': its data is in");
}

// As in ONNX's checker.
TEST_CASE("of two versions of a domain the last counts", "[reader]") {
  Diags diags;
  const std::optional<Model> read =
      read_model_bytes(model({{kRelu}, kX, kY, {}}, 17, opset("ai.onnx", 13)), {}, diags);
  REQUIRE(read);
  CHECK(read->opsets.at("") == 13);
}

TEST_CASE("messages that show two faces are refused", "[reader]") {
  const std::string g = graph({{kRelu}, kX, kY, {}});
  refused(number(1, 8) + data(7, g) + data(7, g) + opset("", 17), "two graphs");
  const auto with_attribute = [](const std::string& a) {
    return model({{node("Flatten", {"x"}, {"y"}, {a})}, kX, kY, {}});
  };
  refused(with_attribute(data(1, "axis") + number(3, 1) + data(4, "s") + number(20, 2)),
          "values of several types");
  refused(with_attribute(data(1, "axis") + data(4, "s") + number(20, 2)),
          "not of the type that it states");
  refused(with_attribute(data(1, "axis") + number(20, 5)), "holds no value");
  refused(model({{node("Flatten", {"x"}, {"y"},
                       {attribute("axis", int64_t{1}), attribute("axis", int64_t{2})})},
                 kX,
                 kY,
                 {}}),
          "given twice");
  // The type may be missing, as in the first IR version.
  CHECK(errors(with_attribute(data(1, "axis") + number(3, 1))).empty());
}

TEST_CASE("nodes out of order are put in order, with a warning", "[reader]") {
  Diags diags;
  const std::string bytes = model(
      {{node("Relu", {"t"}, {"y"}), node("Neg", {"s"}, {"t"}), node("Abs", {"x"}, {"s"})},
       kX,
       kY,
       {}});
  const std::optional<Model> read = read_model_bytes(bytes, {}, diags);
  REQUIRE(read);
  REQUIRE(read->graph.nodes.size() == 3);
  CHECK(read->graph.nodes[0].op_type == "Abs");
  CHECK(read->graph.nodes[1].op_type == "Neg");
  CHECK(read->graph.nodes[2].op_type == "Relu");
  REQUIRE(diags.all().size() == 1);
  CHECK(diags.all()[0].severity == Severity::Warning);
}

TEST_CASE("names are defined once and before use", "[reader]") {
  refused(model({{node("Relu", {"t"}, {"y"}), node("Relu", {"y"}, {"t"})}, kX, kY, {}}),
          "is made later, by node 1");
  refused(model({{node("Relu", {"y"}, {"y"})}, kX, kY, {}}), "a cycle");
  refused(model({{kRelu, kRelu}, kX, kY, {}}), "'y' is defined twice");
  refused(model({{node("Relu", {"nosuch"}, {"y"})}, kX, kY, {}}),
          "nothing makes its input");
  refused(model({{node("Relu", {"x"}, {"t"})}, kX, kY, {}}),
          "nothing makes the graph's output");
  refused(model({{kRelu}, {kX[0], kX[0]}, kY, {}}), "'x' is defined twice");
  refused(model({{kRelu}, kX, kY, {floats("w", {1}, {1}), floats("w", {1}, {1})}}),
          "two initializers are named 'w'");
  // An initializer may give an input its value.
  CHECK(errors(model({{kRelu}, kX, kY, {floats("x", {1, 4}, {1, 2, 3, 4})}})).empty());
  // All faults are reported at once.
  const std::string text =
      errors(model({{node("Add", {"a", "b"}, {"y"})}, kX, {value("z", {1})}, {}}));
  CHECK(text.find("3 errors") != std::string::npos);
}

TEST_CASE("versions", "[reader]") {
  const GraphParts parts{{kRelu}, kX, kY, {}};
  CHECK(errors(model(parts, 28)).empty());
  refused(model(parts, 29), "newer than the newest known, 28");
  refused(model(parts, 0), "does not exist");
  refused(number(1, 8) + data(7, graph(parts)), "imports no opset");
  refused(number(1, 15) + data(7, graph(parts)) + opset("", 17),
          "IR version 15 is newer");
  refused(data(7, graph(parts)) + opset("", 17), "IR version is missing");
  Limits newer;
  newer.allow_newer = true;
  CHECK(errors(model(parts, 29), newer).empty());
  // Before IR version 3 no opset was written.
  CHECK(errors(number(1, 2) + data(7, graph(parts))).empty());
}

TEST_CASE("every limit holds at its value and refuses one more", "[reader]") {
  const auto both_sides = [](const Limits& at, const Limits& below,
                             const std::string& bytes, const std::string& why) {
    CHECK(errors(bytes, at) == "");
    refused(bytes, why, below);
  };
  Limits at, below;
  const std::string two_nodes =
      model({{node("Relu", {"x"}, {"t"}), node("Relu", {"t"}, {"y"})}, kX, kY, {}});
  at.nodes = 2, below.nodes = 1;
  both_sides(at, below, two_nodes, "more nodes than the limit");

  at = below = {};
  at.name_bytes = 10, below.name_bytes = 9;
  both_sides(
      at, below,
      model({{node("Relu", {"0123456789"}, {"y"})}, {value("0123456789", {1})}, kY, {}}),
      "longer than the limit of 9 bytes");

  at = below = {};
  at.operands = 2, below.operands = 1;
  both_sides(at, below, model({{node("Add", {"x", "x"}, {"y"})}, kX, kY, {}}),
             "more inputs or outputs than the limit");

  at = below = {};
  at.attributes = 2, below.attributes = 1;
  both_sides(
      at, below,
      model({{node("Relu", {"x"}, {"y"}, {attribute("a", 1.f), attribute("b", 1.f)})},
             kX,
             kY,
             {}}),
      "more attributes than the limit");

  at = below = {};
  at.rank = 3, below.rank = 2;
  both_sides(at, below, with_tensor(floats("w", {1, 1, 4}, {1, 2, 3, 4})), "rank");
  both_sides(at, below, model({{kRelu}, {value("x", {1, 1, 4})}, kY, {}}), "rank");

  at = below = {};
  at.elements = 4, below.elements = 3;
  both_sides(at, below, with_tensor(floats("w", {1, 4}, {1, 2, 3, 4})), "over the limit");

  at = below = {};
  at.dim = 4, below.dim = 3;
  both_sides(at, below, with_tensor(floats("w", {1, 4}, {1, 2, 3, 4})), "over the limit");

  at = below = {};
  const std::string inner = graph({{}, {}, {value("x", {1, 4})}, {}});
  const std::string branches = model({{node("If", {"c"}, {"y"},
                                            {graph_attribute("then_branch", inner),
                                             graph_attribute("else_branch", inner)})},
                                      {kX[0], value("c", {}, kBool)},
                                      kY,
                                      {}});
  at.nesting = 2, below.nesting = 1;
  both_sides(at, below, branches, "nested deeper");

  at = below = {};
  at.functions = 1, below.functions = 0;
  both_sides(at, below, model({{kRelu}, kX, kY, {}}, 17, function("f", {"a"}, {"a"}, {})),
             "more functions");

  below = {};
  below.structure_bytes = 100;
  refused(two_nodes, "needs more than the limit", below);
}

TEST_CASE("cut and damaged files end in an error", "[reader]") {
  const std::string good = with_tensor(floats("w", {1, 4}, {1, 2, 3, 4}));
  CHECK(errors(good).empty());
  for (size_t size = 0; size < good.size(); ++size) {
    const std::string text = errors(good.substr(0, size));
    // Where a cut falls between fields, the rest is a smaller model that lacks something.
    CHECK(!text.empty());
  }
  refused(std::string(1000, '\xff'), "longer than 64 bits");
  refused(varint(7 << 3 | 3), "no ONNX model");
  refused(data(2, "x") + varint(7 << 3 | 2) + varint(1ull << 40), "cut off");
  refused(number(7, 3), "should have a length");
}

TEST_CASE("a thousand mutated files", "[reader]") {
  const std::string good =
      model({{node("Conv", {"x", "w"}, {"t"}, {attribute("group", int64_t{1})}),
              node("Relu", {"t"}, {"y"})},
             {value("x", {1, 1, 4, 4})},
             {value("y", {1, 1, 2, 2})},
             {floats("w", {1, 1, 3, 3}, std::vector<float>(9, 1))}});
  uint64_t state = 1;
  const auto draw = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  for (int run = 0; run < 1000; ++run) {
    std::string bad = good;
    for (size_t i = draw(4) + 1; i > 0; --i)
      bad[draw(bad.size())] = static_cast<char>(draw(256));
    errors(bad); // checks itself that there is a model or an error
  }
}

TEST_CASE("external data is read from beside the model", "[reader]") {
  const Folder folder;
  folder.write("w.bin", std::string(8, '\0') + raw(std::vector<float>{1, 2, 3, 4}));
  std::filesystem::create_directory(folder.path / "sub");
  folder.write("sub/v.bin", raw(std::vector<float>{5, 6, 7, 8}));
  const auto values = [&](const std::string& w) {
    folder.write("m.onnx", with_tensor(w));
    Diags diags;
    const std::optional<Model> model = read_model(folder.path / "m.onnx", {}, diags);
    INFO(diags.text("m"));
    REQUIRE(model);
    std::vector<float> result(4);
    REQUIRE(model->graph.initializers[0].bytes.size() == 16);
    std::memcpy(result.data(), model->graph.initializers[0].bytes.data(), 16);
    return result;
  };
  CHECK(values(external_tensor("w.bin", {{"offset", "8"}, {"length", "16"}})) ==
        std::vector<float>{1, 2, 3, 4});
  CHECK(values(external_tensor("sub/v.bin")) == std::vector<float>{5, 6, 7, 8});
  CHECK(values(external_tensor("./sub//v.bin")) == std::vector<float>{5, 6, 7, 8});
}

TEST_CASE("external data stays in the model's folder", "[reader]") {
  const Folder outside, folder;
  const std::string good = raw(std::vector<float>{1, 2, 3, 4});
  outside.write("secret.bin", good);
  folder.write("w.bin", good);
  folder.write("twice.bin", good);
  namespace fs = std::filesystem;
  fs::create_hard_link(folder.path / "twice.bin", folder.path / "hard.bin");
  fs::create_symlink(outside.path / "secret.bin", folder.path / "soft.bin");
  fs::create_symlink("w.bin", folder.path / "inside.bin");
  fs::create_directory_symlink(outside.path, folder.path / "softdir");
  fs::create_directory(folder.path / "sub");
  REQUIRE(mkfifo((folder.path / "pipe").c_str(), 0600) == 0);
  const std::string sibling = outside.path.filename().string() + "/secret.bin";
  struct Case {
    std::string location;
    Exit exit;
  };
  const Case cases[] = {
      {"../" + sibling, Exit::InvalidModel},
      {"sub/../../" + sibling, Exit::InvalidModel},
      {"./../" + sibling, Exit::InvalidModel},
      {(outside.path / "secret.bin").string(), Exit::InvalidModel},
      {"//etc/passwd", Exit::InvalidModel},
      {"/proc/self/fd/0", Exit::InvalidModel},
      {"..", Exit::InvalidModel},
      {".", Exit::InvalidModel},
      {"", Exit::InvalidModel},
      {std::string("w.bin\0x", 7), Exit::InvalidModel},
      {"soft.bin", Exit::InvalidModel},
      {"inside.bin", Exit::InvalidModel},
      {"softdir/secret.bin", Exit::InvalidModel},
      {"hard.bin", Exit::InvalidModel},
      {"twice.bin", Exit::InvalidModel},
      {"sub", Exit::InvalidModel},
      {"pipe", Exit::InvalidModel},
      {"nosuch.bin", Exit::File},
      {"..\\secret.bin", Exit::File},
  };
  for (const Case& hostile : cases) {
    folder.write("m.onnx", with_tensor(external_tensor(hostile.location)));
    Diags diags;
    INFO(hostile.location);
    CHECK_FALSE(read_model(folder.path / "m.onnx", {}, diags));
    CHECK(diags.exit() == hostile.exit);
  }
}

TEST_CASE("external data that does not fit its tensor is refused", "[reader]") {
  const Folder folder;
  folder.write("w.bin", raw(std::vector<float>{1, 2, 3, 4}));
  const auto refused_file = [&](const std::string& w, const std::string& why,
                                const Limits& limits = {}) {
    folder.write("m.onnx", with_tensor(w));
    Diags diags;
    CHECK_FALSE(read_model(folder.path / "m.onnx", limits, diags));
    INFO(diags.text("m"));
    CHECK(diags.text("m").find(why) != std::string::npos);
  };
  refused_file(external_tensor("w.bin", {{"offset", "1"}}), "ends before the tensor");
  refused_file(external_tensor("w.bin", {{"offset", "9223372036854775807"}}),
               "ends before");
  refused_file(external_tensor("w.bin", {{"offset", "-4"}}), "no size");
  refused_file(external_tensor("w.bin", {{"offset", "0x4"}}), "no size");
  refused_file(external_tensor("w.bin", {{"offset", "99999999999999999999"}}), "no size");
  refused_file(external_tensor("w.bin", {{"length", "15"}}), "its shape needs 16");
  refused_file(external_tensor("w.bin", {{"__class__", "x"}}), "unknown key");
  refused_file(tensor("w", kF32, {1, 4},
                      data(13, data(1, "location") + data(2, "w.bin")) + number(14, 1) +
                          data(9, std::string(16, 'a'))),
               "more than one place");
  Limits small;
  small.external_bytes = 15;
  refused_file(external_tensor("w.bin"), "larger than the limit of 15", small);
  // From memory there is no folder.
  refused(with_tensor(external_tensor("w.bin")), "not allowed here");
}

TEST_CASE("files that are no models", "[reader]") {
  const Folder folder;
  const auto exit_of = [&](const std::filesystem::path& path, const Limits& limits = {}) {
    Diags diags;
    CHECK_FALSE(read_model(path, limits, diags));
    return diags.exit();
  };
  folder.write("empty", "");
  folder.write("good", model({{kRelu}, kX, kY, {}}));
  CHECK(exit_of(folder.path / "empty") == Exit::InvalidModel);
  CHECK(exit_of(folder.path / "nosuch") == Exit::File);
  CHECK(exit_of(folder.path) == Exit::File);
  Limits small;
  small.file_bytes = 10;
  CHECK(exit_of(folder.path / "good", small) == Exit::InvalidModel);
}
