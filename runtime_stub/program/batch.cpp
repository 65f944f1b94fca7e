// One run after the other on the files of a folder, in the order of their names: what
// one program keeps from run to run is not made again. An input that is wrong is named,
// and the others go on. Memory of a run is given back behind it.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/data_sets.h"
#include "runtime_stub/program/folder.h"
#include "runtime_stub/program/modes.h"
#include "runtime_stub/program/npz.h"
#include "runtime_stub/program/open_inputs.h"
#ifdef SVOD_PICTURES
#include "runtime_stub/program/pictures.h"
#endif
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/words.h"

namespace packed {

namespace {

// Whether a file of this name is an input.
bool is_read(Text name) {
  FileForm form;
#ifdef SVOD_PICTURES
  if (is_picture_name(name)) return true;
#endif
  return form_of_suffix(name, form);
}

bool is_same(const SvodFileInfo& a, const SvodFileInfo& b) {
  return a.number == b.number && a.device == b.device;
}

// The name without what says how the file is to be read.
Text stem_of(Text name) {
  if (!is_read(name)) return name;
  uint64_t size = name.size - 1;
  while (name.data[size] != '.') size--;
  return name.first(size);
}

class Batch {
public:
  Batch(Session& session, const Options& options, Printer& errors)
      : session_(session), options_(options), errors_(errors), free_(session) {}
  Exit run_all();

private:
  Exit open_folders();
  Exit find_inputs();
  Exit check_answers();
  bool is_input(Text name, bool& is_folder);
  Exit run_input(Text name);
  Exit bind(Text name, bool is_folder);
  Exit bind_named(Text folder, uint32_t i, Text suffix);
  Exit bind_arrays(Text folder);
  Exit write(Text name);
  bool path_of(Path& path, const char* folder, Text name) {
    if (path.add(Text(folder)) && path.add("/") && path.add(name)) return true;
    errors_ << "error: " << name << ": the path is too long\n";
    return false;
  }

