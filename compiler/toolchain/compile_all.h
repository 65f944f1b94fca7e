// Compiles many sources on several threads, reusing what the object cache holds.
#pragma once

#include "compiler/toolchain/compile.h"
#include "compiler/toolchain/object_cache.h"

#include <functional>

namespace svod::toolchain {

struct CompileJob {
  const Level* level = nullptr; // of the target given beside it
  Source source;
  std::string name = {}; // for those who watch
  // Its object where that was compiled beforehand; outlives the job.
  std::span<const std::byte> ready = {};
};

// Names an object by all that decides its bytes.
Digest object_key(const Compiler& compiler, const Target& target, const CompileJob& job);

struct CompileAllResult {
  std::vector<CompileResult> results; // one per job, in their order
  size_t compiled = 0;
  size_t reused = 0; // ready, from the cache, or equal to an earlier job
  bool ok() const;
  std::string diagnostics() const; // of the failed jobs, each with its name
};

// A job that is done, for those who watch.
struct JobDone {
  const CompileJob& job;
  size_t done = 0, all = 0; // distinct jobs
  bool compiled = false;    // not from the cache
  double ms = 0;
};
// Called from the threads that compile, one call at a time.
using OnJobDone = std::function<void(const JobDone&)>;

// `cache` may be null. `threads` 0: what the machine has. All levels are of `target`'s
// own list, weakest first.
CompileAllResult compile_all(const Compiler& compiler, const Target& target,
                             std::span<const CompileJob> jobs,
                             const ObjectCache* cache = nullptr, unsigned threads = 0,
                             const OnJobDone& on_done = {});

} // namespace svod::toolchain
