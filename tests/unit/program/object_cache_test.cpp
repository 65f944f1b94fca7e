// What outlives one compile: the cache of objects, and files that stay in memory while
// they are small.
#include "compiler/toolchain/compile_all.h"
#include "compiler/toolchain/memory_file.h"
#include "tests/support/toolchain.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>

using namespace svod;
using namespace svod::toolchain;
using namespace svod::test;
namespace fs = std::filesystem;

TEST_CASE("the cache keeps, refuses damage and forgets the oldest", "[toolchain]") {
  Folder folder;
  const ObjectCache cache(folder.path);
  std::vector<std::byte> value; // of digests, so that it does not become small
  for (int i = 0; i < 32; ++i) {
    const Digest digest = sha256(std::to_string(i));
    std::ranges::copy(std::as_bytes(std::span(digest.bytes)), std::back_inserter(value));
  }
  const Digest a = sha256("a"), b = sha256("b");
  CHECK_FALSE(cache.load(a));
  REQUIRE(cache.store(a, value));
  REQUIRE(cache.store(b, value));
  CHECK(cache.load(a) == value);
  CHECK(cache.stats().entries == 2);

  const fs::path path = folder.path / "obj" / a.hex().substr(0, 2) / a.hex();
  const fs::path other = folder.path / "obj" / b.hex().substr(0, 2) / b.hex();
  const std::string good = read_file(path.string());
  SECTION("any flipped byte or cut is a miss, and the entry goes") {
    for (size_t at : {0ul, 9ul, 17ul, 30ul, 56ul, good.size() - 1}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      std::ofstream(path, std::ios::binary) << bad;
      CHECK_FALSE(cache.load(a));
      CHECK_FALSE(fs::exists(path));
    }
    for (size_t size : {0ul, 10ul, 48ul, good.size() - 1}) {
      std::ofstream(path, std::ios::binary) << good.substr(0, size);
      CHECK_FALSE(cache.load(a));
    }
    std::ofstream(path, std::ios::binary) << good << "x";
    CHECK_FALSE(cache.load(a));
  }
  SECTION("the least used goes first") {
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(2));
    fs::last_write_time(other, fs::last_write_time(other) - std::chrono::hours(1));
    REQUIRE(cache.load(a)); // now the newest
    CHECK(cache.collect(1500).entries == 1);
    CHECK(cache.load(a));
    CHECK_FALSE(cache.load(b));
    CHECK(cache.collect(0, true).entries == 1);
    CHECK(cache.stats().entries == 1);
    CHECK(cache.collect(0).entries == 1);
    CHECK(cache.stats().bytes == 0);
  }
  SECTION("verify finds what is damaged, and what a killed write left") {
    std::ofstream(path, std::ios::binary) << good.substr(0, good.size() - 1);
    const fs::path left = path.parent_path() / "tmp.abcdef";
    std::ofstream(left, std::ios::binary) << "x";
    CHECK(cache.verify(true).damaged.entries == 1); // somebody may be writing the other
    fs::last_write_time(left, fs::last_write_time(left) - std::chrono::hours(2));
    CHECK(cache.verify(true).damaged.entries == 2);
    CHECK(fs::exists(path));
    CHECK(cache.verify().damaged.entries == 2);
    CHECK_FALSE(fs::exists(path));
    CHECK_FALSE(fs::exists(left));
    CHECK(cache.verify().damaged.entries == 0);
    CHECK(cache.load(b) == value);
  }
  SECTION("kinds do not meet") {
    CHECK_FALSE(cache.load(a, EntryKind::Plan));
    REQUIRE(cache.store(a, std::span(value).first(10), EntryKind::Plan));
    CHECK(cache.load(a, EntryKind::Plan)->size() == 10);
    CHECK(cache.load(a) == value);
    CHECK(cache.stats(EntryKind::Plan).entries == 1);
    CHECK(cache.stats().entries == 3);
  }
  SECTION("a lock is held by one at a time") {
    std::optional<CacheLock> lock(cache.lock(a));
    std::atomic<bool> had = false;
    std::thread other([&] {
      const CacheLock mine = cache.lock(a);
      had = true;
    });
    const CacheLock free = cache.lock(b); // of another key
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK_FALSE(had);
    lock.reset();
    other.join();
    CHECK(had);
  }
  SECTION("libraries of the Python module are part of it") {
    fs::create_directories(folder.path / "python");
    std::ofstream(folder.path / "python" / "model.so") << std::string(500, 'x');
    CHECK(cache.stats().entries == 3);
    CHECK(cache.collect(0).entries == 3);
    CHECK_FALSE(fs::exists(folder.path / "python" / "model.so"));
  }
  SECTION("a folder that cannot be written is no error") {
    CHECK_FALSE(ObjectCache("/proc/nowhere").store(a, value));
    CHECK_FALSE(ObjectCache("/proc/nowhere").load(a));
  }
}

TEST_CASE("a second compile comes from the cache, per flags and text", "[toolchain]") {
  Folder folder;
  const ObjectCache cache(folder.path);
  const Target target = target_of("x86-64");
  std::vector<CompileJob> jobs{{&target.levels[0], {"a.cpp", kVectorKernel, {}}},
                               {&target.levels[1], {"a.cpp", kVectorKernel, {}}}};
  Compiler compiler;
  const CompileAllResult first = compile_all(compiler, target, jobs, &cache);
  const CompileAllResult second = compile_all(compiler, target, jobs, &cache);
  CHECK(first.compiled == 2);
  CHECK(second.compiled == 0);
  CHECK(first.results[1].output == second.results[1].output);
  jobs[0].source.flags = {"-DX"};
  jobs[1].source.text += " ";
  CHECK(compile_all(compiler, target, jobs, &cache).compiled == 2);
  jobs[0].source.text = "error";
  const CompileAllResult bad = compile_all(compiler, target, jobs, &cache);
  CHECK_FALSE(bad.ok());
  CHECK(bad.diagnostics().starts_with("a.cpp for x86-64-v2:\n"));
}

TEST_CASE("a file in memory keeps its bytes when it outgrows memory", "[toolchain]") {
  MemoryFile file("test", 1000);
  std::vector<std::byte> expected;
  for (int part = 0; part < 5; ++part) { // 600 bytes each: the second is over the limit
    const std::vector<std::byte> bytes(600, std::byte(part + 1));
    file.append(bytes);
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  file.write_at(100, std::vector<std::byte>(2, std::byte(9)));
  std::fill_n(expected.begin() + 100, 2, std::byte(9));
  const MemoryFile moved = std::move(file);
  CHECK(moved.size() == expected.size());
  std::ifstream in(moved.path(), std::ios::binary);
  const std::string read{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(read.size() == expected.size());
  CHECK(std::memcmp(read.data(), expected.data(), read.size()) == 0);
}
