// The small commands beside packing.
#pragma once

#include "packager/front.h"
#include "packager/report/console.h"
#include "packager/report/json.h"

#include <optional>

namespace svod::packager {

Exit check_verb(const Options& options, const Console& console);
Exit key_verb(const Options& options, const Console& console);
Exit ops_verb(const Options& options, const Console& console);
Exit cache_verb(const Options& options, const Console& console);
// Of the action merge.
Exit merge_verb(const Options& options, const Console& console);
Exit report_verb(const Options& options, const Console& console);
Exit doctor_verb(const Options& options, const Console& console);

// The model, read and imported, with what was said about it.
std::optional<Front> front_of(const Options& options, const Console& console, Exit& exit);
// What a verb found out: the text on stdout, unless --json goes there, and the object of
// --json.
Exit answer(const Options& options, const Console& console, const std::string& text,
            const JsonWriter& json);

} // namespace svod::packager
