// Graph -> Kernels.
#include "compiler/pipeline.h"

#include "compiler/fuse.h"
#include "compiler/optimize/choose_attention.h"
#include "compiler/optimize/io_gate.h"
#include "compiler/optimize/schedule_kernel.h"
#include "compiler/plan/apart.h"
#include "compiler/plan/order_kernels.h"
#include "compiler/plan/place_steps.h"
#include "compiler/rewrite/double_sums.h"
#include "compiler/rewrite/fixed_point.h"
#include "compiler/rewrite/integer_contractions.h"
#include "compiler/rewrite/settle_states.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/rewrite/wide_channels.h"
#include "compiler/rows_first.h"
#include "compiler/select/contract_products.h"
#include "compiler/select/join_attention.h"

#include <algorithm>
#include <map>

namespace svod {

// A schedule belongs to a kernel's text, so kernels of one text have one. What chunks are
// counted by is not in the text: the bytes of the buffers that a kernel reads a part of.
static void share_loops(FusedGraph& fused, std::map<Digest, Loops>& known) {
  for (ScheduledKernel& k : fused.kernels)
    k.loops = known.try_emplace(digest_of(k), k.loops).first->second;
  for (FusedRegion& region : fused.regions)
    for (FusedGraph& body : region.bodies) share_loops(body, known);
}

static void apply_loops(FusedGraph& fused, const CompileOptions& options) {
  for (ScheduledKernel& k : fused.kernels)
    optimize::apply_loops(k, *options.schedules, *options.applied);
  for (FusedRegion& region : fused.regions)
    for (FusedGraph& body : region.bodies) apply_loops(body, options);
}

static Target target_of(const ScheduledKernel& kernel, const CompileOptions& options) {
  const bool fast = options.for_speed.contains(digest_of(kernel));
  return fast ? for_size(options.target, false) : options.target;
}

static void schedule_levels(ScheduledKernel& kernel, const CompileOptions& options) {
  optimize::schedule_levels(kernel, target_of(kernel, options));
}

// Where a result lies on what its kernel reads, the plan is built on the rules' schedule.
static bool fits_memory(const plan::Plan& plan, size_t program) {
  const ScheduledKernel& kernel = plan.programs[program];
  if (std::ranges::none_of(kernel.arguments, &Argument::shares)) return true;
  return std::ranges::all_of(plan.steps, [&](const plan::Step& step) {
    return step.kind != plan::StepKind::LaunchProgram || step.program != program ||
           step.stream || plan::stays_apart(plan, kernel, step);
  });
}

static void search(plan::Plan& plan, const CompileOptions& options) {
  const std::vector<ScheduledKernel> rules = plan.programs;
  ScheduleSearch found =
      search_schedules(plan, options.target, options.search_budget, options.unsearched);
  for (size_t i = 0; i < rules.size(); ++i) {
    if (fits_memory(plan, i)) continue;
    plan.programs[i] = rules[i];
    std::erase_if(found.changed,
                  [&](const ChangedSchedule& changed) { return changed.program == i; });
  }
  if (options.searched != nullptr) *options.searched = std::move(found);
}

static void apply_given(plan::Plan& plan, const CompileOptions& options) {
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    ScheduledKernel& program = plan.programs[i];
    const ScheduledKernel rules = program;
    optimize::apply_levels(program, target_of(program, options), *options.schedules,
                           *options.applied);
    if (fits_memory(plan, i)) continue;
    program = rules;
    options.applied->misfits.push_back(
        {digest_of(rules), "", "it would write over what it has still to read"});
  }
}

static ScheduledPlan schedule_programs(plan::Plan plan, const CompileOptions& options) {
  for (ScheduledKernel& program : plan.programs) schedule_levels(program, options);
  return {std::move(plan)};
}

static plan::PlanOptions plan_options(const CompileOptions& options) {
  plan::PlanOptions out;
  out.align = slot_alignment(options.target);
  out.pools = options.pools;
  // What threads of a block load ahead, and how, is the emitter's, and memory is plenty.
  out.in_place = out.joins = options.target.kind != TargetKind::Gpu;
  out.changes = options.changes;
  if (!options.one_thread) return out;
  out.schedule = [&](ScheduledKernel& kernel) { schedule_levels(kernel, options); };
  out.most_arena = options.most_arena;
  out.work_for_ram = options.work_for_ram.value_or(options.target.machine().work_for_ram);
  return out;
}

