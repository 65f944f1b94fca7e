// The parts of a packed program that read and print: numbers, npy and protobuf files,
// literals of every element type. They run here as they run there.
#include "compiler/ir/build.h"
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

using namespace packed;

namespace {

Text text(const std::string& s) { return {s.data(), s.size()}; }

// What `print` prints, by way of a file.
template <class F> std::string printed(F&& print) {
  char path[] = "/tmp/svod-print-XXXXXX";
  int file = mkstemp(path);
  {
    Printer out(file);
    print(out);
  }
  close(file);
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  unlink(path);
  return all.str();
}

std::string number(double value, uint32_t digits) {
  return printed([&](Printer& out) { out.number(value, digits); });
}

Tensor type(const char* element, std::vector<int64_t> dims) {
  Tensor out;
  out.element = find_element_named(Text(element));
  REQUIRE(out.element != nullptr);
  REQUIRE(set_dims(out, dims.data(), static_cast<uint32_t>(dims.size())));
  return out;
}

std::string npy(const std::string& descr, const std::string& shape, bool columns,
                const std::string& data) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (columns ? "True" : "False") +
                       ", 'shape': " + shape + ", }\n";
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

template <class T> std::string bytes_of(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T> std::vector<T> values_of(const Tensor& tensor) {
  std::vector<T> out(tensor.elements());
  std::memcpy(out.data(), tensor.data, tensor.bytes());
  return out;
}

} // namespace

TEST_CASE("numbers are printed as people write them", "[program]") {
  CHECK(number(0, 7) == "0");
  CHECK(number(1, 7) == "1");
  CHECK(number(-0.1, 7) == "-0.1");
  CHECK(number(0.0001234567, 7) == "0.0001234567");
  CHECK(number(123456789, 7) == "123456800");
  CHECK(number(9999999.9, 7) == "10000000");
  CHECK(number(1.5e-30, 7) == "1.5e-30");
  CHECK(number(-2.5e300, 7) == "-2.5e+300");
  CHECK(number(5e-324, 3) == "4.94e-324");
  CHECK(number(std::numeric_limits<double>::infinity(), 7) == "inf");
  CHECK(number(std::nan(""), 7) == "nan");
  CHECK(printed([](Printer& out) {
          out.fixed(1.005, 2) << " ";
          out.fixed(0.07, 3);
        }) == "1.00 0.070");
  CHECK(printed([](Printer& out) { out << INT64_MIN << " " << UINT64_MAX; }) ==
        "-9223372036854775808 18446744073709551615");
}

TEST_CASE("printed numbers read back", "[program]") {
  uint64_t state = 7;
  for (int i = 0; i < 3000; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t bits = static_cast<uint32_t>(state >> 32);
    float value;
    std::memcpy(&value, &bits, 4);
    if (!std::isfinite(value)) continue;
    std::string shown = number(static_cast<double>(value), 9);
    double back = 0;
    REQUIRE(read_float(text(shown), &back));
    INFO(shown);
    CHECK(static_cast<float>(back) == value);
  }
  double value = 0;
  for (const char* bad : {"", "-", ".", "1e", "1e+", "0x1", "1..2", "e5", "1 "}) {
    CHECK_FALSE(read_float(Text(bad), &value));
  }
  int64_t integer = 0;
  CHECK(read_signed(Text("-9223372036854775808"), &integer));
  CHECK(integer == INT64_MIN);
  CHECK_FALSE(read_signed(Text("9223372036854775808"), &integer));
}

TEST_CASE("elements of every type load and store", "[program]") {
  uint64_t memory = 0;
  for (const char* name : {"f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64"}) {
    const Element& element = *find_element_named(Text(name));
    for (double value : {0.0, 1.0, -2.0, 100.0, -128.0}) {
      store(element, &memory, 0, value);
      CHECK(load(element, &memory, 0) == value);
    }
  }
  const Element& half = *find_element_named(Text("f16"));
  struct Row {
    double value;
    uint16_t bits;
  };
  for (Row row :
       {Row{65504, 0x7bff}, Row{65520, 0x7c00}, Row{0x1p-24, 1}, Row{0x1p-14, 0x400},
        Row{1.0 + 0x1p-11, 0x3c00}, Row{1.0 + 0x3p-11, 0x3c02}, Row{-0.5, 0xb800}}) {
    store(half, &memory, 0, row.value);
    uint16_t bits;
    std::memcpy(&bits, &memory, 2);
    CHECK(bits == row.bits);
  }
  float one[2] = {1, std::nextafter(1.0f, 2.0f)}, around[2] = {-0x1p-149f, 0x1p-149f};
  const Element& f32 = *find_element_named(Text("f32"));
  CHECK(load_ordered(f32, one, 1) - load_ordered(f32, one, 0) == 1);
  CHECK(load_ordered(f32, around, 1) - load_ordered(f32, around, 0) == 2);
}

TEST_CASE("the program knows the element types of the packager", "[program][types]") {
  for (uint32_t code = 0; code < 64; code++) {
    std::optional<svod::DType> dtype = svod::dtype_from_onnx(static_cast<int>(code));
    const Element* element = find_element(code);
    if (const auto part = svod::complex_part(static_cast<int>(code))) {
      REQUIRE(element != nullptr);
      CHECK(std::string(element->name) == svod::onnx_type_text(static_cast<int>(code)));
      CHECK(static_cast<int>(element->bits) == 2 * svod::info(*part).bits);
      CHECK(static_cast<int>(part_of(*element).onnx) == svod::info(*part).onnx);
      continue;
    }
    CHECK(dtype.has_value() == (element != nullptr));
    if (!dtype || element == nullptr) continue;
    INFO(svod::info(*dtype).text);
    CHECK(std::string(element->name) == svod::info(*dtype).text);
    if (is_text(*element)) continue; // as wide as its tensor says
    CHECK(static_cast<int>(element->bits) == svod::info(*dtype).bits);
    CHECK(is_float(*element) == svod::is_float(*dtype));
    if (element->bits > 16 || element->kind == ElementKind::Bool) continue;
    // Every code has the packager's value, and every number that is one comes back.
    uint64_t memory = 0;
    int wrong = 0;
    for (uint64_t bits = 0; bits < uint64_t{1} << element->bits; bits++) {
      bool is_signed = element->kind == ElementKind::Int;
      uint64_t shift = 64 - element->bits;
      uint64_t wide =
          !is_signed
              ? bits
              : static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
      double expected = svod::scalar_value(*dtype, wide);
      store_bits(*element, &memory, 1, bits);
      double value = load(*element, &memory, 1);
      bool nan = std::isnan(value) && std::isnan(expected);
      wrong += !nan && value != expected;
      store(*element, &memory, 2, expected);
      bool lossless = std::isfinite(expected);
      wrong += lossless && load(*element, &memory, 2) != expected;
    }
    CHECK(wrong == 0);
  }
  // Nearest, the even one of two, saturating.
  uint64_t memory = 0;
  const Element& small = *find_element_named(Text("f8e4m3fn"));
  for (auto [value, stored] : {std::pair{1.0625, 1.0},
                               {1.1875, 1.25},
                               {1e9, 448.0},
                               {-449.0, -448.0},
                               {0x1p-10, 0.0},
                               {0x1.8p-10, 0x1p-9}}) {
    store(small, &memory, 0, value);
    CHECK(load(small, &memory, 0) == stored);
  }
  const Element& exponent = *find_element_named(Text("f8e8m0"));
  for (auto [value, stored] :
       {std::pair{1.4, 1.0}, {1.5, 2.0}, {0.0, 0x1p-127}, {1e300, 0x1p127}}) {
    store(exponent, &memory, 0, value);
    CHECK(load(exponent, &memory, 0) == stored);
  }
}

TEST_CASE("elements of less than a byte in files", "[program][types]") {
  Tensor wanted = type("i4", {3}), out;
  CHECK(wanted.bytes() == 2);
  const auto read = [&](const Tensor& tensor) {
    std::vector<double> values;
    for (uint64_t i = 0; i < tensor.elements(); i++)
      values.push_back(load(*tensor.element, tensor.data, i));
    return values;
  };
  // npy: one per byte, whatever one byte is called there.
  for (const char* descr : {"|i1", "|u1", "|V1"}) {
    std::string content = npy(descr, "(3,)", false, std::string("\x07\x08\xff", 3));
    REQUIRE(read_npy(text(content), wanted, out) == nullptr);
    CHECK(same_type(out, wanted));
    CHECK(read(out) == std::vector<double>{7, -8, -1});
  }
  // By columns, in two rows.
  wanted = type("u2", {2, 2});
  std::string columns = npy("|u1", "(2, 2)", true, std::string("\x00\x01\x02\x03", 4));
  REQUIRE(read_npy(text(columns), wanted, out) == nullptr);
  CHECK(read(out) == std::vector<double>{0, 2, 1, 3});
  // TensorProto: raw, and two at a time in int32_data.
  std::string raw("\x08\x03\x10\x16\x4a\x02\x87\x0f", 8);
  REQUIRE(read_proto(text(raw), nullptr, out) == nullptr);
  CHECK(read(out) == std::vector<double>{7, -8, -1});
  std::string listed("\x08\x03\x10\x16\x2a\x03\x87\x01\x0f", 9);
  REQUIRE(read_proto(text(listed), nullptr, out) == nullptr);
  CHECK(read(out) == std::vector<double>{7, -8, -1});
  CHECK(printed([&](Printer& printer) { print_value(printer, out, 9); }) ==
        "3xi4=[7 -8 -1]\n");
  // Integers of the same size are the bits of a type that numpy lacks, and of no other.
  std::string bits("\x08\x02\x10\x04\x4a\x04\xc0\x3f\x00\xc0", 10);
  REQUIRE(read_proto(text(bits), type("bf16", {2}).element, out) == nullptr);
  CHECK(read(out) == std::vector<double>{1.5, -2});
  REQUIRE(read_proto(text(bits), type("f16", {2}).element, out) == nullptr);
  CHECK(same_type(out, type("u16", {2})));
  REQUIRE(read_proto(text(bits), type("f8e5m2", {2}).element, out) == nullptr);
  CHECK(same_type(out, type("u16", {2})));
  // A complex number is two floats.
  std::string complex("\x08\x01\x10\x0e\x22\x08", 6);
  complex += bytes_of<float>({1.5f, -2});
  REQUIRE(read_proto(text(complex), nullptr, out) == nullptr);
  CHECK(printed([&](Printer& printer) { print_value(printer, out, 9); }) ==
        "1xc64=[1.5,-2]\n");
}

TEST_CASE("npy files are read, by rows and by columns", "[program]") {
  std::string data = bytes_of<float>({1, 2, 3, 4, 5, 6});
  Tensor wanted = type("f32", {2, 3}), out;
  std::string rows = npy("<f4", "(2, 3)", false, data);
  REQUIRE(read_npy(text(rows), wanted, out) == nullptr);
  CHECK(same_type(out, wanted));
  CHECK(values_of<float>(out) == std::vector<float>{1, 2, 3, 4, 5, 6});
  std::string columns = npy("<f4", "(2, 3)", true, data);
  REQUIRE(read_npy(text(columns), wanted, out) == nullptr);
  CHECK(values_of<float>(out) == std::vector<float>{1, 3, 5, 2, 4, 6});
  std::string scalar = npy("|b1", "()", false, std::string(1, 1));
  REQUIRE(read_npy(text(scalar), type("bool", {}), out) == nullptr);
  CHECK(out.rank == 0);
}

TEST_CASE("malformed npy files are refused", "[program]") {
  Tensor wanted = type("f32", {2}), out;
  std::string good = npy("<f4", "(2,)", false, bytes_of<float>({1, 2}));
  REQUIRE(read_npy(text(good), wanted, out) == nullptr);
  for (size_t size = 0; size < good.size(); size++) {
    std::string cut = good.substr(0, size);
    CHECK(read_npy(text(cut), wanted, out) != nullptr);
  }
  for (const std::string& bad : {npy(">f4", "(2,)", false, bytes_of<float>({1, 2})),
                                 npy("<O8", "(1,)", false, bytes_of<float>({1, 2})),
                                 npy("<f4", "(4294967296, 4294967296)", false, ""),
                                 npy("<f4", "(99999999999999999999,)", false, ""),
                                 npy("<f4", "2", false, bytes_of<float>({1, 2})),
                                 npy("<f4", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)", false,
                                     bytes_of<float>({1, 2}))}) {
    CHECK(read_npy(text(bad), wanted, out) != nullptr);
  }
}

