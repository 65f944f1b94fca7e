// key, cache and doctor, and what all verbs beside pack share.
#include "packager/verbs.h"

#include "compiler/toolchain/object_cache.h"
#include "packager/artefact/machine_code.h"
#include "packager/artefact/objects.h"
#include "packager/front.h"
#include "packager/pack.h"
#include "packager/remote/remote_totals.h"
#include "packager/report/json.h"
#include "packager/report/remote_facts.h"
#include "packager/version.h"

namespace svod::packager {

std::optional<Front> front_of(const Options& options, const Console& console,
                              Exit& exit) {
  Diags diags;
  std::optional<Front> front = read_front(options, diags);
  console.print(diags, options.model_name());
  exit = front ? Exit::Done : diags.failed() ? diags.exit() : Exit::Bug;
  return front;
}

Exit answer(const Options& options, const Console& console, const std::string& text,
            const JsonWriter& json) {
  console.tell(json.text());
  return options.json == "-" ? Exit::Done : console.print_out(text);
}

Exit key_verb(const Options& options, const Console& console) {
  Digest key;
  if (options.tuning.empty()) {
    Exit exit = Exit::Done;
    std::optional<Front> front = front_of(options, console, exit);
    if (!front) return exit;
    key = plan_key(*front, {});
  } else if (const Exit exit = find_key(options, console, key); exit != Exit::Done) {
    // Which entries of the file this model's kernels have is known when it is planned.
    return exit;
  }
  JsonWriter json;
  json.begin_object().pair("digest", key.hex()).end_object();
  return answer(options, console, key.hex() + "\n", json);
}

static std::string counted(const toolchain::CacheStats& stats) {
  return std::to_string(stats.entries) + " entries, " + std::to_string(stats.bytes) +
         " bytes";
}

// What all actions say; the object is still open.
static JsonWriter cache_json(const Options& options, const toolchain::CacheStats& stats) {
  JsonWriter json;
  json.begin_object().pair("folder", options.cache_folder);
  json.pair("action", options.cache_action).pair("entries", stats.entries);
  json.pair("bytes", stats.bytes);
  return json;
}

static Exit cache_stats(const toolchain::ObjectCache& cache, const Options& options,
                        const Console& console) {
  const toolchain::CacheStats all = cache.stats();
  JsonWriter json = cache_json(options, all);
  json.pair("most_bytes", toolchain::kKeptBytes).key("removed").boolean(false);
  std::string text = counted(all) + " in " + options.cache_folder + "\n";
  for (const auto& [word, kind] :
       {std::pair{"objects", toolchain::EntryKind::Object},
        std::pair{"plans", toolchain::EntryKind::Plan},
        std::pair{"programs", toolchain::EntryKind::Program}}) {
    const toolchain::CacheStats part = cache.stats(kind);
    json.key(word).begin_object().pair("entries", part.entries);
    json.pair("bytes", part.bytes).end_object();
    text += std::string(word) + ": " + counted(part) + "\n";
  }
  const RemoteCounts remote = read_remote_totals(cache);
  json.key("remote").begin_object();
  write_counts(json, remote);
  json.end_object().end_object();
  text += "remote caches: " + counts_text(remote) + "\n";
  return answer(options, console, text, json);
}

// Damage is no fault of the user's, and the next pack makes the entry again; but who asks
// wants to know that a disk or a file system loses bits.
static Exit cache_check(const toolchain::ObjectCache& cache, const Options& options,
                        const Console& console) {
  const toolchain::CacheCheck check = cache.verify(options.dry_run);
  JsonWriter json = cache_json(options, check.all);
  json.pair("damaged", check.damaged.entries);
  json.key("removed").boolean(!options.dry_run && check.damaged.entries != 0);
  json.end_object();
  const std::string damage = check.damaged.entries == 0
                                 ? "none is damaged"
                                 : std::to_string(check.damaged.entries) +
                                       " of them damaged" +
                                       (options.dry_run ? "" : ", and removed");
  const Exit exit = answer(
      options, console,
      counted(check.all) + " in " + options.cache_folder + "; " + damage + "\n", json);
  return exit == Exit::Done && check.damaged.entries != 0 ? Exit::File : exit;
}

Exit cache_verb(const Options& options, const Console& console) {
  if (options.cache_action == "merge") return merge_verb(options, console);
  if (options.cache_folder.empty()) {
    console.error("there is no cache folder (--cache-dir, SVOD_CACHE_DIR or HOME)");
    return Exit::File;
  }
  const toolchain::ObjectCache cache(options.cache_folder);
  if (options.cache_action == "stats") return cache_stats(cache, options, console);
  if (options.cache_action == "verify") return cache_check(cache, options, console);
  const uint64_t kept = options.cache_action == "clear" ? 0 : toolchain::kKeptBytes;
  const toolchain::CacheStats gone = cache.collect(kept, options.dry_run);
  if (kept == 0 && !options.dry_run) clear_remote_totals(cache);
  JsonWriter json = cache_json(options, gone);
  json.key("removed").boolean(!options.dry_run).end_object();
  return answer(options, console,
                counted(gone) +
                    (options.dry_run ? " would be removed from " : " removed from ") +
                    options.cache_folder + "\n",
                json);
}

// Connects where an address is given: who asks a doctor wants to know whether it works.
static std::string remote_text(const Options& options, JsonWriter& json) {
  const bool built = has_remote_client();
  json.key("remote").begin_object().key("built").boolean(built);
  std::string text = "remote cache: ";
  if (!built) {
    text += "not in this build, which was made without gRPC (libgrpc++-dev)";
  } else if (!options.remote_fault.empty()) {
    text += options.remote_fault;
  } else if (!options.remote) {
    text += "none (--cache-remote)";
  } else {
    RemoteCache cache(*options.remote, options.remote_read_only);
    const bool works = cache.is_ready();
    json.pair("address", options.remote->text).key("works").boolean(works);
    const bool reads = options.remote_read_only || (works && !cache.abilities().updates);
    json.key("read_only").boolean(reads);
    text += options.remote->text +
            (works ? ", works" : ", fails: " + cache.why_failed()) +
            (reads ? ", read only" : "");
  }
  json.end_object();
  return text + "\n";
}

Exit doctor_verb(const Options& options, const Console& console) {
  const std::string level = find_target("native")->levels.back().name;
  std::string text = std::string("svod-pack ") + kVersion +
                     "\ncompiler: " + package_compiler().identity() +
                     "\nthis machine: " + default_target().triple + ", best level " +
                     level + "\ntargets:";
  JsonWriter json;
  json.begin_object().pair("version", std::string(kVersion));
  json.pair("compiler", package_compiler().identity());
  json.pair("machine", default_target().triple).pair("level", level);
  json.key("targets").begin_list();
  for (const std::string& alias : target_aliases()) {
    text += " " + alias;
    json.value(alias);
  }
  json.end_list().key("cache").begin_object().pair("folder", options.cache_folder);
  text += "\ncache: ";
  if (options.cache_folder.empty()) {
    text += "none\n";
  } else {
    const toolchain::ObjectCache cache(options.cache_folder);
    const toolchain::CacheStats stats = cache.stats();
    const std::string why = cache.why_not_writable();
    text += options.cache_folder + ", " + std::to_string(stats.entries) + " entries, " +
            std::to_string(stats.bytes) + " bytes" +
            (why.empty() ? "" : ", cannot be written: " + why) + "\n";
    json.pair("entries", stats.entries).pair("bytes", stats.bytes);
    json.key("writable").boolean(why.empty());
  }
  json.end_object();
  text += remote_text(options, json);
  const std::string ptxas = find_ptxas("");
  text +=
      "ptxas: " + (ptxas.empty() ? "none; a GPU's driver compiles its kernels" : ptxas) +
      "\n";
  // The shortest way through everything that packing needs of this machine.
  toolchain::Source source;
  source.text = "extern \"C\" int f(int x) { return x + 1; }\n";
  Target target = default_target();
  toolchain::CompileResult compiled =
      package_compiler().compile(target, target.levels[0], source);
  text += std::string("compiling: ") + (compiled.ok ? "works" : "fails") + "\n";
  json.pair("ptxas", ptxas);
  json.key("compiles").boolean(compiled.ok).end_object();
  const Exit exit = answer(options, console, text, json);
  if (compiled.ok) return exit;
  console.error(compiled.diagnostics);
  return Exit::Toolchain;
}

} // namespace svod::packager
