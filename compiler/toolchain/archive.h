// Static libraries, and the symbols of an object.
#pragma once

#include "compiler/toolchain/link.h"

namespace svod::toolchain {

// As write_archive, into memory: how many objects become one input of the linker.
MemoryFile archive_in_memory(std::span<const ArchiveMember> members);

} // namespace svod::toolchain
