// One pack from a model to its files: what is read, compiled and built (pack.cpp), what
// is for a GPU (pack_device.cpp), which plan and which program is known (pack_plan.cpp,
// pack_program.cpp) and where from (pack_cache.cpp), what is opened and written
// (pack_files.cpp), how it is tried (pack_verify.cpp, pack_pictures.cpp) and tuned
// (pack_tune.cpp), and how it takes another's place (swap_weights.cpp).
#pragma once

#include "compiler/explain/explain.h"
#include "compiler/stored_plan.h"
#include "packager/artefact/contents.h"
#include "packager/artefact/device_parts.h"
#include "packager/artefact/header_file.h"
#include "packager/artefact/merge_choice.h"
#include "packager/artefact/merge_entries.h"
#include "packager/front.h"
#include "packager/output_file.h"
#include "packager/pack.h"
#include "packager/packed_with.h"
#include "packager/remote/remote_cache.h"
#include "packager/report/clock.h"
#include "packager/report/summary.h"
#include "packager/verify/runner.h"
#include "packager/verify/verify.h"

#include <memory>

namespace svod::packager {

class DeviceMeasure;
class FileWriter;
struct FoundPlan;
struct OldProgram;
struct TuneMeans;

// Each method is a stage and may end the run with its exit code.
class Packing {
public:
  Packing(const Options& options, const Console& console)
      : options_(options), console_(console) {}
  Exit run();
  // Of the plan, without an artefact.
  Exit find_key(Digest& key);
  // In place of run(): the weights of this model in a program of the same plan.
  Exit swap_weights(const OldProgram& old);

private:
  std::vector<std::byte> swapped_image(const SizeFacts& sizes);
  Exit compare_plans();
  bool write_swapped(uint64_t place);
  Exit put_weights();
  Exit open_outputs();
  Exit open_headers();
  Exit open_page();
  Exit read();
  Exit read_sets();
  Exit read_largest();
  std::unique_ptr<Packing> set_of(size_t number) const;
  Exit compile_graph();
  Exit compile_set();
  bool may_choose_plan() const;
  PlanChoice plan_choice() const;
  bool caches_plan() const;
  bool take_plan(const CompileOptions& options);
  void remember_plan(std::shared_ptr<const ValueFacts> facts);
  void keep_plan();
  std::string_view plan_state() const;
  bool fills_program() const;
  bool caches_program() const;
  std::string program_key() const;
  std::string manifest_of(const SizeFacts& sizes) const;
  bool take_program();
  void put_weights_into(FileWriter& file, uint64_t at);
  bool fill_program(uint64_t at);
  void keep_program(std::optional<uint64_t> weights_at);
  Exit merge_sets();
  WeightPlace weight_place() const;
  Exit compile_device();
  DeviceEntry device_entry(size_t first) const;
  std::string why_not_there(const plan::Plan& there, const plan::Plan& here,
                            size_t first);
  bool pays_on_device(const plan::Plan& there, const plan::Plan& here, size_t first);
  void tell_steps_here() const;
  Exit stay_on_processor(const std::string& why);
  bool multiplies_bytes() const;
  Plans plans() const;
  void show(std::string_view pass, const std::string& place, const std::string& text);
  void note_passes(const Passes& passes);
  Exit write_text_form();
  std::string explained() const;
  Exit tune();
  bool build_to_measure(const TuningFile& tuning, const std::string& path,
                        DeviceMeasure* device);
  bool plan_to_measure(const TuningFile& tuning);
  bool build_planned(const std::string& path, DeviceMeasure* device);
  std::optional<FoundPlan> tune_plan(Packing& measured, const TuneMeans& means,
                                     DeviceMeasure* device, const std::string& folder);
  Exit keep_tuned(const TuningFile& found);
  Exit build();
  void merge_small_kernels();
  Exit build_once();
  bool drop_spilling();
  bool drop_spilling(const KernelSpills& spills, const std::vector<uint32_t>& programs);
  Exit build_for_flash();
  Exit check_weights();
  Exit check_budget();
  Exit link();
  Exit write_headers();
  Exit write_source();
  Exit replace_kernels();
  Exit verify();
  Exit verify_with(const std::vector<std::string>& runner,
                   const std::vector<std::string>& program, const VerifyChoice& choice);
  Exit verify_library(const VerifyChoice& choice);
  bool takes_pictures_of(const VerifyChoice& choice) const;
  Exit verify_own_inputs(const VerifyChoice& choice);
  Exit verify_or_bisect();
  void sum_up();
  Exit write_page();
  Exit commit();
  Exit write_deps();
  void tell(Exit status);
  Exit file_error(const std::string& path, const std::string& reason) const;
  Exit toolchain_error(const std::string& diagnostics) const;
  Exit link_error(const std::string& diagnostics) const;
  Exit open(const std::string& path);
  void open_cache();
  void open_remote();
  void tell_remote();
  void finish_remote();
  StubKind library_stub() const {
    return options_.emits_run() ? StubKind::Firmware : StubKind::Library;
  }
  ObjectOptions object_options(StubKind stub);
  std::optional<Objects> build_for(StubKind stub, std::string& error,
                                   bool profile = false, bool leaves_room = false);
  ArenaBytes arena() const;
  HeaderFacts header_facts() const;
  uint32_t threads() const;
  Summary summary() const;
  void note_time(const std::string& stage, double ms) {
    const auto known = std::ranges::find(times_, stage, [](auto& t) { return t.first; });
    if (known == times_.end())
      times_.emplace_back(stage, ms);
    else
      known->second += ms;
  }

