// From words to Options: the parser fills in what was said, tables turn it into values,
// and a second look checks what belongs together.
#include "packager/options.h"

#include "compiler/passes.h"
#include "compiler/support/nearest.h"
#include "compiler/toolchain/cpu.h"
#include "compiler/toolchain/object_cache.h"
#include "importer/images/image_spec.h"
#include "packager/artefact/stub_jobs.h"
#include "packager/command/help.h"
#include "packager/command/option_table.h"
#include "packager/command/words.h"
#include "packager/firmware/layouts.h"
#include "packager/fleet_options.h"
#include "packager/option_misfit.h"
#include "packager/output_fault.h"
#include "packager/packed_with.h"
#include "packager/version.h"
#include "packager/whole_number.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace svod::packager {

namespace {

using importer::Limits;

struct UsageError {
  std::string message;
};

std::string nearest_of(const std::string& word, const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  return nearest_text(word, views);
}

template <class T, size_t N>
T look_up(const Word<T> (&table)[N], const std::string& option, const std::string& word) {
  std::vector<std::string> words;
  for (const Word<T>& row : table) {
    if (word == row.word) return row.value;
    words.emplace_back(row.word);
  }
  throw UsageError{option + ": '" + word + "' is unknown" + nearest_of(word, words)};
}

// "batch,jsonl", "all" or "none": a bit for each of program_parts(). A program has all of
// them unless it is to be small.
uint32_t read_parts(std::string text, bool small) {
  if (text.empty()) text = small ? "none" : "all";
  uint32_t out = 0;
  std::vector<std::string> known{"all", "none"};
  for (const ProgramPart& part : program_parts()) known.emplace_back(part.word);
  for (size_t at = 0; at < text.size();) {
    const std::string word = text.substr(at, text.find(',', at) - at);
    at += word.size() + 1;
    const auto row = std::ranges::find(known, word);
    if (row == known.end())
      throw UsageError{"--with: '" + word + "' is unknown" + nearest_of(word, known)};
    const auto number = static_cast<uint32_t>(row - known.begin());
    if (number == 0) out = (1u << program_parts().size()) - 1;
    if (number > 1) out |= 1u << (number - 2);
  }
  return out;
}

int64_t read_number(const std::string& option, const std::string& text) {
  if (text.empty()) throw UsageError{option + ": a number is missing"};
  const std::optional<int64_t> value = whole_number(text);
  if (!value) throw UsageError{option + ": '" + text + "' is no number"};
  return *value;
}

// 256K, 1M, 4G: powers of 1024.
uint64_t read_bytes(const std::string& option, std::string text) {
  constexpr std::string_view kUnits = "KMG";
  int shift = 0;
  if (size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
      unit != kUnits.npos) {
    shift = 10 * (static_cast<int>(unit) + 1);
    text.pop_back();
  }
  int64_t value = read_number(option, text);
  if (value >= int64_t{1} << 32) shift = 0;
  return static_cast<uint64_t>(value) << shift;
}

// 16M, or 1.5x of what the direct forms store.
WeightBound read_weight_bound(const std::string& text) {
  if (!text.ends_with('x')) return {read_bytes("--max-weights", text), 0};
  constexpr double kMost = 1000;
  double factor = 0;
  const char* last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data(), last, factor);
  if (error != std::errc() || end != last || !(factor >= 1 && factor <= kMost))
    throw UsageError{"--max-weights: '" + text +
                     "' is no factor from 1x to 1000x; 16M and the like are bytes"};
  return {0, factor};
}

// dtcm=64K,sram=256K; names become macros.
std::vector<Options::Pool> read_pools(const std::string& text) {
  std::vector<Options::Pool> out;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const size_t equals = word.find('=');
    Options::Pool pool{word.substr(0, equals), 0};
    const bool named = std::ranges::all_of(
        pool.name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (equals == std::string::npos || equals == 0 || !named ||
        std::ranges::count(out, pool.name, &Options::Pool::name) != 0)
      throw UsageError{"--pool: '" + word + "' is not NAME=BYTES with a name of its own"};
    pool.bytes = read_bytes("--pool", word.substr(equals + 1));
    out.push_back(std::move(pool));
  }
  return out;
}

