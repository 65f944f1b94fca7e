// The image for an emulated board is compiled and linked here; only the functions of
// software floats come from the user's compiler, if there is one. A module runs in Node.
//
// A runner gets a folder with selftest.c, the library and its header. It builds, flashes
// and prints what the device prints: a line PASS decides.
#include "packager/firmware/verify_firmware.h"

#include "compiler/support/bytes.h"
#include "packager/artefact/compile_faults.h"
#include "packager/artefact/link_output.h"
#include "packager/artefact/module_loader.h"
#include "packager/firmware/emulated_board.h"
#include "packager/firmware/module_test.h"
#include "packager/firmware/test_vectors.h"
#include "packager/verify/run_program.h"
#include "packager/verify/runner.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

namespace svod::packager {

namespace {

constexpr std::string_view kProfileLine = "PROFILE ";

// What the compiler of the target's toolchain has for floats in software.
std::vector<std::string> float_library(const Target& target, const char* name) {
  const std::string compiler = find_on_path(name);
  if (compiler.empty()) return {};
  std::vector<std::string> words{compiler};
  if (target.triple.starts_with("thumb")) words.emplace_back("-mthumb");
  for (const std::string& flag : target.levels.front().flags)
    for (const char* kind : {"-mcpu", "-mf", "-march", "-mabi"})
      if (flag.starts_with(kind)) words.push_back(flag);
  words.emplace_back("-print-libgcc-file-name");
  const Ran ran = run_program(words, "");
  return ran.code == 0 && ran.said.starts_with('/')
             ? std::vector<std::string>{ran.said.substr(0, ran.said.find('\n'))}
             : std::vector<std::string>{};
}

class FirmwareCheck {
public:
  FirmwareCheck(const PackedFirmware& packed, const Console& console)
      : packed_(packed), console_(console) {}
  Exit run(const VerifyChoice& choice);

private:
  Exit note(const std::string& why) const {
    console_.note("not verified, since " + why);
    return Exit::Done;
  }
  bool make_image(const EmulatedBoard& board, const std::string& test,
                  std::string& error);
  Exit run_module(const TestVectors& vectors);
  bool write_folder(const std::string& test, std::string& error);
  Exit judge(const std::vector<std::string>& words) const;
  void print_profile(const std::string& said) const;
  std::string header() const { return "lib" + packed_.options.name + ".h"; }
  std::string image() const { return folder_.path() + "/image.elf"; }

  const PackedFirmware& packed_;
  const Console& console_;
  TemporaryFolder folder_;
};

bool FirmwareCheck::make_image(const EmulatedBoard& board, const std::string& test,
                               std::string& error) {
  const Target& target = packed_.options.target;
  const toolchain::Compiler compiler({{header(), header_text(packed_.header)}});
  std::vector<std::vector<std::byte>> own;
  for (const auto& [name, text] : {std::pair<std::string, std::string>{"test.c", test},
                                   {"start.c", start_text(board)}}) {
    toolchain::Source source;
    source.name = name;
    source.text = text;
    if (packed_.options.profile)
      source.flags.push_back("-DSVOD_PROFILE=" +
                             std::to_string(packed_.kernels.plan.programs.size()));
    toolchain::CompileResult made =
        compiler.compile(target, target.levels.front(), source);
    error = made.diagnostics;
    if (!made.ok) return false;
    own.push_back(std::move(made.output));
  }
  toolchain::LinkInputs inputs = link_inputs(packed_.objects, true);
  for (const auto& object : packed_.objects.shared) inputs.objects.push_back(object);
  for (const auto& object : own) inputs.objects.push_back(object);
  toolchain::LinkResult linked =
      toolchain::link_image(target, inputs, board.script, {}, image());
  if (!linked.ok)
    linked = toolchain::link_image(target, inputs, board.script,
                                   float_library(target, board.compiler), image());
  error = linked.diagnostics;
  return linked.ok;
}

bool FirmwareCheck::write_folder(const std::string& test, std::string& error) {
  const std::string place = folder_.path() + "/";
  std::ofstream(place + "selftest.c") << test;
  std::ofstream(place + header()) << header_text(packed_.header);
  const toolchain::LinkResult linked = link_archive(
      packed_.options, packed_.objects, place + "lib" + packed_.options.name + ".a");
  error = linked.diagnostics;
  return linked.ok;
}

// Instructions of each kernel and the ONNX nodes that it is made from, the largest first.
void FirmwareCheck::print_profile(const std::string& said) const {
  const EmulatedBoard* board = find_board(packed_.options.target);
  if (!packed_.options.profile || board == nullptr) return;
  std::vector<std::pair<uint64_t, std::string>> rows;
  uint64_t total = 0;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kProfileLine)) continue;
    std::istringstream numbers(line.substr(kProfileLine.size()));
    uint64_t program = 0, count = 0;
    numbers >> std::hex >> program >> count;
    if (!numbers || program >= packed_.kernels.sources.size()) continue;
    const auto taken =
        static_cast<uint64_t>(std::llround(static_cast<double>(count) / board->counts));
    total += taken;
    rows.emplace_back(taken,
                      kernel_in_model(packed_.kernels, packed_.kernels.sources[program]));
  }
  std::ranges::sort(rows, std::greater<>());
  console_.print_line("instructions of one run under QEMU: " + std::to_string(total));
  for (const auto& [count, name] : rows)
    console_.print_line("  " + std::to_string(count) + "  " + name);
}

