// Schedules in a file, each under the digest of the kernel it is for.
//
//   kernel k0
//     ...                      passed over: the digest says which one it is
//   schedule 5f3c...           64 hexadecimal digits
//     loops
//       ...
#pragma once

#include "compiler/kernel/text.h"

#include <map>

namespace svod {

using ScheduleFile = std::map<Digest, KernelSchedule>;
std::optional<ScheduleFile> parse_schedule_file(std::string_view text, TextFault& fault);

// A program as the file has it: its kernel, its schedule, and those of a sequence's
// parts.
std::string print_program(const std::string& name, const ScheduledKernel& program);

} // namespace svod
