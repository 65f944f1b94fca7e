// Strings of tensors. In memory a tensor of strings has rows of `width` bytes, one string
// in each, zeros after its end.
#ifndef SVOD_PROGRAM_STRINGS_H
#define SVOD_PROGRAM_STRINGS_H

#include "runtime_stub/program/tensor.h"

namespace packed {

Text string_at(const Tensor& tensor, uint64_t i);
// Gives each string a row of `width` bytes, unless they have. Why that cannot be, or
// null; then `where` is the string that it is about.
const char* fit_strings(Tensor& tensor, uint64_t width, uint64_t& where);

// A list of strings that is known one by one: first their lengths are counted, then they
// are put down.
class StringRows {
public:
  // Strings must come in the same order both times.
  void count(Text string);
  bool begin(Tensor& tensor); // false: there is no memory
  void put(Text string);
  uint64_t size() const { return count_; }
  bool has_zero() const { return has_zero_; }

private:
  uint64_t count_ = 0, width_ = 0, at_ = 0, room_ = 0;
  uint8_t* rows_ = nullptr;
  bool has_zero_ = false;
};

// "a", "b c", d: in quotes with \" \\ \n \t \xNN, or a word without. Moves `text` behind
// the string, which is written to `buffer` (as long as `text`). False: malformed.
bool read_quoted(Text& text, char* buffer, Text& string);
// In quotes, as read_quoted reads it; bytes that are no printable UTF-8 as \xNN.
void print_quoted(Printer& out, Text string);
// Without the quotes: names of files and of classes.
void print_plain(Printer& out, Text string);

// Bytes of the character at the beginning, as UTF-8; 0: none is there.
uint64_t character_size(Text text);
// One character as UTF-8, 1 to 4 bytes.
uint64_t encode_character(uint32_t c, uint8_t* out);
// Elements of NumPy's U type, 4 bytes a character, as UTF-8 in as many bytes.
const char* from_wide_characters(Tensor& tensor);

// Lower case words of at most eight letters, made of random numbers.
void fill_words(Tensor& tensor, uint64_t (*next)(uint64_t&), uint64_t& state,
                uint8_t* rows);

} // namespace packed

#endif
