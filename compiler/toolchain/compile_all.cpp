// Work is claimed from one counter and written to its own place, so the results are the
// same for every number of threads. Equal jobs are found by key before anything is
// compiled.
#include "compiler/toolchain/compile_all.h"

#include "compiler/support/check.h"
#include "compiler/support/threads.h"
#include "compiler/toolchain/keep_order.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>

namespace svod::toolchain {

bool CompileAllResult::ok() const {
  return std::ranges::all_of(results, &CompileResult::ok);
}

Digest object_key(const Compiler& compiler, const Target& target, const CompileJob& job) {
  DigestWriter key;
  key.text("object 1"); // of the layout of this key
  if (target.triple.starts_with("thumbv8.1m")) key.text("mend_mve 2");
  if (keeps_order(target.triple, false)) key.text("keep_order 3");
  key.text(compiler.identity());
  for (const std::string& flag : Compiler::flags(target, *job.level, job.source))
    key.text(flag);
  key.text("source");
  key.text(job.source.text);
  return key.finish();
}

// False when there is nothing to compile.
static bool compile_one(const Compiler& compiler, const Target& target,
                        const CompileJob& job, const ObjectCache* cache,
                        const Digest& key, CompileResult& result) {
  if (!job.ready.empty()) {
    result = {true, {job.ready.begin(), job.ready.end()}, ""};
    return false;
  }
  if (cache) {
    if (std::optional<std::vector<std::byte>> object = cache->load(key)) {
      result = {true, std::move(*object), ""};
      return false;
    }
  }
  result = compiler.compile(target, *job.level, job.source);
  if (!result.ok)
    result.diagnostics = (job.name.empty() ? job.source.name : job.name) + " for " +
                         job.level->name + ":\n" + result.diagnostics;
  else if (cache)
    // A full disk makes the next pack slower, not this one wrong.
    (void)cache->store(key, result.output);
  return true;
}

namespace {

// Counts jobs and tells who watches.
class Watch {
public:
  Watch(const OnJobDone& on_done, size_t all) : on_done_(on_done), all_(all) {}
  template <class Work> void run(const CompileJob& job, const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    const bool compiled = work();
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - start;
    const std::lock_guard lock(mutex_);
    compiled_ += compiled ? 1 : 0;
    ++done_;
    if (on_done_) on_done_({job, done_, all_, compiled, took.count()});
  }
  size_t compiled() const { return compiled_; }

private:
  const OnJobDone& on_done_;
  std::mutex mutex_;
  size_t all_, done_ = 0, compiled_ = 0;
};

} // namespace

// The strongest level first, which most often is this machine's, and of a level the
// longest texts: what is left for the end is short, so no thread waits for another.
static void put_in_order(std::vector<size_t>& numbers, std::span<const CompileJob> jobs) {
  std::ranges::stable_sort(numbers, [&](size_t a, size_t b) {
    const CompileJob &x = jobs[a], &y = jobs[b];
    if (x.level != y.level) return std::greater<>()(x.level, y.level);
    return x.source.text.size() > y.source.text.size();
  });
}

CompileAllResult compile_all(const Compiler& compiler, const Target& target,
                             std::span<const CompileJob> jobs, const ObjectCache* cache,
                             unsigned threads, const OnJobDone& on_done) {
  std::map<Digest, size_t> first_of;
  std::vector<size_t> same_as;  // job -> the first job with its key
  std::vector<size_t> distinct; // first jobs
  std::vector<Digest> keys;
  for (size_t i = 0; i < jobs.size(); ++i) {
    SVOD_CHECK(jobs[i].level) << "job " << i << " has no level";
    keys.push_back(object_key(compiler, target, jobs[i]));
    auto [at, added] = first_of.try_emplace(keys[i], i);
    if (added) distinct.push_back(i);
    same_as.push_back(at->second);
  }
  put_in_order(distinct, jobs);
  if (cache) {
    std::vector<Digest> wanted;
    for (const size_t i : distinct)
      if (jobs[i].ready.empty()) wanted.push_back(keys[i]);
    cache->bring(wanted);
  }
  CompileAllResult out;
  out.results.resize(jobs.size());
  Watch watch(on_done, distinct.size());
  run_on_threads(distinct.size(), threads, [&](size_t n) {
    const size_t i = distinct[n];
    watch.run(jobs[i], [&] {
      return compile_one(compiler, target, jobs[i], cache, keys[i], out.results[i]);
    });
  });
  for (size_t i = 0; i < jobs.size(); ++i)
    if (same_as[i] != i) out.results[i] = out.results[same_as[i]];
  out.compiled = watch.compiled();
  out.reused = jobs.size() - out.compiled;
  return out;
}

// A fault that all kernels share is told by the first of them.
std::string CompileAllResult::diagnostics() const {
  constexpr size_t kMostTexts = 3;
  std::string out;
  size_t failed = 0;
  for (const CompileResult& result : results)
    if (!result.ok && ++failed <= kMostTexts) out += result.diagnostics;
  if (failed > kMostTexts)
    out += "and " + std::to_string(failed - kMostTexts) + " more that do not compile\n";
  return out;
}

} // namespace svod::toolchain
