// Programs that are started and waited for, and a place for their files.
#pragma once

#include <string>
#include <vector>

namespace svod::packager {

// What a program did.
struct Ran {
  int code = -1; // -1: it could not be started, or a signal ended it
  std::string said;
};

// Runs in `place`, where that is given. What the program prints on stdout is in `said`.
// One that takes longer than `limit` seconds is ended; 0: it may take its time.
Ran run_program(const std::vector<std::string>& words, const std::string& place,
                double limit = 0);

// A folder that is removed with all it holds.
class TemporaryFolder {
public:
  // An interrupt must know the folder before it is there, so the name comes first.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

} // namespace svod::packager