// Small code is no matter of time. Short kernels become one launch when the cut is made,
// which prices do not see, and they are not predicted to a tenth of a microsecond: two
// cuts of subpixel-float, predicted to save 70 ns each, took 30 and 40 ns more. So a cut
// saves as much as five launches.
static select::CutSearchOptions cut_search_options(const CompileOptions& options) {
  select::CutSearchOptions out;
  if (!options.target.is_small()) out.budget = options.fusion_budget;
  out.least_seconds = 5e-9 * options.target.machine().launch_ns;
  out.gate = [gate = optimize::io_gate(options.target.machine())](
                 const IoProfile& before, const IoProfile& after) {
    return CutSearch::Gate{gate.gain_ns(before, after), gate.should_fuse(before, after)};
  };
  return out;
}

// Small code and steps that are made of integers are no matter of this cost.
static EqualOptions equal_options(const CompileOptions& options, bool direct_only) {
  EqualOptions out;
  const bool fixed = std::ranges::all_of(options.target.levels, &Level::fixed);
  if (!options.target.is_small() && !fixed) out.budget = options.equal_budget;
  out.direct_only = direct_only;
  out.keep_rounding = options.exact;
  // What a model of some launches takes is not predicted to a tenth of a microsecond.
  out.least_seconds = 10e-9 * options.target.machine().launch_ns;
  return out;
}

// Forms that are no more than --max-weights allows. Trials cut by the rules: searched
// cuts move no weights.
static select::FormOptions
bounded_forms(const Graph& graph, const CompileOptions& options, bool direct_only) {
  select::FormOptions forms = direct_only;
  if (direct_only || !options.most_weights) return forms;
  forms.most_growth = growth_within(*options.most_weights, [&](uint64_t growth) {
    select::FormOptions trial;
    trial.most_growth = growth;
    return plan::plan(fuse(graph, options.target, trial), options.target.machine(),
                      plan_options(options))
        .weight_bytes;
  });
  return forms;
}

// A maximum that grows on the way rounds otherwise than one that is known before. All
// architectures have the same kernels: what is a loss on one may be a gain on average.
static void join_attention(FusedGraph& fused, const CompileOptions& options) {
  if (options.target.kind != TargetKind::Gpu || options.exact) return;
  select::join_attention(fused, [&](const ScheduledKernel& joined, const auto& apart) {
    double gain = 1;
    for (const Level& level : options.target.levels)
      gain *= optimize::attention_gain(joined, apart, level);
    return gain > 1;
  });
}

// Where fewer bytes are alive at once, results may still lie on what is read less often:
// the arena decides. The order of a GPU's kernels is that of its launches, which overlap,
// but for functions that the processor runs between them.
static FusedGraph order_for_memory(FusedGraph fused, const Target& target,
                                   const plan::PlanOptions& options) {
  if (target.kind == TargetKind::Gpu) {
    std::optional<FusedGraph> gathered = plan::gather_calls(fused);
    return gathered ? *std::move(gathered) : fused;
  }
  std::optional<FusedGraph> ordered = plan::order_kernels(fused);
  if (!ordered) return fused;
  const auto arena = [&](const FusedGraph& f) {
    return plan::plan(f, target.machine(), options).arena_bytes;
  };
  return arena(*ordered) < arena(fused) ? *std::move(ordered) : fused;
}

// Whether bytes are to be the same on every level (double_sums.h). Small cores have no
// doubles, or functions for them.
static bool keeps_steps(const Graph& graph, const CompileOptions& options) {
  return options.exact && options.target.levels[0].has_vectors() &&
         rewrite::quantises(graph);
}

// A level that cannot add a product to a sum in one instruction does as those that can.
static Target one_rounding(Target target) {
  for (Level& level : target.levels) level.rounds_once = !level.fma();
  return target;
}

