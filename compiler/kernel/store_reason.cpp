#include "compiler/kernel/store_reason.h"

#include <cstddef>

namespace svod {

namespace {

struct Row {
  std::string_view name;
  StoredBy by;
  std::string_view text;
};
constexpr Row kRows[] = {
#define REASON(name, by, text) {#name, StoredBy::by, text},
#include "compiler/kernel/store_reasons.def"
};

const Row& row_of(StoreReason reason) { return kRows[static_cast<size_t>(reason)]; }

} // namespace

std::string_view text_of(StoreReason reason) { return row_of(reason).text; }
std::string_view name_of(StoreReason reason) { return row_of(reason).name; }
StoredBy stored_by(StoreReason reason) { return row_of(reason).by; }

} // namespace svod