// One set stays among the options of the import alone.
void read_shapes(const RawOptions& raw, Options& options) {
  auto read = read_shape_sets(raw.shapes, raw.entries, raw.dims);
  if (const std::string* wrong = std::get_if<std::string>(&read))
    throw UsageError{*wrong};
  ShapeSets& found = std::get<ShapeSets>(read);
  options.import.shapes = found.sets.front().shapes;
  options.import.sizes = found.sets.front().sizes;
  options.import.absent = std::move(found.absent);
  if (found.sets.size() > 1) options.sets = std::move(found.sets);
}

// SYMBOL=FILE
void read_kernel_file(const std::string& text, Options& options) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError{"--replace-kernel: '" + text + "' is not KERNEL=FILE.cpp"};
  options.kernel_files.insert_or_assign(text.substr(0, equals), text.substr(equals + 1));
}

// HxW
void read_image_limit(const std::string& text, importer::ImportOptions& import) {
  Limits& limits = import.limits;
  const size_t cross = text.find('x');
  if (cross == std::string::npos)
    throw UsageError{"--limit-image: '" + text + "' is not HxW"};
  limits.image_height = read_number("--limit-image", text.substr(0, cross));
  limits.image_width = read_number("--limit-image", text.substr(cross + 1));
  constexpr int64_t kMost = 65535;
  for (int64_t extent : {limits.image_height, limits.image_width})
    if (extent < 1 || extent > kMost)
      throw UsageError{"--limit-image: height and width must be 1 to " +
                       std::to_string(kMost)};
  import.picture_height = limits.image_height, import.picture_width = limits.image_width;
}

// What is wrong with a spec itself is known before the model is read.
void check_images(const Options& options) {
  for (const std::string& text : options.import.images) {
    const auto spec = importer::parse_image_spec(text);
    if (const std::string* fault = std::get_if<std::string>(&spec))
      throw UsageError{"--image '" + text + "': " + *fault};
  }
}

// NAME=1,2; what the values mean is known when the input's type is.
void read_value(const std::string& text, importer::ImportOptions& import) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError{"--value: '" + text + "' is not NAME=A,B,C"};
  }
  if (!import.values.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
    throw UsageError{"--value: '" + text.substr(0, equals) + "' is given twice"};
  }
}

bool is_identifier(const std::string& name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  auto other = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 32 && letter(name[0]) &&
         std::ranges::all_of(name, other);
}

// One word that is no file may be a verb with a letter wrong.
void check_model_word(const std::string& word, bool implied) {
  std::error_code error;
  if (!implied || word.find_first_of("./") != std::string::npos ||
      std::filesystem::exists(word, error))
    return;
  std::vector<std::string> verbs;
  for (const VerbRow& row : verb_rows()) verbs.emplace_back(row.word);
  throw UsageError{"'" + word + "' is neither a file nor a verb" +
                   nearest_of(word, verbs)};
}

void read_words(const RawOptions& raw, bool verb_given, Options& options) {
  const std::vector<std::string>& words = raw.words;
  const VerbRow& row = row_of(options.verb);
  const std::vector<std::string> choices = words_of_type(row.operand);
  const size_t taken = operand_count(row);
  const auto needed =
      taken - static_cast<size_t>(std::ranges::count(std::string_view(row.operand), '['));
  if (words.size() < needed)
    throw UsageError{taken == 2        ? std::string(row.word) + ": a file is needed"
                     : choices.empty() ? "no model is given"
                                       : std::string(row.word) + ": one of " +
                                             row.operand + " is missing"};
  if (options.verb == Verb::Pack) check_model_word(words[0], !verb_given);
  const bool merges = options.verb == Verb::Cache && words[0] == "merge";
  if (words.size() > taken && !merges)
    throw UsageError{"unexpected argument '" + words.back() + "'"};
  if (merges) {
    options.merged.assign(words.begin() + 1, words.end());
    if (options.merged.empty())
      throw UsageError{"cache merge: folders of caches, or tuning files, are missing"};
  }
  if (!choices.empty()) {
    if (std::ranges::count(choices, words[0]) == 0)
      throw UsageError{std::string(row.word) + ": '" + words[0] + "' is unknown" +
                       nearest_of(words[0], choices)};
    options.cache_action = words[0];
  } else if (taken != 0) {
    options.model = words[0];
    if (words.size() == 2) options.other = words[1];
    if (options.verb == Verb::SwapWeights) std::swap(options.model, options.other);
  }
}