  Session& session_;
  const Options& options_;
  Printer& errors_;
  FreeInputs free_;
  SvodFileInfo answers_ = {}; // the folder that they are written to
  Names names_;
};

Exit Batch::open_folders() {
  SvodFileInfo inputs = {};
  int32_t status = svod_stat_path(options_.batch, &inputs);
  if (status == 0) status = read_folder(options_.batch, names_);
  if (status < 0) return file_error(errors_, options_.batch, "read", -status);
  const char* folder = options_.output_folder;
  if (folder == nullptr) return EXIT_DONE;
  status = svod_make_folder(folder);
  if (status == 0 || status == -SVOD_EEXIST) status = svod_stat_path(folder, &answers_);
  if (status == 0 && !answers_.is_directory) status = -SVOD_ENOTDIR;
  if (status < 0) return file_error(errors_, folder, "written to", -status);
  if (!is_same(inputs, answers_)) return EXIT_DONE;
  print_error(errors_, "--output-dir: answers would be written over inputs");
  return EXIT_USAGE;
}

// Folders, and files whose suffix tells how to read them. Others lie beside them.
bool Batch::is_input(Text name, bool& is_folder) {
  Path path;
  SvodFileInfo info = {};
  if (name.starts_with(".") || !path_of(path, options_.batch, name) ||
      svod_stat_path(path.text, &info) != 0)
    return false;
  is_folder = info.is_directory != 0;
  return is_folder ? !is_same(info, answers_) : is_read(name);
}

// Keeps the names of inputs.
Exit Batch::find_inputs() {
  const uint64_t all = names_.count;
  names_.count = 0;
  for (uint64_t i = 0; i < all; i++) {
    bool is_folder = false;
    if (is_input(names_.list[i], is_folder)) names_.list[names_.count++] = names_.list[i];
  }
  if (names_.count > 0) return EXIT_DONE;
  errors_ << "error: " << options_.batch << ": has no inputs: folders or files "
          << kKnownSuffixes;
#ifdef SVOD_PICTURES
  for (uint32_t k = 0; picture_suffix(k).size > 0; k++)
    errors_ << ", " << picture_suffix(k);
#endif
  errors_ << "\n";
  return EXIT_FILE;
}

// Answers have places of their own, which is known before the first run.
Exit Batch::check_answers() {
  if (options_.output_folder == nullptr) return EXIT_DONE;
  if (const char* unfit = unfit_for_archive(session_, 0, model_outputs(session_))) {
    errors_ << "error: --output-dir: " << unfit << "\n";
    return EXIT_USAGE;
  }
  auto stems = static_cast<Text*>(take_memory(names_.count * sizeof(Text)));
  if (stems == nullptr) return EXIT_FILE;
  for (uint64_t i = 0; i < names_.count; i++) stems[i] = stem_of(names_.list[i]);
  sort(stems, names_.count);
  for (uint64_t i = 1; i < names_.count; i++) {
    if (!(stems[i] == stems[i - 1])) continue;
    // Each stem is the beginning of a terminated name.
    errors_ << "error: --output-dir: " << Text(stems[i - 1].data) << " and "
            << Text(stems[i].data) << " would be answered in one file\n";
    return EXIT_USAGE;
  }
  return EXIT_DONE;
}

// Of a folder: NAME.npy for each input, and of a picture NAME.jpg and the like. A name
// with / would lead out of it.
Exit Batch::bind_named(Text folder, uint32_t i, Text suffix) {
  const Text name = input_type(session_, i).name;
  Path path;
  if (session_.inputs[i] != nullptr || name.find('/') < name.size || !path.add(folder) ||
      !path.add("/") || !path.add(name) || !path.add(suffix) || !is_file(path.text))
    return EXIT_DONE;
  return bind_file(session_, i, path.text, errors_);
}

Exit Batch::bind_arrays(Text folder) {
  Exit status = EXIT_DONE;
  for (uint32_t i = 0; i < model_inputs(session_) && status == EXIT_DONE; i++) {
    status = bind_named(folder, i, ".npy");
#ifdef SVOD_PICTURES
    if (!is_picture(session_, i)) continue;
    for (uint32_t k = 0; picture_suffix(k).size > 0 && status == EXIT_DONE; k++)
      status = bind_named(folder, i, picture_suffix(k));
#endif
  }
  return status;
}

Exit Batch::bind(Text name, bool is_folder) {
  Path path;
  if (!path_of(path, options_.batch, name)) return EXIT_FILE;
  const Text whole(path.text, path.size);
  Exit status = is_folder ? bind_arrays(whole) : bind_path(session_, path.text, errors_);
  if (status == EXIT_DONE && is_folder) status = bind_set_files(session_, whole, errors_);
  return status == EXIT_DONE ? check_given(session_, whole, errors_) : status;
}

Exit Batch::write(Text name) {
  if (options_.output_folder != nullptr) {
    Path path;
    if (!path_of(path, options_.output_folder, stem_of(name))) return EXIT_FILE;
    const Exit status = write_answer(session_, path, errors_);
    if (status != EXIT_DONE || options_.labels.path == nullptr) return status;
  }
  Printer out(1);
  print_plain(out, name);
  out << "\n";
  out.flush();
  return write_outputs(session_, options_, errors_);
}

Exit Batch::run_input(Text name) {
  MemoryScope scope;
  free_.clear(session_);
  enter_next(session_);
  bool is_folder = false;
  is_input(name, is_folder);
  Exit status = bind(name, is_folder);
  if (status == EXIT_DONE) status = check_finite(session_, options_, errors_);
  if (status == EXIT_DONE) status = run(session_, errors_);
  if (status == EXIT_DONE) status = write(name);
  return status;
}

Exit Batch::run_all() {
  Exit status = open_folders();
  if (status == EXIT_DONE) status = find_inputs();
  if (status == EXIT_DONE) status = check_answers();
  if (status != EXIT_DONE) return status;
  const uint64_t began = svod_now();
  uint64_t failed = 0;
  for (uint64_t i = 0; i < names_.count; i++) {
    const Exit one = run_input(names_.list[i]);
    if (one == EXIT_DONE) continue;
    errors_ << "failed: ";
    print_plain(errors_, names_.list[i]);
    errors_ << "\n";
    errors_.flush();
    if (failed++ == 0) status = one;
  }
  const double took = static_cast<double>(svod_now() - began) / 1e6;
  errors_ << names_.count - failed << " ran, " << failed << " failed, ";
  errors_.fixed(took, 3) << " ms\n";
  return status;
}

} // namespace

Exit batch(Session& session, const Options& options, Printer& errors) {
  if (options.output_count > 0) {
    print_error(errors, "--batch-dir: outputs go to --output-dir, not to --output");
    return EXIT_USAGE;
  }
  const Exit status = bind_words(session, options, errors);
  if (status != EXIT_DONE) return status;
  Batch all(session, options, errors);
  return all.run_all();
}

} // namespace packed
