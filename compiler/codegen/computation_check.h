// What check_cpp does as a part of a compile: it looks at the tree the compile makes
// anyway.
#pragma once

#include "compiler/support/freestanding.h"

#include <memory>
#include <string>
#include <vector>

namespace clang {
class ASTConsumer;
class CompilerInstance;
} // namespace clang

namespace svod::codegen {

class ComputationCheck {
public:
  // `headers`: all that may be included.
  explicit ComputationCheck(std::vector<SourceFile> headers);
  ~ComputationCheck();

  // Of one compile, before it begins; may not outlive the check.
  std::unique_ptr<clang::ASTConsumer> consumer(clang::CompilerInstance& compiler);

  // As check_cpp gives them; none when the compile failed before its end.
  std::vector<std::string> findings() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace svod::codegen