// " (it lacks dsp); its target is --target cortex-m0": the target of its name, or else
// the last whose code it runs.
std::string why_not(const Target& target, const std::string& cpu) {
  std::string out = " (it lacks " + toolchain::lacks_of(target, cpu) + ")";
  const std::vector<std::string> aliases = target_aliases();
  std::string found;
  for (const std::string& alias : aliases) {
    const Target other = *find_target(alias);
    if (alias == "native" || !toolchain::is_known_cpu(other, cpu) ||
        !toolchain::lacks_of(other, cpu).empty())
      continue;
    if (found != cpu) found = alias;
  }
  return found.empty() ? out : out + "; its target is --target " + found;
}

void read_target(const RawOptions& raw, Options& options) {
  options.target = default_target();
  if (!raw.target.empty()) {
    std::optional<Target> target = find_target(raw.target);
    if (!target)
      throw UsageError{"--target: '" + raw.target + "' is unknown" +
                       nearest_of(raw.target, target_aliases())};
    options.target = *target;
  }
  if (raw.cpu.empty()) {
    if (options.target.alias == "native")
      options.target = tuned_for(options.target, toolchain::host_cpu());
    return;
  }
  bool plain = std::ranges::all_of(raw.cpu, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '+' || c == '_';
  });
  if (!plain || !toolchain::is_known_cpu(options.target, raw.cpu)) {
    const std::vector<std::string> cpus = toolchain::known_cpus(options.target);
    const std::vector<std::string_view> words(cpus.begin(), cpus.end());
    throw UsageError{"--cpu: '" + raw.cpu + "' is no CPU of " + options.target.triple +
                     "; the nearest is '" + std::string(nearest(raw.cpu, words)) + "'"};
  }
  if (!toolchain::lacks_of(options.target, raw.cpu).empty())
    throw UsageError{"--cpu: " + raw.cpu + " does not run code for " +
                     options.target.alias + why_not(options.target, raw.cpu)};
  options.target = with_cpu(options.target,
                            toolchain::strongest_level(options.target, raw.cpu), raw.cpu);
}

// cuda, cuda:sm_80, cuda:sm_75,sm_90: kernels of the first one run on all later ones.
// Without architectures for all GPUs there are, for those with the tensor cores that most
// kernels use, and for Hopper's groups of warps.
Target read_device(const std::string& text) {
  constexpr std::string_view kKind = "cuda", kAll = "sm_75,sm_80,sm_90a";
  const size_t colon = std::min(text.find(':'), text.size());
  if (text.substr(0, colon) != kKind)
    throw UsageError{"--device: '" + text + "' is unknown; cuda[:sm_80,...] is a GPU"};
  const std::vector<std::string> known = device_aliases();
  std::optional<Target> out;
  std::istringstream words(colon == text.size() ? std::string(kAll)
                                                : text.substr(colon + 1));
  size_t last = 0;
  for (std::string word; std::getline(words, word, ',');) {
    const auto at = std::ranges::find(known, word);
    if (at == known.end())
      throw UsageError{"--device: '" + word + "' is no architecture" +
                       nearest_of(word, known)};
    const auto number = static_cast<size_t>(at - known.begin());
    if (out && number <= last)
      throw UsageError{"--device: " + word + " does not come after those before it"};
    last = number;
    if (!out)
      out = find_device(word);
    else
      out->levels.push_back(find_device(word)->levels.front());
  }
  if (!out) throw UsageError{"--device: no architecture follows '" + text + "'"};
  return *out;
}

