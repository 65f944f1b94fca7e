// What the compiler makes of a graph, as bytes that the plan cache keeps: kernels, plan,
// and what the searches found. Weights are not in it: they are the new graph's when it is
// read, and what passes have folded is computed from these again. What the plan took for
// granted of the weights it was made for (compiler/ir/value_facts.h) has to be true of
// them; graphs with bodies are for equal weights alone.
//
// Names are not in it either. ONNX nodes are numbered by what they made of the graph, so
// that a model with other names, which has an equal plan, gets its own names back.
#pragma once

#include "compiler/codegen/kernels.h"
#include "compiler/pipeline.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace svod {

struct CompiledPlan {
  codegen::Kernels kernels;
  EqualSearch equal;
  ScheduleSearch searched;
  std::set<Digest> unsearched; // kernels whose found schedules did not keep to registers
  std::optional<rewrite::FixedPointReport> fixed_point;
  std::shared_ptr<const ValueFacts> facts; // of graphs whose values are traced
};

// Whether a plan of the graph is one for other weights, too: compile() is to note facts.
bool traces_values(const Graph& graph);

// All that decides what compile() makes of the graph: two equal keys, equal plans.
// `build` identifies this build of svod-pack, since its passes decide, too.
std::string stored_plan_key(const Graph& graph, const CompileOptions& options,
                            const std::string& build);

// Nothing where a plan names ONNX nodes that the graph does not have, or depends on its
// weights in a way that no fact says.
std::optional<std::vector<std::byte>>
plan_bytes(const CompiledPlan& plan, const Graph& graph, const std::string& key);

// Nothing where the bytes are of another key or do not fit, or a fact is not true of the
// graph's weights.
std::optional<CompiledPlan> plan_from_bytes(std::span<const std::byte> bytes,
                                            const Graph& graph, const std::string& key);

} // namespace svod
