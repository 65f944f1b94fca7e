// What a cache's folder asks for entries that it lacks, and tells of new ones: a place
// that machines share. How it is reached is no matter of the compiler.
#pragma once

#include "compiler/support/digest.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace svod::toolchain {

// What an entry holds, and so the folder that it lies in.
enum class EntryKind : uint8_t { Object, Plan, Program };
const char* word_of(EntryKind kind); // "obj", "plan", "program"

// Names the layout of an entry's bytes.
std::string entry_form();

// Called by several threads at once.
class SharedEntries {
public:
  virtual ~SharedEntries() = default;
  // The bytes of an entry as its folder would have it; nothing: it cannot be had.
  virtual std::optional<std::vector<std::byte>> fetch(const Digest& key,
                                                      EntryKind kind) = 0;
  // What fetch() gave, so many bytes, is no entry.
  virtual void reject(const Digest& key, EntryKind kind, uint64_t bytes) = 0;
  // An entry that is new. Returns at once.
  virtual void offer(const Digest& key, EntryKind kind, std::vector<std::byte> entry) = 0;
};

} // namespace svod::toolchain
