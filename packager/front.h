// From a file to a graph, and the key under which its plan is known.
#pragma once

#include "compiler/ir/graph.h"
#include "importer/driver/import.h"
#include "importer/model/model.h"
#include "packager/options.h"
#include "packager/tune/tuning_file.h"

#include <map>
#include <string>

namespace svod::packager {

struct Front {
  importer::Model model;
  Graph graph;
  // Of --device, the same with half precision as the model says (Graph::keeps_halves).
  std::optional<Graph> device_graph;
  importer::ModelInterface interface;
  std::string schedules;                           // what the file of --schedule holds
  TuningFile tuning;                               // of --tuning
  std::map<std::string, std::string> kernel_texts; // of --replace-kernel, by symbol
  // Digest of all that decides what runs but tuned schedules: graph and weights, target,
  // options that change code, and the versions of us and of the compiler. Names that the
  // model gives are no part of it, nor the order in which it lists its nodes, nor the
  // file's own digest.
  Digest untuned_key;
  Digest structure_key; // the same whatever the weights' values
  // Of what plans are chosen for: the graph without values, its interface, and how
  // exactly it is computed. The same for every target, output and version of us.
  Digest subject;
  double import_ms = 0;
};

// None when `diags` has errors.
std::optional<Front> read_front(const Options& options, Diags& diags);

// The file of --tuning as it is now: empty without the option, or where --tune will make
// it. What is wrong with it goes to `diags`.
TuningFile read_tuning(const Options& options, Diags& diags);

// Digest of all that decides what is packed. `tuned`: what kernels of this model have in
// the file of --tuning, `choice` what its plan has there. Entries of other models do not
// change it, so a file may serve many.
Digest plan_key(const Front& front, const ScheduleFile& tuned,
                const PlanChoice& choice = {});

} // namespace svod::packager
