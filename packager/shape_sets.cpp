// A set is not marked on the command line: that a name comes again is what begins one. So
// `--shape batch=1 --shape batch=8` is two sets, and `--shape x=1x3 --shape y=2` is one.
#include "packager/shape_sets.h"

#include "packager/options.h"
#include "packager/whole_number.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace svod::packager {

namespace {

struct Assignment {
  std::string name;
  std::optional<Shape> shape; // none: the input is left out
};

// NAME=AxBxC, NAME=none; the last = counts, since names may hold one.
std::string read_assignment(const std::string& option, const std::string& text,
                            Assignment& out) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    return option + ": '" + text + "' is not NAME=AxBxC";
  out.name = text.substr(0, equals);
  if (text.substr(equals + 1) == "none") return "";
  Shape shape;
  for (size_t at = equals + 1; at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    const std::string size = text.substr(at, end - at);
    const std::optional<int64_t> value = whole_number(size);
    if (!value)
      return option +
             (size.empty() ? ": a number is missing" : ": '" + size + "' is no number");
    shape.push_back(*value);
    at = end + 1;
  }
  out.shape = shape;
  return "";
}

std::string add_shape(const std::string& word, ShapeSets& out) {
  Assignment one;
  if (std::string wrong = read_assignment("--shape", word, one); !wrong.empty())
    return wrong;
  if (!one.shape) {
    out.absent.insert(one.name);
    return "";
  }
  if (out.sets.back().shapes.contains(one.name))
    out.sets.push_back({std::to_string(out.sets.size()), {}});
  out.sets.back().shapes.emplace(one.name, *one.shape);
  return "";
}

bool is_entry_name(const std::string& name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !name.empty() && name.size() <= 32 && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) {
           return letter(c) || (c >= '0' && c <= '9') || c == '_';
         });
}

// In a header names are macros, in capitals.
bool same_macro(const std::string& a, const std::string& b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
    return std::toupper(x) == std::toupper(y);
  });
}

// NAME:x=1x3,y=2
std::string add_entry(const std::string& word, ShapeSets& out) {
  const size_t colon = word.find(':');
  ShapeSet set{word.substr(0, colon), {}};
  if (colon == std::string::npos || !is_entry_name(set.name))
    return "--entry: '" + word +
           "' is not NAME:x=AxBxC,y=... with a NAME that is a letter followed by up to "
           "31 "
           "letters, digits or _";
  if (std::ranges::any_of(out.sets, [&](const ShapeSet& other) {
        return same_macro(other.name, set.name);
      }))
    return "--entry: '" + set.name + "' is given twice";
  for (size_t at = colon + 1; at <= word.size();) {
    const size_t end = std::min(word.find(',', at), word.size());
    Assignment one;
    if (std::string wrong = read_assignment("--entry", word.substr(at, end - at), one);
        !wrong.empty())
      return wrong;
    if (!one.shape) return "--entry: an input is left out of all entries, by --shape";
    if (!set.shapes.emplace(one.name, *one.shape).second)
      return "--entry: '" + one.name + "' is given twice in " + set.name;
    at = end + 1;
  }
  out.sets.push_back(std::move(set));
  return "";
}

struct OpenDimension {
  std::string name;
  importer::SizeRange range;
  int64_t step = 0; // between the most of one set and the next; 0: one set
};

