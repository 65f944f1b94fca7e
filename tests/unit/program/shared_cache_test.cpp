// Entries that come from elsewhere: the address of a remote cache, what a folder asks of
// it and believes, and folders that are merged.
#include "compiler/toolchain/object_cache.h"
#include "packager/remote/remote_address.h"
#include "packager/remote/remote_totals.h"
#include "tests/support/toolchain.h"

#include <catch2/catch.hpp>

#include <map>
#include <mutex>

using namespace svod;
using namespace svod::packager;
using namespace svod::toolchain;
using namespace svod::test;
namespace fs = std::filesystem;

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Elsewhere : public SharedEntries {
public:
  std::optional<Bytes> fetch(const Digest& key, EntryKind kind) override {
    const std::lock_guard lock(mutex_);
    ++asked;
    const auto found = entries.find({key, kind});
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }
  void reject(const Digest&, EntryKind, uint64_t bytes) override { rejected += bytes; }
  void offer(const Digest& key, EntryKind kind, Bytes entry) override {
    entries[{key, kind}] = std::move(entry);
  }
  std::map<std::pair<Digest, EntryKind>, Bytes> entries;
  int asked = 0;
  uint64_t rejected = 0;

private:
  std::mutex mutex_;
};

std::string fault_of(const std::string& text) {
  std::string fault;
  CHECK_FALSE(parse_remote_address(text, fault));
  return fault;
}

} // namespace

TEST_CASE("an address is a scheme, a host, a port and maybe an instance",
          "[remote_cache]") {
  std::string fault;
  const auto plain = parse_remote_address("grpc://cache.example:8980", fault);
  REQUIRE(plain);
  CHECK(plain->server == "cache.example:8980");
  CHECK(plain->instance.empty());
  CHECK_FALSE(plain->tls);
  const auto full = parse_remote_address("grpcs://[::1]:443/main/of two", fault);
  CHECK_FALSE(full);
  const auto six = parse_remote_address("grpcs://[::1]:443/main/two", fault = "");
  REQUIRE(six);
  CHECK(six->tls);
  CHECK(six->server == "[::1]:443");
  CHECK(six->instance == "main/two");
  CHECK(fault_of("").find("neither grpc:// nor") != std::string::npos);
  CHECK(fault_of("http://a:1").find("neither grpc:// nor") != std::string::npos);
  for (const char* text : {"grpc://", "grpc://:1", "grpc://[::1:1", "grpc:///main"})
    CHECK(fault_of(text).find("no host") != std::string::npos);
  for (const char* text : {"grpc://a", "grpc://a/1", "grpc://::1:80"})
    CHECK(fault_of(text).find("no port") != std::string::npos);
  for (const char* text : {"grpc://a:", "grpc://a:0", "grpc://a:65536", "grpc://a:-1",
                           "grpc://a:1x", "grpc://a:18446744073709551617"})
    CHECK(fault_of(text).find("port that is none") != std::string::npos);
  for (const char* text :
       {"grpc://u@a:1", "grpc://a:1/x?ro", "grpc://a:1/\n", "grpc://a b:1"})
    CHECK(fault_of(text).find("no host, port or instance") != std::string::npos);
}

TEST_CASE("what a folder lacks is asked for elsewhere, once", "[remote_cache]") {
  Folder one, two, three;
  Elsewhere elsewhere;
  const Bytes value = bytes_of("an object");
  const Digest key = sha256("key");
  const ObjectCache first(one.path, &elsewhere), second(two.path, &elsewhere);
  REQUIRE(first.store(key, value, EntryKind::Plan));
  REQUIRE(elsewhere.entries.size() == 1);
  CHECK_FALSE(second.load_here(key, EntryKind::Plan));
  CHECK_FALSE(second.load(key, EntryKind::Program));
  CHECK(second.load(key, EntryKind::Plan) == value);
  CHECK(elsewhere.asked == 2);
  CHECK(second.load(key, EntryKind::Plan) == value);
  CHECK(second.load_here(key, EntryKind::Plan) == value);
  CHECK(elsewhere.asked == 2);
  CHECK(elsewhere.rejected == 0);
  CHECK(ObjectCache(three.path).load(key, EntryKind::Plan) == std::nullopt);
}

