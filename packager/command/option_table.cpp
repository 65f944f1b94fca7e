// Each verb takes options in sets. check and key take all that pack takes, so that a
// command can be checked as it stands; their help shows those that change the answer.
#include "packager/command/option_table.h"

#include "compiler/passes.h"
#include "compiler/support/check.h"
#include "packager/artefact/stub_jobs.h"
#include "packager/command/words.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <sstream>

namespace svod::packager {

namespace {

using importer::Limits;

constexpr VerbRow kVerbs[] = {
    {"pack", Verb::Pack, "MODEL",
     "Packs an ONNX model into one self-contained program or library"},
    {"check", Verb::Check, "MODEL",
     "Says whether a model can be packed and what stops it; writes nothing"},
    {"ops", Verb::Ops, "", "Lists the operators that models may use"},
    {"cache", Verb::Cache, "stats|clear|gc|verify|merge",
     "Counts, removes or checks plans, compiled kernels and the Python module's "
     "libraries; gc keeps the 4 GiB used last; merge FROM... takes what folders of other "
     "caches hold, and what tuning files hold into that of --tuning"},
    {"doctor", Verb::Doctor, "",
     "Shows what packing needs of this machine, and whether it works"},
    {"key", Verb::Key, "MODEL",
     "Prints the digest of all that decides what would be packed"},
    {"tune", Verb::Tune, "MODEL",
     "Measures schedules of the model's kernels into the file of --tuning and packs "
     "nothing; several machines may take a share each"},
    {"report", Verb::Report, "A.json [B.json]",
     "Writes a page about what changed between two packs, by what --json wrote of them, "
     "or "
     "about one file that --profile=json of a program printed"},
    {"swap-weights", Verb::SwapWeights, "PROGRAM MODEL",
     "Writes a packed program again with the weights of another model of the same plan, "
     "without compiling; bytes are those of a pack of that model"},
};

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

// "batch|jsonl|...|all"
std::string part_words() {
  std::string out;
  for (const ProgramPart& part : program_parts()) out += std::string(part.word) + "|";
  return out + "all|none";
}

// Declares options of one set after the other, each under the heading of its set.
class Declaration {
public:
  Declaration(CLI::App& app, RawOptions& raw, Options& options)
      : app_(app), raw_(raw), options_(options) {}

  void heading(const char* text) { heading_ = text; }
  void output();
  void page();
  void swapped();
  void model();
  void target();
  void code();
  void tuning();
  void budget();
  void verify();
  void debugging();
  void shard();
  void cache();
  void merging();
  void dry_run();
  void list();
  void messages();
  void limits();
  void about();

private:
  template <class T>
  CLI::Option* value(const char* names, T& to, const std::string& type,
                     const std::string& text) {
    return app_.add_option(names, to, text)->type_name(type)->group(heading_);
  }
  void list_of(const char* names, std::vector<std::string>& to, const std::string& type,
               const std::string& text) {
    value(names, to, type, text + "; repeatable")->take_all()->allow_extra_args(false);
  }
  void flag(const char* names, bool& to, const std::string& text) {
    app_.add_flag(names, to, text)->group(heading_);
  }

