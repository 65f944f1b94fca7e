// Any Cortex-M library runs on QEMU's MPS3 AN547 board: its Cortex-M55 executes the code
// of all smaller cores, and 2 GiB of memory hold every model. The image is compiled and
// linked here; only the functions of software floats come from the user's compiler, if
// there is one.
//
// A runner gets a folder with selftest.c, the library and its header. It builds, flashes
// and prints what the device prints: a line PASS decides.
#include "packager/firmware/verify_firmware.h"

#include "compiler/support/bytes.h"
#include "packager/artefact/link_output.h"
#include "packager/firmware/test_vectors.h"
#include "packager/verify/run_program.h"
#include "packager/verify/runner.h"

#include <fstream>
#include <sstream>

namespace svod::packager {

namespace {

constexpr char kScript[] = R"(ENTRY(svod_reset)
MEMORY {
  RESET (rx) : ORIGIN = 0x00000000, LENGTH = 512K
  ALL (rwx) : ORIGIN = 0x60000000, LENGTH = 2048M
}
SECTIONS {
  .vectors : { KEEP(*(.vectors)) } > RESET
  .text : { *(.text*) *(.rodata*) *(.svod*) } > ALL
  .data : { *(.data*) } > ALL
  .bss : { *(.bss* COMMON) } > ALL
  .stack (NOLOAD) : { . = ALIGN(8); . += 16M; svod_stack_top = .; } > ALL
  /DISCARD/ : { *(.ARM.exidx*) }
}
)";

// The reset vector; the floating-point and the vector unit are off until asked for.
constexpr char kStart[] = R"(#include <stdint.h>
extern char svod_stack_top[];
int main(void);
void svod_reset(void);
__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    svod_stack_top, (const void*)svod_reset, (const void*)svod_reset,
    (const void*)svod_reset};
void svod_reset(void) {
  *(volatile uint32_t*)0xE000ED88 |= 0xFu << 20;
  __asm__ volatile("dsb\n\tisb");
  const uint32_t stopped[] = {0x20026, (uint32_t)main()};
  register uint32_t r0 __asm__("r0") = 0x20;
  register const uint32_t* r1 __asm__("r1") = stopped;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  for (;;) {
  }
}
)";

// What the compiler of the target's toolchain has for floats in software.
std::vector<std::string> float_library(const Target& target) {
  const std::string compiler = find_on_path("arm-none-eabi-gcc");
  if (compiler.empty()) return {};
  std::vector<std::string> words{compiler, "-mthumb"};
  for (const std::string& flag : target.levels.front().flags)
    if (flag.starts_with("-mcpu") || flag.starts_with("-mf")) words.push_back(flag);
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
  bool make_image(const std::string& test, std::string& error);
  bool write_folder(const std::string& test, std::string& error);
  Exit judge(const std::vector<std::string>& words) const;
  std::string header() const { return "lib" + packed_.options.name + ".h"; }
  std::string image() const { return folder_.path() + "/image.elf"; }

  const PackedFirmware& packed_;
  const Console& console_;
  TemporaryFolder folder_;
};

bool FirmwareCheck::make_image(const std::string& test, std::string& error) {
  const Target& target = packed_.options.target;
  const toolchain::Compiler compiler({{header(), header_text(packed_.header)}});
  std::vector<std::vector<std::byte>> own;
  for (const auto& [name, text] :
       {std::pair<std::string, std::string>{"test.c", test}, {"start.c", kStart}}) {
    toolchain::Source source;
    source.name = name;
    source.text = text;
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
      toolchain::link_image(target, inputs, kScript, {}, image());
  if (!linked.ok)
    linked =
        toolchain::link_image(target, inputs, kScript, float_library(target), image());
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

Exit FirmwareCheck::judge(const std::vector<std::string>& words) const {
  const Ran ran = run_program(words, "");
  std::istringstream lines(ran.said);
  bool passed = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    passed |= line == "PASS";
    if (!console_.quiet() || line.starts_with("FAIL")) console_.print_line(line);
  }
  if (passed && ran.code == 0) return Exit::Done;
  console_.error("the self-test of " + packed_.options.target.alias + " failed" +
                 (ran.said.find("FAIL") != std::string::npos
                      ? ""
                      : ": its runner ended with " + std::to_string(ran.code) +
                            " and said no PASS"));
  return Exit::VerifyMismatch;
}

Exit FirmwareCheck::run(const VerifyChoice& choice) {
  const Options& options = packed_.options;
  std::string error;
  const auto vectors = test_vectors(options, packed_.front, choice, error);
  if (!vectors) return note(error);
  const std::string test = testbench_text(
      options.name, header(), packed_.header.contents->entries.front(), *vectors);
  if (!options.runner.empty()) {
    if (!write_folder(test, error)) return note(error);
    std::vector<std::string> words = runner_words(options.runner);
    words.push_back(folder_.path());
    return judge(words);
  }
  const std::string emulator = find_on_path("qemu-system-arm");
  if (!options.target.triple.starts_with("thumb") || emulator.empty())
    return note(options.target.alias +
                " has no emulator here; --runner CMD names a command that runs it");
  if (!make_image(test, error))
    return note("the self-test does not link; where floats are software, "
                "arm-none-eabi-gcc on PATH has their functions:\n" +
                error);
  return judge({emulator, "-M", "mps3-an547", "-display", "none", "-serial", "none",
                "-monitor", "none", "-chardev", "stdio,id=out", "-semihosting-config",
                "enable=on,target=native,chardev=out", "-kernel", image()});
}

} // namespace

Exit verify_firmware(const PackedFirmware& packed, const VerifyChoice& choice,
                     const Console& console) {
  return FirmwareCheck(packed, console).run(choice);
}

} // namespace svod::packager
