// Options by name; a value follows after = or as the next word.
#include "runtime_stub/program/options.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/nearest.h"

namespace packed {

namespace {

constexpr char kHelp[] =
    "Runs the model it was packed from.\n\n"
    "  --input [NAME=]FILE    .npy, .npz, .pb, .json, .raw or .bin; - is standard input; "
    "repeatable\n"
    "  FILE                   the same, in the model's order; a .npz has all by name\n"
#ifdef SVOD_PICTURES
    "                         of an input that is a picture: a picture file; --info says "
    "how it is\n"
    "                         prepared\n"
#endif
    "  --input NAME=random[:SEED], NAME=zeros, NAME=1x3xf32=[1 2 3]\n"
    "  --output [NAME=]FILE   without it outputs are printed, at most 1024 elements "
    "each\n"
    "  --stream               records from standard input, raw outputs to standard "
    "output\n"
#ifdef SVOD_WITH_JSONL
    "  --stream=jsonl         inputs by name as JSON, an object a line, and answers "
    "likewise\n"
#endif
#ifdef SVOD_WITH_BATCH
    "  --batch-dir DIR        a run for each file or folder of inputs in DIR\n"
    "  --output-dir DIR       of --batch-dir: writes answers here instead of printing\n"
#endif
    "  --labels FILE          prints the best classes by name: line i is class i\n"
    "  --top N, --softmax     how many (5); as shares of one\n"
    "  --finite               refuses infinite inputs and NaN\n"
    "  --info, --info=json    what was packed\n"
    "  --verify DIR           compare with a test_data_set_N, or with all in DIR\n"
    "  --rtol X, --atol X     tolerances of --verify (1e-3, 1e-5)\n"
    "  --strict               of each element alone, not of its tensor's largest\n"
    "  --bench, --bench=json  time of a run\n"
    "  --min-time S           seconds to measure (1)\n"
    "  --profile, --profile=json\n"
    "                         time of each kernel\n"
#ifdef SVOD_WITH_TRACE
    "  --profile=trace.json   when each ran, by thread, for Perfetto and Chrome\n"
#endif
    "  --threads N            at most N threads\n"
    "  --isa NAME             use this packed CPU level\n"
    "  --weights FILE         weights of a program packed with --weights=file\n"
    "  --self-check           checksums of image and weights\n"
#ifndef SVOD_DEVICE
    "  --unsecure             no filter of system calls\n"
#endif
    "  --cpu-check            can this CPU run it; exit 9 says what it lacks\n"
    "  --licenses             of all that is in this file\n"
    "  --help, --version\n"
#if !defined(SVOD_WITH_BATCH) || !defined(SVOD_WITH_JSONL) || !defined(SVOD_WITH_TRACE)
    "\nPut in by svod-pack --with PARTS, and left out here:\n"
#endif
#ifndef SVOD_WITH_BATCH
    "  batch                  --batch-dir, --output-dir\n"
#endif
#ifndef SVOD_WITH_JSONL
    "  jsonl                  --stream=jsonl\n"
#endif
#ifndef SVOD_WITH_TRACE
    "  trace                  --profile=trace.json\n"
#endif
    ;

// The part that an option needs and that was left out when packing; null: none.
const char* left_out([[maybe_unused]] Text name, [[maybe_unused]] Text value) {
#ifndef SVOD_WITH_BATCH
  if (name == Text("--batch-dir") || name == Text("--output-dir")) return "batch";
#endif
#ifndef SVOD_WITH_JSONL
  if (name == Text("--stream") && value == Text("jsonl")) return "jsonl";
#endif
#ifndef SVOD_WITH_TRACE
  if (name == Text("--profile") && value == Text("trace.json")) return "trace";
#endif
  return nullptr;
}

// The words of a command line, one after the other.
class Words {
public:
  Words(int32_t count, char** words) : count_(count), words_(words) {}
  bool next();
  Text name() const { return name_; }
  const char* whole() const { return words_[at_]; }
  bool has_value() const { return value_ != nullptr; }
  // The part after =, else the next word; null when there is none.
  const char* value();
  const char* attached() const { return value_; }

private:
  int32_t count_, at_ = 0;
  char** words_;
  Text name_;
  const char* value_ = nullptr;
};

bool Words::next() {
  if (++at_ >= count_) return false;
  name_ = Text(words_[at_]);
  value_ = nullptr;
  uint64_t equals = name_.find('=');
  if (name_.starts_with("--") && equals < name_.size) {
    value_ = words_[at_] + equals + 1;
    name_ = name_.first(equals);
  }
  return true;
}

const char* Words::value() {
  if (value_ == nullptr && at_ + 1 < count_) value_ = words_[++at_];
  return value_;
}

// So far more words were read than are kept: those that are kept take their places.
bool add(Options& options, const char* word, bool output) {
  const uint32_t at = options.word_count;
  if (word == nullptr || at == kMostWords) return false;
  options.words[options.word_count++] = const_cast<char*>(word);
  if (!output) return true;
  options.output_bits[at / 64] |= uint64_t{1} << at % 64;
  options.output_count++;
  return true;
}

bool read_number(const char* text, double& out) {
  return text != nullptr && read_float(Text(text), &out) && out >= 0;
}

struct ModeRow {
  char name[16];
  Mode mode;
};
constexpr ModeRow kModes[] = {
    {"--info", Mode::Info},         {"--bench", Mode::Bench},
    {"--profile", Mode::Profile},   {"--self-check", Mode::SelfCheck},
    {"--help", Mode::Help},         {"-h", Mode::Help},
    {"--version", Mode::Version},   {"--cpu-check", Mode::CpuCheck},
    {"--licenses", Mode::Licenses}, {"--stream", Mode::Stream},
};

// An option that says what to do; false when it is none or has a wrong value.
bool read_mode(Words& words, Options& options) {
  for (const ModeRow& row : kModes) {
    if (!(words.name() == Text(row.name))) continue;
    options.mode = row.mode;
    if (!words.has_value()) return true;
    const Text form(words.attached());
    options.json = row.mode == Mode::Stream
                       ? form == Text("jsonl")
                       : form == Text("json") &&
                             (row.mode == Mode::Info || row.mode == Mode::Bench ||
                              row.mode == Mode::Profile);
    options.trace = row.mode == Mode::Profile && form == Text("trace.json");
    return options.json || options.trace;
  }
  return false;
}

// Those that read_value knows by their long names; --strict, --finite, --softmax and
// --unsecure take no value.
constexpr char kValueOptions[][13] = {
    "--input",     "--output",     "--verify", "--weights", "--rtol",    "--atol",
    "--min-time",  "--threads",    "--isa",    "--strict",  "--finite",  "--softmax",
    "--batch-dir", "--output-dir", "--labels", "--top",     "--unsecure"};

struct PathRow {
  const char* name;
  const char*& path;
};
struct FlagRow {
  const char* name;
  bool& flag;
};
struct CountRow {
  const char* name;
  uint64_t& count;
};

// An option with a value; false when it is none or the value is wrong.
bool read_value(Words& words, Options& options) {
  const PathRow paths[] = {{"--verify", options.verify},
                           {"--weights", options.weights},
                           {"--batch-dir", options.batch},
                           {"--output-dir", options.output_folder},
                           {"--labels", options.labels.path}};
  const FlagRow flags[] = {{"--strict", options.strict},
                           {"--finite", options.finite},
                           {"--unsecure", options.unsecure},
                           {"--softmax", options.labels.softmax}};
  const CountRow counts[] = {{"--threads", options.session.threads},
                             {"--top", options.labels.top}};
  Text name = words.name();
  if (name == Text("--input") || name == Text("-i")) {
    return add(options, words.value(), false);
  }
  if (name == Text("--output") || name == Text("-o")) {
    return add(options, words.value(), true);
  }
  for (const PathRow& row : paths) {
    if (!(name == Text(row.name))) continue;
    row.path = words.value();
    if (&row.path == &options.batch) options.mode = Mode::Batch;
    if (&row.path == &options.verify) options.mode = Mode::Verify;
    return row.path != nullptr;
  }
  for (const FlagRow& row : flags) {
    if (!(name == Text(row.name))) continue;
    row.flag = true;
    return !words.has_value();
  }
#ifdef SVOD_STATES
  if (name == Text("--reset-state")) {
    options.session.forgets = true;
    return !words.has_value();
  }
#endif
  if (name == Text("--rtol")) return read_number(words.value(), options.rtol);
  if (name == Text("--atol")) return read_number(words.value(), options.atol);
  if (name == Text("--min-time")) return read_number(words.value(), options.min_time);
  for (const CountRow& row : counts) {
    if (!(name == Text(row.name))) continue;
    const char* value = words.value();
    return value != nullptr && read_unsigned(Text(value), &row.count) && row.count > 0;
  }
  if (name == Text("--isa")) {
    const char* value = words.value();
    if (value != nullptr) options.session.isa = Text(value);
    return options.session.isa.size > 0;
  }
  return false;
}

Exit option_error(Text name, Printer& errors) {
  Nearest nearest(name);
  for (const ModeRow& row : kModes) nearest.consider(Text(row.name));
  for (const auto& option : kValueOptions) nearest.consider(Text(option));
  bool known = nearest.name() == name || name == Text("-i") || name == Text("-o");
  errors << "error: ";
  if (known) {
    errors << "the value of " << name << " is missing or wrong\n";
  } else {
    errors.name(name) << " is not known; is it " << nearest.name() << "?\n";
  }
  errors << "--help lists the options\n";
  return EXIT_USAGE;
}

} // namespace

void print_help(Printer& out, Text program) {
  out << "usage: " << program << " [options] [FILE ...]\n" << kHelp;
#ifdef SVOD_STATES
  out << "  --reset-state          every run of --stream begins with states of zeros\n";
#endif
}

Exit read_options(int32_t argc, char** argv, Options& options, Printer& errors) {
  Words words(argc, argv);
  options.words = argv + 1;
  while (words.next()) {
    Text name = words.name();
    const Text value = words.has_value() ? Text(words.attached()) : Text("");
    if (const char* part = left_out(name, value)) {
      errors << "error: " << words.whole()
             << " was left out when packing; svod-pack --with=" << part
             << " puts it in\n";
      return EXIT_USAGE;
    }
    if (name == Text("--profile") && value == Text("html")) {
      errors << "error: the page is made of what --profile=json prints: svod-pack report "
                "PROFILE.json -o FILE.html\n";
      return EXIT_USAGE;
    }
    bool positional = name == Text("-") || !name.starts_with("-");
    bool good = positional ? add(options, words.whole(), false)
                           : read_mode(words, options) || read_value(words, options);
    if (good) continue;
    return option_error(name, errors);
  }
  const bool runs = options.mode == Mode::Run || options.mode == Mode::Batch;
  const char* misplaced = options.output_folder != nullptr && options.mode != Mode::Batch
                              ? "--output-dir is of --batch-dir"
                          : options.labels.path == nullptr && options.labels.is_changed()
                              ? "--top and --softmax are of --labels"
                          : options.labels.path != nullptr && !runs
                              ? "--labels is of runs that are printed"
                              : nullptr;
  if (misplaced != nullptr) {
    errors << "error: " << misplaced << "\n";
    return EXIT_USAGE;
  }
  if (options.mode == Mode::Bench) options.began = svod_now();
  return EXIT_DONE;
}

} // namespace packed