  CLI::App& app_;
  RawOptions& raw_;
  Options& options_;
  const char* heading_ = "";
};

void Declaration::output() {
  value("-o,--output", options_.output, "FILE",
        "Output; a suffix .a, .so or .o makes a library or an object, .cpp source");
  value("--emit", raw_.emit, choice_of(kEmits) + "|" + choice_of(kLayouts),
        "What is made: a program, a library, C++ for another compiler (source), the text "
        "of a stage, or a folder for a build system");
  flag("--portable", options_.portable,
       "With --emit=source: C++20 alone, nothing of gcc's or clang's");
  value("--name", options_.name, "NAME", "Prefix of a library's C names (infer)");
  value("--weights", raw_.weights, choice_of(kWeightPlaces),
        "Where weights lie: in the output, in a file beside it, compressed in the "
        "output, or there without what fast forms add, which a start makes (embed; "
        "expand where several shapes would store them in several forms)");
  value("--with", raw_.parts, part_words(),
        "Parts of a program, several with commas: runs on a folder of inputs (batch), "
        "JSON lines on standard input (jsonl), traces for viewers (trace); all (unless "
        "-Os), none");
  value("--report", options_.report, "FILE",
        "Write a page (HTML) about kernels, memory and bytes of the pack");
  value("--deps", options_.deps, "FILE", "Write a Make dependency file");
  flag("--pkg-config", options_.pkg_config,
       "Write NAME.pc beside a library, for pkg-config");
  flag("--self-check", options_.self_check,
       "Give a library NAME_self_check(), which compares checksums of what it holds");
  flag("--skip-unchanged", options_.skip_unchanged,
       "Give a library NAME_run_changed(), which leaves out what hangs only on inputs "
       "that are as they were");
}

void Declaration::page() { value("-o,--output", options_.output, "FILE", "The page"); }

void Declaration::swapped() {
  value("-o,--output", options_.output, "FILE", "The program with the other weights");
  value("--verify", options_.verify, "DIR",
        "Run on DIR (a test_data_set or several), on random inputs, or off");
}

void Declaration::model() {
  list_of("--shape", raw_.shapes, "NAME=AxBxC",
          "Fix the shape of an input, or NAME=N a named dimension; a NAME again begins "
          "another set of shapes in the same output");
  list_of("--entry", raw_.entries, "NAME:x=AxBxC,...",
          "Pack for this set of shapes, too, and call it NAME");
  list_of("--dim", raw_.dims, "NAME=LEAST..MOST[/STEP]",
          "Let each run decide the size of a dimension, or of axis 2 of x as x[2]; with "
          "/STEP kernels are made for each multiple of it");
  list_of("--state", options_.import.states, "INPUT=OUTPUT",
          "Keep OUTPUT in memory as INPUT of the next run; a * in both names many");
  list_of("--image", options_.import.images, "SPEC",
          "Take an input as a picture file; SPEC is [NAME=] and fields with commas: rgb, "
          "bgr, gray, or a preset (imagenet, yolo), then resize=N|HxW, crop=N|HxW, "
          "fit=stretch|crop|pad, fill=N, filter=bilinear|bicubic|nearest, scale=1/255, "
          "mean=A/B/C, std=A/B/C, layout=nchw|nhwc, formats=jpeg/png/webp/bmp/tiff/jp2");
  value("--shape-from", options_.shape_from, "DIR",
        "Take all input shapes from DIR/input_*.pb, and values that shapes need");
  list_of("--value", raw_.values, "NAME=A,B,C", "Pack for this one value of an input");
  list_of("--custom-op", options_.custom_ops, "FILE",
          "C++ file with operators of your own");
  value("--string-bytes", raw_.string_bytes, "N",
        "Most bytes of one string of an input (64)");
}

void Declaration::target() {
  value("--target", raw_.target, "TARGET",
        "Machine to pack for, by alias or triple; 'svod-pack doctor' lists them");
  value("--device", raw_.device, "cuda[:sm_80,...]",
        "Kernels for NVIDIA GPUs of these architectures and later ones "
        "(sm_75,sm_80,sm_90a): in a "
        "program beside the CPU's, or as a text (--emit=ptx)");
  value(
      "--ptxas", options_.ptxas, "FILE",
      "With --device: ptxas of the CUDA toolkit, which makes machine code of the kernels "
      "(the one on PATH); off: the driver does, when the program starts");
  value("--cpu", raw_.cpu, "CPU", "One CPU only, by its name as in -mcpu");
  value("--threads", options_.threads, "N", "Upper bound of threads, compiled in");
}

void Declaration::code() {
  value("-O", raw_.optimize, "0|1|2|3|s", "How hard to optimize, or s for size (2)");
  value("--accuracy", raw_.accuracy, choice_of(kAccuracies),
        "Whether algorithms may round differently from the model's (fast); tf32: and a "
        "GPU's tensor cores take the first 11 bits of float32 factors");
}

void Declaration::tuning() {
  value("--tune", raw_.tune, "[MINUTES]",
        "Measure other plans and other schedules of kernels and take those that are "
        "faster; for at most so many minutes (--tune=MINUTES, 10)");
  value("--tuning", options_.tuning, "FILE",
        "Take the tuned plan and schedules of FILE; --tune adds what it finds");
  value(
      "--search-budget", raw_.search_budget, "N",
      "Schedules that are priced to find better ones than the rules'; 0 takes the rules' "
      "(20000 for x86-64, else 0)");
}

void Declaration::budget() {
  value("--max-ram", raw_.max_ram, "BYTES",
        "Fail (exit 8) if more RAM is needed; 256K, 1M");
  value("--max-weights", raw_.max_weights, "BYTES",
        "Bound what fast forms of contractions add to the weights; 16M, or 1.5x of what "
        "they take without; exit 8 if nothing fits");
  value("--pool", raw_.pools, "NAME=BYTES,...",
        "Memories for a firmware library's arena, the fastest first; dtcm=64K,sram=256K");
  value("--max-flash", raw_.max_flash, "BYTES",
        "Make kernels small, the busiest last, until it fits; exit 8 if none does");
}

void Declaration::verify() {
  value("--verify", options_.verify, "DIR",
        "Run on DIR (a test_data_set or several), on random inputs, or off");
  value("--runner", options_.runner, "CMD",
        "Command that runs what was packed for another machine, to verify or tune it (an "
        "emulator on PATH)");
  flag("--profile", options_.profile,
       "With --verify of a firmware library: print the instructions of each kernel");
}

void Declaration::debugging() {
  flag("--bisect", options_.bisect,
       "Run kernels one by one and name the first that is wrong; needs no -o");
  list_of("--replace-kernel", raw_.kernels, "KERNEL=FILE",
          "Take the text of FILE for a kernel of --emit=cpp");
  flag("--explain", options_.explain,
       "With --emit=fused or --json: say why each kernel is what it is, and what it is "
       "predicted to take");
  value("--print-after", options_.print_after, "PASS", "Print a pass's result, or all");
  value("--schedule", options_.schedule, "FILE",
        "Schedules as --emit=schedule prints them, edited; by kernel digest");
}

void Declaration::cache() {
  value("--cache-dir", raw_.cache_dir, "DIR", "Folder of the cache of plans and objects");
  flag("--no-cache", raw_.no_cache, "Use no cache");
  value("--cache-remote", raw_.cache_remote, "URL",
        "A cache that machines share, grpc://HOST:PORT[/INSTANCE] or grpcs://..., behind "
        "the folder ($SVOD_CACHE_REMOTE)");
  value(
      "--cache-remote-mode", raw_.cache_remote_mode, choice_of(kRemoteModes),
      "Whether it gets what is made here, or is only read ($SVOD_CACHE_REMOTE_MODE, rw)");
}

void Declaration::merging() {
  value("--tuning", options_.tuning, "FILE",
        "With merge: the file that tuning files are merged into");
}

void Declaration::shard() {
  value("--shard", raw_.shard, "I/N",
        "Tune the I-th of N shares of the kernels, from 1/N to N/N");
}

void Declaration::dry_run() {
  flag("--dry-run", options_.dry_run, "Do everything, write and remove nothing");
}

void Declaration::list() {
  value("--format", raw_.format, choice_of(kFormats), "Form of the list (text)");
}

void Declaration::messages() {
  value("--json", raw_.json, "[FILE]",
        "Write a summary with all messages to FILE (--json=FILE) or stdout");
  value("--color", raw_.color, choice_of(kColors), "Colour of messages (auto)");
  flag("-q,--quiet", options_.quiet, "Print errors only");
  flag("-v,--verbose", options_.verbose, "Say what is done and chosen");
}

void Declaration::limits() {
  app_.add_flag("--allow-newer-ir", options_.import.limits.allow_newer,
                "Read models of a newer IR version or opset")
      ->group(heading_);
  for (const LimitRow& row : kLimits)
    value(row.option, options_.import.limits.*row.limit, "N", row.meaning);
  value("--limit-image", raw_.limit_image, "HxW",
        "the largest picture to decode at run time (512x512); with --image its pixels, "
        "on whatever side it lies (6144x8192)");
}

void Declaration::about() {
  flag("-h,--help", raw_.help, "Print this help and exit");
  flag("--version", raw_.version, "Print the version and exit");
  flag("--licenses", raw_.licenses, "Print what svod-pack consists of and exit");
  flag("--man", raw_.man, "Print the man page (roff) and exit");
  value("--completion", raw_.completion, "bash|zsh|fish",
        "Print a completion script for a shell and exit");
}

// Hidden from help, but taken.
constexpr char kHidden[] = "";

void declare_model_verb(Declaration& all, Verb verb) {
  const bool packs = verb == Verb::Pack, checks = verb == Verb::Check,
             tunes = verb == Verb::Tune;
  all.heading(checks || tunes ? kHidden : "Output");
  all.output();
  all.heading("Model");
  all.model();
  all.heading("Target");
  all.target();
  all.code();
  all.tuning();
  if (tunes) all.shard();
  all.heading(packs || checks ? "Target" : kHidden);
  all.budget();
  all.heading(packs || tunes ? "Verify" : kHidden);
  all.verify();
  all.heading(packs ? "Debugging" : kHidden);
  all.debugging();
  all.heading(packs || tunes ? "Cache" : kHidden);
  all.cache();
  all.dry_run();
}

void declare(CLI::App& app, const VerbRow& row, RawOptions& raw, Options& options) {
  const bool has_model = std::string_view(row.operand) == "MODEL";
  app.set_help_flag();
  app.allow_extras();
  app.add_option("words", raw.words);
  Declaration all(app, raw, options);
  if (has_model) declare_model_verb(all, row.verb);
  all.heading("Output");
  if (row.verb == Verb::Report) all.page();
  if (row.verb == Verb::SwapWeights) all.swapped();
  all.heading("Cache");
  if (row.verb == Verb::Cache || row.verb == Verb::Doctor ||
      row.verb == Verb::SwapWeights)
    all.cache();
  if (row.verb == Verb::Cache) all.merging();
  if (row.verb == Verb::Cache) all.dry_run();
  all.heading("Messages");
  if (row.verb == Verb::Ops) all.list();
  all.messages();
  all.heading("Limits");
  if (has_model) all.limits();
  all.heading("About");
  all.about();
}

} // namespace

std::span<const VerbRow> verb_rows() { return kVerbs; }

const VerbRow& row_of(Verb verb) {
  const auto* row = std::ranges::find(kVerbs, verb, &VerbRow::verb);
  SVOD_CHECK(row != std::end(kVerbs)) << "a verb without a row";
  return *row;
}

size_t operand_count(const VerbRow& row) {
  const std::string_view operand = row.operand;
  return operand.empty() ? 0 : 1 + static_cast<size_t>(std::ranges::count(operand, ' '));
}

std::vector<OptionText> options_of(Verb verb) {
  RawOptions raw;
  Options options;
  CLI::App app;
  declare(app, row_of(verb), raw, options);
  std::vector<OptionText> out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    OptionText text;
    if (!option->get_snames().empty()) text.short_name = "-" + option->get_snames()[0];
    if (!option->get_lnames().empty()) text.long_name = "--" + option->get_lnames()[0];
    if (option->get_expected_max() != 0) text.type = option->get_type_name();
    text.text = option->get_description();
    text.heading = option->get_group();
    out.push_back(std::move(text));
  }
  return out;
}

std::string parse_words(const VerbRow& row, std::vector<std::string> words,
                        RawOptions& raw, Options& options,
                        std::vector<std::string>& unknown) {
  CLI::App app;
  declare(app, row, raw, options);
  std::ranges::reverse(words); // as CLI11 takes them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  unknown = app.remaining();
  return "";
}

std::vector<std::string> words_of_type(const std::string& type) {
  if (type == "TARGET") return target_aliases();
  std::vector<std::string> words;
  if (type == "PASS")
    for (std::string_view word : pass_words()) words.emplace_back(word);
  if (type.find('|') == std::string::npos) return words;
  std::istringstream text(type);
  for (std::string word; std::getline(text, word, '|');) words.push_back(word);
  return words;
}

} // namespace svod::packager
