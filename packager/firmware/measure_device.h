// How --tune measures firmware: runs of its self-test, in which the library says which
// kernel has run. An emulated board counts instructions; a user's runner prints what its
// device counts.
#pragma once

#include "packager/firmware/device_test.h"
#include "packager/firmware/testbench.h"
#include "packager/tune/profile.h"
#include "packager/verify/verify.h"

#include <map>
#include <optional>
#include <string>

namespace svod::packager {

class DeviceMeasure {
public:
  // None where the model has no self-test; why is in `error`. The target has an emulated
  // board that is here, or there is a runner.
  static std::optional<DeviceMeasure> make(const Options& options, const Front& front,
                                           std::string& error);
  // Writes an image, or a folder for the runner, to `path`. The objects' run calls
  // svod_profile() and has so many programs.
  bool build(const Objects& objects, const HeaderFacts& header, size_t programs,
             const std::string& path);
  // Nothing where the self-test does not pass within `limit` seconds. A runner that
  // prints the object of --profile=json is taken by its word.
  std::optional<Profile> run(const std::string& path, double limit);

private:
  DeviceMeasure(const Options& options, TestVectors vectors)
      : options_(&options), vectors_(std::move(vectors)) {}
  Profile profile_of(const DeviceRun& run) const;

  const Options* options_;
  TestVectors vectors_;
  const EmulatedBoard* board_ = nullptr; // none with a runner
  // What images counted: the emulator counts the same whenever it runs one.
  std::map<std::string, Profile> counted_;
};

} // namespace svod::packager
