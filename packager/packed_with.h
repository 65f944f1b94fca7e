// What a program's manifest says of how it was packed, so that swap-weights can pack the
// same again: the options that decide what is made, and digests of all its code.
#pragma once

#include "compiler/codegen/kernels.h"
#include "packager/options.h"

#include <set>

namespace svod::packager {

class JsonWriter;

struct PackedWith {
  // Of svod-pack's own sources in the program and of the compiler.
  std::string stub;
  // Of each program of the plan, in all its levels: half of a digest in hex.
  std::vector<std::string> programs;
  // Kernels whose found schedules did not keep to registers: digests in hex.
  std::vector<std::string> unsearched;
  // As they are written on a command line, in their order, each as one word. Of an option
  // that names a file or a device only the name, since what it holds is not known later.
  std::vector<std::string> options;
  bool operator==(const PackedWith&) const = default;
};

// What is kept of an option: with its value, or, where that names something outside of
// the program, the name alone. Nothing: it decides nothing.
enum class Keep : uint8_t { Value, Name };
std::optional<Keep> kept(const std::string& name);

// The options among the words of a command line that decide what a program is.
std::vector<std::string> deciding_words(const std::vector<std::string>& words);

PackedWith packed_with(const Options& options, const codegen::Kernels& kernels,
                       const std::set<Digest>& unsearched);

// The name of the first option whose value is not known, or that no pack keeps; empty:
// there is none.
std::string unknown_value(const PackedWith& packed);

// An object.
void write_packed_with(JsonWriter& json, const PackedWith& packed);
// Of a whole manifest; nothing where it does not say.
std::optional<PackedWith> read_packed_with(std::string_view manifest);

} // namespace svod::packager
