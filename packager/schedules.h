// The schedules of --schedule FILE and --tuning FILE: handed to the compiler, and what
// became of them.
#pragma once

#include "compiler/pipeline.h"
#include "packager/report/console.h"

namespace svod::packager {

class GivenSchedules {
public:
  GivenSchedules(const Options& options, const Console& console)
      : name_(options.schedule), console_(console) {}

  // `text` of --schedule, `tuned` of --tuning for this target: what is edited by hand
  // goes first. Usage when the text is none of schedules.
  Exit read(std::string_view text, ScheduleFile tuned);
  void hand_to(CompileOptions& options);
  // The tuned schedules that kernels of this model asked for.
  ScheduleFile tuned() const;
  // Usage when an edited schedule did not fit its kernel. One that no kernel of this
  // model has may belong to another state of it and is a note. Tuned ones are for many
  // models, so only those that do not fit are a note.
  Exit report() const;

private:
  std::string name_;
  const Console& console_;
  ScheduleFile edited_, schedules_; // the second has the first, too
  optimize::AppliedSchedules applied_;
};

} // namespace svod::packager
