// The plan cache: what compile() made of a graph is kept, and taken again when graph,
// target, options and the build of svod-pack are the same and what it took for granted of
// weights is true of these. Then nothing is simplified,
// searched, planned or emitted; the kernels' objects come from the cache of objects.
//
// A plan is kept when the pack has been built with it, since only compiled kernels say
// which schedules do not keep to registers. Until then the others who want the same plan
// wait for it: eight packs at once search once.
#include "packager/packing.h"

#include "packager/build_identity.h"

namespace svod::packager {

// What is told about passes, or given to them from files, needs them to run. With a
// bound for flash the kernels are made several times, each time with others for size.
bool Packing::caches_plan() const {
  const bool asks_passes = options_.is_text() || options_.bisect || options_.explain ||
                           !options_.print_after.empty();
  const bool gives_schedules =
      !options_.schedule.empty() || !options_.tuning.empty() || options_.tune_minutes;
  const bool may_repeat = repeats_ || (options_.max_flash && !options_.target.is_small());
  return !options_.cache_folder.empty() && !asks_passes && !gives_schedules &&
         !may_repeat && front_->kernel_texts.empty() && !build_identity().empty();
}

bool Packing::take_plan(const CompileOptions& options) {
  // It is made again, with the rules' schedules for kernels that did not keep to
  // registers.
  if (plan_state_ == PlanState::Miss || !caches_plan()) return false;
  if (!cache_) open_cache();
  if (plan_state_ == PlanState::Off)
    plan_key_ = stored_plan_key(front_->graph, options, build_identity());
  const Digest name = sha256(plan_key_);
  using Entry = std::optional<std::vector<std::byte>>;
  const auto read = [&](const Entry& entry) {
    return entry ? plan_from_bytes(*entry, front_->graph, plan_key_) : std::nullopt;
  };
  constexpr auto kPlan = toolchain::EntryKind::Plan;
  std::optional<CompiledPlan> found = read(cache_->load_here(name, kPlan));
  // Several sets want several plans: who waits for one while he holds another may wait
  // for ever. Who has the lock asks the other machines, too.
  if (!found && options_.sets.empty() && !is_set_) plan_lock_.emplace(cache_->lock(name));
  if (!found) found = read(cache_->load(name, kPlan));
  tell_remote();
  plan_state_ = found ? PlanState::Hit : PlanState::Miss;
  if (!found) return false;
  plan_lock_.reset();
  kernels_ = std::move(found->kernels);
  equal_ = std::move(found->equal);
  searched_ = std::move(found->searched);
  unsearched_ = std::move(found->unsearched);
  fixed_point_ = std::move(found->fixed_point);
  console_.verbose("plan: from the cache, " + name.hex());
  return true;
}

// Before anything changes what the compiler has made.
void Packing::remember_plan(std::shared_ptr<const ValueFacts> facts) {
  if (plan_state_ != PlanState::Miss) return;
  CompiledPlan plan{std::move(*kernels_), equal_,       searched_,
                    unsearched_,          fixed_point_, std::move(facts)};
  stored_plan_ =
      plan_bytes(plan, front_->graph, plan_key_).value_or(std::vector<std::byte>());
  kernels_ = std::move(plan.kernels);
}

// A cache that is full or cannot be written makes the next pack slower, not this one
// wrong.
void Packing::keep_plan() {
  for (const auto& set : sets_) set->keep_plan();
  if (!stored_plan_.empty() &&
      cache_->store(sha256(plan_key_), stored_plan_, toolchain::EntryKind::Plan))
    cache_->collect(toolchain::kKeptBytes);
  stored_plan_.clear();
  plan_lock_.reset();
}

std::string_view Packing::plan_state() const {
  switch (plan_state_) {
  case PlanState::Off:
    return "off";
  case PlanState::Hit:
    return "hit";
  case PlanState::Miss:
    return "miss";
  }
  return "";
}

} // namespace svod::packager
