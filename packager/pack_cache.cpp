// Where a pack finds what was made before: its folder, and a cache that machines share
// behind it. What the latter has to say is told from here, since it works on threads of
// its own.
#include "packager/packing.h"

#include "packager/remote/remote_totals.h"

namespace svod::packager {

// Nothing is connected before the folder lacks something.
void Packing::open_remote() {
  if (!options_.remote_fault.empty() && !is_set_) {
    console_.warning(options_.remote_fault);
    options_.remote_fault.clear();
  }
  if (!options_.remote || remote_ || options_.cache_folder.empty()) return;
  remote_ = std::make_shared<RemoteCache>(*options_.remote,
                                          options_.remote_read_only || options_.dry_run);
}

void Packing::open_cache() {
  open_remote();
  cache_.emplace(options_.cache_folder, remote_.get());
  if (const std::string why = cache_->why_not_writable(); !why.empty())
    console_.warning("the cache " + options_.cache_folder + " cannot be written (" + why +
                     "), so every kernel is compiled again; say --cache-dir with another "
                     "folder, or --no-cache");
}

void Packing::tell_remote() {
  if (!remote_) return;
  for (const RemoteCache::Said& said : remote_->said()) {
    if (said.warning)
      console_.warning(said.text);
    else
      console_.verbose(said.text);
  }
}

// Whatever became of the pack: what it has compiled is right.
void Packing::finish_remote() {
  if (!remote_ || is_set_ || remote_finished_) return;
  remote_finished_ = true;
  clock_.lap();
  remote_->finish();
  note_time("upload", clock_.lap());
  tell_remote();
  if (remote_->state() == RemoteCache::State::Unused) return;
  const RemoteCounts counts = remote_->counts();
  console_.verbose("remote cache: " + counts_text(counts));
  if (cache_) add_remote_totals(*cache_, counts);
}

} // namespace svod::packager
