// An operator of the user's own: a C++ function that one step of the program calls. What
// its signature says stands here; who read it and who calls it are apart
// (codegen/read_custom_ops.h, importer/driver/custom_call.h).
#pragma once

#include "compiler/ir/dtype.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace svod {

struct CustomParameter {
  enum class Kind : uint8_t {
    Input,   // const T*
    Output,  // T*
    Number,  // an attribute
    Numbers, // const int64_t* or const float*: an attribute that is a list
    Size,    // <tensor>_size: its number of elements
    Rank,    // <tensor>_rank
    Dims,    // <tensor>_dims: const int64_t*, its shape
  } kind = Kind::Number;
  std::string name;
  std::string type;               // of an element, or of the number, as it is written
  DType dtype = DType::F32;       // the same
  size_t of = 0;                  // Size, Rank, Dims: the parameter they measure
  std::optional<double> fallback; // Number: its default argument
};

// The first line of a call's text that gains nothing from vectors: it is compiled once
// for all CPU levels, and without the search for them. (A user's text starts otherwise.)
inline constexpr std::string_view kScalarText = "// scalar\n";

struct CustomOp {
  std::string file; // without its folder
  int64_t line = 0; // of the function
  std::string domain, name;
  std::string function;            // qualified, as the text calls it
  std::vector<std::string> shapes; // one per output: "same(0)", "declared"
  std::vector<CustomParameter> parameters;
  std::shared_ptr<const std::string> text; // of the whole file

  std::string place() const { return file + ":" + std::to_string(line); }
};

} // namespace svod