TEST_CASE("what comes from elsewhere is believed as little as a file", "[remote_cache]") {
  Folder one, two;
  Elsewhere elsewhere;
  const Bytes value = bytes_of("an object");
  const Digest key = sha256("key");
  REQUIRE(ObjectCache(one.path, &elsewhere).store(key, value));
  Bytes& entry = elsewhere.entries.at({key, EntryKind::Object});
  const Bytes good = entry;
  const ObjectCache cache(two.path, &elsewhere);
  for (size_t at = 0; at < good.size(); ++at) {
    entry = good;
    entry[at] ^= std::byte(1);
    CHECK_FALSE(cache.load(key));
    entry = Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at));
    CHECK_FALSE(cache.load(key));
  }
  CHECK(elsewhere.rejected ==
        good.size() * good.size() + good.size() * (good.size() - 1) / 2);
  CHECK(cache.stats().entries == 0);
  entry = good;
  CHECK(cache.load(key) == value);
}

TEST_CASE("many objects are brought at once", "[remote_cache]") {
  Folder one, two;
  Elsewhere elsewhere;
  const ObjectCache first(one.path, &elsewhere), second(two.path, &elsewhere);
  std::vector<Digest> keys;
  for (int i = 0; i < 100; ++i) {
    keys.push_back(sha256(std::to_string(i)));
    if (i % 2 == 0) REQUIRE(first.store(keys.back(), bytes_of(std::to_string(i))));
  }
  second.bring(keys);
  CHECK(elsewhere.asked == 100);
  CHECK(second.stats().entries == 50);
  CHECK(second.load_here(keys[4], EntryKind::Object) == bytes_of("4"));
  second.bring(std::span(keys).first(1));
  CHECK(elsewhere.asked == 100);
}

TEST_CASE("a folder takes what another one has, and no damage", "[remote_cache]") {
  Folder one, two;
  const ObjectCache from(one.path), to(two.path);
  const Digest a = sha256("a"), b = sha256("b"), c = sha256("c");
  REQUIRE(from.store(a, bytes_of("a")));
  REQUIRE(from.store(b, bytes_of("b"), EntryKind::Plan));
  REQUIRE(from.store(c, bytes_of("c")));
  REQUIRE(to.store(a, bytes_of("a")));
  const fs::path broken = one.path / "obj" / c.hex().substr(0, 2) / c.hex();
  fs::resize_file(broken, fs::file_size(broken) - 1);
  std::ofstream(broken.parent_path() / "tmp.abcdef") << "x";
  std::ofstream(broken.parent_path() / "notes.txt") << "x";
  const CacheMerge dry = to.merge(one.path, true);
  CHECK(dry.added.entries == 1);
  CHECK(to.stats().entries == 1);
  const CacheMerge done = to.merge(one.path);
  CHECK(done.added.entries == 1);
  CHECK(done.known.entries == 1);
  CHECK(done.damaged.entries == 2);
  CHECK(done.failed.entries == 0);
  CHECK(to.load(b, EntryKind::Plan) == bytes_of("b"));
  CHECK_FALSE(to.load(c));
  CHECK(to.merge(one.path).added.entries == 0);
  CHECK(to.merge(one.path / "nowhere").known.entries == 0);
}

TEST_CASE("the counts of all packs add up", "[remote_cache]") {
  Folder folder;
  const ObjectCache cache(folder.path);
  CHECK(read_remote_totals(cache).hits == 0);
  add_remote_totals(cache, {.hits = 2, .hit_bytes = 10, .misses = 1});
  add_remote_totals(cache, {.hits = 3, .hit_bytes = 5, .uploads = 4});
  const RemoteCounts sum = read_remote_totals(cache);
  CHECK(sum.hits == 5);
  CHECK(sum.hit_bytes == 15);
  CHECK(sum.misses == 1);
  CHECK(sum.uploads == 4);
  std::ofstream(folder.path / "remote.totals") << "hits many\nwhat 3\n";
  CHECK(read_remote_totals(cache).hits == 0);
  clear_remote_totals(cache);
  CHECK_FALSE(fs::exists(folder.path / "remote.totals"));
}
