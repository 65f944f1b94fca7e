// The stub as objects inside this program, compiled when it was built: a pack for this
// machine finds them without a cache.
#pragma once

#include "compiler/support/digest.h"

#include <cstddef>
#include <span>
#include <vector>

namespace svod::packager {

// By toolchain::object_key; empty when it is not there.
std::span<const std::byte> ready_object(const Digest& key);

// What ready_object reads in a program that it is linked with: see CMakeLists.txt.
inline constexpr const char* kReadySymbol = "svod_ready_stub";
void append_ready(std::vector<std::byte>& list, const Digest& key,
                  std::span<const std::byte> object);

} // namespace svod::packager
