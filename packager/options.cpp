// Options are rows: CLI11 parses the words, tables below turn them into values, and a
// second look checks what belongs together. CLI11's own exit codes are replaced by ours.
#include "packager/options.h"

#include "compiler/passes.h"
#include "compiler/support/nearest.h"
#include "compiler/toolchain/cpu.h"
#include "compiler/toolchain/object_cache.h"
#include "packager/version.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace svod::packager {

namespace {

using importer::Limits;

struct UsageError {
  std::string message;
};

template <class T> struct Word {
  const char* word;
  T value;
};

constexpr Word<Verb> kVerbs[] = {
    {"pack", Verb::Pack},   {"check", Verb::Check},   {"ops", Verb::Ops},
    {"cache", Verb::Cache}, {"doctor", Verb::Doctor}, {"key", Verb::Key},
};
constexpr Word<Output> kEmits[] = {
    {"exe", Output::Executable},    {"static", Output::Static},
    {"shared", Output::Shared},     {"obj", Output::Object},
    {"graph", Output::Graph},       {"algorithms", Output::Algorithms},
    {"fused", Output::Fused},       {"plan", Output::Plan},
    {"schedule", Output::Schedule}, {"cpp", Output::Cpp},
    {"asm", Output::Assembly},
};
// What a suffix of the output's name asks for.
constexpr Word<Output> kSuffixes[] = {
    {".a", Output::Static}, {".so", Output::Shared}, {".o", Output::Object}};
constexpr Word<WeightPlace> kWeightPlaces[] = {{"embed", WeightPlace::Embed},
                                               {"file", WeightPlace::File}};
constexpr Word<Color> kColors[] = {
    {"auto", Color::Auto}, {"always", Color::Always}, {"never", Color::Never}};
constexpr Word<ListFormat> kFormats[] = {{"text", ListFormat::Text},
                                         {"markdown", ListFormat::Markdown},
                                         {"json", ListFormat::Json}};
constexpr Word<bool> kAccuracies[] = {{"exact", true}, {"fast", false}};

// Limits of what a model may ask for, each with an option of its own.
struct LimitRow {
  const char* option;
  int64_t Limits::* limit;
  const char* meaning;
};
constexpr LimitRow kLimits[] = {
    {"--limit-file", &Limits::file_bytes, "bytes of the model file"},
    {"--limit-external", &Limits::external_bytes, "bytes of external data files"},
    {"--limit-nodes", &Limits::nodes, "nodes after inlining"},
    {"--limit-unrolled", &Limits::unrolled_nodes, "nodes made by unrolling loops"},
    {"--limit-iterations", &Limits::loop_iterations, "iterations of an unrolled loop"},
    {"--limit-loop", &Limits::region_iterations, "iterations of a loop at run time"},
    {"--limit-size", &Limits::size, "a size that only data bounds"},
    {"--limit-nesting", &Limits::nesting, "nesting of graphs"},
    {"--limit-functions", &Limits::functions, "model-local functions"},
    {"--limit-attributes", &Limits::attributes, "attributes of one node"},
    {"--limit-name", &Limits::name_bytes, "bytes of one name"},
    {"--limit-rank", &Limits::rank, "dimensions of one tensor"},
    {"--limit-dim", &Limits::dim, "size of one dimension"},
    {"--limit-elements", &Limits::elements, "elements of one tensor"},
};

template <class T, size_t N> std::string words_of(const Word<T> (&table)[N]) {
  std::string out;
  for (const Word<T>& row : table)
    out += (out.empty() ? "" : ", ") + std::string(row.word);
  return out;
}

template <class T, size_t N>
T look_up(const Word<T> (&table)[N], const std::string& option, const std::string& word) {
  for (const Word<T>& row : table) {
    if (word == row.word) return row.value;
  }
  throw UsageError{option + ": '" + word + "' is none of " + words_of(table)};
}

// What CLI11 fills in before it is understood.
struct RawOptions {
  std::vector<std::string> words, shapes, values, kernels;
  std::string emit, target, cpu, optimize = "2", accuracy = "fast", weights = "embed";
  std::string string_bytes = "64", limit_image;
  std::string color = "auto", format = "text", max_ram, max_flash, cache_dir, json;
  bool no_cache = false;
};

int64_t read_number(const std::string& option, const std::string& text) {
  int64_t value = 0;
  for (char c : text) {
    bool digit = c >= '0' && c <= '9' && value < int64_t{1} << 58;
    if (!digit) throw UsageError{option + ": '" + text + "' is no number"};
    value = value * 10 + (c - '0');
  }
  if (text.empty()) throw UsageError{option + ": a number is missing"};
  return value;
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

// NAME=AxBxC, NAME=none; the last = counts, since names may hold one.
void read_shape(const std::string& text, importer::ImportOptions& import) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError{"--shape: '" + text + "' is not NAME=AxBxC"};
  }
  if (text.substr(equals + 1) == "none") {
    import.absent.insert(text.substr(0, equals));
    return;
  }
  Shape shape;
  for (size_t at = equals + 1; at <= text.size();) {
    size_t end = std::min(text.find('x', at), text.size());
    shape.push_back(read_number("--shape", text.substr(at, end - at)));
    at = end + 1;
  }
  std::string name = text.substr(0, equals);
  if (!import.shapes.emplace(name, shape).second) {
    throw UsageError{"--shape: '" + name + "' is given twice"};
  }
}

