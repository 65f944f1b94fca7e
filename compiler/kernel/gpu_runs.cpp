// Neighbours that a thread reads and writes at once: where what a kernel reads lies side
// by side along its axes, and so does what it writes.
#include "compiler/kernel/gpu_runs.h"

#include "compiler/kernel/dependence.h"
#include "compiler/kernel/stage_work.h"

#include <algorithm>

namespace svod {

std::vector<AxisId> axes_of_runs(const Kernel& k, const std::vector<AxisId>& axes,
                                 int count) {
  int64_t positions = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    positions *= k.indices.extent(axes[i]);
    if (positions % count == 0)
      return {axes.begin() + static_cast<std::ptrdiff_t>(i), axes.end()};
  }
  return {};
}

namespace {

bool looks_at(const Kernel& k, const std::vector<Bound>& bounds,
              const std::vector<AxisId>& axes) {
  return std::ranges::any_of(bounds, [&](const Bound& b) {
    return std::ranges::any_of(
        axes, [&](AxisId a) { return k.indices.depends_on(b.index, a); });
  });
}

// Whether the elements along the axes follow each other, from a multiple of `count` on.
bool is_run(const Kernel& k, const Index& index, const std::vector<AxisId>& axes,
            int count) {
  Index rest = index;
  int64_t inside = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    int64_t step = 0;
    const int64_t extent = k.indices.extent(axes[i]);
    if (extent != 1 && (!k.indices.affine_in(rest, axes[i], step) || step != inside))
      return false;
    inside *= extent;
  }
  auto own = [&](const auto& term) {
    const Term& t = k.indices.term(term.first);
    return t.kind == Term::Kind::Axis && contains(axes, t.id);
  };
  std::erase_if(rest.terms, own);
  return rest.constant % count == 0 &&
         std::ranges::all_of(rest.terms,
                             [&](const auto& term) { return term.second % count == 0; });
}

// That one instruction reads or writes.
constexpr int kMostNearBytes = 16;

bool is_loaded_run(const Kernel& k, const Expr& load, const std::vector<AxisId>& axes,
                   int count) {
  return !k.indices.has_dynamic(load.index) &&
         count * byte_size(load.dtype) <= kMostNearBytes &&
         is_run(k, load.index, axes, count);
}

// Whether all below reads runs along the axes, or one element for all of a run.
// Results of stages are there for each position.
bool has_runs(const Kernel& k, const Dependence& dependence, ExprId id,
              const std::vector<AxisId>& axes, int count) {
  const Expr& e = k.exprs[id];
  auto varies = [&](ExprId at) {
    return std::ranges::any_of(axes, [&](AxisId a) { return dependence[at][a]; });
  };
  if (!varies(id)) return true;
  if (looks_at(k, e.bounds, axes)) return false;
  if (e.kind == Expr::Kind::Load) return is_loaded_run(k, e, axes, count);
  const bool maps = e.kind == Expr::Kind::Map || e.kind == Expr::Kind::Cast ||
                    e.kind == Expr::Kind::Guard || e.kind == Expr::Kind::Local;
  return maps && std::ranges::all_of(e.inputs, [&](ExprId in) {
           return has_runs(k, dependence, in, axes, count);
         });
}

} // namespace

int near_elements(const Kernel& k, ExprId factor, const std::vector<AxisId>& axes) {
  const Dependence dependence = dependence_of(k);
  constexpr int kMost = 16;
  for (int count = kMost; count > 1; count /= 2) {
    const std::vector<AxisId> runs = axes_of_runs(k, axes, count);
    if (!runs.empty() && !looks_at(k, k.stages[0].domain, runs) &&
        has_runs(k, dependence, factor, runs, count))
      return count;
  }
  return 1;
}

// Whether a store writes runs along the axes.
static bool writes_runs(const Kernel& k, const Stage& s, const std::vector<AxisId>& axes,
                        int count) {
  return s.kind == StageKind::Store && !looks_at(k, s.domain, axes) &&
         !k.indices.has_dynamic(s.index) && is_run(k, s.index, axes, count) &&
         count * byte_size(s.dtype) <= kMostNearBytes;
}

