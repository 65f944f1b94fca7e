// What is wrong with the user's model or command, collected so that one run shows all of
// it.
#pragma once

#include "compiler/support/text.h"

#include <cstdint>
#include <string>
#include <vector>

namespace svod {

// Process exit codes; the table in docs/usage.md explains each to the user.
enum class Exit : int {
  Done = 0,
  InvalidModel = 1,
  Usage = 2,
  Unsupported = 3,
  File = 4,
  Bug = 5,
  Toolchain = 6,
  VerifyMismatch = 7,
  Budget = 8,
  Interrupted = 130,
};

enum class Severity : uint8_t { Error, Warning, Note };

// Where in the model: printed as  node 17 'head/pool' (MaxPool)
struct ModelPlace {
  int64_t node = -1; // index in its graph; -1: no node
  std::string graph; // path of enclosing graphs, empty for the main graph
  std::string name;  // node name as in the model, unescaped
  std::string op;    // operator name with its domain when not ai.onnx
};

struct Diagnostic {
  Severity severity = Severity::Error;
  Exit exit = Exit::InvalidModel; // what an error makes of the run
  ModelPlace place;
  std::string message;
};

class Diags {
public:
  void error(Exit exit, std::string message, ModelPlace place = {});
  void warning(std::string message, ModelPlace place = {});
  void note(std::string message, ModelPlace place = {});

  bool failed() const { return errors_ != 0; }
  size_t error_count() const { return errors_; }
  // The exit code of the run: the smallest of the errors' codes, Done without errors.
  Exit exit() const;
  const std::vector<Diagnostic>& all() const { return entries_; }

  // All entries, one per line, prefixed by `file`; ends with a count when there were
  // errors.
  std::string text(const std::string& file) const;

private:
  std::vector<Diagnostic> entries_;
  size_t errors_ = 0;
};

} // namespace svod