// SYMBOL=FILE
void read_kernel_file(const std::string& text, Options& options) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError{"--replace-kernel: '" + text + "' is not KERNEL=FILE.cpp"};
  options.kernel_files.insert_or_assign(text.substr(0, equals), text.substr(equals + 1));
}

// HxW
void read_image_limit(const std::string& text, Limits& limits) {
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

// The lines of --help, in their order.
void declare_model(CLI::App& app, RawOptions& raw, Options& options) {
  app.add_option("--shape", raw.shapes,
                 "NAME=AxBxC fixes an input, NAME=N a named dimension; repeatable")
      ->take_all();
  app.add_option("--value", raw.values,
                 "NAME=A,B,C packs for this one value of an input; repeatable")
      ->take_all();
  app.add_option(
      "--shape-from", options.shape_from,
      "Take all input shapes from DIR/input_*.pb, and values that shapes need");
  app.add_option("--custom-op", options.custom_ops,
                 "C++ file with operators of your own; repeatable")
      ->take_all();
  app.add_option("--string-bytes", raw.string_bytes,
                 "Most bytes of one string of an input (64)");
}

void declare_target(CLI::App& app, RawOptions& raw, Options& options) {
  app.add_option("--target", raw.target,
                 "Triple or alias; 'svod-pack doctor' lists them");
  app.add_option("--cpu", raw.cpu, "CPU name, as in -mcpu");
  app.add_option("--name", options.name, "Prefix of a library's C names (infer)");
  app.add_option("--threads", options.threads, "Upper bound of threads, compiled in");
  app.add_option("-O", raw.optimize, "0 to 3, or s for size (2)");
  app.add_option("--accuracy", raw.accuracy, "exact or fast (fast)");
  app.add_option("--cache-dir", raw.cache_dir, "Folder of the object cache");
  app.add_flag("--no-cache", raw.no_cache, "Use no cache");
  app.add_option("--max-ram", raw.max_ram,
                 "Fail (exit 8) if more RAM is needed; 256K, 1M");
  app.add_option("--max-flash", raw.max_flash, "Fail (exit 8) if more flash is needed");
  app.add_option("--weights", raw.weights,
                 "embed, or file for weights beside the output");
}

void declare_reports(CLI::App& app, RawOptions& raw, Options& options) {
  app.add_option("--json", raw.json, "Write the summary to FILE (--json=FILE) or stdout");
  app.add_option("--format", raw.format, "Of the verb ops: " + words_of(kFormats));
  app.add_option("--verify", options.verify,
                 "Run on DIR (a test_data_set or several), on random inputs, or off");
  app.add_flag("--bisect", options.bisect,
               "Run kernels one by one and name the first that is wrong; needs no -o");
  app.add_option("--replace-kernel", raw.kernels,
                 "KERNEL=FILE.cpp takes this text for a kernel of --emit=cpp; repeatable")
      ->take_all();
  app.add_option("--deps", options.deps, "Write a Make dependency file");
  app.add_option("--print-after", options.print_after, "Print a pass's result, or all");
  app.add_option("--schedule", options.schedule,
                 "Schedules as --emit=schedule prints them, edited; by kernel digest");
  app.add_option("--color", raw.color, "auto, always or never");
  app.add_flag("-q,--quiet", options.quiet, "Print errors only");
  app.add_flag("-v,--verbose", options.verbose, "Print what is done");
  app.add_flag("--dry-run", options.dry_run, "Do everything, write no output");
}

void declare_limits(CLI::App& app, RawOptions& raw, Options& options) {
  app.add_flag("--allow-newer-ir", options.import.limits.allow_newer,
               "Read models of a newer IR version or opset");
  for (const LimitRow& row : kLimits) {
    app.add_option(row.option, options.import.limits.*row.limit, row.meaning)
        ->group("Limits");
  }
  app.add_option("--limit-image", raw.limit_image,
                 "HxW, the largest picture to decode at run time (512x512)")
      ->group("Limits");
}

void declare(CLI::App& app, RawOptions& raw, Options& options) {
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", std::string("svod-pack ") + kVersion);
  app.add_option("MODEL", raw.words, "ONNX model, after an optional verb");
  app.add_option("-o,--output", options.output,
                 "Output; a suffix .a, .so or .o makes a library or an object");
  app.add_option("--emit", raw.emit, "One of " + words_of(kEmits));
  declare_model(app, raw, options);
  declare_target(app, raw, options);
  declare_reports(app, raw, options);
  declare_limits(app, raw, options);
}

void read_words(const RawOptions& raw, Options& options) {
  std::vector<std::string> words = raw.words;
  for (const Word<Verb>& row : kVerbs) {
    if (words.empty() || words[0] != row.word) continue;
    options.verb = row.value;
    words.erase(words.begin());
    break;
  }
  bool needs_model = options.verb == Verb::Pack || options.verb == Verb::Check ||
                     options.verb == Verb::Key;
  if (options.verb == Verb::Cache) {
    if (words.size() != 1 ||
        (words[0] != "stats" && words[0] != "clear" && words[0] != "gc")) {
      throw UsageError{"cache: one of stats, clear, gc is missing"};
    }
    options.cache_action = words[0];
  } else if (needs_model && words.empty()) {
    throw UsageError{"no model is given"};
  } else if (words.size() > (needs_model ? 1 : 0)) {
    throw UsageError{"unexpected argument '" + words.back() + "'"};
  } else if (needs_model) {
    options.model = words[0];
  }
}

void read_target(const RawOptions& raw, Options& options) {
  options.target = default_target();
  if (!raw.target.empty()) {
    std::optional<Target> target = find_target(raw.target);
    if (!target) {
      std::string known;
      for (const std::string& alias : target_aliases()) known += " " + alias;
      throw UsageError{"--target: '" + raw.target + "' is unknown; known are" + known};
    }
    options.target = *target;
  }
  bool plain = std::ranges::all_of(raw.cpu, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '+' || c == '_';
  });
  if (raw.cpu.empty()) return;
  if (!plain || !toolchain::is_known_cpu(options.target, raw.cpu)) {
    throw UsageError{"--cpu: '" + raw.cpu + "' is no CPU of " + options.target.triple};
  }
  options.target = with_cpu(options.target, raw.cpu);
}