void read_device(const RawOptions& raw, Options& options) {
  if (!options.ptxas.empty() && (raw.device.empty() || options.is_text()))
    throw UsageError{"--ptxas is for programs with --device"};
  if (raw.device.empty()) {
    if (options.emit == Output::Ptx)
      throw UsageError{"--emit=ptx is a GPU's text: say --device cuda, too"};
    if (options.accuracy == Accuracy::Tf32)
      throw UsageError{
          "--accuracy tf32 is about tensor cores of a GPU: say --device cuda, "
          "too"};
    return;
  }
  Target device = read_device(raw.device);
  for (Level& level : device.levels) level.tf32 = options.accuracy == Accuracy::Tf32;
  if (options.is_text() && options.emit != Output::Testbench) {
    if (!raw.target.empty() || !raw.cpu.empty())
      throw UsageError{"--device: a text is of the device's kernels, so --target and "
                       "--cpu have no meaning beside it"};
    if (!raw.search_budget.empty() || options.explain)
      throw UsageError{"--device: --search-budget and --explain count with a processor's "
                       "numbers; leave them out"};
    options.target = device;
    return;
  }
  const bool packs = options.emit == Output::Executable ||
                     (options.is_library() && options.emit < Output::Module &&
                      options.layout == FolderLayout::None);
  if (!packs || !options.target.is_x86())
    throw UsageError{"--device is for programs and libraries for x86-64, and for texts "
                     "(--emit=ptx, cpp, schedule, plan, fused)"};
  if (options.bisect || !raw.tune.empty() ||
      (!raw.weights.empty() && raw.weights != "embed"))
    throw UsageError{"--device goes with neither --bisect, --tune nor --weights=file, "
                     "zstd or expand; pack without it for them"};
  options.device = device;
}

// A folder with a static library in it.
bool read_layout(const std::string& word, Options& options) {
  const auto* row =
      std::ranges::find_if(kLayouts, [&](const auto& r) { return word == r.word; });
  if (row == std::end(kLayouts)) return false;
  options.layout = row->value;
  options.emit = Output::Static;
  options.layout_folder = options.output;
  if (!is_identifier(options.name)) return true; // told later
  if (!options.output.empty())
    options.output = options.output + "/" + layout_files(options).library;
  return true;
}

void read_emit(const RawOptions& raw, Options& options) {
  bool firmware = options.target.kind != TargetKind::Linux;
  const bool module = options.target.kind == TargetKind::Wasm;
  if (firmware) options.emit = module ? Output::Module : Output::Static;
  if (options.target.kind == TargetKind::Source) options.emit = Output::Source;
  bool suffix = false;
  for (const Word<Output>& row : kSuffixes) {
    if (!options.output.ends_with(row.word)) continue;
    options.emit = row.value;
    suffix = true;
  }
  if (!raw.emit.empty() && !read_layout(raw.emit, options))
    options.emit = look_up(kEmits, "--emit", raw.emit);
  if (options.emit == Output::Source && raw.target.empty()) {
    if (!raw.cpu.empty())
      throw UsageError{"--cpu: source is for any CPU; --target names a core for it"};
    options.target = *find_target("portable");
  }
  if (options.portable && options.emit != Output::Source)
    throw UsageError{"--portable is for --emit=source (-o NAME.cpp)"};
  if (options.output == "-") {
    if (!options.is_text())
      throw UsageError{"-o -: only texts (--emit=...) go to standard output"};
    options.output.clear();
  }
  options.emit_guessed = firmware && !suffix && raw.emit.empty();
  if (const std::string fault = output_fault(options, !raw.emit.empty()); !fault.empty())
    throw UsageError{fault};
  if (options.verb == Verb::Pack && options.output.empty() && !options.is_text() &&
      !options.dry_run && !options.bisect) {
    throw UsageError{"no output is given (-o FILE)"};
  }
  if (options.verb == Verb::SwapWeights && options.output.empty())
    throw UsageError{"swap-weights: no output is given (-o FILE)"};
  if (options.verb == Verb::Report && options.output.empty())
    throw UsageError{"report: no output is given (-o FILE.html)"};
}

void read_optimize(const std::string& text, Options& options) {
  if (text == "s") {
    options.target = for_size(std::move(options.target));
  } else if (text.size() == 1 && text[0] >= '0' && text[0] <= '3') {
    options.level = text[0] - '0';
  } else {
    throw UsageError{"-O: '" + text + "' is none of 0, 1, 2, 3, s"};
  }
}

double read_minutes(const std::string& text) {
  double minutes = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), minutes);
  if (error != std::errc() || end != text.data() + text.size() || !(minutes > 0) ||
      minutes > 1e6)
    throw UsageError{"--tune: '" + text + "' is no number of minutes"};
  return minutes;
}

