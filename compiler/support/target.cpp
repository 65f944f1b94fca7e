// Reads targets.def. `native` asks the CPU which of the levels it can run; the emitted
// programs ask again when they start, so a wrong guess here costs speed, never a wrong
// result.
#include "compiler/support/target.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <sstream>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>

#include <asm/hwcap.h>
#endif

namespace svod {

static std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

static std::vector<Level> all_levels() {
  return {
#define LEVEL(name, suffix, flags, lanes, registers, integers, bits, fma, dots, factors, \
              fixed, narrows, machine)                                                   \
  {name,                                                                                 \
   suffix,                                                                               \
   words(flags),                                                                         \
   lanes,                                                                                \
   registers,                                                                            \
   integers,                                                                             \
   bits,                                                                                 \
   MultiplyAdd::fma,                                                                     \
   ByteProducts::dots,                                                                   \
   ByteFactors::factors,                                                                 \
   fixed,                                                                                \
   narrows,                                                                              \
   find_machine(machine)},
#include "compiler/support/targets.def"
  };
}

static std::vector<Level> levels_named(const std::string& names) {
  std::vector<Level> out;
  const std::vector<Level> all = all_levels();
  for (const std::string& name : words(names)) {
    auto level = std::ranges::find(all, name, &Level::name);
    SVOD_CHECK(level != all.end()) << "targets.def: no level " << name;
    out.push_back(*level);
  }
  return out;
}

static std::vector<Target> all_targets() {
  return {
#define TARGET(alias, triple, kind, pointer, threads, machine, eflags, linker, levels)   \
  {alias,  triple,        TargetKind::kind,    pointer, threads, machine,                \
   eflags, words(linker), levels_named(levels)},
#include "compiler/support/targets.def"
  };
}

static std::vector<Target> all_devices() {
  return {
#define DEVICE(alias, triple)                                                            \
  {alias, triple, TargetKind::Gpu, 64, 1, 0, 0, {}, levels_named(alias)},
#include "compiler/support/targets.def"
  };
}

std::optional<Target> find_device(std::string_view name) {
  for (const Target& device : all_devices())
    if (device.alias == name) return device;
  return std::nullopt;
}

std::vector<std::string> device_aliases() {
  std::vector<std::string> out;
  for (const Target& device : all_devices()) out.push_back(device.alias);
  return out;
}

#if defined(__x86_64__)
// Whether this CPU multiplies tiles of bytes, and Linux lets a process that asks do so
// (runtime_stub/cpu.cpp). No other process is, and this one multiplies none.
static bool host_has_tiles() {
  constexpr unsigned kTiles = 1U << 24 | 1U << 25; // AMX-TILE, AMX-INT8
  constexpr long kRequestState = 0x1023, kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTiles) == kTiles &&
         syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
}
#endif

static bool host_runs([[maybe_unused]] const Level& level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (level.name == "sapphirerapids")
    return __builtin_cpu_supports("avx512vnni") && host_has_tiles();
  if (level.name == "cascadelake")
    return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni");
  if (level.name == "x86-64-v4") return __builtin_cpu_supports("x86-64-v4");
  if (level.name == "x86-64-v3") return __builtin_cpu_supports("x86-64-v3");
#elif defined(__aarch64__)
  if (level.name == "aarch64-i8mm") return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  if (level.name == "aarch64-dotprod") return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
  return true; // the weakest level of its architecture
}

static const char* host_alias() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__riscv)
  return "riscv64";
#else
#error "no row of targets.def describes this host"
#endif
}

static Target native_target() {
  Target target = default_target();
  target.alias = "native";
  while (target.levels.size() > 1 && !host_runs(target.levels.back()))
    target.levels.pop_back();
  target.levels.erase(target.levels.begin(), target.levels.end() - 1);
  return target;
}

std::optional<Target> find_target(std::string_view name) {
  if (name == "native") return native_target();
  const std::vector<Target> all = all_targets();
  for (const Target& target : all)
    if (target.alias == name) return target;
  for (const Target& target : all)
    if (target.triple == name) return target;
  return std::nullopt;
}

uint64_t slot_alignment(const Target& target) {
  constexpr uint64_t kImage = 64, kElement = 8;
  if (target.kind != TargetKind::Bare && target.kind != TargetKind::Source) return kImage;
  uint64_t out = kElement;
  for (const Level& level : target.levels)
    out = std::max(out, static_cast<uint64_t>(level.register_bits) / 8);
  return out;
}

Target default_target() { return *find_target(host_alias()); }

Target tuned_for(Target target, const std::string& cpu) {
  const std::optional<Machine> own = machine_of_cpu(cpu);
  if (!own) return target;
  // A row of a core that firmware runs on has no regions of several threads.
  const bool regions = own->fork_join_ns > 0;
  if (regions != (target.kind == TargetKind::Linux)) return target;
  for (Level& level : target.levels) level.machine = *own;
  return target;
}

Target with_cpu(Target target, size_t level, const std::string& cpu) {
  Level only = target.levels.at(level);
  std::erase_if(only.flags, [](const std::string& flag) {
    return flag.starts_with("-march=") || flag.starts_with("-mcpu=") ||
           flag.starts_with("-mtune=");
  });
  only.flags.push_back((target.is_x86() || target.is_i686() ? "-march=" : "-mcpu=") +
                       cpu);
  only.name = cpu;
  only.suffix = "base";
  target.levels = {only};
  return tuned_for(std::move(target), cpu);
}

Target for_size(Target target, bool small) {
  for (Level& level : target.levels) level.small = small;
  return target;
}

// The level before it, which asks no operating system for registers; of a CPU by its name
// what that level does.
static void take_no_tiles(Level& level, const Target& target) {
  std::vector<Level> all = find_target(target.triple)->levels;
  const bool named = std::ranges::find(all, level.name, &Level::name) != all.end();
  std::erase_if(all, [](const Level& l) { return l.has_tiles(); });
  if (named)
    level = all.back();
  else
    level.dots = all.back().dots, level.machine = all.back().machine;
}

Target without_dot_levels(Target target) {
  auto dot = [](const Level& level) { return level.has_dot_instruction(); };
  if (!std::ranges::all_of(target.levels, dot)) std::erase_if(target.levels, dot);
  for (Level& level : target.levels)
    if (level.has_tiles()) take_no_tiles(level, target);
  return target;
}

Target without_other_levels(Target target) {
  const std::optional<Target> here = find_target("native");
  if (!here || here->triple != target.triple) return target;
  const std::string best = here->levels.back().name, weakest = target.levels.front().name;
  std::erase_if(target.levels, [&](const Level& level) {
    return level.name != best && level.name != weakest;
  });
  return target;
}

std::vector<std::string> target_aliases() {
  std::vector<std::string> out{"native"};
  for (const Target& target : all_targets()) out.push_back(target.alias);
  return out;
}

} // namespace svod
