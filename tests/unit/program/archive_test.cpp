// Archives of NumPy as programs read and write them, and damaged ones, each in memory of
// just its own size.
#include "runtime_stub/program/archive.h"
#include "runtime_stub/program/tensor_file.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace packed;

namespace {

// Written by Python's zipfile: a.npy, two int64 (3, 4) deflated by the fixed codes, and
// t, 300 bytes by codes of their own.
constexpr char kDeflated[] = "504b0304140000000800000021005e6187c64a0000006000"
                             "000005000000612e6e70799bec17ea1b10c9c8e0c650ad9e"
                             "925a9c5ca46ea5a06e9369a1aea3a09e965f54529498179f"
                             "5f94920a12774bcc294e058a17672416a402f91a463a9a3a"
                             "0ab50a48808b99010258a03400504b030414000000080000"
                             "002100c1d5572f720000002c0100000100000074354fdb01"
                             "0021089a95c7fe331c60d7471282120480a49912a0dcd805"
                             "a738488f2e06e5745a87a08239dd5e406c61c90d92c2a33b"
                             "a479c27b7044276beaf0aa3a8d8c9766ea8226f913b5ba39"
                             "2a5fece3c4276c8248f24eb824a17dbe3bd4c96bb8f579fa"
                             "3ec792dca4ea3aba3fea103dfb07504b0102140314000000"
                             "0800000021005e6187c64a00000060000000050000000000"
                             "000000000000800100000000612e6e7079504b0102140314"
                             "000000080000002100c1d5572f720000002c010000010000"
                             "00000000000000000080016d00000074504b050600000000"
                             "0200020062000000fe0000000000";

std::string deflated() {
  std::string out;
  for (size_t i = 0; i + 1 < sizeof kDeflated; i += 2)
    out += static_cast<char>(std::stoi(std::string(kDeflated + i, 2), nullptr, 16));
  return out;
}

Tensor two_numbers() {
  Tensor out;
  const int64_t dims[] = {2};
  out.element = find_element_named("i64");
  REQUIRE(set_dims(out, dims, 1));
  out.name = Text("a");
  return out;
}

// Why the archive does not give the array a, or null.
const char* read_a(const std::string& archive, std::vector<int64_t>& values) {
  const std::vector<char> exact(archive.begin(), archive.end());
  const Tensor wanted = two_numbers();
  Tensor out;
  const char* error =
      read_npz(Text(exact.data(), exact.size()), wanted, most_bytes_of(wanted), out);
  if (error != nullptr) return error;
  values.resize(out.elements());
  std::memcpy(values.data(), out.data, std::min(out.bytes(), values.size() * 8));
  return nullptr;
}

// An archive of the two arrays, as programs write it.
std::string written() {
  const int64_t numbers[] = {3, 4};
  Tensor tensor = two_numbers();
  tensor.data = numbers;
  std::string room(4096, 0);
  Printer out(room.data(), room.size());
  NewMember members[2];
  for (NewMember& member : members) {
    tensor.name = &member == members ? Text("a") : Text("b/\xc3\xa9");
    write_member(out, member, tensor);
  }
  end_archive(out, members, 2);
  out.flush();
  room.resize(out.written());
  return room;
}

} // namespace

TEST_CASE("members are taken out of archives", "[program]") {
  const std::string whole = deflated();
  std::vector<int64_t> values;
  CHECK(read_a(whole, values) == nullptr);
  CHECK(values == std::vector<int64_t>{3, 4});
  Archive archive;
  Member member;
  Text content;
  uint64_t place = 0;
  REQUIRE(archive.open(Text(whole.data(), whole.size())) == nullptr);
  REQUIRE(archive.next(place, member));
  REQUIRE(archive.next(place, member));
  CHECK(member.name == Text("t"));
  CHECK(take_out(member, 300, content) == nullptr);
  CHECK(content.size == 300);
  CHECK(Text(take_out(member, 299, content)) == Text("it is far larger than the input"));
  CHECK_FALSE(archive.next(place, member));
}

TEST_CASE("archives that are written read back", "[program]") {
  const std::string whole = written();
  std::vector<int64_t> values;
  CHECK(read_a(whole, values) == nullptr);
  CHECK(values == std::vector<int64_t>{3, 4});
  Archive archive;
  Member member;
  REQUIRE(archive.open(Text(whole.data(), whole.size())) == nullptr);
  CHECK(archive.find("b/\xc3\xa9", member));
  CHECK_FALSE(archive.find("b", member));
}

TEST_CASE("a damaged archive is an error or right", "[program]") {
  std::mt19937 random(11);
  const std::string marks[] = {"PK\1\2",
                               "PK\3\4",
                               "PK\5\6",
                               "PK\6\6",
                               "PK\6\7",
                               "\xff\xff\xff\xff",
                               std::string(8, '\0')};
  std::vector<int64_t> values;
  for (const std::string& whole : {deflated(), written()}) {
    for (size_t size = 0; size < whole.size(); size++) {
      MemoryScope scope;
      CHECK(read_a(whole.substr(0, size), values) != nullptr);
    }
    for (int i = 0; i < 20000; i++) {
      std::string damaged = whole;
      for (uint32_t k = random() % 3; k <= 2; k++) {
        const size_t at = random() % damaged.size();
        const std::string& mark = marks[random() % std::size(marks)];
        if (random() % 2 == 0)
          damaged[at] = static_cast<char>(damaged[at] ^ 1 << random() % 8);
        else
          damaged.replace(at, mark.size(), mark);
      }
      MemoryScope scope;
      if (read_a(damaged, values) == nullptr && values != std::vector<int64_t>{3, 4})
        CHECK(damaged == whole);
    }
  }
}
