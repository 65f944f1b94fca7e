// The pack summary: what --json writes, what a package carries as its manifest, and the
// lines that a person reads.
#pragma once

#include "compiler/equal_programs.h"
#include "compiler/passes.h"
#include "compiler/rewrite/fixed_point.h"
#include "compiler/search_schedules.h"
#include "packager/artefact/image.h"
#include "packager/artefact/merge_choice.h"
#include "packager/artefact/objects.h"
#include "packager/front.h"
#include "packager/packed_with.h"
#include "packager/report/remote_facts.h"

namespace svod::packager {

// What became of --device.
struct DeviceFacts {
  struct Here { // a step that the processor runs of the GPU's plan
    std::string program, nodes;
  };
  struct Entry { // the plan of one set of shapes
    std::vector<Here> here;
    // Where there are such steps: graphs of a run and copies between the sides;
    // predicted times without the C++, of the processor alone and with the GPU.
    int64_t graphs = 1, copies = 0, copied_bytes = 0;
    double here_us = 0, there_us = 0;
  };
  std::string why; // the model is packed for the processor alone; empty: it is not
  std::vector<Entry> entries;
};

struct Summary {
  const Front& front;
  const Options& options;
  const svod::plan::Plan& plan;
  const ImageContents& contents;
  Digest key = {};
  SizeFacts sizes = {};
  ArenaBytes arena = {}; // of a run, with one thread
  uint64_t output = 0;   // bytes of the written file
  size_t compiled = 0, reused = 0;
  std::string_view plan_state = "off";    // of the plan cache: off, hit, miss
  std::optional<RemoteFacts> remote = {}; // with a remote cache
  KernelSpills spills = {};
  std::vector<MergedGroup> merged = {};
  std::vector<std::pair<std::string, double>> time_ms = {}; // in order
  std::map<std::string_view, PassRun> passes = {};
  // Of a target that quantises in integers.
  std::optional<rewrite::FixedPointReport> fixed_point = {};
  ScheduleSearch search = {};
  EqualSearch equal = {};
  std::optional<PackedWith> packed = {}; // of a program
  size_t spilled_schedules = 0; // kernels whose found schedules did not fit registers
  std::string verify = {};      // JSON; empty: nothing was compared
  std::string accuracy = {};    // JSON; empty: of no tensor known
  std::string explanation = {}; // JSON; empty: nobody asked
  std::optional<DeviceFacts> device = {}; // with --device
};

// The part that is the same for every pack of one plan; keys as in INTERFACE.
std::string manifest_json(const Summary& summary);
// All keys: the manifest's and what this run of the packager did.
std::string summary_json(const Summary& summary);
std::string summary_text(const Summary& summary);
// "1.2 MiB"
std::string size_text(uint64_t bytes);

} // namespace svod::packager
