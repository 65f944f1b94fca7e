// Makes an object file that holds bytes (weights, an image) in one read-only section with
// one hidden symbol at its start, NAME, and one at its end, NAME_end. The bytes are
// streamed: they are never all in our own memory.
#pragma once

#include "compiler/support/target.h"
#include "compiler/toolchain/memory_file.h"

#include <functional>

namespace svod::toolchain {

struct DataObject {
  std::string section; // ".rodata.svod_weights"
  std::string symbol;  // "svod_weights", hidden
  uint64_t align = 64; // of the section
  // x86-64: linkers lay the section in front of all others, so that these stay within
  // 2 GiB of each other, and of its end.
  bool large = false;
};

using ByteSink = std::function<void(std::span<const std::byte>)>;

// `produce` hands all bytes, in order, to the sink it is given. WebAssembly has no
// NAME_end.
MemoryFile make_data_object(const Target& target, const DataObject& data,
                            const std::function<void(const ByteSink&)>& produce);

// make_data_object for WebAssembly.
MemoryFile make_wasm_data_object(const Target& target, const DataObject& data,
                                 const std::function<void(const ByteSink&)>& produce);

// Of so many bytes that are none of the object's: a linker leaves them zero, and who has
// linked puts them in. ELF; the linker joins its section with others that have bytes, or
// the output has no room.
MemoryFile make_room_object(const Target& target, const DataObject& data, uint64_t bytes);

// The same for bytes that are in memory already.
MemoryFile make_data_object(const Target& target, const DataObject& data,
                            std::span<const std::byte> bytes);

} // namespace svod::toolchain
