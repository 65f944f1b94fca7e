// One module for all kernels is one call of the driver when a program starts, and one of
// ptxas here: resnet50's 31 kernels take it 0.8 s on one core of a virtual machine.
#include "packager/artefact/machine_code.h"

#include "compiler/support/bytes.h"
#include "packager/verify/run_program.h"
#include "packager/verify/runner.h"

#include <fstream>
#include <iterator>

namespace svod::packager {

std::string find_ptxas(const std::string& option) {
  if (option == "off") return "";
  if (option.empty()) return find_on_path("ptxas");
  return option.find('/') == option.npos ? find_on_path(option) : option;
}

std::vector<std::byte> assemble(const std::string& ptxas, const std::string& architecture,
                                const std::vector<toolchain::PtxText>& kernels) {
  const TemporaryFolder folder;
  if (folder.path().empty()) return {};
  const std::string text = toolchain::one_module(kernels);
  const std::string from = folder.path() + "/kernels.ptx",
                    to = folder.path() + "/kernels.cubin";
  std::ofstream(from) << text;
  // sm_90a: instructions that no later architecture has.
  const std::string target = toolchain::target_of(text);
  const bool own = target.starts_with(architecture);
  const std::vector<std::string> words{ptxas, "-arch=" + (own ? target : architecture),
                                       "-o", to, from};
  if (run_program(words, "").code != 0) return {};
  std::ifstream file(to, std::ios::binary);
  const std::string code(std::istreambuf_iterator<char>(file), {});
  const auto bytes = std::as_bytes(std::span(code));
  return {bytes.begin(), bytes.end()};
}

} // namespace svod::packager
