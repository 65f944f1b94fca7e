// Pieces of JSON, for files of one tensor and for lines of several.
#ifndef SVOD_PROGRAM_JSON_TEXT_H
#define SVOD_PROGRAM_JSON_TEXT_H

#include "runtime_stub/program/tensor.h"

namespace packed {

Text skip_spaces(Text text);
// Of a string with its quotes, or of what stands up to the next mark; empty: malformed.
// There is a first byte.
Text json_scalar(Text rest);
// What stands between the quotes, into `buffer`, which is as long as the scalar.
bool read_json_string(Text scalar, char* buffer, Text& out);
// Bytes of the value at the beginning, whatever it is; 0: there is none, or it does not
// end. What is in it is not checked but for its brackets.
uint64_t json_value_size(Text text);

// `strict`: bytes that are no UTF-8 become the character that stands for such.
void write_json_string(Printer& out, Text string, bool strict);
// Numbers with digits enough; NaN, Infinity and -Infinity as words. Strings as they are.
void write_json_scalar(Printer& out, const Element& element, const Tensor& tensor,
                       uint64_t i);
// Lists in lists to the depth of the rank. Element `i` is of the type's part: half of a
// complex number.
void write_json_lists(Printer& out, const Tensor& tensor,
                      void (*scalar)(Printer& out, const Element& element,
                                     const Tensor& tensor, uint64_t i));

} // namespace packed

#endif