  Options options_; // the target loses levels that the model has no use for
  const Console& console_;
  Clock clock_, total_;
  std::vector<OutputFile> files_;  // the output first, then what lies beside it
  std::optional<OutputFile> page_; // with --report
  std::vector<std::pair<std::string, double>> times_;
  std::optional<Front> front_;
  // Of several sets of shapes all but the first, each as far as its plan.
  std::vector<std::unique_ptr<Packing>> sets_;
  std::unique_ptr<Packing> largest_;     // of the sets, where it is read first
  std::optional<MergedEntries> entries_; // with several
  bool is_set_ = false;                  // of another pack
  std::shared_ptr<RemoteCache> remote_;  // of all sets; the cache asks it
  bool remote_finished_ = false;
  const OldProgram* old_ = nullptr; // of swap-weights
  std::optional<toolchain::ObjectCache> cache_;
  enum class PlanState : uint8_t { Off, Hit, Miss } plan_state_ = PlanState::Off;
  std::string plan_key_;               // of the cache; in full
  std::vector<std::byte> stored_plan_; // until the pack is built
  std::optional<toolchain::CacheLock> plan_lock_;
  bool program_taken_ = false;              // from the cache: there is nothing to link
  FusedGraph fused_;                        // with --bisect and --explain
  std::optional<explain::Account> account_; // with --explain
  std::set<Digest> for_speed_; // with --max-flash: kernels that need not be small
  bool repeats_ = false;       // kernels are made several times, with other ones small
  EqualSearch equal_;
  ScheduleSearch searched_;
  std::set<Digest> unsearched_; // found schedules of theirs did not keep to registers
  std::optional<PlanChoice> tried_plan_; // in place of what the tuning file has
  std::optional<codegen::Kernels> kernels_;
  std::map<std::string, std::string> pass_texts_;
  std::map<std::string_view, PassRun> passes_;
  std::optional<rewrite::FixedPointReport> fixed_point_;
  Digest key_;
  mutable std::optional<PackedWith> packed_with_; // of kernels_ as they are
  ImageContents contents_;
  std::vector<MergedGroup> merged_;
  std::optional<Objects> objects_;
  std::optional<DeviceParts> device_; // of a program that runs on a GPU, too
  DeviceFacts device_facts_;          // with --device
  std::string verified_;              // JSON
  std::string accuracy_;              // JSON, with --bisect
};

} // namespace svod::packager
