// Text of a kernel in which some numbers are marked: extents, strides and offsets, which
// may come from outside instead, so that functions which differ in nothing else are one
// (merge_functions.h). The marks are bytes that no C++ has.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace svod::codegen {

// Of a sum: so many times a number. The times belong to the text, the number does not.
struct MarkedTerm {
  int64_t times = 1;
  int64_t number = 0;
};

// How a number reads.
enum class NumberForm : char {
  Plain = '=',  // 12
  Addend = '+', // " + 12", " - 12", or nothing for 0
  Factor = '*', // " * 12", or nothing for 1
};

std::string marked(NumberForm form, const std::vector<MarkedTerm>& terms);

// What stands around a function that may be merged, where its parameters end, and where
// those of part `part` end in a call.
std::string marked_function(const std::string& text);
std::string marked_parameters();
std::string marked_call(size_t part);

struct MarkedPiece {
  enum class Kind : uint8_t { Text, Number, Parameters, Call } kind = Kind::Text;
  std::string text;
  NumberForm form = NumberForm::Plain;
  std::vector<MarkedTerm> terms;
  size_t part = 0; // Call
};

// A kernel's text cut at its marks: functions by themselves, in order, and what is
// between them.
struct MarkedSection {
  bool is_function = false;
  std::vector<MarkedPiece> pieces;
};
std::vector<MarkedSection> read_marked(std::string_view text);

// What takes the place of marks.
struct MarkedReader {
  // The number of that place, counted from 0 over all terms: C++ text, or empty where it
  // stays as it is.
  std::function<std::string(size_t place)> number = [](size_t) { return std::string(); };
  std::string parameters; // behind the last of them
  std::function<std::string(size_t part)> call = [](size_t) { return std::string(); };
};
std::string plain_text_of(const std::vector<MarkedPiece>& pieces,
                          const MarkedReader& reader);
// All numbers as they are.
std::string plain_text_of(std::string_view marked);

} // namespace svod::codegen
