#include "packager/schedules.h"

namespace svod::packager {

Exit GivenSchedules::read(std::string_view text) {
  if (name_.empty()) return Exit::Done;
  TextFault fault;
  std::optional<ScheduleFile> read = parse_schedule_file(text, fault);
  if (!read) {
    console_.error(name_ + ":" + std::to_string(fault.line) + ": " + fault.why);
    return Exit::Usage;
  }
  schedules_ = std::move(*read);
  return Exit::Done;
}

void GivenSchedules::hand_to(CompileOptions& options) {
  if (name_.empty()) return;
  options.schedules = &schedules_;
  options.applied = &applied_;
}

Exit GivenSchedules::report() const {
  for (const auto& [digest, schedule] : schedules_)
    if (applied_.used.count(digest) == 0)
      console_.note(name_ + ": no kernel of this model is " + digest.hex());
  for (const std::string& misfit : applied_.misfits)
    console_.error(name_ + ": schedule " + misfit);
  return applied_.misfits.empty() ? Exit::Done : Exit::Usage;
}

} // namespace svod::packager
