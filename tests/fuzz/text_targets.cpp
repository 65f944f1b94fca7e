// Texts that people, tuners and boards give to the packager.
#include "compiler/kernel/schedule_file.h"
#include "importer/inputs/dimension_expression.h"
#include "importer/inputs/value_text.h"
#include "packager/report/json_reader.h"
#include "packager/shape_sets.h"
#include "packager/tune/profile.h"
#include "packager/tune/tuning_file.h"
#include "tests/fuzz/decisions.h"

namespace svod::fuzz {

namespace {

std::string text_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// Divided as sizes are, rounded down; by zero it is 0, for there is nothing to claim.
struct Number {
  uint64_t value;
  friend Number operator+(Number a, Number b) { return {a.value + b.value}; }
  friend Number operator-(Number a, Number b) { return {a.value - b.value}; }
  friend Number operator*(Number a, Number b) { return {a.value * b.value}; }
  friend Number quotient(Number a, Number b) {
    return {b.value == 0 ? 0 : a.value / b.value};
  }
};

// To no great depth, as whoever reads a manifest does.
void read_members(std::string_view text, int depth) {
  const auto members = packager::json_members(text);
  if (!members || depth == 0) return;
  for (const auto& [name, value] : *members) {
    must(value.data() >= text.data() &&
             value.data() + value.size() <= text.data() + text.size(),
         "a member lies in the text");
    read_members(value, depth - 1);
  }
}

} // namespace

// What is read prints as something that reads as the same.
void fuzz_schedule(Bytes bytes) {
  TextFault fault;
  if (bytes.size() % 2 != 0) {
    const auto kernel = parse_kernel(text_of(bytes), fault);
    if (!kernel) return must(!fault.why.empty(), "a fault has its reason");
    const std::string text = print(*kernel);
    const auto again = parse_kernel(text, fault);
    must(again && print(*again) == text,
         "a kernel's text reads back: " + text + fault.why);
    return;
  }
  const auto file = parse_schedule_file(text_of(bytes), fault);
  if (!file) return must(!fault.why.empty(), "a fault has its reason");
  for (const auto& [digest, schedule] : *file) {
    const std::string text = print(schedule);
    const auto again = parse_schedule(text, fault);
    must(again && print(*again) == text,
         "a schedule's text reads back: " + text + fault.why);
  }
}

void fuzz_tuning(Bytes bytes) {
  TextFault fault;
  const auto file = packager::parse_tuning_file(text_of(bytes), fault);
  if (!file) return must(!fault.why.empty(), "a fault has its reason");
  const std::string text = packager::print(*file);
  const auto again = packager::parse_tuning_file(text, fault);
  must(again && packager::print(*again) == text,
       "a tuning file reads back: " + text + fault.why);
  packager::TuningFile merged = *file;
  packager::merge_faster(merged, *again);
  must(packager::print(merged) == text, "merged with itself it stays what it is");
}

// Options, each on a line of its own: --shape, --entry, --dim, --value.
void fuzz_dimensions(Bytes bytes) {
  Decisions decide(bytes);
  const uint8_t kind = decide.byte();
  const std::string text = text_of(decide.rest());
  if (kind % 4 == 0) {
    std::string error;
    const int64_t count = importer::values_in(text);
    const auto dtype = static_cast<DType>(kind / 4 % static_cast<int>(DType::String));
    const auto value = importer::value_from_text(text, dtype, count, error);
    must(value.has_value() || !error.empty(), "a value, or why it is none");
    if (value) importer::value_text(dtype, *value);
    return;
  }
  if (kind % 4 == 1) {
    const auto expression = importer::DimensionExpression::parse(text);
    if (!expression) return;
    expression->evaluate<Number>([](const std::string&) { return Number{3}; },
                                 [](int64_t n) { return Number{uint64_t(n)}; });
    importer::range_of(*expression, [](const std::string& name) {
      return name.empty() ? std::nullopt
                          : std::optional(importer::SizeRange{1, int64_t{1} << 40});
    });
    return;
  }
  std::vector<std::string> lists[3];
  std::string line;
  size_t list = kind / 4 % 3;
  for (char c : text + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    lists[list++ % 3].push_back(line);
    line.clear();
  }
  const auto sets = packager::read_shape_sets(lists[0], lists[1], lists[2]);
  if (const auto* error = std::get_if<std::string>(&sets))
    must(!error->empty(), "sets of shapes, or why there are none");
}

void fuzz_manifest(Bytes bytes) {
  const std::string text = text_of(bytes);
  read_members(text, 4);
  (void)packager::parse_profile(text);
}

} // namespace svod::fuzz