// Where nobody measured what the model predicts, the rules choose unless asked.
size_t read_search_budget(const std::string& text, const Target& target) {
  constexpr size_t kPriced = 20000;
  if (text.empty()) return target.is_x86() ? kPriced : 0;
  return static_cast<size_t>(read_number("--search-budget", text));
}

void understand(const RawOptions& raw, bool verb_given, Options& options) {
  read_words(raw, verb_given, options);
  read_target(raw, options);
  read_emit(raw, options);
  options.accuracy = look_up(kAccuracies, "--accuracy", raw.accuracy);
  read_device(raw, options);
  for (const std::string& kernel : raw.kernels) read_kernel_file(kernel, options);
  read_optimize(raw.optimize, options);
  // A first answer soon: the other levels are most of the time.
  if (options.level < 2 && raw.target.empty())
    options.target = without_other_levels(std::move(options.target));
  read_shapes(raw, options);
  for (const std::string& value : raw.values) read_value(value, options.import);
  options.import.string_bytes = read_number("--string-bytes", raw.string_bytes);
  if (options.import.string_bytes < 1 ||
      options.import.string_bytes > importer::kMostStringBytes)
    throw UsageError{"--string-bytes: must be 1 to " +
                     std::to_string(importer::kMostStringBytes)};
  // Addresses of 32 bits have no room for the memory of the usual bound.
  if (options.target.pointer_bits < 64)
    options.import.picture_height = options.import.picture_width = 4096;
  if (!raw.limit_image.empty()) read_image_limit(raw.limit_image, options.import);
  check_images(options);
  if (!is_identifier(options.name)) {
    throw UsageError{"--name: '" + options.name +
                     "' is not a letter followed by up to 31 letters, digits or _"};
  }
  if (options.threads != -1 && (options.threads < 1 || options.threads > 256)) {
    throw UsageError{"--threads: not between 1 and 256"};
  }
  const std::vector<std::string_view> passes = pass_words();
  if (!options.print_after.empty() &&
      std::ranges::count(passes, options.print_after) == 0) {
    throw UsageError{"--print-after: there is no pass '" + options.print_after + "'" +
                     nearest_text(options.print_after, passes)};
  }
  options.weights_given = !raw.weights.empty();
  if (options.weights_given)
    options.weights = look_up(kWeightPlaces, "--weights", raw.weights);
  options.color = look_up(kColors, "--color", raw.color);
  if (!raw.max_ram.empty()) options.max_ram = read_bytes("--max-ram", raw.max_ram);
  if (!raw.max_flash.empty())
    options.max_flash = read_bytes("--max-flash", raw.max_flash);
  if (!raw.max_weights.empty()) options.max_weights = read_weight_bound(raw.max_weights);
  if (!raw.pools.empty()) options.pools = read_pools(raw.pools);
  options.format = look_up(kFormats, "--format", raw.format);
  options.cache_folder = raw.cache_dir;
  if (options.cache_folder.empty()) {
    options.cache_folder = toolchain::ObjectCache::default_folder().string();
  }
  if (raw.no_cache) options.cache_folder.clear();
  if (const std::string fault = read_remote(raw, options); !fault.empty())
    throw UsageError{fault};
  // Firmware has no memory to spare for states, and counts no runs.
  options.import.roomy_states = !options.emits_run();
  if (!raw.tune.empty()) options.tune_minutes = read_minutes(raw.tune);
  if (const std::string fault = read_tune_verb(raw, options); !fault.empty())
    throw UsageError{fault};
  options.search_budget = read_search_budget(raw.search_budget, options.target);
  // A cut takes about as long to price as so many schedules, and so does a whole graph.
  // Unless asked, a pack takes a few percent longer for cuts and nothing for graphs,
  // which gained least.
  constexpr size_t kSchedulesOfCut = 200, kSchedulesOfGraph = 2500, kCuts = 40;
  if (raw.search_budget.empty()) {
    options.cut_budget = options.target.is_x86() ? kCuts : 0;
  } else {
    options.cut_budget = options.search_budget / kSchedulesOfCut;
    options.equal_budget = options.search_budget / kSchedulesOfGraph;
  }
  options.parts = read_parts(raw.parts, options.target.is_small());
  if (!raw.parts.empty() && options.emit != Output::Executable)
    throw UsageError{"--with is for programs"};
  if (const std::string fault = option_misfit(options); !fault.empty())
    throw UsageError{fault};
  // The page shows all that --explain finds out.
  options.explain = options.explain || !options.report.empty();
}

} // namespace

