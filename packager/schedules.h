// The schedules of --schedule FILE: read, handed to the compiler, and what became of
// them.
#pragma once

#include "compiler/pipeline.h"
#include "packager/report/console.h"

namespace svod::packager {

class GivenSchedules {
public:
  GivenSchedules(const Options& options, const Console& console)
      : name_(options.schedule), console_(console) {}

  // Usage when the text is none of schedules; nothing is done without a file.
  Exit read(std::string_view text);
  void hand_to(CompileOptions& options);
  // Usage when a schedule did not fit its kernel. One that no kernel of this model has
  // may belong to another state of it and is a note.
  Exit report() const;

private:
  std::string name_;
  const Console& console_;
  ScheduleFile schedules_;
  optimize::AppliedSchedules applied_;
};

} // namespace svod::packager
