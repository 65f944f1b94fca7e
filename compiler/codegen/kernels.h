// Kernels as text: for every program and every CPU level one freestanding C++ source.
#pragma once

#include "compiler/plan/plan.h"

namespace svod::codegen {

// What a kernel's text needs before it, beside what every kernel has.
struct PreludeParts {
  bool math = false, angle = false, power = false; // scalar functions
  bool dots = false, bytes = false, neon = false, sort = false;
  bool tiles = false; // of registers
  // groups: of a GPU's warps that multiply; narrow: indices of 32 bits
  bool gpu = false, groups = false, attention = false, narrow = false;
  int lanes = 4;

  void operator|=(const PreludeParts& other) {
    math |= other.math, angle |= other.angle, power |= other.power;
    dots |= other.dots, bytes |= other.bytes, neon |= other.neon, sort |= other.sort;
    tiles |= other.tiles;
    gpu |= other.gpu, groups |= other.groups, narrow |= other.narrow;
    attention |= other.attention;
  }
};

struct KernelText {
  std::string text;
  size_t prelude_bytes = 0; // of the text: its beginning, which other kernels share
  PreludeParts parts = {};
  // Of a kernel whose functions may be merged with others': what follows the prelude,
  // with marks (marked_text.h).
  std::string marked = {};
};

// How the numbers of a merged function reach it: not at all, by themselves, or as a
// table of u16 or i32.
enum class NumberPassing : uint8_t { None, Values, Words16, Words32 };

// What a kernel returns when data asks for what cannot be; others return nothing, if they
// are called by name.
bool can_fail(const ScheduledKernel& kernel);
// What it is called with behind its pointers.
bool takes_scratch(const ScheduledKernel& kernel);
bool takes_chunk(const ScheduledKernel& kernel);

// The prelude: scalar functions, and what stands on vectors of so many lanes. `plain`:
// with vectors of our own, for compilers that have none.
std::string scalar_prelude(const PreludeParts& parts, bool plain = false);
std::string lane_prelude(const PreludeParts& parts);

struct KernelSource : KernelText {
  uint32_t program = 0;
  std::string level; // suffix of the level, "v3"
  // "k17_v3": the one function it defines with external linkage. In the text it is always
  // named svod_kernel, so that equal kernels of different models have equal text;
  // -Dsvod_kernel=<symbol> names it.
  std::string symbol;
  std::vector<std::string> flags; // that it has to be compiled with
  // Whoever runs the plan calls it by name, with its pointers by themselves, then scratch
  // memory and the number of the chunk where it takes them, then its numbers.
  bool direct = false;
  NumberPassing passing = NumberPassing::None;
  std::vector<int64_t> numbers = {};
  bool serves_all = false; // it is the kernel of all levels, in code of the first

  // All fields, for byte_form.h; how many they are is asserted where it is used.
  template <class Visit> void with_parts(Visit&& visit) {
    visit(static_cast<KernelText&>(*this), program, level, symbol, flags, direct, passing,
          numbers, serves_all);
  }
  template <class Visit> void with_parts(Visit&& visit) const {
    visit(static_cast<const KernelText&>(*this), program, level, symbol, flags, direct,
          passing, numbers, serves_all);
  }
};

struct Kernels {
  svod::plan::Plan plan;
  std::vector<KernelSource> sources; // by program, then level unless one serves all
};

// "k17_v3"
std::string program_symbol(uint32_t program, const std::string& level);

// The text of one kernel for the level of that number in its schedule; a call of the
// user's own function has none.
KernelText kernel_text(const ScheduledKernel& kernel, size_t level, bool direct = false);

// `symbol` is also what the launch switch calls: int32_t symbol(void* const*, void*,
// uint32_t). Where nothing is looked up at run time, on all targets but Linux, kernels
// are direct.
Kernels emit(svod::plan::Plan plan, const Target& target);

} // namespace svod::codegen