// Without options that print or make something else than a text form.
static std::vector<std::string> repeatable_words(int argc, char** argv) {
  std::vector<std::string> out;
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i];
    if (word == "-o" || word == "--output" || word == "--emit" || word == "--verify" ||
        word == "--report")
      i++;
    const bool made = word.starts_with("-o") || word.starts_with("--output") ||
                      word.starts_with("--emit") || word.starts_with("--verify") ||
                      word.starts_with("--report") || word == "--bisect" ||
                      word.starts_with("--json") || word == "--tune" ||
                      word.starts_with("--tune=");
    if (!made) out.push_back(word);
  }
  return out;
}

std::string Options::model_name() const {
  return model.substr(model.find_last_of('/') + 1);
}

namespace {

// The first word that is neither an option nor an option's value, where it is a verb.
const VerbRow* find_verb(std::vector<std::string>& words) {
  const std::vector<OptionText> known = options_of(Verb::Pack);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-") || words[i] == "-") {
      for (const VerbRow& row : verb_rows()) {
        if (words[i] != row.word) continue;
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
        return &row;
      }
      return nullptr;
    }
    const auto option = std::ranges::find_if(known, [&](const OptionText& text) {
      return words[i] == text.short_name || words[i] == text.long_name;
    });
    if (option != known.end() && !option->type.empty()) ++i;
  }
  return nullptr;
}

void check_unknown(const VerbRow& row, const std::vector<std::string>& unknown) {
  for (const std::string& word : unknown) {
    if (!word.starts_with("-")) throw UsageError{"unexpected argument '" + word + "'"};
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> names;
    for (const OptionText& option : options_of(row.verb))
      for (const std::string& one : {option.long_name, option.short_name})
        if (!one.empty()) names.push_back(one);
    const std::vector<std::string_view> views(names.begin(), names.end());
    throw UsageError{"'" + name + "' is no option of " + row.word + "; the nearest is '" +
                     std::string(nearest(name, views)) + "'"};
  }
}

// What is printed instead of doing anything, or nothing.
std::string asked_text(const RawOptions& raw, Verb verb) {
  if (raw.help) return help_text(verb);
  if (raw.version) return std::string("svod-pack ") + kVersion + "\n";
  if (raw.man) return man_page();
  if (raw.licenses) return licences();
  if (raw.completion.empty()) return "";
  std::string script = completion_script(raw.completion);
  if (script.empty())
    throw UsageError{"--completion: '" + raw.completion +
                     "' is unknown; there are bash, zsh, fish"};
  return script;
}

} // namespace

std::variant<Options, std::string> read_options(int argc, char** argv) {
  Options options;
  options.words = repeatable_words(argc, argv);
  options.command.assign(argv + 1, argv + argc);
  RawOptions raw;
  // The parser cannot tell an option without its optional value from one that takes the
  // next word.
  std::vector<std::string> words(argv + 1, argv + argc);
  std::ranges::replace(words, std::string("--json"), std::string("--json=-"));
  std::ranges::replace(words, std::string("--tune"), std::string("--tune=10"));
  for (const std::string& word : words)
    if (word.starts_with("--json=")) options.json = word.substr(7);
  options.deciding = deciding_words(words);
  const VerbRow* verb = find_verb(words);
  const VerbRow& row = verb ? *verb : row_of(Verb::Pack);
  options.verb = row.verb;
  try {
    std::vector<std::string> unknown;
    if (const std::string wrong = parse_words(row, words, raw, options, unknown);
        !wrong.empty())
      throw UsageError{wrong};
    check_unknown(row, unknown);
    if (std::string text = asked_text(raw, row.verb); !text.empty()) return text;
    understand(raw, verb != nullptr, options);
  } catch (const UsageError& error) {
    options.usage_error = error.message;
  }
  return options;
}

} // namespace svod::packager
