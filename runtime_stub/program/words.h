// Which input or output a word of the command line is for, and words that are taken out
// of it.
#ifndef SVOD_PROGRAM_WORDS_H
#define SVOD_PROGRAM_WORDS_H

#include "runtime_stub/program/value.h"

namespace packed {

enum class WordKind : uint8_t {
  Nameless, // the next one's, in the model's order
  Tensor,   // number `tensor` is named
  Value,    // a sequence, optional or map is named that no tensor shares the name of
  Unknown,  // it names what the model does not have
};

struct Word {
  WordKind kind = WordKind::Nameless;
  uint32_t tensor = 0;
  Value value;
  const char* rest = nullptr; // behind NAME=, terminated
};

// Names may hold any byte, so they are tried against the word's beginning instead of
// being cut out of it. A sequence, optional or map is meant as a whole by a file .pb.
Word read_word(const Session& session, Side side, const char* word);

bool is_file(const char* path); // or a folder, or a device

// "inputs: x f32[1,8], y i64[2]" and a new line.
void list_names(Printer& errors, const Session& session, Side side);

// The word names nothing: says what is nearest, and what there is. EXIT_USAGE.
Exit unknown_name(const Session& session, Side side, Text word, Printer& errors);

// "path: cannot be read: No such file or directory". EXIT_FILE.
// Takes `name` and its value, after = or the next word, out of the words. No data: it is
// not there; empty: it has no value. For options that only some programs have.
Text take_option(int32_t& argc, char** argv, Text name);

Exit file_error(Printer& errors, const char* path, const char* what, int32_t failure);

} // namespace packed

#endif
