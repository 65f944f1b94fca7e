// Addresses are made by code and names are arrays of bytes, so that the text holds no
// pointer that would need relocation, and nothing of the model but counts.
#include "packager/artefact/glue.h"

#include "compiler/support/check.h"
#include "compiler/toolchain/cpu.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace svod::packager {

namespace {

// Features by LLVM's names, which a program asks its CPU for: SvodCpuFeature of
// runtime_stub/cpu.h. The level of a row stands for all features up to it.
struct FeatureRow {
  const char* triple; // begins with
  const char* feature;
  const char* name;
};
constexpr FeatureRow kFeatures[] = {
    {"x86_64", "sse4.2", "SVOD_CPU_X86_64_V2"},
    {"x86_64", "avx2", "SVOD_CPU_X86_64_V3"},
    {"x86_64", "avx512vl", "SVOD_CPU_X86_64_V4"},
    {"x86_64", "avx512vnni", "SVOD_CPU_AVX512_VNNI"},
    {"x86_64", "avxvnni", "SVOD_CPU_AVX_VNNI"},
    {"x86_64", "avx512vbmi", "SVOD_CPU_AVX512_VBMI"},
    {"x86_64", "avx512vbmi2", "SVOD_CPU_AVX512_VBMI2"},
    {"x86_64", "avx512ifma", "SVOD_CPU_AVX512_IFMA"},
    {"x86_64", "avx512bitalg", "SVOD_CPU_AVX512_BITALG"},
    {"x86_64", "avx512vpopcntdq", "SVOD_CPU_AVX512_VPOPCNTDQ"},
    {"x86_64", "avx512bf16", "SVOD_CPU_AVX512_BF16"},
    {"x86_64", "avx512fp16", "SVOD_CPU_AVX512_FP16"},
    {"x86_64", "gfni", "SVOD_CPU_GFNI"},
    {"x86_64", "amx-int8", "SVOD_CPU_AMX_INT8"},
    {"aarch64-linux", "dotprod", "SVOD_CPU_DOTPROD"},
    {"aarch64-linux", "i8mm", "SVOD_CPU_I8MM"},
    {"aarch64-linux", "fullfp16", "SVOD_CPU_FP16"},
    {"aarch64-linux", "sve", "SVOD_CPU_SVE"},
    {"aarch64-linux", "msve-vector-bits=256", "SVOD_CPU_SVE_256"},
    {"riscv64-linux", "v", "SVOD_CPU_VECTORS"},
};

// A level is named as a CPU: x86-64-v3 is one to LLVM, too. Where it is not, its -march
// names what it has beyond the architecture's first version, behind + or, on RISC-V, _.
// How long its vectors are is a flag of its own.
bool has_feature(const Target& target, const Level& level, const std::string& feature) {
  const bool named = std::ranges::any_of(level.flags, [&](std::string flag) {
    if (flag == "-" + feature) return true;
    std::ranges::replace(flag, '_', '+');
    return flag.starts_with("-march=") &&
           (flag + "+").find("+" + feature + "+") != flag.npos;
  });
  return named || toolchain::cpu_has(target, level.name, feature);
}

std::string features_of(const Target& target, const Level& level) {
  std::string out = "0";
  for (const FeatureRow& row : kFeatures) {
    if (!target.triple.starts_with(row.triple) ||
        !has_feature(target, level, row.feature))
      continue;
    // A process asks for tiles only where it multiplies them.
    if (row.feature == std::string_view("amx-int8") && !level.has_tiles()) continue;
    out += std::string(" | ") + row.name;
  }
  return out;
}

void write_levels(std::ostream& out, const Target& target) {
  out << "static constexpr SvodLevel kLevels[] = {\n";
  for (const Level& level : target.levels) {
    out << "  {\"" << level.suffix.substr(0, 23) << "\", " << features_of(target, level)
        << "},\n";
  }
  out << "};\n\n";
}

void write_model(std::ostream& out, const Target& target, const GlueData& data) {
  const bool any = !data.weights.empty(), weights = any && !data.stored;
  out << "extern const uint8_t svod_image[];\n";
  const std::string symbol = data.weights + (data.far ? "_end" : "");
  if (any) out << "extern const uint8_t " << symbol << "[];\n";
  const uint64_t bytes = data.stored.value_or(data.weight_bytes);
  const std::string begin =
      symbol + (data.far ? " - " + std::to_string(bytes) + "u" : "");
  if (data.stored)
    out << "void svod_get_stored(const void** data, uint64_t* bytes) {\n"
        << "  *data = " << (any ? begin : "nullptr") << ";\n"
        << "  *bytes = " << (any ? bytes : 0) << "u;\n}\n";
  out << "void svod_get_model(SvodModel* model) {\n"
      << "  model->image = svod_image;\n"
      << "  model->image_bytes = " << data.image_bytes << "u;\n"
      << "  model->weights = " << (weights ? begin : "nullptr") << ";\n"
      << "  model->weight_bytes = " << (weights ? data.weight_bytes : 0) << "u;\n"
      << "  model->launch = svod_launch;\n"
      << "  model->levels = kLevels;\n"
      << "  model->level_count = " << target.levels.size() << ";\n}\n";
}

// They are letters, digits and _.
void write_entry_names(std::ostream& out, const std::vector<std::string>& names) {
  out << "const char* svod_entry_name(uint32_t entry) {\n  switch (entry) {\n";
  for (size_t i = 0; i < names.size(); i++)
    out << "  case " << i << ": return \"" << names[i] << "\";\n";
  out << "  default: return \"\";\n  }\n}\n";
}

// The processor's steps of a GPU's plan are kernels that its own plan has, too.
void write_launch_here(std::ostream& out, size_t entry, const ProgramsHere& programs) {
  out << "static int32_t svod_launch_here_" << entry
      << "(uint32_t level, uint32_t program,\n"
      << "    void* const* buffers, void* scratch, uint32_t chunk) {\n"
      << "  switch (program) {\n";
  for (const auto& [there, here] : programs)
    out << "  case " << there << ": return svod_launch(level, " << here
        << "u, buffers, scratch, chunk);\n";
  out << "  default: return SVOD_INDEX;\n  }\n}\n";
}

void write_devices(std::ostream& out, const std::vector<DeviceSizes>& devices,
                   const std::vector<ProgramsHere>& programs) {
  const uint64_t weights = devices.front().weights;
  out << "extern const uint8_t svod_device_weights[];\n";
  for (size_t i = 0; i < devices.size(); i++) {
    out << "extern const uint8_t svod_device_image_" << i << "[], svod_device_programs_"
        << i << "[];\n";
    if (!programs[i].empty()) write_launch_here(out, i, programs[i]);
  }
  out << "void svod_get_device(SvodDevice* device, uint32_t entry) {\n"
      << "  device->weights = " << (weights == 0 ? "nullptr" : "svod_device_weights")
      << ";\n  device->weight_bytes = " << weights << "u;\n  switch (entry) {\n";
  for (size_t i = 0; i < devices.size(); i++)
    out << (i + 1 == devices.size() ? "  default:\n"
                                    : "  case " + std::to_string(i) + ":\n")
        << "    device->image = svod_device_image_" << i << ";\n"
        << "    device->image_bytes = " << devices[i].image << "u;\n"
        << "    device->programs = svod_device_programs_" << i << ";\n"
        << "    device->program_bytes = " << devices[i].programs << "u;\n"
        << "    device->launch = "
        << (programs[i].empty() ? "nullptr" : "svod_launch_here_" + std::to_string(i))
        << ";\n    break;\n";
  out << "  }\n}\n";
}

void write_launch(std::ostream& out, const Target& target,
                  const codegen::Kernels& kernels) {
  std::map<std::string, size_t> level_number;
  for (size_t i = 0; i < target.levels.size(); i++) {
    level_number[target.levels[i].suffix] = i;
  }
  size_t programs = kernels.plan.programs.size();
  for (const codegen::KernelSource& kernel : kernels.sources) {
    out << "int32_t " << kernel.symbol << "(void* const*, void*, uint32_t);\n";
  }
  out << "int32_t svod_launch(uint32_t level, uint32_t program, void* const* buffers,\n"
      << "                    void* scratch, uint32_t chunk) {\n"
      << "  switch (level * " << programs << "u + program) {\n";
  for (const codegen::KernelSource& kernel : kernels.sources) {
    auto level = level_number.find(kernel.level);
    SVOD_CHECK(level != level_number.end()) << "kernel of unknown level " << kernel.level;
    const size_t last = kernel.serves_all ? target.levels.size() - 1 : level->second;
    for (size_t i = level->second; i <= last; i++) {
      out << "  case " << i * programs + kernel.program << ":\n";
    }
    out << "    return " << kernel.symbol << "(buffers, scratch, chunk);\n";
  }
  out << "  default: return SVOD_INDEX;\n  }\n}\n\n";
}

} // namespace

std::string glue_text(const Target& target, const codegen::Kernels& kernels,
                      const GlueData& data) {
  std::ostringstream out;
  out << "#include \"runtime_stub/cpu.h\"\n#include \"runtime_stub/replay.h\"\n\n";
  if (!data.devices.empty()) out << "#include \"runtime_stub/device_format.h\"\n\n";
  write_levels(out, target);
  out << "extern \"C\" {\n\n";
  write_launch(out, target, kernels);
  write_model(out, target, data);
  if (!data.entries.empty()) write_entry_names(out, data.entries);
  if (!data.devices.empty()) write_devices(out, data.devices, data.programs_here);
  out << "\n}\n";
  return out.str();
}

} // namespace svod::packager
