#include "tests/support/run_kernels.h"

#include "compiler/support/check.h"
#include "compiler/toolchain/compile_all.h"
#include "compiler/toolchain/link.h"
#include "packager/artefact/weights.h"
#include "runtime_stub/status.h"
#include "tests/support/simt.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <unistd.h>

namespace svod::test {

using namespace packager;
using namespace toolchain;

bool kernels_are_watched() {
  static const bool found = dlsym(RTLD_DEFAULT, "__asan_init") != nullptr;
  return found;
}

using KernelFunction = int32_t (*)(void* const*, void*, uint32_t);

namespace {

// 64-byte aligned memory, with nothing behind it that a kernel may touch.
struct Block {
  explicit Block(size_t bytes) {
    void* memory = nullptr;
    SVOD_CHECK(posix_memalign(&memory, 64, std::max<size_t>(bytes, 1)) == 0) << bytes;
    data = static_cast<std::byte*>(memory);
    // What a kernel does not write must not look like a result.
    std::memset(data, 0xdb, bytes);
  }
  Block(Block&& other) : data(std::exchange(other.data, nullptr)) {}
  ~Block() { std::free(data); }
  std::byte* data = nullptr;
};

constexpr const char* kSanitize[] = {"-O1", "-gline-tables-only",
                                     "-fsanitize=address,undefined",
                                     "-fno-sanitize-recover=undefined"};

// Every access is told to the executor: one by one, as it is in the text.
constexpr const char* kWatch[] = {"-O1", "-fno-vectorize", "-fno-slp-vectorize",
                                  "-fsanitize=thread"};

// link_shared() lets nothing be undefined; the runtime is found when the object is
// loaded.
LinkResult link_to_runtime(const Target& target, const LinkInputs& inputs,
                           const std::string& path) {
  const ObjectResult whole = partial_link(target, inputs);
  if (!whole.ok) return {false, whole.diagnostics};
  const std::string object = path + ".o";
  std::ofstream(object, std::ios::binary)
      .write(reinterpret_cast<const char*>(whole.object.data()),
             std::ssize(whole.object));
  const std::string command = "ld.lld-19 -shared -o " + path + " " + object;
  const bool ok = std::system(command.c_str()) == 0;
  unlink(object.c_str());
  return {ok, ok ? "" : command + " failed"};
}

class Loaded {
public:
  Loaded(const codegen::Kernels& kernels, const Target& target);
  ~Loaded() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  KernelFunction function(uint32_t program) const { return functions_.at(program); }
  const SimtKernel& gpu_kernel(uint32_t program) const {
    return gpu_kernels_.at(program);
  }
  void* handle() const { return handle_; }
  std::string error;

private:
  void* handle_ = nullptr;
  std::vector<KernelFunction> functions_;
  std::vector<SimtKernel> gpu_kernels_;
};

// Tests run one graph in several forms, most of whose kernels are the same.
class KnownObjects {
public:
  // The keys of the jobs; those that are known are ready.
  std::vector<Digest> find(const Compiler& compiler, const Target& target,
                           std::vector<CompileJob>& jobs) {
    if (objects_.size() > kMost) objects_.clear();
    std::vector<Digest> keys;
    for (CompileJob& job : jobs) {
      keys.push_back(object_key(compiler, target, job));
      if (const auto known = objects_.find(keys.back()); known != objects_.end())
        job.ready = known->second;
    }
    return keys;
  }
  void keep(const std::vector<Digest>& keys, const CompileAllResult& compiled) {
    for (size_t i = 0; i < keys.size(); ++i)
      objects_.emplace(keys[i], compiled.results[i].output);
  }

private:
  static constexpr size_t kMost = 100;
  std::map<Digest, std::vector<std::byte>> objects_;
};

// The names of a GPU's kernel; another one is called by its symbol alone.
std::vector<std::string> gpu_names(const std::string& symbol) {
  return {"-Dsvod_kernel=" + symbol + "_entry", "-Dsvod_thread=" + symbol,
          "-Dsvod_shared=" + symbol + "_shared"};
}

// Compiles and links them to a shared object; what went wrong, or nothing.
std::string link_kernels(const codegen::Kernels& kernels, const Target& made_for,
                         const std::string& path) {
  static const Compiler compiler;
  const bool gpu = made_for.kind == TargetKind::Gpu;
  const Target target = gpu ? *find_target("native") : made_for;
  std::vector<CompileJob> jobs;
  std::string table;
  const Level& level = target.levels.back();
  for (const codegen::KernelSource& source : kernels.sources) {
    if (source.level != made_for.levels.back().suffix) continue;
    // The processor has it from its own plan.
    if (gpu && kernels.plan.programs[source.program].call() != nullptr) continue;
    std::vector<std::string> flags = {"-Dsvod_kernel=" + source.symbol};
    if (gpu) {
      flags = gpu_names(source.symbol);
      flags.insert(flags.end(), std::begin(kWatch), std::end(kWatch));
    } else if (kernels_are_watched())
      flags.insert(flags.end(), std::begin(kSanitize), std::end(kSanitize));
    jobs.push_back(
        {&level, {source.symbol + ".cpp", source.text, flags, source.prelude_bytes}});
    if (gpu) continue;
    table += "extern \"C\" int " + source.symbol + "(void* const*, void*, unsigned);\n" +
             "extern \"C\" __attribute__((visibility(\"default\"))) void* get_" +
             std::to_string(source.program) + "() { return (void*)&" + source.symbol +
             "; }\n";
  }
  jobs.push_back({&level, {"table.cpp", gpu ? simt_runtime() : table, {}}});
  static KnownObjects known;
  const std::vector<Digest> keys = known.find(compiler, target, jobs);
  CompileAllResult compiled = compile_all(compiler, target, jobs);
  if (!compiled.ok()) return compiled.diagnostics();
  known.keep(keys, compiled);
  LinkInputs inputs;
  for (const CompileResult& r : compiled.results) inputs.objects.emplace_back(r.output);
  const LinkResult linked = kernels_are_watched() && !gpu
                                ? link_to_runtime(target, inputs, path)
                                : link_shared(target, inputs, "kernels", path);
  return linked.ok ? "" : linked.diagnostics;
}

Loaded::Loaded(const codegen::Kernels& kernels, const Target& made_for) {
  const bool gpu = made_for.kind == TargetKind::Gpu;
  char path[] = "/tmp/svod-kernels-XXXXXX";
  close(mkstemp(path));
  error = link_kernels(kernels, made_for, path);
  if (error.empty()) handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  if (handle_ == nullptr) {
    if (error.empty()) error = dlerror();
    return;
  }
  for (uint32_t p = 0; p < kernels.plan.programs.size(); ++p) {
    if (gpu) {
      const std::string symbol =
          codegen::program_symbol(p, made_for.levels.back().suffix);
      SimtKernel& kernel = gpu_kernels_.emplace_back();
      kernel.thread =
          reinterpret_cast<decltype(kernel.thread)>(dlsym(handle_, symbol.c_str()));
      kernel.shared = reinterpret_cast<decltype(kernel.shared)>(
          dlsym(handle_, (symbol + "_shared").c_str()));
      continue;
    }
    void* get = dlsym(handle_, ("get_" + std::to_string(p)).c_str());
    functions_.push_back(
        reinterpret_cast<KernelFunction>(reinterpret_cast<void* (*)()>(get)()));
  }
}

using Address = std::function<std::byte*(plan::SlotId)>;

// Runs the steps from `at` to `end`. Written apart from the stub's replay, and unlike it
// with recursion, so that the two do not share a mistake.
void run_range(const plan::Plan& s, size_t at, size_t end, const Address& address,
               const std::function<void(size_t)>& do_step,
               std::vector<int64_t>& iterations, int& status) {
  auto close = [&](size_t begin) { // the Else or the End that belongs to step `begin`
    int depth = 0;
    for (size_t i = begin + 1;; ++i) {
      plan::StepKind kind = s.steps[i].kind;
      if (depth == 0 && (kind == plan::StepKind::Else || kind == plan::StepKind::End))
        return i;
      depth += kind == plan::StepKind::Loop || kind == plan::StepKind::If ? 1 : 0;
      depth -= kind == plan::StepKind::End ? 1 : 0;
    }
  };
  auto run = [&](size_t from, size_t to) {
    run_range(s, from, to, address, do_step, iterations, status);
  };
  auto holds = [&](plan::SlotId id) { return *address(id) != std::byte(0); };
  for (; at < end; ++at) {
    const plan::Step& step = s.steps[at];
    const plan::RegionSlots& r = step.region;
    if (step.kind == plan::StepKind::If) {
      size_t middle = close(at), last = close(middle);
      holds(r.start) ? run(at + 1, middle) : run(middle + 1, last);
      at = last;
    } else if (step.kind == plan::StepKind::Loop) {
      size_t last = close(at);
      int64_t count = 0, i = 0;
      std::memcpy(&count, address(r.count), sizeof count);
      for (bool go = holds(r.start); go && i < count; ++i) {
        if (i == r.limit) status = SVOD_LIMIT;
        if (status != 0) break;
        std::memcpy(address(r.iteration), &i, sizeof i);
        iterations[r.depth] = i;
        run(at + 1, last);
        go = r.again == plan::kNoSlot || holds(r.again);
      }
      iterations[r.depth] = i;
      if (r.done != plan::kNoSlot) std::memcpy(address(r.done), &i, sizeof i);
      at = last;
    } else {
      do_step(at);
      at += step.followers;
    }
  }
}

} // namespace

std::string link_gpu_kernels(const codegen::Kernels& kernels, const Target& device,
                             const std::string& path) {
  return link_kernels(kernels, device, path);
}

KernelRun run_kernels(const codegen::Kernels& kernels, const Target& target,
                      const std::vector<Tensor>& inputs) {
  KernelRun run;
  Loaded loaded(kernels, target);
  if (!loaded.error.empty()) {
    run.error = loaded.error;
    return run;
  }
  const plan::Plan& s = kernels.plan;
  Block arena(s.arena_bytes), scratch(s.scratch_bytes), weights(s.weight_bytes);
  size_t filled = 0;
  produce_weights(s, [&](std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    std::memcpy(weights.data + filled, bytes.data(), bytes.size());
    filled += bytes.size();
  });
  std::vector<Block> in, out;
  for (const Tensor& t : inputs) {
    in.emplace_back(t.bytes.size());
    std::memcpy(in.back().data, t.bytes.data(), t.bytes.size());
  }
  auto bytes_of = [&](NodeId n) {
    return static_cast<size_t>(element_count(s.graph[n].shape)) *
           byte_size(s.graph[n].dtype);
  };
  for (const GraphOutput& o : s.graph.outputs()) out.emplace_back(bytes_of(o.node));
  // In place of the arena and the weight section, so that what passes a buffer's end is
  // seen, and what reads it when the plan has given it up.
  std::map<plan::SlotId, Block> own;
  auto own_block = [&](plan::SlotId id) {
    const plan::Slot& slot = s.slots[id];
    auto [at, is_new] = own.try_emplace(id, slot.bytes);
    if (is_new && slot.slot_class == plan::SlotClass::Weight)
      std::memcpy(at->second.data, weights.data + slot.offset, slot.bytes);
    return at->second.data;
  };
  std::vector<int64_t> iterations(64);
  std::function<std::byte*(plan::SlotId)> address = [&](plan::SlotId id) -> std::byte* {
    const plan::Slot& slot = s.slots[id];
    switch (slot.slot_class) {
    case plan::SlotClass::Input:
      return in[slot.io].data;
    case plan::SlotClass::Output:
      return out[slot.io].data;
    case plan::SlotClass::Weight:
      return kernels_are_watched() ? own_block(id) : weights.data + slot.offset;
    case plan::SlotClass::Slice: {
      int64_t i = iterations[slot.depth];
      return address(slot.parent) + slot.offset +
             (slot.alternates ? i & 1 : i) * slot.stride;
    }
    default:
      return kernels_are_watched() ? own_block(id) : arena.data + slot.offset;
    }
  };
  // A run of all steps: every condition holds.
  if (const plan::SlotId changes = s.changes.slot; changes != plan::kNoSlot)
    std::memset(address(changes), 1, s.slots[changes].bytes);
  std::optional<Simt> simt;
  if (target.kind == TargetKind::Gpu) simt.emplace(loaded.handle());
  auto launch_gpu = [&](const plan::Step& step) {
    const ScheduledKernel& k = s.programs[step.program];
    const GpuSchedule& how = *k.levels.back().gpu;
    std::vector<SimtBuffer> buffers;
    for (size_t i = 0; i < step.arguments.size(); ++i)
      buffers.push_back({address(step.arguments[i]), s.slots[step.arguments[i]].bytes,
                         k.arguments[i].written});
    Block room(static_cast<size_t>(scratch_of_launch(k, how)));
    std::vector<uint32_t> counters(static_cast<size_t>(counters_of_launch(k, how)));
    const int32_t fault = simt->launch(
        loaded.gpu_kernel(step.program), block_count(k, how), how.threads, buffers,
        {room.data, static_cast<size_t>(scratch_of_launch(k, how)), true}, counters);
    if (fault != 0 && run.status == 0) run.status = SVOD_INDEX;
  };
  // What a chain passes on has room for one chunk, filled anew for each.
  auto launch = [&](const plan::Step& step, uint32_t chunk) {
    std::vector<void*> buffers;
    for (plan::SlotId id : step.arguments) {
      const plan::Slot& slot = s.slots[id];
      buffers.push_back(slot.slot_class == plan::SlotClass::Part
                            ? scratch.data + slot.offset - chunk * slot.bytes
                            : address(id));
    }
    int status = loaded.function(step.program)(buffers.data(), scratch.data, chunk);
    if (status != 0 && run.status == 0) run.status = status;
  };
  // A stream, with a window's rows found by their numbers.
  auto run_stream = [&](size_t at) {
    const plan::Stream& stream = s.streams[*s.steps[at].stream];
    std::vector<const plan::Step*> steps;
    for (size_t i = at; steps.size() < stream.launches.size(); ++i)
      if (s.steps[i].kind == plan::StepKind::LaunchProgram) steps.push_back(&s.steps[i]);
    std::map<plan::SlotId, int64_t> begin; // the row at the front
    auto fill = [&](const plan::Stream::Window& w, int64_t row) {
      for (int64_t i = row * w.row_bytes; i < w.rows * w.row_bytes; ++i)
        address(w.slot)[i] =
            w.border ? std::byte(w.fill >> (i % 4 * 8)) : std::byte(0xdb);
    };
    for (const plan::Stream::Window& w : stream.windows)
      fill(w, 0), begin[w.slot] = w.first - w.rows;
    auto turn = [&](size_t l, int64_t n) {
      const int64_t chunk = n + stream.launches[l].ahead;
      if (chunk < 0) return;
      for (const plan::Stream::Window& w : stream.windows) {
        if (w.writer != l) continue;
        const int64_t kept = w.rows - w.by;
        std::memmove(address(w.slot), address(w.slot) + w.by * w.row_bytes,
                     static_cast<size_t>(kept * w.row_bytes));
        begin[w.slot] += w.by;
        if (chunk >= w.count / w.by) fill(w, kept);
      }
      if (chunk >= stream.launches[l].chunks) return;
      std::vector<void*> buffers;
      for (plan::SlotId id : steps[l]->arguments) {
        std::byte* to = address(id);
        for (const plan::Stream::Window& w : stream.windows)
          if (w.slot == id) to -= begin[id] * w.row_bytes;
        buffers.push_back(to);
      }
      loaded.function(steps[l]->program)(buffers.data(), scratch.data,
                                         static_cast<uint32_t>(chunk));
    };
    // Turn by turn of the highest rate; a launch of a lower one has its turn at the end
    // of as many.
    const int64_t most = stream.launches[0].rate;
    for (int64_t n = stream.first_turn * most; n < stream.turns * most; ++n)
      for (size_t l = 0; l < steps.size(); ++l) {
        const int64_t every = most / stream.launches[l].rate, next = n + 1;
        if (next % every == 0) turn(l, (next - (next % every)) / every - 1);
      }
  };
  auto do_step = [&](size_t at) {
    const plan::Step& step = s.steps[at];
    if (step.stream) return run_stream(at);
    if (step.kind == plan::StepKind::CopyMemory)
      std::memcpy(address(step.to), address(step.from), s.slots[step.to].bytes);
    if (step.kind == plan::StepKind::Deallocate) own.erase(step.slot);
    if (step.kind != plan::StepKind::LaunchProgram) return;
    if (simt) return launch_gpu(step);
    for (uint32_t chunk = 0; chunk < step.chunks; ++chunk) {
      if (step.followers != 0) std::memset(scratch.data, 0xdb, s.scratch_bytes);
      for (size_t i = at; i <= at + step.followers; ++i) launch(s.steps[i], chunk);
    }
  };
  run_range(s, 0, s.steps.size(), address, do_step, iterations, run.status);
  for (size_t i = 0; i < out.size(); ++i) {
    const Node& n = s.graph[s.graph.outputs()[i].node];
    Tensor t{n.dtype, n.shape,
             std::vector<std::byte>(bytes_of(s.graph.outputs()[i].node))};
    std::memcpy(t.bytes.data(), out[i].data, t.bytes.size());
    run.outputs.push_back(std::move(t));
  }
  if (simt) run.faults = simt->faults();
  return run;
}

} // namespace svod::test
