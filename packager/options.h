// The command line of svod-pack as a struct. Everything that can be wrong about it is
// found here.
#pragma once

#include "compiler/support/target.h"
#include "compiler/weight_bound.h"
#include "importer/driver/import.h"
#include "packager/remote/remote_address.h"
#include "packager/shape_sets.h"
#include "packager/tune/shard.h"
#include "packager/weight_place.h"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace svod::packager {

enum class Verb : uint8_t {
  Pack,
  Check,
  Ops,
  Cache,
  Doctor,
  Key,
  Tune,
  Report,
  SwapWeights
};
enum class Output : uint8_t {
  Executable,
  Static,
  Shared,
  Object,
  Module,
  Source,
  Graph,
  Algorithms,
  Fused,
  Plan,
  Schedule,
  Cpp,
  Assembly,
  Ptx,
  Testbench,
};
// Of a static library: a folder for another build system.
enum class FolderLayout : uint8_t {
  None,
  Cmake,
  Zephyr,
  EspIdf,
  Arduino,
  PlatformIo,
  CmsisPack
};
// Of the verb ops.
enum class ListFormat : uint8_t { Text, Markdown, Json };
enum class Color : uint8_t { Auto, Always, Never };

// How values may differ from those of the model as it is written, computed one by one.
enum class Accuracy : uint8_t {
  Exact, // by the order of sums alone
  Fast,  // algorithms may round otherwise
  Tf32,  // and tensor cores of a GPU take the first bits of f32 factors
};

struct Options {
  std::string usage_error; // the command is wrong: nothing else is to be done
  Verb verb = Verb::Pack;
  std::string cache_action;        // of the verb cache: stats, clear, gc, verify, merge
  std::vector<std::string> merged; // of `cache merge`: folders and tuning files
  std::string model;
  // Of the verb report the second file, if any, `model` being the first one; of
  // swap-weights the program whose weights are swapped.
  std::string other;
  std::string output; // empty: text forms and JSON go to stdout
  Output emit = Output::Executable;
  FolderLayout layout = FolderLayout::None;
  std::string layout_folder; // what -o named; `output` is the library in it
  bool emit_guessed = false; // by the target alone: neither --emit nor a suffix says it
  Target target;             // of a text for a device: the device
  std::optional<Target> device; // of a program that runs on it, too
  std::string ptxas; // that assembles its kernels; empty: the one on PATH; off: none
  std::string name = "infer";
  int threads = -1; // -1: the target's default
  int level = 2;    // of -O
  Accuracy accuracy = Accuracy::Fast;
  bool exact() const { return accuracy == Accuracy::Exact; }
  importer::ImportOptions import; // its shapes are the first set's
  std::vector<ShapeSet> sets;     // of shapes; none: there is only one
  std::string shape_from;
  std::vector<std::string> custom_ops; // C++ files
  std::string cache_folder;            // empty: no cache
  std::optional<RemoteAddress> remote; // a cache that machines share, behind it
  bool remote_read_only = false;
  std::string remote_fault; // why the one that the environment names is not used
  std::optional<uint64_t> max_ram, max_flash;
  std::optional<WeightBound> max_weights;
  // Memories of a firmware library's arena, the fastest first; none: one.
  struct Pool {
    std::string name;
    uint64_t bytes = 0;
  };
  std::vector<Pool> pools;
  WeightPlace weights = WeightPlace::Embed;
  bool weights_given = false;      // by whoever packs
  std::optional<std::string> json; // "-": stdout
  std::string verify;              // empty: the default
  std::string runner;              // command that runs what was packed; empty: found
  bool bisect = false;
  bool explain = false; // why each kernel is what it is, and what it is predicted to take
  bool profile = false; // --verify on a board counts each kernel's instructions
  // Files with texts that take the place of kernels', by symbol.
  std::map<std::string, std::string> kernel_files;
  std::vector<std::string> command; // all words after the program's name
  // The command line without what says what is made and how it is verified.
  std::vector<std::string> words;
  std::vector<std::string> deciding; // of them what decides the output: packed_with.h
  std::string deps;
  std::string report;          // file of a page about the pack; empty: none
  bool pkg_config = false;     // NAME.pc beside a library
  bool self_check = false;     // a library gets NAME_self_check()
  bool skip_unchanged = false; // and NAME_run_changed()
  uint32_t parts = 0;          // a program has these of program_parts()
  bool portable = false;       // source without what only gcc and clang take
  std::string print_after;
  std::string schedule; // file of schedules; empty: none
  std::optional<double> tune_minutes;
  std::string tuning;       // file of tuned schedules; empty: none
  Shard shard;              // of the verb tune, where several machines share the work
  size_t search_budget = 0; // schedules to price
  size_t cut_budget = 0;    // cuts of the graph into kernels to price
  size_t equal_budget = 0;  // equal graphs to price
  bool quiet = false, verbose = false, dry_run = false;
  ListFormat format = ListFormat::Text;
  Color color = Color::Auto;

  bool is_text() const { return emit >= Output::Graph; }
  bool is_library() const { return emit >= Output::Static && emit <= Output::Source; }
  // Firmware and modules run one plan on one thread: it is emitted, so that nothing looks
  // it up.
  bool emits_run() const {
    return target.kind != TargetKind::Linux && target.kind != TargetKind::Gpu;
  }
  std::string model_name() const; // for messages
};

// The options, or a text that is printed instead of doing anything: --help, --version.
std::variant<Options, std::string> read_options(int argc, char** argv);

} // namespace svod::packager