TEST_CASE("TensorProto in each of its forms", "[program]") {
  Tensor out;
  // dims 2 (packed), float, name "x", raw_data.
  std::string raw("\x0a\x01\x02\x10\x01\x42\x01x\x4a\x08", 10);
  raw += bytes_of<float>({1.5f, -2});
  REQUIRE(read_proto(text(raw), nullptr, out) == nullptr);
  CHECK(values_of<float>(out) == std::vector<float>{1.5f, -2});
  CHECK(out.name == Text("x"));
  // dims one by one, int64 in int64_data, -1 as ten bytes.
  std::string ints("\x08\x02\x10\x07\x3a\x0b\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                   17);
  REQUIRE(read_proto(text(ints), nullptr, out) == nullptr);
  CHECK(values_of<int64_t>(out) == std::vector<int64_t>{5, -1});
  // A scalar in an optional: elem_type 1, tensor_value.
  std::string inner("\x10\x09\x2a\x01\x01", 5);
  std::string wrapped = std::string("\x10\x01\x1a\x05", 4) + inner;
  REQUIRE(read_proto(text(wrapped), nullptr, out) == nullptr);
  CHECK(values_of<uint8_t>(out) == std::vector<uint8_t>{1});
  // Wrapped twice, in two, or with less data than dims say.
  std::string twice = std::string("\x10\x01\x1a\x09", 4) + wrapped;
  CHECK(read_proto(text(twice), nullptr, out) != nullptr);
  std::string two = wrapped + std::string("\x1a\x05", 2) + inner;
  CHECK(read_proto(text(two), nullptr, out) != nullptr);
  for (size_t size = 1; size < raw.size(); size++) {
    std::string cut = raw.substr(0, size);
    CHECK(read_proto(text(cut), nullptr, out) != nullptr);
  }
}

static Tensor written_and_read(FileForm form, const Tensor& tensor) {
  char path[] = "/tmp/svod-tensor-XXXXXX";
  int file = mkstemp(path);
  {
    Printer out(file);
    write_tensor(out, form, tensor);
    out.flush();
    REQUIRE(out.failure() == 0);
  }
  close(file);
  Text content;
  REQUIRE(read_file(path, content) == 0);
  unlink(path);
  Tensor back;
  CHECK(read_tensor(form, content, tensor, back) == nullptr);
  CHECK(same_type(back, tensor));
  return back;
}

TEST_CASE("what is written reads back", "[program]") {
  float data[6] = {1, 2, 3, 4, 5, 6};
  Tensor tensor = type("f32", {3, 2});
  tensor.data = data;
  tensor.name = Text("scores");
  for (FileForm form : {FileForm::Npy, FileForm::Proto, FileForm::Json, FileForm::Raw}) {
    Tensor back = written_and_read(form, tensor);
    CHECK(values_of<float>(back) == std::vector<float>(data, data + 6));
  }
}

TEST_CASE("what is written of less than a byte reads back", "[program][types]") {
  for (const char* name : {"i4", "u4", "i2", "u2", "f4e2m1", "f8e5m2", "f8e8m0"}) {
    INFO(name);
    Tensor tensor = type(name, {5});
    uint8_t data[5] = {0x87, 0x1f, 0x0c, 0x35, 0x7b};
    tensor.data = data;
    for (uint64_t i = tensor.elements(); i < 8 && tensor.element->packed(); i++)
      store_bits(*tensor.element, data, i, 0);
    for (FileForm form :
         {FileForm::Npy, FileForm::Proto, FileForm::Json, FileForm::Raw}) {
      Tensor back = written_and_read(form, tensor);
      CHECK(std::memcmp(back.data, data, tensor.bytes()) == 0);
    }
  }
}

TEST_CASE("JSON is read by shape and type", "[program][json]") {
  Tensor out;
  const auto read = [&](const char* content, const Tensor& wanted) {
    return read_json(Text(content), wanted, out);
  };
  REQUIRE(read(" [[1, 2.5,-3e2],\n [NaN, -Infinity, 0]] ", type("f32", {2, 3})) ==
          nullptr);
  CHECK(values_of<float>(out)[1] == 2.5f);
  CHECK(values_of<float>(out)[2] == -300);
  CHECK(std::isnan(values_of<float>(out)[3]));
  CHECK(values_of<float>(out)[4] == -INFINITY);
  REQUIRE(read("7", type("i64", {})) == nullptr);
  CHECK(values_of<int64_t>(out) == std::vector<int64_t>{7});
  REQUIRE(read("[true, false]", type("bool", {2})) == nullptr);
  REQUIRE(read("[[], []]", type("f32", {2, 0})) == nullptr);
  REQUIRE(read("[[1, -2], [3, 4]]", type("c64", {2})) == nullptr);
  CHECK(std::memcmp(out.data, std::vector<float>{1, -2, 3, 4}.data(), 16) == 0);
  REQUIRE(read(R"(["a\u00e9\ud83d\ude00", "\"\n"])", type("string", {2})) == nullptr);
  CHECK(string_at(out, 0) == Text("a\xc3\xa9\xf0\x9f\x98\x80"));
  CHECK(string_at(out, 1) == Text("\"\n"));
  for (const char* bad :
       {"", "[", "[1, 2", "[1 2]", "[1, 2,]", "[,1]", "[1, 2]]", "[1, 2] 3", "[1]",
        "[1, 2, 3]", "[[1, 2]]", "1", "[1, \"2\"]", "[1, x]", "{\"a\": 1}", "[1, [2]]"}) {
    INFO(bad);
    CHECK(read(bad, type("f32", {2})) != nullptr);
  }
  for (const char* bad : {"[\"a]", "[\"\\u12\"]", "[\"\\ud800\"]", "[a]", "[\"\\q\"]"}) {
    INFO(bad);
    CHECK(read(bad, type("string", {1})) != nullptr);
  }
}

TEST_CASE("JSON keeps the shape of what has no element", "[program][json]") {
  Tensor tensor = type("f32", {2, 0, 3});
  CHECK(printed([&](Printer& out) { write_json(out, tensor); }) == "[[], []]\n");
  int64_t one = -5;
  tensor = type("i64", {});
  tensor.data = &one;
  CHECK(printed([&](Printer& out) { write_json(out, tensor); }) == "-5\n");
}