static codegen::Kernels compile_traced(const Graph& graph, const CompileOptions& options,
                                       Passes& passes) {
  const bool same_steps = keeps_steps(graph, options);
  const Target target = same_steps ? one_rounding(options.target) : options.target;
  // Shapes and element types are final: nothing below asks about them again.
  check("import", graph);
  Graph integers = passes.run("integer-contractions", [&] {
    const Level& level = target.levels[0];
    return rewrite::integer_contractions(
        graph, {!options.exact, level.has_dots(), level.factors});
  });
  rewrite::SimplifyReport report;
  Graph simple = passes.run("simplify", [&] {
    rewrite::SimplifyOptions rules;
    rules.change_rounding = !options.exact;
    return rewrite::simplify(integers, rules, &report);
  });
  passes.note_end("simplify", report.end);
  if (std::ranges::all_of(target.levels, &Level::fixed))
    simple = passes.run("fixed-point", [&] {
      rewrite::FixedPointReport made;
      Graph out = rewrite::fixed_point(simple, {options.exact}, &made);
      if (options.fixed_point != nullptr) *options.fixed_point = std::move(made);
      return out;
    });
  if (same_steps)
    simple = passes.run("double-sums", [&] { return rewrite::sums_in_double(simple); });
  const bool direct_only = options.exact || options.as_written || target.is_small();
  EqualSearch equal;
  simple = passes.run("equal-programs", [&] {
    return search_equal(simple, target, equal_options(options, direct_only), equal);
  });
  passes.note_end("equal-programs", end_of(equal));
  if (options.equal != nullptr) *options.equal = std::move(equal);
  rewrite::settle_states(simple);
  // All architectures have the same kernels, as the latest one wants them.
  if (const Level& latest = target.levels.back();
      target.kind == TargetKind::Gpu && latest.machine.matrix_products_per_clock > 0)
    simple = passes.run("wide-channels",
                        [&] { return rewrite::widen_channels(simple, latest.tf32); });
  const select::FormOptions forms = bounded_forms(simple, options, direct_only);
  FusedGraph fused = fuse(simple, target, forms, passes, {}, cut_search_options(options));
  const plan::PlanOptions to_plan = plan_options(options);
  if (to_plan.takes_turns()) {
    const auto rows = choose_rows_first(simple, fused, target, direct_only, to_plan);
    if (!rows.empty()) fused = fuse(simple, target, direct_only, passes, rows);
  }
  fused = passes.run("attention", [&] {
    join_attention(fused, options);
    return std::move(fused);
  });
  fused = passes.run("order",
                     [&] { return order_for_memory(std::move(fused), target, to_plan); });
  passes.run("contractions", [&] { return chosen_algorithms(fused); });
  fused = passes.run("contract-products", [&] {
    if (!options.exact) select::contract_products(fused);
    std::map<Digest, Loops> known;
    share_loops(fused, known);
    if (options.schedules != nullptr) apply_loops(fused, options);
    return std::move(fused);
  });
  if (options.fused != nullptr) *options.fused = fused;
  // Beyond this point no node moves between kernels.
  plan::Plan planned = passes.run("plan", [&] {
    plan::Plan out = plan::plan(std::move(fused), target.machine(), to_plan);
    if (target.kind == TargetKind::Gpu) plan::place_steps(out);
    return out;
  });
  // Beyond this point every buffer has its offset; nothing allocates.
  ScheduledPlan scheduled = passes.run("schedule", [&] {
    ScheduledPlan out = schedule_programs(std::move(planned), options);
    if (options.search_budget > 0) search(out.plan, options);
    if (options.schedules != nullptr) apply_given(out.plan, options);
    return out;
  });
  // Beyond this point nothing is chosen.
  return passes.run("emit",
                    [&] { return codegen::emit(std::move(scheduled.plan), target); });
}

codegen::Kernels compile(const Graph& graph, const CompileOptions& options,
                         Passes& passes) {
  if (!options.facts) return compile_traced(graph, options, passes);
  codegen::Kernels out =
      compile_traced(with_traces(graph, options.facts), options, passes);
  options.facts->close();
  return out;
}

ScheduledPlan schedule(plan::Plan plan, const Target& target) {
  return schedule_programs(std::move(plan), {target});
}

codegen::Kernels compile(const Graph& graph, const CompileOptions& options) {
  Passes passes;
  return compile(graph, options, passes);
}

} // namespace svod
