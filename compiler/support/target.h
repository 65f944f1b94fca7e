// What a pack is built for: a row of targets.def with its CPU levels. Plain data.
#pragma once

#include "compiler/support/machine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace svod {

// How bytes are multiplied and their products added up; columns `dots` and `factors` of
// targets.def.
enum class ByteProducts : uint8_t {
  Single,
  SingleWords,
  Words,
  Pairs,
  Fours,
  Elements,
  Matrices,
  Halves,
  Across,
  Paired,
  Widened,
  Tiles
};
// A fused multiply-add: whether it is one instruction, and whether one of its factors may
// be an element of a register.
enum class MultiplyAdd : uint8_t { None, Fused, ByElement };
enum class ByteFactors : uint8_t { Unsigned, Signed, Any };

// One instruction set that every kernel of a pack is compiled for.
struct Level {
  std::string name;               // "x86-64-v3"
  std::string suffix;             // "v3": ends symbols, and is what --isa names
  std::vector<std::string> flags; // of the compiler
  int lanes = 4;                  // floats of the vector type in emitted code
  int registers = 8;              // floating-point registers
  int integer_registers = 8;
  int register_bits = 32; // of each; 32: no vectors
  MultiplyAdd multiply_add = MultiplyAdd::None;
  ByteProducts dots = ByteProducts::Single;
  ByteFactors factors = ByteFactors::Unsigned;
  bool fixed = false;   // quantisations of integers multiply in 32 bits
  bool narrows = false; // with saturation, by instructions of vectors
  Machine machine;      // the core it is tuned for
  bool small = false;   // bytes before speed: not in the table, for_size() says it
  // Products are added to f32 as by an instruction that rounds once, which the level
  // lacks: in doubles. Not in the table: a pack whose bytes are the same everywhere.
  bool rounds_once = false;
  // Of a GPU: tensor cores multiply f32, of whose factors they take the first 11 bits
  // (TF32). Not in the table either: who packs says it.
  bool tf32 = false;

  bool has_vectors() const { return register_bits > 32; }
  // Whether kernels are written in vectors; else every position is computed by itself, as
  // by the threads of a GPU.
  bool has_lanes() const { return lanes > 1; }
  bool fma() const { return multiply_add != MultiplyAdd::None; }
  // Products of bytes are summed four at a time, and weights packed for it.
  bool has_dots() const {
    return dots == ByteProducts::Words || dots == ByteProducts::Pairs ||
           dots == ByteProducts::Halves || has_dot_instruction();
  }
  // By an instruction that the level is there for.
  bool has_dot_instruction() const {
    return dots == ByteProducts::Fours || takes_elements() || has_tiles();
  }
  // One of the factors is read as registers of four groups.
  bool takes_elements() const {
    return dots == ByteProducts::Elements || dots == ByteProducts::Matrices;
  }
  // Whole tiles of registers are multiplied, each row of which has this many bytes.
  bool has_tiles() const { return dots == ByteProducts::Tiles; }
  static constexpr int kTileRow = 64;
  // Bytes of one register: those that an instruction multiplies and adds up, if all.
  int bytes_across() const {
    return dots == ByteProducts::Across ? register_bits / 8 : 0;
  }
  // Neighbouring bytes of one position that its instructions read at once; 0: no more
  // than other elements.
  int byte_block() const { return has_tiles() ? kTileRow : bytes_across(); }
  // What they take beside signed weights.
  bool takes(bool signed_bytes) const {
    return factors == ByteFactors::Any ||
           signed_bytes == (factors == ByteFactors::Signed);
  }
};

enum class TargetKind : uint8_t {
  Linux, // static executable, static or shared library
  Bare,  // firmware: static library
  Wasm,
  Source, // C++ for another compiler
  Gpu,    // kernels alone, as PTX
};

struct Target {
  std::string alias;
  std::string triple;
  TargetKind kind = TargetKind::Linux;
  int pointer_bits = 64;
  int default_threads = 0; // upper bound compiled in; 0: taken at run time
  uint16_t elf_machine = 0;
  uint32_t elf_flags = 0;
  std::vector<std::string> linker_flags;
  std::vector<Level> levels; // weakest first; all read the same packed weights

  // What levels share, as algorithms and chunks, is chosen for the strongest.
  const Machine& machine() const { return levels.back().machine; }
  bool is_small() const { return levels.back().small; }
  bool is_x86() const { return triple.starts_with("x86_64"); }
  bool is_i686() const { return triple.starts_with("i686"); }
  // Whether an instruction of the level takes elements of a vector by numbers that are
  // known at run time, whichever lanes they are for.
  bool picks_lanes(const Level& level) const {
    return is_x86() && level.register_bits >= 256;
  }
};

// Bytes: of arena, weights and all that lies in them. An image promises a cache line; the
// code of firmware asks for a vector register, or for its largest element.
uint64_t slot_alignment(const Target& target);

// By alias, or by triple (its first row). "native" is this machine with its best level
// only.
std::optional<Target> find_target(std::string_view name);

// A GPU by its architecture, "sm_80". Its kernels are run by a program for another
// target.
std::optional<Target> find_device(std::string_view name);
std::vector<std::string> device_aliases();

// This machine's architecture with all its levels: what --target defaults to.
Target default_target();

// `target` with one level, compiled for `cpu` as -mcpu names it: `level` of its levels,
// which that CPU executes, tuned for the CPU's own row of machine.def where it has one.
Target with_cpu(Target target, size_t level, const std::string& cpu);

// `target` tuned for this CPU's own row, where it has one.
Target tuned_for(Target target, const std::string& cpu);

// `target` for code that is small rather than fast (-Os), or not so.
Target for_size(Target target, bool small = true);

// `target` without levels that are there for products of bytes, when others remain.
Target without_dot_levels(Target target);

// `target` with its weakest level and the best that this machine runs; for machines of
// its architecture. Any of them runs such a program, this one as fast as ever.
Target without_other_levels(Target target);

// All aliases in table order, for messages.
std::vector<std::string> target_aliases();

} // namespace svod
