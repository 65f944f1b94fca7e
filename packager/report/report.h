// What --json writes, whatever the verb and however it ended: what the verb has to tell,
// the exit code, and every message.
#pragma once

#include "packager/report/console.h"

namespace svod::packager {

// The text of it.
std::string report_json(const Options& options, const Console& console, Exit exit);

// Writes the report where --json asks for it. `exit`, or File when it cannot be written.
[[nodiscard]] Exit write_report(const Options& options, const Console& console,
                                Exit exit);

} // namespace svod::packager
