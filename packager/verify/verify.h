// Right before fast: the packed program is run on data with known answers before it is
// handed out.
#pragma once

#include "packager/front.h"
#include "packager/report/console.h"

#include <string>

namespace svod::packager {

// The data set to use: what --verify says ("random" stays as it is), else the
// test_data_set_* beside the model, else none (empty). What nobody asked for and cannot
// be used is a note, not an error.
struct VerifyChoice {
  std::string name;
  bool asked = false;
};
VerifyChoice verify_choice(const Options& options);

// Can a program for this target run on this machine?
bool runs_here(const Target& target);

// Runs `program` (a path, and options) with --verify on the choice, behind the words of
// `runner`. Done, VerifyMismatch, or what else went wrong. What was compared goes to
// `report`, as JSON.
Exit verify_program(const std::vector<std::string>& runner,
                    const std::vector<std::string>& program, const VerifyChoice& choice,
                    const Front& front, const Console& console, std::string& report);

} // namespace svod::packager
