// What an emitted run is made of where it can leave out steps (runtime_stub/changes.h).
#pragma once

#include "packager/artefact/image.h"

#include <string>

namespace svod::packager {

class StraightChanges {
public:
  // `pointers`: the parameters behind the arena, inputs and outputs.
  StraightChanges(const ImageContents::Changes& changes, std::string pointers)
      : changes_(changes), pointers_(std::move(pointers)) {}
  bool empty() const { return changes_.masks.empty(); }
  // run_changed() over run_steps(), in a namespace without a name.
  std::string functions() const;
  // NAME_run_changed().
  std::string api(const std::string& prefix) const;

private:
  const ImageContents::Changes& changes_;
  std::string pointers_;
};

} // namespace svod::packager
