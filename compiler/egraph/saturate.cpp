// Each iteration finds all matches first and applies them then, so that what is found
// does not depend on the order of the rules; one rebuild follows. What was applied once
// is not applied again, so an iteration without news costs a search and nothing else.
#include "compiler/egraph/saturate.h"

#include "compiler/egraph/join_contractions.h"

#include <unordered_set>

namespace svod::egraph {

using rewrite::Found;

std::string_view text_of(Stop stop) {
  switch (stop) {
  case Stop::Saturated:
    return "saturated";
  case Stop::Nodes:
    return "nodes";
  case Stop::Iterations:
    return "iterations";
  case Stop::Bytes:
    return "bytes";
  case Stop::Time:
    return "time";
  }
  return "";
}

namespace {

struct Work {
  size_t row; // of equalities()
  Found found;
};

// A factor that leaves a sum, or a sum that is made of differences, may leave values that
// are larger than any before. Of floats of 32 bits and bfloat there is no such network;
// half floats end at 65504.
bool may_overflow(const Equality& equality, DType dtype) {
  return dtype == DType::F16 &&
         (equality.family == Family::Factor || equality.family == Family::Scale);
}

class Saturator {
public:
  Saturator(EGraph& e, const SaturateOptions& options)
      : e_(e), options_(options),
        most_nodes_(e.node_count() + options.limits.free_nodes +
                    static_cast<size_t>(options.limits.more_nodes *
                                        static_cast<double>(e.node_count()))),
        most_bytes_(e.blob_bytes() + options.limits.more_bytes) {
    result_.fired.resize(equalities().size());
  }

  Saturation run() {
    while (step()) {
    }
    result_.nodes = e_.node_count();
    result_.classes = e_.live_classes().size();
    return result_;
  }

private:
  bool step();
  std::vector<Work> find(const std::vector<NodeId>& live);
  bool is_new(const Work& work);
  bool apply(const Work& work);
  bool within_limits();
  bool stop(Stop why) {
    result_.stop = why;
    return false;
  }

  EGraph& e_;
  const SaturateOptions& options_;
  const size_t most_nodes_, most_bytes_;
  Saturation result_;
  std::vector<bool> rounded_;
  std::unordered_set<uint64_t> done_;
};

bool Saturator::within_limits() {
  if (e_.node_count() > most_nodes_) return stop(Stop::Nodes);
  if (e_.blob_bytes() > most_bytes_) return stop(Stop::Bytes);
  const Limits& limits = options_.limits;
  if (limits.out_of_time && limits.out_of_time()) return stop(Stop::Time);
  return true;
}

std::vector<Work> Saturator::find(const std::vector<NodeId>& live) {
  std::vector<Work> all;
  for (NodeId id : live)
    for (NodeId form : e_.of(id))
      for (size_t row : equalities_of(e_.g[form].op)) {
        const Equality& equality = equalities()[row];
        if (!options_.families.contains(equality.family)) continue;
        for (Found& found : rewrite::find_all(equality.rule, e_, form))
          if (Work work{row, std::move(found)}; is_new(work))
            all.push_back(std::move(work));
      }
  return all;
}

// A row at the same forms of the same classes makes the same again. What a condition asks
// beside (of what is known, and rounded) only changes as classes do.
bool Saturator::is_new(const Work& work) {
  Node key{Op::Call, DType::Bool, {}, {static_cast<int64_t>(work.row)}, {}};
  key.inputs = work.found.below;
  key.inputs.push_back(work.found.root);
  for (NodeId letter : work.found.letters)
    key.inputs.push_back(letter == kNoNode ? kNoNode : e_.find(letter));
  return done_.insert(hash_node(key)).second;
}

bool Saturator::apply(const Work& work) {
  const Equality& equality = equalities()[work.row];
  const NodeId root = e_.find(work.found.root);
  if (may_overflow(equality, e_.g[root].dtype)) return false;
  e_.keep_rounding = options_.keep_rounding || (root < rounded_.size() && rounded_[root]);
  std::vector<NodeId> replaced;
  const size_t first = e_.g.size();
  const NodeId made = rewrite::apply_at(equality.rule, e_, work.found, replaced);
  if (made == kNoNode) {
    e_.absorb();
    return false;
  }
  replaced.push_back(root);
  for (NodeId old : replaced) {
    const std::vector<int32_t> sources = e_.g.sources(old);
    for (size_t fresh = first; fresh < e_.g.size(); ++fresh)
      e_.g.credit(static_cast<NodeId>(fresh), sources);
  }
  const bool news = e_.merge(root, made);
  if (news) result_.sites.push_back({root, made});
  result_.fired[work.row] += news;
  return news;
}

bool Saturator::step() {
  if (result_.iterations == options_.limits.iterations) return stop(Stop::Iterations);
  ++result_.iterations;
  const std::vector<NodeId> live = e_.live_classes();
  rounded_ = e_.rounded_classes(live);
  bool news = false;
  for (const Work& work : find(live)) {
    news |= apply(work);
    if (!within_limits()) {
      e_.rebuild();
      return false;
    }
  }
  e_.rebuild();
  if (options_.families.contains(Family::Join) && result_.joined == 0) {
    const std::vector<Site> slices = join_contractions(e_, e_.live_classes());
    result_.joined = std::ssize(slices);
    result_.sites.insert(result_.sites.end(), slices.begin(), slices.end());
    news |= result_.joined != 0;
    e_.rebuild();
  }
  if (!news) return stop(Stop::Saturated);
  return within_limits();
}

} // namespace

Saturation saturate(EGraph& e, const SaturateOptions& options) {
  return Saturator(e, options).run();
}

} // namespace svod::egraph
