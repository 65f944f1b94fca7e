// Compiles many sources on several threads, reusing what the object cache holds.
#pragma once

#include "compiler/toolchain/compile.h"
#include "compiler/toolchain/object_cache.h"

namespace svod::toolchain {

struct CompileJob {
  const Level* level = nullptr; // of the target given beside it
  Source source;
  // Emitted text, which may compute and nothing else: what check_cpp finds is an error.
  bool only_computes = false;
};

struct CompileAllResult {
  std::vector<CompileResult> results; // one per job, in their order
  size_t compiled = 0;
  size_t reused = 0; // from the cache, or equal to an earlier job
  bool ok() const;
  std::string diagnostics() const; // of the failed jobs, each with its name
};

// `cache` may be null. `threads` 0: what the machine has.
CompileAllResult compile_all(const Compiler& compiler, const Target& target,
                             std::span<const CompileJob> jobs,
                             const ObjectCache* cache = nullptr, unsigned threads = 0);

} // namespace svod::toolchain