Exit FirmwareCheck::judge(const std::vector<std::string>& words) const {
  const Ran ran = run_program(words, "");
  std::istringstream lines(ran.said);
  bool passed = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    passed |= line == "PASS";
    if (line.starts_with(kProfileLine)) continue;
    if (!console_.quiet() || line.starts_with("FAIL")) console_.print_line(line);
  }
  if (passed && ran.code == 0) {
    print_profile(ran.said);
    return Exit::Done;
  }
  console_.error("the self-test of " + packed_.options.target.alias + " failed" +
                 (ran.said.find("FAIL") != std::string::npos
                      ? ""
                      : ": its runner ended with " + std::to_string(ran.code) +
                            " and said no PASS"));
  return Exit::VerifyMismatch;
}

Exit FirmwareCheck::run_module(const TestVectors& vectors) {
  const std::string node = find_on_path("node");
  if (node.empty()) return note("modules run in Node, and there is no node on PATH");
  const std::string place = folder_.path() + "/";
  const toolchain::LinkResult linked =
      link_module(packed_.options, packed_.objects, place + "model.wasm");
  if (!linked.ok) return note(linked.diagnostics);
  std::ofstream(place + "model.mjs") << module_loader_text(packed_.header, "model.wasm");
  return judge({node, write_module_test(folder_.path(), vectors)});
}

Exit FirmwareCheck::run(const VerifyChoice& choice) {
  const Options& options = packed_.options;
  std::string error;
  const auto vectors = test_vectors(options, packed_.front, choice, error);
  if (!vectors) return note(error);
  if (options.target.kind == TargetKind::Wasm) return run_module(*vectors);
  const std::string test = testbench_text(
      options.name, header(), packed_.header.contents->entries.front(), *vectors);
  if (!options.runner.empty()) {
    if (!write_folder(test, error)) return note(error);
    std::vector<std::string> words = runner_words(options.runner);
    words.push_back(folder_.path());
    return judge(words);
  }
  const EmulatedBoard* board = find_board(options.target);
  const std::string emulator = board ? find_on_path(board->emulator) : "";
  if (emulator.empty())
    return note(options.target.alias + " runs in " +
                (board ? board->emulator : "no emulator") +
                ", which is not here; --runner CMD names a command that runs it");
  if (!make_image(*board, test, error))
    return note("the self-test does not link; where floats are software, " +
                std::string(board->compiler) + " on PATH has their functions:\n" + error);
  std::vector<std::string> words{emulator};
  words.insert(words.end(), board->words.begin(), board->words.end());
  if (options.profile) words.insert(words.end(), {"-icount", board->icount});
  words.insert(words.end(), {"-display", "none", "-serial", "none", "-monitor", "none",
                             "-chardev", "stdio,id=out", "-semihosting-config",
                             "enable=on,target=native,chardev=out", "-kernel", image()});
  return judge(words);
}

} // namespace

Exit verify_firmware(const PackedFirmware& packed, const VerifyChoice& choice,
                     const Console& console) {
  return FirmwareCheck(packed, console).run(choice);
}

} // namespace svod::packager
