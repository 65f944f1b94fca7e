// What svod-pack says on stderr: diagnostics of a model, errors of its own, notes, and
// how far it is. stdout is for what was asked for and nothing else. All that is said is
// kept for --json, with what the verb found out.
#pragma once

#include "compiler/support/diags.h"
#include "packager/options.h"
#include "packager/report/progress.h"

#include <memory>
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
  // For people only, and not kept: what a summary or the options say anyway.
  void remark(const std::string& message) const;
  void verbose(const std::string& message) const;               // with -v only
  void print_line(const std::string& line) const { say(line); } // of a program that ran
  // Ends the line of progress: what follows forks, or prints by itself.
  void rest() const { progress_.reset(); }
  // The stage that begins; its line is written over by the next one.
  void progress(const std::string& message) const;
  void kernel_done(const std::string& name, double ms, bool compiled, size_t done,
                   size_t all) const;
  // What was asked for, on stdout. A reader that has seen enough (`| head`) is no error.
  [[nodiscard]] Exit print_out(std::string_view text) const;
  bool quiet() const { return quiet_; }
  bool is_verbose() const { return verbose_; }

  const std::vector<Diagnostic>& said() const { return said_; }
  // What another process said on the same stderr.
  void keep(const Diagnostic& said) const { said_.push_back(said); }
  // What the verb has to tell in --json: an object, whose members stand beside the
  // messages.
  void tell(const std::string& object) const { result_ = object; }
  const std::string& result() const { return result_; }

private:
  std::string painted(const std::string& text) const;
  void say(const std::string& line) const;
  void show_progress(const std::string& line) const;
  bool color_ = false, terminal_ = false, quiet_ = false, verbose_ = false;
  mutable std::mutex mutex_; // of stderr
  mutable bool in_progress_ = false;
  mutable std::vector<Diagnostic> said_;
  mutable std::string result_;
  mutable std::unique_ptr<Progress> progress_; // last: its clock writes to the others
};

} // namespace svod::packager
