// Everything is given back behind each run, and a run that asks for too much memory is
// told that there is none.
#include "tests/fuzz/memory_platform.h"

#include "runtime_stub/platform.h"

#include <algorithm>
#include <map>

namespace {

using svod::fuzz::Bytes;
using svod::fuzz::MemoryFile;

struct OpenFile {
  Bytes content; // of one that is written: none
  size_t at = 0;
};

struct System {
  const std::vector<MemoryFile>* files = nullptr;
  std::vector<OpenFile> open; // by descriptor
  std::map<const void*, uint64_t> memory;
  uint64_t taken = 0;
  uint64_t now = 0, tick = 1000;
};
System host;

constexpr uint64_t kMostMemory = uint64_t{256} << 20;
constexpr int32_t kBadFile = -9, kNoSystemCall = -38;

void* take(uint64_t bytes) {
  if (bytes == 0 || bytes > kMostMemory || host.taken > kMostMemory - bytes)
    return nullptr;
  void* data = nullptr;
  if (posix_memalign(&data, 64, bytes) != 0) return nullptr;
  __builtin_memset(data, 0, bytes);
  host.memory[data] = bytes;
  host.taken += bytes;
  return data;
}

const MemoryFile* find(std::string_view path) {
  for (const MemoryFile& file : *host.files)
    if (file.path == path) return &file;
  return nullptr;
}

// A folder is what another path begins with.
bool is_folder(std::string_view path) {
  while (path.ends_with("/")) path.remove_suffix(1);
  return std::ranges::any_of(*host.files, [&](const MemoryFile& file) {
    return !path.empty() && file.path.starts_with(std::string(path) + "/");
  });
}

} // namespace

int32_t svod_open(const char* path, uint32_t how) {
  const MemoryFile* file = find(path);
  if (how == SVOD_OPEN_READ && file == nullptr) return -SVOD_ENOENT;
  host.open.push_back({how == SVOD_OPEN_READ ? file->content : Bytes(), 0});
  return static_cast<int32_t>(host.open.size() - 1);
}

int64_t svod_read_some(int32_t file, void* data, uint64_t bytes) {
  if (file < 0 || static_cast<size_t>(file) >= host.open.size()) return kBadFile;
  OpenFile& from = host.open[static_cast<size_t>(file)];
  const size_t got = std::min<uint64_t>(bytes, from.content.size() - from.at);
  if (got > 0) __builtin_memcpy(data, from.content.data() + from.at, got);
  from.at += got;
  return static_cast<int64_t>(got);
}

int64_t svod_read(int32_t file, void* data, uint64_t bytes) {
  return svod_read_some(file, data, bytes);
}

// What is written is looked at, and nothing more.
int64_t svod_write(int32_t, const void* data, uint64_t bytes) {
  static volatile uint8_t sum;
  for (uint64_t i = 0; i < bytes; ++i) sum = sum ^ static_cast<const uint8_t*>(data)[i];
  return static_cast<int64_t>(bytes);
}

int32_t svod_close(int32_t) { return 0; }

int32_t svod_stat(int32_t file, SvodFileInfo* info) {
  if (file < 0 || static_cast<size_t>(file) >= host.open.size()) return kBadFile;
  *info = {host.open[static_cast<size_t>(file)].content.size(), 0, file > 2, 1, 1};
  return 0;
}

int32_t svod_stat_path(const char* path, SvodFileInfo* info) {
  const MemoryFile* file = find(path);
  if (file == nullptr && !is_folder(path)) return -SVOD_ENOENT;
  *info = {file == nullptr ? 0 : file->content.size(), file == nullptr, file != nullptr,
           1, 1};
  return 0;
}

const void* svod_map_file(int32_t file, uint64_t bytes) {
  const Bytes content = host.open[static_cast<size_t>(file)].content;
  void* out = take(bytes);
  if (out != nullptr)
    __builtin_memcpy(out, content.data(), std::min<uint64_t>(bytes, content.size()));
  return out;
}

void svod_unmap(const void* data, uint64_t bytes) {
  const auto found = host.memory.find(data);
  svod::fuzz::must(found != host.memory.end() && found->second == bytes,
                   "what is given back was taken, and is as large");
  host.taken -= bytes;
  host.memory.erase(found);
  std::free(const_cast<void*>(data));
}

void* svod_allocate(uint64_t bytes) { return take(bytes); }
void svod_want_large_pages(void*, uint64_t) {}

int64_t svod_read_folder(int32_t, SvodFolderEntry*, uint64_t) { return 0; }
int32_t svod_make_folder(const char*) { return 0; }
int64_t svod_program_path(char*, uint64_t) { return -SVOD_ENOENT; }
void svod_keep_to_own_calls(uint32_t) {}
void svod_exit(int32_t code) { std::exit(code); }

// Measurements end soon, however long they are to take.
uint64_t svod_now(void) {
  host.now += host.tick;
  host.tick += host.tick / 2;
  return host.now;
}

uint32_t svod_cpu_count(void) { return 2; }
int32_t svod_thread_start(void (*)(void*), void*, void*, uint64_t, uint32_t*) {
  return kNoSystemCall; // the caller does all the work
}
void svod_thread_join(const uint32_t*) {}
void svod_futex_wait(const uint32_t*, uint32_t) {}
void svod_futex_wake(const uint32_t*, uint32_t) {}

namespace svod::fuzz {

int run_program(const std::vector<std::string>& words,
                const std::vector<MemoryFile>& files, bool part) {
  host.files = &files;
  const MemoryFile* input = find("");
  host.open = {{input == nullptr ? Bytes() : input->content, 0}, {}, {}};
  host.now = 0, host.tick = 1000;
  std::vector<std::vector<char>> texts;
  std::vector<char*> list;
  for (const std::string& word : words) {
    texts.emplace_back(word.c_str(), word.c_str() + __builtin_strlen(word.c_str()) + 1);
    list.push_back(texts.back().data());
  }
  list.push_back(nullptr);
  const int code =
      svod_main(static_cast<int32_t>(words.size()), list.data(), &list.back());
  for (const auto& [data, bytes] : host.memory) std::free(const_cast<void*>(data));
  host.memory.clear();
  host.taken = 0;
  constexpr int kCodes[] = {0, 1, 2, 4, 7, 9, 11}, kDamaged = 10;
  must(std::ranges::find(kCodes, code) != std::end(kCodes) || (part && code == kDamaged),
       "exit code " + std::to_string(code) + " is for a damaged program, or unknown");
  return code;
}

} // namespace svod::fuzz
