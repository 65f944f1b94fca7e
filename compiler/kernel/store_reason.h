// Why a value is stored, and so why the kernel that makes it ends there:
// store_reasons.def.
#pragma once

#include <cstdint>
#include <string_view>

namespace svod {

enum class StoreReason : uint8_t {
#define REASON(name, by, text) name,
#include "compiler/kernel/store_reasons.def"
};

// What left no other cut; columns of the table.
enum class StoredBy : uint8_t { Meaning, Mechanism, Rule };

// "is an output of the graph"
std::string_view text_of(StoreReason reason);
// "Output"
std::string_view name_of(StoreReason reason);
StoredBy stored_by(StoreReason reason);

} // namespace svod
