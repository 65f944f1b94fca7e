// What a program says of itself without running its model.
#include "runtime_stub/program/json_text.h"
#include "runtime_stub/program/modes.h"
#include "runtime_stub/program/strings.h"
#ifdef SVOD_ZSTD
#include "runtime_stub/program/make_weights.h"
#endif

namespace packed {

namespace {

struct FeatureRow {
  uint32_t feature; // of SvodCpuFeature
  char name[36];
};
constexpr FeatureRow kFeatures[] = {
#if defined(__aarch64__)
    {SVOD_CPU_DOTPROD, "dotprod (SDOT)"},
    {SVOD_CPU_I8MM, "i8mm (SMMLA)"},
    {SVOD_CPU_FP16, "fp16"},
    {SVOD_CPU_SVE, "SVE"},
    {SVOD_CPU_SVE_256, "SVE vectors of exactly 256 bits"},
#elif defined(__riscv)
    {SVOD_CPU_VECTORS, "V (vectors of 128 bits or more)"},
#else
    {SVOD_CPU_X86_64_V2, "x86-64-v2 (SSE4.2, POPCNT)"},
    {SVOD_CPU_X86_64_V3, "x86-64-v3 (AVX2, FMA, BMI2)"},
    {SVOD_CPU_X86_64_V4, "x86-64-v4 (AVX-512 F BW CD DQ VL)"},
    {SVOD_CPU_AVX512_VNNI, "AVX512-VNNI"},
    {SVOD_CPU_AVX_VNNI, "AVX-VNNI"},
    {SVOD_CPU_AVX512_VBMI, "AVX512-VBMI"},
    {SVOD_CPU_AVX512_VBMI2, "AVX512-VBMI2"},
    {SVOD_CPU_AVX512_IFMA, "AVX512-IFMA"},
    {SVOD_CPU_AVX512_BITALG, "AVX512-BITALG"},
    {SVOD_CPU_AVX512_VPOPCNTDQ, "AVX512-VPOPCNTDQ"},
    {SVOD_CPU_AVX512_BF16, "AVX512-BF16"},
    {SVOD_CPU_AVX512_FP16, "AVX512-FP16"},
    {SVOD_CPU_GFNI, "GFNI"},
    {SVOD_CPU_AMX_INT8, "AMX-INT8 (as Linux allows it)"},
#endif
};

} // namespace

// The first of that name. Quotes within texts are escaped there, so a key is found
// nowhere but where it stands.
Text manifest_text(const Session& session, Text key) {
  Text rest = text_of(session, svod_header(session.model.image)->manifest);
  for (; rest.size > key.size; rest = rest.from(1)) {
    if (!rest.starts_with(key)) continue;
    Text scalar = json_scalar(rest.from(key.size)), out;
    auto buffer = static_cast<char*>(take_memory(scalar.size));
    bool read = buffer != nullptr && read_json_string(scalar, buffer, out);
    return read ? out : Text();
  }
  return {};
}

void print_missing(Printer& out, uint32_t needed) {
  const uint32_t missing = svod_missing_features(needed);
  bool first = true;
  for (const FeatureRow& row : kFeatures) {
    if ((row.feature & missing) == 0) continue;
    out << (first ? "" : ", ") << row.name;
    first = false;
  }
}

void print_version(const Session& session) {
  Printer out(1);
  out << "packed by svod-pack " << manifest_text(session, "\"svod-pack\": ")
      << ", image version " << SVOD_FORMAT_VERSION << "\nmodel '";
  out.name(manifest_text(session, "\"name\": ")) << "', sha256 ";
  out.hexadecimal(svod_header(session.model.image)->model_sha256, 32) << "\n";
}

void print_licenses(const Session& session) {
  Printer out(1);
  Text model = manifest_text(session, "\"license\": ");
  out << "model and weights: ";
  if (model.size == 0) {
    out << "the model's metadata names no licence; ask whoever made it\n";
  } else {
    print_quoted(out, model);
    out << ", says the model's metadata\n";
  }
  out << "program and kernels, made by svod-pack: Apache-2.0 WITH LLVM-exception, which "
         "asks for no\n  notice in what is compiled with it\n"
         "case mappings, in models that change the case of strings: Unicode-3.0 (Unicode "
         "Character Database)\n";
#ifdef SVOD_ZSTD
  print_zstd_licence(out);
#endif
  out << "nothing else is in this file: no C library, no compiler's library\n";
}

Exit check_cpu(Session& session, const SessionOptions& options, Printer& errors) {
  Exit status = choose_level(session, options.isa, errors);
  if (status != EXIT_DONE) return status;
  const SvodLevel& chosen = session.model.levels[session.level];
  Printer out(1);
  if (session.model.level_count == 1 && chosen.features == 0) {
    out << chosen.name
        << ": not checked, since it asks nothing that is known at run time\n";
    return EXIT_DONE;
  }
  for (uint32_t i = 0; i < session.model.level_count; i++) {
    const SvodLevel& level = session.model.levels[i];
    out << level.name << ": ";
    if (svod_missing_features(level.features) == 0) {
      out << (i == session.level ? "runs here, and is used\n" : "runs here\n");
      continue;
    }
    out << "this CPU lacks ";
    print_missing(out, level.features);
    out << "\n";
  }
  return EXIT_DONE;
}

} // namespace packed