void read_emit(const RawOptions& raw, Options& options) {
  bool firmware = options.target.kind != TargetKind::Linux;
  if (firmware) options.emit = Output::Static;
  for (const Word<Output>& row : kSuffixes) {
    if (options.output.ends_with(row.word)) options.emit = row.value;
  }
  if (!raw.emit.empty()) options.emit = look_up(kEmits, "--emit", raw.emit);
  if (firmware && options.emit == Output::Executable) {
    throw UsageError{"--emit: target " + options.target.alias +
                     " has static libraries only"};
  }
  if (options.target.kind == TargetKind::Wasm && !options.is_text()) {
    throw UsageError{"--target: wasm32 has text forms only (--emit=cpp, --emit=asm)"};
  }
  if (firmware && options.emit == Output::Shared) {
    throw UsageError{"--emit: target " + options.target.alias + " has no shared objects"};
  }
  if (options.verb == Verb::Pack && options.output.empty() && !options.is_text() &&
      !options.dry_run && !options.bisect) {
    throw UsageError{"no output is given (-o FILE)"};
  }
}

void read_optimize(const std::string& text, Options& options) {
  if (text == "s") {
    options.small = true;
  } else if (text.size() == 1 && text[0] >= '0' && text[0] <= '3') {
    options.level = text[0] - '0';
  } else {
    throw UsageError{"-O: '" + text + "' is none of 0, 1, 2, 3, s"};
  }
}