// The same of what is computed of runs.
static bool stores_runs(const Kernel& k, const Dependence& dependence, const Stage& s,
                        const std::vector<AxisId>& axes, int count) {
  return writes_runs(k, s, axes, count) && has_runs(k, dependence, s.value, axes, count);
}

// Whether each run along the axes is summed up, or its like, element by element.
static bool reduces_runs(const Kernel& k, const Dependence& dependence, const Stage& s,
                         const std::vector<AxisId>& axes, int count) {
  return s.op != Op::ArgMin && s.op != Op::ArgMax && !s.keeps && !s.nested &&
         !looks_at(k, s.domain, axes) && has_runs(k, dependence, s.value, axes, count);
}

static constexpr int kMostNeighbours = 8;

int near_results(const Kernel& k, const ProductTile& t) {
  int most = kMostNeighbours;
  while (t.block_columns % most != 0) most /= 2;
  return near_results(k, t.columns.axes, most);
}

int near_results(const Kernel& k, const std::vector<AxisId>& columns, int most) {
  const Dependence dependence = dependence_of(k);
  for (int count = most; count > 1; count /= 2) {
    const std::vector<AxisId> runs = axes_of_runs(k, columns, count);
    if (!runs.empty() && std::ranges::all_of(k.stages, [&](const Stage& s) {
          return s.kind == StageKind::Reduce ||
                 stores_runs(k, dependence, s, runs, count);
        }))
      return count;
  }
  return 1;
}

// Whether the kernel only writes in another order what it reads: neighbours along the
// axis are read one by one, but beside neighbouring threads.
static bool turns(const Kernel& k, AxisId axis) {
  auto beside = [&](const Expr& e) {
    return std::ranges::any_of(k.outer, [&](AxisId a) {
      int64_t step = 0;
      return a != axis && k.indices.extent(a) != 1 &&
             k.indices.affine_in(e.index, a, step) && step == 1;
    });
  };
  return k.stages.size() == 1 && k.stages[0].kind == StageKind::Store &&
         std::ranges::all_of(k.exprs, [&](const Expr& e) {
           return e.kind != Expr::Kind::Load ||
                  (!k.indices.has_dynamic(e.index) && beside(e));
         });
}

bool loads_run(const Kernel& k, const Expr& load, AxisId axis, int count) {
  return k.indices.extent(axis) % count == 0 && !looks_at(k, load.bounds, {axis}) &&
         is_loaded_run(k, load, {axis}, count);
}

int near_positions(const Kernel& k, AxisId axis) {
  if (k.scratch_bytes != 0) return 1;
  const Dependence dependence = dependence_of(k);
  const bool turned = turns(k, axis);
  auto fits = [&](const Stage& s, int count) {
    if (turned) return writes_runs(k, s, {axis}, count);
    if (s.kind != StageKind::Reduce) return stores_runs(k, dependence, s, {axis}, count);
    return reduces_runs(k, dependence, s, {axis}, count);
  };
  int count = kMostNeighbours;
  while (count > 1 &&
         (k.indices.extent(axis) % count != 0 ||
          !std::ranges::all_of(k.stages, [&](const Stage& s) { return fits(s, count); })))
    count /= 2;
  return count;
}

bool is_scan(const Kernel& k) {
  return k.stages.size() == 1 && k.stages[0].kind == StageKind::Scan;
}

int near_rows(const ScheduledKernel& k) {
  const Dependence dependence = dependence_of(k);
  auto fits = [&](const Stage& s, int count) {
    if (s.nested) return false;
    if (positions_along(k, k.inner(s)) == 1) return true;
    const std::vector<AxisId> runs = axes_of_runs(k, k.inner(s), count);
    if (runs.empty()) return false;
    if (s.kind != StageKind::Reduce) return stores_runs(k, dependence, s, runs, count);
    return reduces_runs(k, dependence, s, runs, count);
  };
  int count = kMostNeighbours;
  while (count > 1 &&
         !std::ranges::all_of(k.stages, [&](const Stage& s) { return fits(s, count); }))
    count /= 2;
  return count;
}

} // namespace svod
