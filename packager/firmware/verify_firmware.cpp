// A module runs in Node, a library in an image for an emulated board.
//
// A runner gets a folder with selftest.c, the library and its header. It builds, flashes
// and prints what the device prints: a line PASS decides.
#include "packager/firmware/verify_firmware.h"

#include "compiler/support/bytes.h"
#include "packager/artefact/compile_faults.h"
#include "packager/artefact/link_output.h"
#include "packager/artefact/module_loader.h"
#include "packager/firmware/device_test.h"
#include "packager/firmware/module_test.h"
#include "packager/firmware/test_vectors.h"
#include "packager/verify/run_program.h"
#include "packager/verify/runner.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>

namespace svod::packager {

namespace {

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
  Exit run_module(const TestVectors& vectors);
  Exit judge(const std::vector<std::string>& words) const;
  void print_profile(const DeviceRun& run) const;

  const PackedFirmware& packed_;
  const Console& console_;
  TemporaryFolder folder_;
};

// Instructions of each kernel and the ONNX nodes that it is made from, the largest first.
void FirmwareCheck::print_profile(const DeviceRun& run) const {
  const EmulatedBoard* board = find_board(packed_.options.target);
  if (!packed_.options.profile || board == nullptr) return;
  std::vector<std::pair<uint64_t, std::string>> rows;
  uint64_t total = 0;
  for (const auto& [program, count] : run.counted) {
    if (program >= packed_.kernels.sources.size()) continue;
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
  const DeviceRun run = read_device(ran);
  for (const std::string& line : run.lines)
    if (!console_.quiet() || line.starts_with("FAIL")) console_.print_line(line);
  if (run.passed) {
    print_profile(run);
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
  const DeviceTest test{
      options, packed_.objects, packed_.header,
      testbench_text(options.name, test_header(options),
                     packed_.header.contents->entries.front(), *vectors,
                     options.profile ? packed_.kernels.plan.programs.size() : 0)};
  if (!options.runner.empty()) {
    if (!write_folder(test, folder_.path(), error)) return note(error);
    std::vector<std::string> words = runner_words(options.runner);
    words.push_back(folder_.path());
    return judge(words);
  }
  const EmulatedBoard* board = find_board(options.target);
  const std::string emulator = board_emulator(options.target);
  if (emulator.empty())
    return note(options.target.alias + " runs in " +
                (board ? board->emulator : "no emulator") +
                ", which is not here; --runner CMD names a command that runs it");
  const std::string image = folder_.path() + "/image.elf";
  if (!link_image(test, *board, image, error))
    return note("the self-test does not link; where floats are software, " +
                std::string(board->compiler) + " on PATH has their functions:\n" + error);
  return judge(emulator_words(*board, emulator, image, options.profile));
}

} // namespace

Exit verify_firmware(const PackedFirmware& packed, const VerifyChoice& choice,
                     const Console& console) {
  return FirmwareCheck(packed, console).run(choice);
}

} // namespace svod::packager
