// Numbers as JSON lines write them: the shortest digits that are nearest, by the standard
// library's account.
#include "runtime_stub/program/shortest.h"

#include <catch2/catch.hpp>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

using namespace packed;

namespace {

std::string shortest(const char* type, const void* value) {
  char room[64];
  Printer out(room, sizeof room);
  print_shortest(out, *find_element_named(Text(type)), value, 0);
  out.flush();
  REQUIRE(out.written() < sizeof room);
  return {room, static_cast<size_t>(out.written())};
}

// Without sign, point, exponent and zeros at the ends.
std::string digits_of(std::string_view number) {
  std::string out;
  for (char c : number.substr(0, number.find('e')))
    if (c >= '0' && c <= '9' && (c != '0' || !out.empty())) out += c;
  while (out.ends_with('0')) out.pop_back();
  return out;
}

template <class T> void check_number(const char* type, T value) {
  const std::string got = shortest(type, &value);
  char room[64];
  const auto end =
      std::to_chars(room, room + sizeof room, value, std::chars_format::scientific);
  T back = 0;
  std::from_chars(got.data(), got.data() + got.size(), back);
  const bool same = std::memcmp(&back, &value, sizeof value) == 0;
  if (same && digits_of(got) == digits_of({room, end.ptr})) return;
  INFO(type << " " << got << ", wanted " << std::string(room, end.ptr));
  CHECK(false);
}

template <class T, class Bits> void check_type(const char* type, int count) {
  std::mt19937_64 random(5);
  for (int i = 0; i < count; i++) {
    const auto bits = static_cast<Bits>(random());
    T value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value)) check_number(type, value);
  }
  using Limits = std::numeric_limits<T>;
  for (int power = Limits::min_exponent - Limits::digits; power < Limits::max_exponent;
       power++) {
    // The gap below a power of two is half as large as the one above.
    const T value = std::ldexp(T(1), power);
    for (T each : {value, std::nextafter(value, T(0)), std::nextafter(value, T(1e9))})
      check_number(type, each);
  }
  for (T value : {T(0), T(-0.0), T(0.1), T(1) / 3, T(9.5), T(1e15), T(1e16), T(123456),
                  Limits::max(), Limits::denorm_min(), Limits::lowest()})
    check_number(type, value);
}

} // namespace

TEST_CASE("numbers have the fewest digits that tell them", "[program]") {
  check_type<float, uint32_t>("f32", 200000);
  check_type<double, uint64_t>("f64", 20000);
}

TEST_CASE("numbers of 16 bits have the digits that their precision needs", "[program]") {
  for (uint32_t bits = 0; bits < 0x7c00; bits++) {
    const auto half = static_cast<uint16_t>(bits);
    const std::string got = shortest("f16", &half);
    double value = 0;
    std::from_chars(got.data(), got.data() + got.size(), value);
    uint16_t back = 0;
    store(*find_element_named("f16"), &back, 0, value);
    if (back != half || digits_of(got).size() > 5) CHECK(got == std::to_string(bits));
  }
  const uint16_t tenth = 0x2e66, brain = 0x3dcd;
  CHECK(shortest("f16", &tenth) == "0.1");
  CHECK(shortest("bf16", &brain) == "0.1");
}

TEST_CASE("numbers are written in two notations", "[program]") {
  const auto text = [](double value) { return shortest("f64", &value); };
  CHECK(text(0) == "0.0");
  CHECK(text(-0.0) == "-0.0");
  CHECK(text(-1.5) == "-1.5");
  CHECK(text(100) == "100");
  CHECK(text(0.00012) == "0.00012");
  CHECK(text(1e15) == "1000000000000000");
  CHECK(text(1e16) == "1e+16");
  CHECK(text(1.25e-7) == "1.25e-7");
  CHECK(text(5e-324) == "5e-324");
}
