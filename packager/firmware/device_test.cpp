#include "packager/firmware/device_test.h"

#include "packager/artefact/link_output.h"
#include "packager/firmware/testbench.h"
#include "packager/verify/runner.h"

#include <fstream>
#include <sstream>

namespace svod::packager {

namespace {

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

} // namespace

std::string board_emulator(const Target& target) {
  const EmulatedBoard* board = find_board(target);
  return board != nullptr ? find_on_path(board->emulator) : "";
}

std::string test_header(const Options& options) { return "lib" + options.name + ".h"; }

bool link_image(const DeviceTest& test, const EmulatedBoard& board,
                const std::string& path, std::string& error) {
  const Target& target = test.options.target;
  const toolchain::Compiler compiler(
      {{test_header(test.options), header_text(test.header)}});
  std::vector<std::vector<std::byte>> own;
  for (const auto& [name, text] :
       {std::pair<std::string, std::string>{"test.c", kBoardCounter + test.text},
        {"start.c", start_text(board)}}) {
    toolchain::Source source;
    source.name = name;
    source.text = text;
    toolchain::CompileResult made =
        compiler.compile(target, target.levels.front(), source);
    error = made.diagnostics;
    if (!made.ok) return false;
    own.push_back(std::move(made.output));
  }
  toolchain::LinkInputs inputs = link_inputs(test.objects, true);
  for (const auto& object : test.objects.shared) inputs.objects.push_back(object);
  for (const auto& object : own) inputs.objects.push_back(object);
  toolchain::LinkResult linked =
      toolchain::link_image(target, inputs, board.script, {}, path);
  if (!linked.ok)
    linked = toolchain::link_image(target, inputs, board.script,
                                   float_library(target, board.compiler), path);
  error = linked.diagnostics;
  return linked.ok;
}

bool write_folder(const DeviceTest& test, const std::string& folder, std::string& error) {
  const std::string place = folder + "/";
  std::ofstream(place + "selftest.c") << test.text;
  std::ofstream(place + test_header(test.options)) << header_text(test.header);
  const toolchain::LinkResult linked =
      link_archive(test.options, test.objects, place + "lib" + test.options.name + ".a");
  error = linked.diagnostics;
  return linked.ok;
}

std::vector<std::string> emulator_words(const EmulatedBoard& board,
                                        const std::string& emulator,
                                        const std::string& image, bool counts) {
  std::vector<std::string> words{emulator};
  words.insert(words.end(), board.words.begin(), board.words.end());
  if (counts) words.insert(words.end(), {"-icount", board.icount});
  words.insert(words.end(), {"-display", "none", "-serial", "none", "-monitor", "none",
                             "-chardev", "stdio,id=out", "-semihosting-config",
                             "enable=on,target=native,chardev=out", "-kernel", image});
  return words;
}

DeviceRun read_device(const Ran& ran) {
  DeviceRun out;
  std::istringstream lines(ran.said);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.starts_with(kProfileLine)) {
      out.passed |= line == "PASS";
      out.lines.push_back(line);
      continue;
    }
    std::istringstream numbers(line.substr(kProfileLine.size()));
    uint64_t program = 0, count = 0;
    numbers >> std::hex >> program >> count;
    if (numbers) out.counted[program] += count;
  }
  out.passed &= ran.code == 0;
  return out;
}

} // namespace svod::packager
