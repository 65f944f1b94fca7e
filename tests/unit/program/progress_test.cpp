// What a waiting user is told: the stage, how many kernels are done, the slowest, the
// time left; and codes of messages.
#include "packager/report/codes.h"
#include "packager/report/progress.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace svod;
using namespace svod::packager;
using namespace std::chrono_literals;

namespace {

class Lines {
public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

} // namespace

TEST_CASE("a terminal shows each stage and each kernel at once", "[progress]") {
  Lines lines;
  {
    Progress progress(true, 1h, [&](const std::string& line) { lines.add(line); });
    progress.stage("planning m.onnx");
    progress.stage("compiling m.onnx");
    progress.kernel("k1_v3", 2500, true, 2, 4);
    progress.end();
  }
  const std::vector<std::string> shown = lines.all();
  REQUIRE(shown.size() == 3);
  CHECK(shown[0] == "planning m.onnx");
  CHECK(shown[1] == "compiling m.onnx");
  CHECK(shown[2].starts_with("compiling m.onnx, 2 of 4, slowest k1_v3 2.5 s"));
}

TEST_CASE("a log gets a line every so often while nothing is said", "[progress]") {
  Lines lines;
  Progress progress(false, 5ms, [&](const std::string& line) { lines.add(line); });
  progress.stage("compiling m.onnx");
  progress.kernel("k0_v3", 0, false, 1, 4);
  progress.kernel("k1_v3", 2500, true, 2, 4);
  progress.kernel("k2_v3", 300, true, 3, 4);
  const size_t before = lines.all().size();
  while (lines.all().size() < before + 2) std::this_thread::sleep_for(1ms);
  progress.end();
  const std::string last = lines.all().back();
  INFO(last);
  CHECK(last.starts_with("compiling m.onnx, 3 of 4, slowest k1_v3 2.5 s"));
  CHECK(last.ends_with(" s left"));
  const size_t count = lines.all().size();
  std::this_thread::sleep_for(20ms);
  CHECK(lines.all().size() == count);
}

TEST_CASE("every message has a code", "[progress]") {
  CHECK(code_of(Severity::Error, Exit::Unsupported, "operator a.B is unknown") ==
        "E0304");
  CHECK(code_of(Severity::Error, Exit::Unsupported, "something else") == "E0300");
  CHECK(code_of(Severity::Error, Exit::File, "a pointer of Git LFS") == "E0401");
  CHECK(code_of(Severity::Warning, Exit::Done, "something else") == "W0000");
  CHECK(code_of(Severity::Note, Exit::Done, "the leading dimension of") == "N0001");
  CHECK(code_of(Severity::Error, Exit::Done, "an error without a reason") == "E0500");
}
