#include "packager/artefact/stub_jobs.h"

#include "packager/artefact/byte_list.h"
#include "packager/artefact/stub_sources.h"

#include <algorithm>

namespace svod::packager {

namespace {

constexpr std::string_view kProgram = "runtime_stub/program/";
constexpr std::string_view kExports = "runtime_stub/library.cpp";
constexpr std::string_view kCheck = "runtime_stub/check_image.cpp";
// Sources that name it are other ones where there are several entries.
constexpr std::string_view kSeveral = "SVOD_SEVERAL_ENTRIES";
constexpr std::string_view kEntries = "runtime_stub/program/entries.cpp";
// What packages for a GPU have in common, then what is a program's or a library's. The
// others of a program that know of it, or of states, share a header: all are told.
constexpr std::string_view kDevice = "runtime_stub/device/";
constexpr std::string_view kDeviceFiles[] = {"runtime_stub/program/device.cpp",
                                             "runtime_stub/program/device_times.cpp",
                                             "runtime_stub/library_device.cpp"};

bool is_for_device(std::string_view name) {
  return name.starts_with(kDevice) ||
         std::ranges::find(kDeviceFiles, name) != std::end(kDeviceFiles);
}

const ProgramPart kParts[] = {
    {"batch", "SVOD_WITH_BATCH", {"batch.cpp", "folder.cpp"}},
    {"jsonl", "SVOD_WITH_JSONL", {"json_lines.cpp", "shortest.cpp"}},
    {"trace", "SVOD_WITH_TRACE", {"trace.cpp"}},
};
// Sources that name these are other ones where weights are made at the start, and where
// they are compressed.
constexpr std::string_view kMakesWeights = "SVOD_MAKES_WEIGHTS", kZstd = "SVOD_ZSTD";
// Of a program whose inputs are picture files; the others know of it, too.
constexpr std::string_view kPictureFile = "runtime_stub/program/pictures.cpp";
// What makes weights, of packages that have some in another form.
struct FormRow {
  std::string_view name;
  bool zstd, expand, library;
};
constexpr FormRow kForms[] = {
    {"runtime_stub/expansion.cpp", false, true, true},
    {"runtime_stub/program/expanded_weights.cpp", false, true, false},
    {"runtime_stub/program/make_weights.cpp", true, true, false},
    {"runtime_stub/program/zstd_weights.cpp", true, false, false},
    {"zstd.c", true, false, false},
};
// Their time is between the start of a program and its first answer.
constexpr std::string_view kAtStart[] = {"runtime_stub/expansion.cpp", "zstd.c"};

// Which sources of runtime_stub/ a package takes.
struct StubRow {
  std::string_view name;
  bool program, library, firmware;
};
constexpr StubRow kStub[] = {
    // Empty but for 32-bit Arm Linux, and for 32-bit x86.
    {"runtime_stub/builtins_arm.cpp", true, true, false},
    {"runtime_stub/builtins_i386.cpp", true, true, false},
    {kCheck, true, true, false},
    {"runtime_stub/cpu.cpp", true, true, false},
    {kExports, false, true, false},
    {"runtime_stub/filter_linux.cpp", true, false, false},
    {"runtime_stub/library_device.cpp", false, true, false},
    {"runtime_stub/memory.cpp", true, true, true},
    {"runtime_stub/platform_linux.cpp", true, false, false},
    {"runtime_stub/pool.cpp", true, false, false},
    {"runtime_stub/replay.cpp", true, true, false},
    {"runtime_stub/start_linux.cpp", true, false, false},
    {"runtime_stub/status_text.cpp", false, false, true},
};

bool is_wanted(std::string_view name, StubKind kind, WeightPlace place) {
  const auto form = std::ranges::find(kForms, name, &FormRow::name);
  if (form != std::end(kForms))
    return ((place == WeightPlace::Zstd && form->zstd) ||
            (place == WeightPlace::Expand && form->expand)) &&
           (kind == StubKind::Program || form->library);
  if (!name.ends_with(".cpp")) return false;
  if (name.starts_with(kProgram)) return kind == StubKind::Program;
  if (name.starts_with(kDevice)) return kind != StubKind::Firmware;
  auto row = std::ranges::find(kStub, name, &StubRow::name);
  if (row == std::end(kStub)) return false;
  if (kind == StubKind::Firmware) return row->firmware;
  return kind == StubKind::Program ? row->program : row->library;
}

bool has_part(uint32_t parts, size_t number) { return (parts >> number & 1) != 0; }

// Whether a file of a program is of a part that is not wanted.
bool is_left_out(std::string_view name, uint32_t parts) {
  name.remove_prefix(kProgram.size());
  for (size_t i = 0; i < std::size(kParts); i++)
    if (!has_part(parts, i) && std::ranges::count(kParts[i].files, name) > 0) return true;
  return false;
}

// Of the parts that are wanted, where the file asks for them.
std::vector<std::string> macros_of(const StubFile& file, uint32_t parts) {
  std::vector<std::string> out;
  for (size_t i = 0; i < std::size(kParts); i++)
    if (has_part(parts, i) && file.text.find(kParts[i].macro) != file.text.npos)
      out.emplace_back(kParts[i].macro);
  return out;
}

} // namespace

std::span<const ProgramPart> program_parts() { return kParts; }

toolchain::Compiler package_compiler() {
  std::vector<SourceFile> headers;
  for (const StubFile& file : stub_files()) {
    if (file.name.ends_with(".cpp") || file.name.ends_with(".c")) continue;
    headers.push_back({std::string(file.name), std::string(file.text)});
  }
  return toolchain::Compiler(std::move(headers));
}

std::vector<std::string> package_flags(std::vector<std::string> extra) {
  extra.emplace_back("-fstack-size-section");
  return extra;
}

std::vector<std::string> stub_flags(const Target& target,
                                    std::vector<std::string> extra) {
  extra.emplace_back("-Os");
  // It runs before the CPU is asked for what kernels need; a level may have single
  // features beside its version.
  if (target.is_x86()) {
    extra.emplace_back("-march=x86-64");
    extra.emplace_back("-mno-avx");
  }
  return package_flags(std::move(extra));
}

static std::vector<std::string> macros_of(const ImageContents::Changes& changes) {
  return {"-DSVOD_CHANGES=" + mask_list(changes.masks),
          "-DSVOD_CHANGES_AT=" + std::to_string(changes.offset) + "u",
          "-DSVOD_CHANGES_KEY=" + std::to_string(changes.key) + "ull"};
}

// The prefix is told to the one file that names what a library exports, so that all
// others are the same in every package.
std::vector<toolchain::CompileJob> stub_jobs(const Target& target, StubKind kind,
                                             const std::string& prefix,
                                             const StubParts& parts) {
  std::vector<toolchain::CompileJob> out;
  for (const StubFile& file : stub_files()) {
    if (!is_wanted(file.name, kind, parts.place) ||
        (file.name == kEntries && !parts.several) ||
        (file.name == kPictureFile && !parts.pictures))
      continue;
    if (!parts.device && is_for_device(file.name)) continue;
    if (file.name.starts_with(kProgram) && is_left_out(file.name, parts.program))
      continue;
    toolchain::Source source;
    source.name = file.name;
    source.text = file.text;
    std::vector<std::string> own;
    if (file.name == kExports) own.push_back("-DSVOD_PREFIX=" + prefix);
    if (file.name == kExports && parts.self_check) own.emplace_back("-DSVOD_SELF_CHECK");
    if (file.name == kExports && !parts.changes.masks.empty())
      std::ranges::copy(macros_of(parts.changes), std::back_inserter(own));
    if (kind == StubKind::Firmware) own.emplace_back("-DSVOD_SHARED");
    if (parts.several && file.text.find(kSeveral) != file.text.npos)
      own.push_back("-D" + std::string(kSeveral));
    for (const std::string& macro : macros_of(file, parts.program))
      own.push_back("-D" + macro);
    const bool in_program = file.name.starts_with(kProgram);
    if (parts.states && (in_program || file.name == kExports || file.name == kCheck))
      own.emplace_back("-DSVOD_STATES");
    if (parts.device && (in_program || file.name == kExports))
      own.emplace_back("-DSVOD_DEVICE");
    if (parts.pictures && in_program) own.emplace_back("-DSVOD_PICTURES");
    for (const auto& [macro, has] :
         {std::pair(kMakesWeights, is_made_at_start(parts.place)),
          std::pair(kZstd, parts.place == WeightPlace::Zstd)})
      if (has && file.text.find(macro) != file.text.npos)
        own.push_back("-D" + std::string(macro));
    source.flags = stub_flags(target, std::move(own));
    if (std::ranges::find(kAtStart, file.name) != std::end(kAtStart))
      source.flags.emplace_back("-O2");
    // Of what is read and printed, bytes count and time does not. On 32 bits it would
    // call the compiler's own library for shifts.
    if (in_program && target.pointer_bits == 64) source.flags.emplace_back("-Oz");
    out.push_back({&target.levels.front(), std::move(source), std::string(file.name)});
  }
  return out;
}

} // namespace svod::packager
