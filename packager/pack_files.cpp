// What a pack writes. Nothing is written under its final name before everything has gone
// well: the output lives in a temporary file beside it, is verified there, and is renamed
// as the last act.
#include "packager/packing.h"

#include "packager/artefact/link_output.h"
#include "packager/firmware/source_file.h"
#include "packager/firmware/test_vectors.h"
#include "packager/headers.h"
#include "packager/make_rule.h"
#include "packager/report/explanation.h"
#include "packager/report/page.h"
#include "packager/report/predicted.h"
#include "packager/report/report.h"
#include "packager/report/searched.h"
#include "packager/text_form.h"

#include <filesystem>

namespace svod::packager {

Exit Packing::file_error(const std::string& path, const std::string& reason) const {
  console_.error(path + ": " + reason);
  return Exit::File;
}

Exit Packing::open(const std::string& path) {
  std::string error;
  std::optional<OutputFile> file = OutputFile::create(path, error);
  if (!file) return file_error(path, error);
  files_.push_back(std::move(*file));
  return Exit::Done;
}

// First of all, so that a wrong folder is known before the long work.
Exit Packing::open_outputs() {
  if (Exit status = open_page(); status != Exit::Done) return status;
  if (options_.output.empty()) options_.weights = WeightPlace::Embed;
  if (options_.output.empty() || (options_.dry_run && options_.is_text()))
    return Exit::Done;
  std::error_code error;
  if (std::filesystem::equivalent(options_.output, options_.model, error)) {
    return file_error(options_.output, "is the model itself");
  }
  make_folders(options_);
  Exit status = open(options_.output);
  if (status != Exit::Done) return status;
  if (options_.is_library()) return open_headers();
  if (options_.weights == WeightPlace::File) return open(options_.output + ".weights");
  return Exit::Done;
}

Exit Packing::open_page() {
  if (options_.report.empty()) return Exit::Done;
  std::error_code same;
  if (std::filesystem::equivalent(options_.report, options_.model, same))
    return file_error(options_.report, "is the model itself");
  std::string error;
  std::optional<OutputFile> page = OutputFile::create(options_.report, error);
  if (page) page_.emplace(std::move(*page));
  return page_ ? Exit::Done : file_error(options_.report, error);
}

Exit Packing::open_headers() {
  for (const std::string& path : header_paths(options_)) {
    if (Exit status = open(path); status != Exit::Done) return status;
  }
  return Exit::Done;
}

Exit Packing::write_text_form() {
  std::string error;
  const char* pass = pass_of_form(options_.emit);
  std::string text;
  if (account_ && options_.emit == Output::Fused)
    text = explanation_text(*account_) + explained();
  else if (pass)
    text = pass_texts_.at(pass);
  else if (options_.emit == Output::Testbench)
    text = selftest_text(options_, *front_, contents_, error);
  else
    text = kernels_text(options_, *kernels_, error);
  if (!error.empty())
    return options_.emit == Output::Testbench ? file_error("--emit=testbench", error)
                                              : toolchain_error(error);
  if (files_.empty()) {
    return options_.dry_run ? Exit::Done : console_.print_out(text);
  }
  if (!files_[0].write(text, error) || !files_[0].commit(error)) {
    return file_error(options_.output, error);
  }
  return Exit::Done;
}

// Each of a program's threads counts where they are bounded; else it is one.
std::string Packing::explained() const {
  const plan::Plan& plan = kernels_->plan;
  std::string out =
      predicted_text(plan, options_.target, static_cast<int>(std::max(1U, threads())),
                     {plan, options_.target, searched_, front_->tuning});
  for (const std::string& line : equal_lines(equal_)) out += line + "\n";
  for (const std::string& line : search_lines(searched_)) out += line + "\n";
  return out;
}

// The linker does not always say that there was no room.
Exit Packing::link_error(const std::string& diagnostics) const {
  uint64_t bytes = objects_->image.size();
  for (const auto& object : objects_->code) bytes += object.size();
  if (objects_->weights) bytes += objects_->weights->size();
  if (objects_->room) bytes += objects_->room->bytes;
  const std::string fault = files_[0].room_fault(bytes);
  return fault.empty() ? toolchain_error(diagnostics)
                       : file_error(options_.output, fault);
}

Exit Packing::link() {
  clock_.lap();
  std::string output = files_.empty() ? "" : files_[0].temporary();
  if (output.empty() || program_taken_) return Exit::Done;
  if (options_.emit == Output::Source) return write_source();
  const toolchain::LinkResult linked = link_output(options_, *objects_, output);
  if (!linked.ok) return link_error(linked.diagnostics);
  std::optional<uint64_t> weights_at;
  if (objects_->room) weights_at = linked.room_at;
  if (weights_at && !fill_program(*weights_at))
    return link_error("the weights cannot be written into " + output + "\n");
  Exit status = options_.is_library() ? write_headers() : Exit::Done;
  if (status != Exit::Done) return status;
  if (objects_->weight_file && !write_weights(*objects_, files_[1].temporary()))
    status = file_error(files_[1].temporary(), "cannot be written");
  if (status == Exit::Done) keep_program(weights_at);
  note_time("link", clock_.lap());
  return status;
}

HeaderFacts Packing::header_facts() const {
  HeaderFacts out{options_.name, &contents_, arena(), objects_->sizes.stack,
                  options_.self_check};
  if (is_made_at_start(options_.weights)) out.init_scratch = objects_->sizes.scratch;
  out.device = device_.has_value();
  out.waits = device_ && !device_->calls.empty();
  if (options_.emit == Output::Source) out.stack_of = options_.target.triple;
  return out;
}

Exit Packing::write_source() {
  const StraightRun run{options_.name, *kernels_, contents_, true};
  std::string error;
  const std::string text = source_text({run, options_}, error);
  if (!error.empty()) {
    console_.error("--emit=source: " + error);
    return Exit::Unsupported;
  }
  return files_[0].write(text, error) ? write_headers()
                                      : file_error(options_.output, error);
}

Exit Packing::write_headers() {
  const HeaderFacts facts = header_facts();
  size_t file = 1;
  for (const std::string& text : header_texts(options_, facts)) {
    std::string error;
    if (!files_[file++].write(text, error)) return file_error("header", error);
  }
  return Exit::Done;
}

// Before anything has its name, so that a disk that is full leaves no half of a pack.
Exit Packing::write_page() {
  if (!page_) return Exit::Done;
  sum_up();
  const std::string text = page_text(report_json(options_, console_, Exit::Done));
  std::string error;
  return page_->write(text, error) ? Exit::Done : file_error(options_.report, error);
}

Exit Packing::commit() {
  if (options_.dry_run) return Exit::Done;
  std::string error;
  for (size_t i = files_.size(); i-- > 0;) {
    if (!files_[i].commit(error)) return file_error(options_.output, error);
  }
  // Last: there is no page about a pack that is not there.
  if (page_ && !page_->commit(error)) return file_error(options_.report, error);
  return Exit::Done;
}

Exit Packing::write_deps() {
  if (options_.deps.empty()) return Exit::Done;
  std::string error;
  std::optional<OutputFile> file = OutputFile::create(options_.deps, error);
  if (file && file->write(make_rule(options_, *front_), error) && file->commit(error))
    return Exit::Done;
  return file_error(options_.deps, error);
}

} // namespace svod::packager