// NAME=LEAST..MOST or NAME=LEAST..MOST/STEP
std::optional<OpenDimension> read_dimension(const std::string& word) {
  const size_t equals = word.rfind('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  const size_t dots = word.find("..", equals), slash = word.find('/', equals);
  if (dots == std::string::npos || slash < dots) return std::nullopt;
  const auto least = whole_number(word.substr(equals + 1, dots - equals - 1));
  const auto most = whole_number(word.substr(dots + 2, slash - dots - 2));
  const auto step = slash == std::string::npos ? std::optional<int64_t>(0)
                                               : whole_number(word.substr(slash + 1));
  if (!least || !most || !step || *least < 0 || *most < 1 || *most < *least)
    return std::nullopt;
  if (slash != std::string::npos && *step < 1) return std::nullopt;
  return OpenDimension{word.substr(0, equals), {*least, *most}, *step};
}

// The most of each set of one dimension, in rising order.
std::vector<int64_t> steps_of(const OpenDimension& dimension) {
  const int64_t least = dimension.range.least, most = dimension.range.most;
  std::vector<int64_t> out;
  if (dimension.step > 0)
    for (int64_t at =
             std::max<int64_t>(1, (least + dimension.step - 1) / dimension.step) *
             dimension.step;
         at < most && out.size() <= kMostSets; at += dimension.step)
      out.push_back(at);
  out.push_back(most);
  return out;
}

// A run takes the first set that it fits into, so sets for less come first.
std::string open_dimension(const std::string& word, bool named, ShapeSets& out) {
  const std::optional<OpenDimension> dimension = read_dimension(word);
  if (!dimension)
    return "--dim: '" + word +
           "' is not NAME=LEAST..MOST or NAME=LEAST..MOST/STEP with whole numbers, MOST "
           "and "
           "STEP from 1";
  if (out.sets.front().sizes.contains(dimension->name))
    return "--dim: '" + dimension->name + "' is given twice";
  const std::vector<int64_t> steps = steps_of(*dimension);
  if (named && steps.size() > 1)
    return "--dim: with /STEP sets have numbers for names; --entry gives others";
  std::vector<ShapeSet> sets;
  for (const ShapeSet& set : out.sets) {
    for (int64_t most : steps) {
      sets.push_back(set);
      sets.back().sizes[dimension->name] = {dimension->range.least, most, steps.back()};
      if (steps.size() > 1) sets.back().name = std::to_string(sets.size() - 1);
    }
    if (sets.size() > kMostSets) break; // which is an error
  }
  out.sets = std::move(sets);
  return "";
}

} // namespace

std::variant<ShapeSets, std::string>
read_shape_sets(const std::vector<std::string>& shapes,
                const std::vector<std::string>& entries,
                const std::vector<std::string>& dims) {
  ShapeSets out;
  out.sets.push_back({"0", {}});
  for (const std::string& word : shapes)
    if (std::string wrong = add_shape(word, out); !wrong.empty()) return wrong;
  const std::map<std::string, Shape> first = out.sets.front().shapes;
  if (!entries.empty() && out.sets.size() > 1)
    return "--shape gives several sets, and so does --entry; say all of them by --entry";
  if (!entries.empty()) out.sets.clear();
  for (const std::string& word : entries)
    if (std::string wrong = add_entry(word, out); !wrong.empty()) return wrong;
  for (ShapeSet& set : out.sets) set.shapes.insert(first.begin(), first.end());
  for (const std::string& word : dims)
    if (std::string wrong = open_dimension(word, !entries.empty(), out); !wrong.empty())
      return wrong;
  if (out.sets.size() > kMostSets)
    return "--shape, --entry, --dim: " + std::to_string(out.sets.size()) +
           " sets of shapes are given; at most " + std::to_string(kMostSets) +
           " go into one package";
  return out;
}

// Why these options do not go with sizes that a run decides, or nothing.
static std::string dim_fault(const Options& options) {
  if (options.import.sizes.empty()) return "";
  if (options.emits_run() || options.emit == Output::Source ||
      options.layout != FolderLayout::None)
    return "--dim: it is for programs and libraries of Linux; firmware, modules, source "
           "and folders for a build system have fixed sizes (--shape)";
  if (options.device) return "--dim: a program for a GPU has fixed sizes; use --shape";
  return "";
}

std::string sets_fault(const Options& options) {
  if (const std::string fault = dim_fault(options); !fault.empty()) return fault;
  if (options.sets.empty()) return "";
  const std::pair<bool, const char*> kRules[] = {
      {options.verb != Verb::Pack, "this verb takes one set of shapes"},
      {options.is_text(), "--emit shows the plan of one"},
      {options.emits_run() || options.emit == Output::Source ||
           options.layout != FolderLayout::None,
       "they are for programs and libraries of Linux; firmware, modules, source and "
       "folders for a build system have one entry"},
      {!options.shape_from.empty(), "--shape-from gives one"},
      {options.tune_minutes || !options.tuning.empty() || !options.schedule.empty(),
       "--tune, --tuning and --schedule are for packs of one"},
      {options.bisect || options.explain, "--bisect and --explain are for packs of one"},
      {!options.kernel_files.empty(), "--replace-kernel is for packs of one"},
      {options.max_flash || options.max_weights,
       "--max-flash and --max-weights are for packs of one"},
  };
  for (const auto& [wrong, why] : kRules)
    if (wrong) return std::string("several sets of shapes (--shape, --entry): ") + why;
  return "";
}

} // namespace svod::packager
