#include "packager/firmware/measure_device.h"

#include "packager/firmware/test_vectors.h"
#include "packager/tune/trials.h"
#include "packager/verify/runner.h"

#include <filesystem>

namespace svod::packager {

std::optional<DeviceMeasure> DeviceMeasure::make(const Options& options,
                                                 const Front& front, std::string& error) {
  VerifyChoice choice = verify_choice(options);
  if (choice.name.empty()) choice = {"random", true};
  std::optional<TestVectors> vectors = test_vectors(options, front, choice, error);
  if (!vectors) return std::nullopt;
  DeviceMeasure out(options, std::move(*vectors));
  if (options.runner.empty()) out.board_ = find_board(options.target);
  return out;
}

bool DeviceMeasure::build(const Objects& objects, const HeaderFacts& header,
                          size_t programs, const std::string& path) {
  counted_.erase(path);
  const DeviceTest test{*options_, objects, header,
                        testbench_text(options_->name, test_header(*options_),
                                       header.contents->entries.front(), vectors_,
                                       programs)};
  std::string error;
  if (board_ != nullptr) return link_image(test, *board_, path, error);
  std::error_code failed;
  std::filesystem::create_directory(path, failed);
  return !failed && write_folder(test, path, error);
}

Profile DeviceMeasure::profile_of(const DeviceRun& run) const {
  Profile out;
  out.level = options_->target.levels.back().suffix;
  out.unit = board_ != nullptr ? "instructions" : "counts";
  for (const auto& [program, count] : run.counted) {
    const double took = static_cast<double>(count) / (board_ ? board_->counts : 1);
    out.kernels[program_name(program)] = took;
    out.total += took;
  }
  return out;
}

std::optional<Profile> DeviceMeasure::run(const std::string& path, double limit) {
  if (const auto known = counted_.find(path); known != counted_.end())
    return known->second;
  std::vector<std::string> words;
  if (board_ != nullptr) {
    words = emulator_words(*board_, board_emulator(options_->target), path, true);
  } else {
    words = runner_words(options_->runner);
    words.push_back(path);
  }
  const Ran ran = run_program(words, "", limit);
  if (board_ == nullptr && ran.code == 0)
    if (auto profile = parse_profile(ran.said)) return profile;
  const DeviceRun said = read_device(ran);
  if (!said.passed || said.counted.empty()) return std::nullopt;
  const Profile out = profile_of(said);
  if (board_ != nullptr) counted_.emplace(path, out);
  return out;
}

} // namespace svod::packager
