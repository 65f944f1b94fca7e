// cache merge: what machines have made apart comes into one place. Folders of caches go
// into the cache's folder, tuning files into that of --tuning. All tuning files are read
// before anything is written.
#include "packager/output_file.h"
#include "packager/verbs.h"

#include "compiler/toolchain/object_cache.h"

#include <filesystem>

namespace svod::packager {

namespace {

namespace fs = std::filesystem;

class Merger {
public:
  Merger(const Options& options, const Console& console)
      : options_(options), console_(console) {}
  Exit run();

private:
  Exit error(const std::string& text) const {
    console_.error("cache merge: " + text);
    return Exit::File;
  }
  Exit sort_words();
  Exit read_tuning_files();
  Exit merge_folders();
  Exit write_tuning() const;
  Exit tell() const;

  const Options& options_;
  const Console& console_;
  std::vector<std::string> folders_, files_;
  TuningFile tuning_;
  toolchain::CacheMerge all_;
};

Exit Merger::sort_words() {
  for (const std::string& word : options_.merged) {
    std::error_code fault;
    const fs::file_status status = fs::status(word, fault);
    if (!fs::exists(status))
      return error(word +
                   " cannot be opened: " + (fault ? fault.message() : "not there"));
    (fs::is_directory(status) ? folders_ : files_).push_back(word);
  }
  if (!files_.empty() && options_.tuning.empty()) {
    console_.error("cache merge: " + files_.front() +
                   " is a tuning file; --tuning FILE says which one gets what it holds");
    return Exit::Usage;
  }
  return Exit::Done;
}

// The file that is merged into may not be there yet.
Exit Merger::read_tuning_files() {
  if (files_.empty()) return Exit::Done;
  std::vector<std::string> files = files_;
  if (fs::exists(options_.tuning)) files.insert(files.begin(), options_.tuning);
  for (const std::string& file : files) {
    Options one = options_;
    one.tuning = file;
    Diags diags;
    const TuningFile read = read_tuning(one, diags);
    console_.print(diags, file);
    if (diags.failed()) return diags.exit();
    merge_faster(tuning_, read);
  }
  return Exit::Done;
}

void add(toolchain::CacheStats& sum, const toolchain::CacheStats& more) {
  sum.entries += more.entries;
  sum.bytes += more.bytes;
}

Exit Merger::merge_folders() {
  if (folders_.empty()) return Exit::Done;
  if (options_.cache_folder.empty())
    return error("there is no cache folder (--cache-dir, SVOD_CACHE_DIR or HOME)");
  const toolchain::ObjectCache cache(options_.cache_folder);
  if (const std::string why = cache.why_not_writable(); !why.empty() && !options_.dry_run)
    return error(options_.cache_folder + " cannot be written: " + why);
  for (const std::string& folder : folders_) {
    const toolchain::CacheMerge one = cache.merge(folder, options_.dry_run);
    add(all_.added, one.added);
    add(all_.known, one.known);
    add(all_.damaged, one.damaged);
    add(all_.failed, one.failed);
    if (one.damaged.entries != 0)
      console_.warning(folder + " has " + std::to_string(one.damaged.entries) +
                       " damaged entries, which are left out");
    if (one.added.entries + one.known.entries + one.damaged.entries == 0)
      console_.note(folder + " has no entries of a cache");
  }
  if (all_.failed.entries != 0)
    return error(std::to_string(all_.failed.entries) + " entries cannot be written to " +
                 options_.cache_folder + "; is its disk full?");
  return Exit::Done;
}

Exit Merger::write_tuning() const {
  if (files_.empty() || options_.dry_run) return Exit::Done;
  std::string fault;
  std::optional<OutputFile> file = OutputFile::create(options_.tuning, fault);
  if (file && file->write(print(tuning_), fault) && file->commit(fault))
    return Exit::Done;
  return error(options_.tuning + ": " + fault);
}

Exit Merger::tell() const {
  size_t tuned = 0;
  for (const auto& [machine, kernels] : tuning_.machines) tuned += kernels.size();
  JsonWriter json;
  json.begin_object().pair("folder", options_.cache_folder).pair("action", "merge");
  json.pair("entries", all_.added.entries).pair("bytes", all_.added.bytes);
  json.pair("known", all_.known.entries).pair("damaged", all_.damaged.entries);
  json.pair("tuned_kernels", uint64_t{tuned}).end_object();
  const char* would = options_.dry_run ? " would be" : "";
  std::string text;
  if (!folders_.empty())
    text += std::to_string(all_.added.entries) + " entries, " +
            std::to_string(all_.added.bytes) + " bytes" + would + " added to " +
            options_.cache_folder + "; " + std::to_string(all_.known.entries) +
            " were there\n";
  if (!files_.empty())
    text += std::to_string(tuned) + " tuned kernels" + would + " in " + options_.tuning +
            "\n";
  return answer(options_, console_, text, json);
}

Exit Merger::run() {
  Exit status = sort_words();
  if (status == Exit::Done) status = read_tuning_files();
  if (status == Exit::Done) status = merge_folders();
  if (status == Exit::Done) status = write_tuning();
  return status == Exit::Done ? tell() : status;
}

} // namespace

Exit merge_verb(const Options& options, const Console& console) {
  return Merger(options, console).run();
}

} // namespace svod::packager
