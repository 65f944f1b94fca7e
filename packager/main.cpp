// svod-pack: reads the command line and runs one verb. The last line of defence is here:
// a broken invariant of ours becomes exit 5 with a report, never a crash without a word.
#include "compiler/support/check.h"
#include "packager/command/option_table.h"
#include "packager/output_file.h"
#include "packager/pack.h"
#include "packager/report/report.h"
#include "packager/verbs.h"
#include "packager/version.h"

#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <new>

#include <malloc.h>
#include <unistd.h>

namespace svod::packager {

// Weights are packed in buffers of megabytes, one after the other. Memory that went back
// to the system each time would be cleared again for the next: 0.35 of the 1.0 s that the
// kernel takes for bert_base. Nothing but glibc has these settings.
static void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestBuffer = 32 << 20, kKept = 256 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestBuffer);
  mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

static Exit run_verb(const Options& options, const Console& console) {
  switch (options.verb) {
  case Verb::Pack:
  case Verb::Tune:
    return pack(options, console);
  case Verb::Check:
    return check_verb(options, console);
  case Verb::Ops:
    return ops_verb(options, console);
  case Verb::Cache:
    return cache_verb(options, console);
  case Verb::Doctor:
    return doctor_verb(options, console);
  case Verb::Key:
    return key_verb(options, console);
  case Verb::Report:
    return report_verb(options, console);
  case Verb::SwapWeights:
    return swap_weights(options, console);
  }
  __builtin_unreachable();
}

static Exit usage_exit(const Options& options, const Console& console) {
  console.error(options.usage_error);
  const std::string verb =
      options.verb == Verb::Pack ? "" : std::string(row_of(options.verb).word) + " ";
  console.remark("svod-pack: 'svod-pack " + verb + "--help' lists the options");
  return Exit::Usage;
}

// Where the report of a bug went, or an empty text.
static std::string write_bug_report(int argc, char** argv, const std::string& what) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") +
                     "/svod-pack-report-" + std::to_string(getpid()) + ".txt";
  std::ofstream report(path);
  report << "svod-pack " << kVersion << "\n" << what << "\ncommand:";
  for (int i = 0; i < argc; i++) report << " " << argv[i];
  report << "\n";
  report.close();
  return report ? path : "";
}

static Exit run_guarded(int argc, char** argv, const Options& options,
                        const Console& console) {
  std::string what;
  try {
    return run_verb(options, console);
  } catch (const std::bad_alloc&) {
    console.error("out of memory");
    return Exit::File;
  } catch (const std::exception& error) {
    what = error.what();
  }
  console.error("this is a bug in svod-pack: " + what);
  std::string report = write_bug_report(argc, argv, what);
  if (!report.empty()) console.error("a report was written to " + report);
  return Exit::Bug;
}

static int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::variant<Options, std::string> parsed = read_options(argc, argv);
  if (const std::string* text = std::get_if<std::string>(&parsed)) {
    const Console console((Options()));
    return static_cast<int>(console.print_out(*text));
  }
  const Options& options = std::get<Options>(parsed);
  Console console(options);
  install_signal_handlers();
  const Exit exit = options.usage_error.empty()
                        ? run_guarded(argc, argv, options, console)
                        : usage_exit(options, console);
  return static_cast<int>(write_report(options, console, exit));
}

} // namespace svod::packager

int main(int argc, char** argv) {
  svod::packager::keep_freed_memory();
  return svod::packager::run(argc, argv);
}
