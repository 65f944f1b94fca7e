// The options of every verb, declared once: parsing, help, the man page and completions
// read the same CLI11 tree.
#pragma once

#include "packager/options.h"

#include <span>

namespace svod::packager {

struct VerbRow {
  const char* word;
  Verb verb;
  const char*
      operand; // "MODEL", a choice "stats|clear|gc", files, or nothing; [may be missing]
  const char* summary;
};
std::span<const VerbRow> verb_rows();
const VerbRow& row_of(Verb verb);

// What the parser fills in before it is understood.
struct RawOptions {
  std::vector<std::string> words, shapes, entries, dims, values, kernels;
  std::string emit, target, device, cpu, optimize = "2", accuracy = "fast", weights,
                                         parts;
  std::string string_bytes = "64", limit_image;
  std::string color = "auto", format = "text", max_ram, max_flash, max_weights, pools,
              cache_dir, json;
  std::string cache_remote, cache_remote_mode, shard;
  std::string tune, search_budget;
  std::string completion; // of which shell
  bool no_cache = false, man = false, licenses = false, version = false, help = false;
};

// One option as help, the man page and completions show it.
struct OptionText {
  std::string short_name, long_name; // "-o", "--output"; either may be empty
  std::string type;                  // "FILE", "exe|static"; empty: takes no value
  std::string text, heading;         // empty heading: taken, but not shown
};
// Of one verb, in their order.
std::vector<OptionText> options_of(Verb verb);

// How many words the operand is.
size_t operand_count(const VerbRow& row);

// Parses the words after the verb. What is wrong with them, or nothing; words that begin
// with - and are no options of the verb go to `unknown`.
std::string parse_words(const VerbRow& row, std::vector<std::string> words,
                        RawOptions& raw, Options& options,
                        std::vector<std::string>& unknown);

// The words that a value of this type may be, as help names it ("exe|static", "TARGET");
// empty: any text.
std::vector<std::string> words_of_type(const std::string& type);

} // namespace svod::packager
