// check, key, ops, cache and doctor. Each prints what it was asked for on stdout.
#include "packager/verbs.h"

#include "compiler/toolchain/object_cache.h"
#include "packager/artefact/objects.h"
#include "packager/front.h"
#include "packager/version.h"

#include <iostream>

#include <unistd.h>

namespace svod::packager {

namespace {

// 4 GiB: some thousand models' kernels.
constexpr uint64_t kKeptBytes = uint64_t{4} << 30;

std::string type_text(const Interface& seen) {
  std::string out = onnx_type_text(seen.onnx_type) + '[';
  for (size_t i = 0; i < seen.shape.size(); i++) {
    out += (i ? "," : "") + std::to_string(seen.shape[i]);
  }
  return out + ']';
}

std::optional<Front> front_of(const Options& options, const Console& console,
                              Exit& exit) {
  Diags diags;
  std::optional<Front> front = read_front(options, diags);
  console.print(diags, options.model_name());
  exit = front ? Exit::Done : diags.failed() ? diags.exit() : Exit::Bug;
  return front;
}

// stdout may be a full disk or a closed pipe.
Exit finish(const Console& console) {
  std::cout << std::flush;
  if (std::cout) return Exit::Done;
  console.error("stdout cannot be written");
  return Exit::File;
}

} // namespace

Exit check_verb(const Options& options, const Console& console) {
  Exit exit = Exit::Done;
  std::optional<Front> front = front_of(options, console, exit);
  if (!front) return exit;
  std::cout << options.model_name() << ": can be packed, "
            << front->model.graph.nodes.size() << " nodes\n";
  for (const GraphInput& input : front->graph.inputs()) {
    std::cout << "input " << escaped(input.name) << " " << type_text(input.seen) << "\n";
  }
  for (const GraphOutput& output : front->graph.outputs()) {
    std::cout << "output " << escaped(output.name) << " " << type_text(output.seen)
              << "\n";
  }
  return finish(console);
}

Exit key_verb(const Options& options, const Console& console) {
  Exit exit = Exit::Done;
  std::optional<Front> front = front_of(options, console, exit);
  if (!front) return exit;
  std::cout << plan_key(*front, options).hex() << "\n";
  return finish(console);
}

Exit cache_verb(const Options& options, const Console& console) {
  if (options.cache_folder.empty()) {
    console.error("there is no cache folder (--cache-dir, SVOD_CACHE_DIR or HOME)");
    return Exit::File;
  }
  toolchain::ObjectCache cache(options.cache_folder);
  toolchain::CacheStats stats;
  const char* what = "in";
  if (options.cache_action == "stats") {
    stats = cache.stats();
  } else {
    const uint64_t kept = options.cache_action == "clear" ? 0 : kKeptBytes;
    stats = cache.collect(kept, options.dry_run);
    what = options.dry_run ? "would be removed from" : "removed from";
  }
  std::cout << stats.entries << " entries, " << stats.bytes << " bytes " << what << " "
            << options.cache_folder << "\n";
  return finish(console);
}

Exit doctor_verb(const Options& options, const Console& console) {
  std::cout << "svod-pack " << kVersion << "\n";
  std::cout << "compiler: " << package_compiler().identity() << "\n";
  std::cout << "this machine: " << default_target().triple << ", best level "
            << find_target("native")->levels.back().name << "\n";
  std::cout << "targets:";
  for (const std::string& alias : target_aliases()) std::cout << " " << alias;
  std::cout << "\ncache: ";
  if (options.cache_folder.empty()) {
    std::cout << "none\n";
  } else {
    toolchain::CacheStats stats = toolchain::ObjectCache(options.cache_folder).stats();
    std::cout << options.cache_folder << ", " << stats.entries << " entries, "
              << stats.bytes << " bytes\n";
  }
  // The shortest way through everything that packing needs of this machine.
  toolchain::Source source;
  source.text = "extern \"C\" int f(int x) { return x + 1; }\n";
  Target target = default_target();
  toolchain::CompileResult compiled =
      package_compiler().compile(target, target.levels[0], source);
  std::cout << "compiling: " << (compiled.ok ? "works" : "fails") << "\n";
  if (!compiled.ok) {
    console.error(compiled.diagnostics);
    return Exit::Toolchain;
  }
  return finish(console);
}

} // namespace svod::packager
