// What svod-pack says on stderr: diagnostics of a model, errors of its own, notes. stdout
// is for what was asked for and nothing else.
#pragma once

#include "compiler/support/diags.h"
#include "packager/options.h"

#include <string_view>

namespace svod::packager {

class Console {
public:
  explicit Console(const Options& options);
  // All entries of `diags`, each line with the model's name; with -q only errors.
  void print(const Diags& diags, const std::string& file) const;
  void error(const std::string& message) const;
  void warning(const std::string& message) const; // not with -q
  void note(const std::string& message) const;    // not with -q
  void verbose(const std::string& message) const; // with -v only
  // A line that the next one overwrites, on a terminal only.
  void progress(const std::string& message) const;
  // What was asked for, on stdout. A reader that has seen enough (`| head`) is no error.
  [[nodiscard]] Exit print_out(std::string_view text) const;
  bool quiet() const { return quiet_; }

private:
  std::string painted(const std::string& text) const;
  void clear_progress() const;
  bool color_ = false, terminal_ = false, quiet_ = false, verbose_ = false;
  mutable bool in_progress_ = false;
};

} // namespace svod::packager