void check_bisect(const Options& options) {
  if (!options.bisect) return;
  if (options.is_text()) throw UsageError{"--bisect is for programs and libraries"};
  if (options.verify == "off")
    throw UsageError{"--bisect needs what --verify=off denies"};
}

void understand(const RawOptions& raw, Options& options) {
  read_words(raw, options);
  read_target(raw, options);
  read_emit(raw, options);
  check_bisect(options);
  for (const std::string& kernel : raw.kernels) read_kernel_file(kernel, options);
  read_optimize(raw.optimize, options);
  for (const std::string& shape : raw.shapes) read_shape(shape, options.import);
  for (const std::string& value : raw.values) read_value(value, options.import);
  options.import.string_bytes = read_number("--string-bytes", raw.string_bytes);
  if (options.import.string_bytes < 1 ||
      options.import.string_bytes > importer::kMostStringBytes)
    throw UsageError{"--string-bytes: must be 1 to " +
                     std::to_string(importer::kMostStringBytes)};
  if (!raw.limit_image.empty()) read_image_limit(raw.limit_image, options.import.limits);
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
    throw UsageError{"--print-after: there is no pass '" + options.print_after +
                     "'; is it '" + std::string(nearest(options.print_after, passes)) +
                     "'?"};
  }
  options.exact = look_up(kAccuracies, "--accuracy", raw.accuracy);
  options.weights = look_up(kWeightPlaces, "--weights", raw.weights);
  options.color = look_up(kColors, "--color", raw.color);
  if (!raw.max_ram.empty()) options.max_ram = read_bytes("--max-ram", raw.max_ram);
  if (!raw.max_flash.empty())
    options.max_flash = read_bytes("--max-flash", raw.max_flash);
  if (!raw.json.empty()) options.json = raw.json;
  options.format = look_up(kFormats, "--format", raw.format);
  if (options.json) options.format = ListFormat::Json;
  options.cache_folder = raw.cache_dir;
  if (options.cache_folder.empty()) {
    options.cache_folder = toolchain::ObjectCache::default_folder().string();
  }
  if (raw.no_cache) options.cache_folder.clear();
  if (options.weights == WeightPlace::File && options.emit != Output::Executable) {
    throw UsageError{"--weights=file is for executables"};
  }
}

} // namespace

// Without options that print or make something else than a text form.
static std::vector<std::string> repeatable_words(int argc, char** argv) {
  std::vector<std::string> out;
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i];
    if (word == "-o" || word == "--output" || word == "--emit" || word == "--verify") i++;
    const bool made = word.starts_with("-o") || word.starts_with("--output") ||
                      word.starts_with("--emit") || word.starts_with("--verify") ||
                      word == "--bisect" || word.starts_with("--json");
    if (!made) out.push_back(word);
  }
  return out;
}

std::string Options::model_name() const {
  return model.substr(model.find_last_of('/') + 1);
}

std::variant<Options, int> read_options(int argc, char** argv) {
  Options options;
  options.words = repeatable_words(argc, argv);
  RawOptions raw;
  CLI::App app("Packs an ONNX model into one self-contained program or library.\n"
               "Verbs: pack (implied), check, ops, cache stats|clear|gc, doctor, key.",
               "svod-pack");
  declare(app, raw, options);
  // CLI11 cannot tell an option without its optional value from one that takes the next
  // word.
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; i--) {
    words.push_back(std::string(argv[i]) == "--json" ? "--json=-" : argv[i]);
  }
  try {
    app.parse(words);
    understand(raw, options);
    return options;
  } catch (const CLI::Success& done) {
    app.exit(done);
    return 0;
  } catch (const CLI::ParseError& error) {
    std::cerr << "svod-pack: error: " << error.what() << "\n";
  } catch (const UsageError& error) {
    std::cerr << "svod-pack: error: " << error.message << "\n";
  }
  std::cerr << "svod-pack: 'svod-pack --help' lists the options\n";
  return static_cast<int>(Exit::Usage);
}

} // namespace svod::packager
