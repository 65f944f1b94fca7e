#include "packager/schedules.h"

namespace svod::packager {

Exit GivenSchedules::read(std::string_view text, ScheduleFile tuned) {
  schedules_ = std::move(tuned);
  if (name_.empty()) return Exit::Done;
  TextFault fault;
  std::optional<ScheduleFile> read = parse_schedule_file(text, fault);
  if (!read) {
    console_.error(name_ + ":" + std::to_string(fault.line) + ": " + fault.why);
    return Exit::Usage;
  }
  edited_ = std::move(*read);
  for (const auto& [digest, schedule] : edited_)
    schedules_.insert_or_assign(digest, schedule);
  return Exit::Done;
}

void GivenSchedules::hand_to(CompileOptions& options) {
  if (name_.empty() && schedules_.empty()) return;
  options.schedules = &schedules_;
  options.applied = &applied_;
}

ScheduleFile GivenSchedules::tuned() const {
  ScheduleFile out;
  for (const auto& [digest, schedule] : schedules_)
    if (applied_.used.contains(digest) && !edited_.contains(digest))
      out.emplace(digest, schedule);
  return out;
}

Exit GivenSchedules::report() const {
  for (const auto& [digest, schedule] : edited_)
    if (applied_.used.count(digest) == 0)
      console_.note(name_ + ": no kernel of this model is " + digest.hex());
  Exit status = Exit::Done;
  for (const optimize::Misfit& misfit : applied_.misfits) {
    if (edited_.contains(misfit.kernel)) {
      console_.error(name_ + ": schedule " + misfit.text());
      status = Exit::Usage;
    } else {
      console_.note("--tuning: schedule " + misfit.text() + "; the rules' is taken");
    }
  }
  return status;
}

} // namespace svod::packager
