// Of a program that was packed for several sets of shapes: which entry of the table a run
// takes. It is the one whose inputs have the shapes of the given ones; files without
// shapes are told apart by their sizes.
#ifdef SVOD_SEVERAL_ENTRIES

#include "runtime_stub/program/entries.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/data_sets.h"
#include "runtime_stub/program/literal.h"
#include "runtime_stub/program/modes.h"
#include "runtime_stub/program/npz.h"
#include "runtime_stub/program/open_inputs.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/words.h"
#ifdef SVOD_DEVICE
#include "runtime_stub/program/device.h"
#endif
#ifdef SVOD_MAKES_WEIGHTS
#include "runtime_stub/program/make_weights.h"
#endif

// Written by the packager beside the launch switch; terminated.
extern "C" const char* svod_entry_name(uint32_t entry);

namespace packed {

namespace {

constexpr uint32_t kMostEntries = 64; // one bit each

// What is known of an input before an entry is chosen.
struct Given {
  uint32_t input;
  bool is_raw; // it has a size and no shape
  uint64_t bytes;
  Tensor tensor;
};

struct AllGiven {
  Given* list = nullptr;
  uint32_t count = 0;
  bool add(const Given& given) {
    if (count == kMostTensors) return false;
    list[count++] = given;
    return true;
  }
};

uint32_t entry_count(const Session& session) {
  return svod_header(session.model.image)->entries.count;
}

Session at_entry(const Session& session, uint32_t entry) {
  Session out = session;
  out.entry = svod_entry(session.model.image, entry);
  return out;
}

// The table was checked; that all entries are of one model was not.
bool entries_hold(const Session& session) {
  const uint32_t count = entry_count(session);
  for (uint32_t e = 0; e < count; e++) {
    const SvodEntry* entry = svod_entry(session.model.image, e);
    if (entry->input_count != session.entry->input_count ||
        entry->output_count != session.entry->output_count || entry->input_values != 0 ||
        entry->output_values != 0)
      return false;
  }
  return count <= kMostEntries;
}

bool fits(const Session& entry, const Given& given) {
  if (given.is_raw) return input_type(entry, given.input).bytes() == given.bytes;
  return takes_shape(entry, given.input, given.tensor);
}

// One bit for each entry that all of it fits.
uint64_t fitting(const Session& session, const AllGiven& all) {
  uint64_t out = 0;
  for (uint32_t e = 0; e < entry_count(session); e++) {
    const Session entry = at_entry(session, e);
    bool good = true;
    for (uint32_t i = 0; good && i < all.count; i++) good = fits(entry, all.list[i]);
    if (good) out |= uint64_t{1} << e;
  }
  return out;
}

uint64_t most_in_entries(const Session& session, uint32_t i) {
  uint64_t most = 0;
  for (uint32_t e = 0; e < entry_count(session); e++) {
    const uint64_t bytes = most_bytes_of(input_type(at_entry(session, e), i));
    if (bytes > most) most = bytes;
  }
  return most;
}

// False where the file tells no shape. What is wrong with it is told when it is bound.
bool look_at_file(const Session& session, const char* path, Given& given) {
  Text content;
  if (read_file(path, content) < 0) return false;
  const Tensor wanted = input_type(session, given.input);
  const FileForm form = form_of(Text(path), content);
  given.is_raw = form == FileForm::Raw;
  given.bytes = content.size;
  if (form == FileForm::Npz)
    return read_npz(content, wanted, most_in_entries(session, given.input),
                    given.tensor) == nullptr;
  return given.is_raw || read_tensor(form, content, wanted, given.tensor) == nullptr;
}

bool look_at_value(const Session& session, const char* value, Given& given) {
  const Text text(value);
  if (*value == '@') return look_at_file(session, value + 1, given);
  if (text == Text("random") || text == Text("zeros") || text.starts_with("random:"))
    return false;
  if (text.find('=') == text.size || is_file(value))
    return look_at_file(session, value, given);
  return read_literal(text, given.tensor) == nullptr;
}

void look_at_archive(const Session& session, const char* word, bool* bound,
                     AllGiven& all) {
  Text content;
  Archive archive;
  if (read_file(word + (*word == '@'), content) < 0 || archive.open(content) != nullptr)
    return;
  for (uint32_t i = 0; i < model_inputs(session); i++) {
    const Tensor wanted = input_type(session, i);
    Given given = {};
    given.input = i;
    Member member;
    if (bound[i] || !find_input_member(archive, wanted, i, member)) continue;
    bound[i] = true;
    if (take_out(member, most_in_entries(session, i), content) != nullptr ||
        read_npy(content, wanted, given.tensor) != nullptr || !all.add(given))
      return;
  }
}

// A word without a name is for the first input that has none yet, as when it is bound.
void look_at_words(const Session& session, const Options& options, AllGiven& all) {
  const uint32_t inputs = model_inputs(session);
  bool bound[kMostTensors] = {};
  uint32_t next = 0;
  for (uint32_t w = 0; w < options.word_count; w++) {
    if (options.is_output(w)) continue;
    Word word = read_word(session, Side::Input, options.words[w]);
    if (word.kind == WordKind::Unknown || word.kind == WordKind::Value) return;
    if (word.kind == WordKind::Nameless && Text(options.words[w]).ends_with(".npz")) {
      look_at_archive(session, options.words[w], bound, all);
      continue;
    }
    while (next < inputs && bound[next]) next++;
    Given given = {};
    given.input = word.kind == WordKind::Nameless ? next : word.tensor;
    if (given.input >= inputs) return;
    bound[given.input] = true;
    const char* value = word.kind == WordKind::Nameless ? options.words[w] : word.rest;
    if (look_at_value(session, value, given) && !all.add(given)) return;
  }
}

void print_types(Printer& out, const Session& session) {
  for (uint32_t i = 0; i < model_inputs(session); i++) {
    out << (i > 0 ? ", " : "");
    out.name(input_type(session, i).name) << " ";
    print_input_type(out, session, i);
  }
}

void list_entries(Printer& out, const Session& session, uint64_t which) {
  for (uint32_t e = 0; e < entry_count(session); e++) {
    if ((which >> e & 1) == 0) continue;
    out << "  " << svod_entry_name(e) << ": ";
    print_types(out, at_entry(session, e));
    out << "\n";
  }
}

Exit no_entry(const Session& session, const AllGiven& all, Printer& errors) {
  errors << "error: no shapes that were packed are those of the inputs:";
  for (uint32_t i = 0; i < all.count; i++) {
    const Given& given = all.list[i];
    errors << (i > 0 ? ", " : " ");
    errors.name(input_type(session, given.input).name) << " ";
    if (given.is_raw) {
      errors << given.bytes << " bytes";
    } else {
      print_type(errors, given.tensor.element, given.tensor.rank, given.tensor.dims);
    }
  }
  errors << "\nentries:\n";
  list_entries(errors, session, ~uint64_t{0});
  return EXIT_BAD_DATA;
}

// Where nothing that is given tells entries apart the first of them is taken, unless it
// is bytes without a shape, which may be meant as any of them.
Exit choose(Session& session, const AllGiven& all, Printer& errors) {
  const uint64_t which = fitting(session, all);
  if (which == 0) return no_entry(session, all, errors);
  bool raw = false;
  for (uint32_t i = 0; i < all.count; i++) raw = raw || all.list[i].is_raw;
  if (raw && (which & (which - 1)) != 0) {
    errors << "error: raw data has no shape, and its size is that of several entries; "
              "say --entry NAME:\n";
    list_entries(errors, session, which);
    return EXIT_USAGE;
  }
  uint32_t first = 0;
  while ((which >> first & 1) == 0) first++;
  session.entry = svod_entry(session.model.image, first);
  return EXIT_DONE;
}

Exit choose_named(Session& session, Text name, Printer& errors) {
  for (uint32_t e = 0; e < entry_count(session); e++) {
    if (!(name == Text(svod_entry_name(e)))) continue;
    session.entry = svod_entry(session.model.image, e);
    return EXIT_DONE;
  }
  errors << "error: --entry: '";
  errors.name(name) << "' is none of\n";
  list_entries(errors, session, ~uint64_t{0});
  return EXIT_USAGE;
}

uint32_t number_of(const Session& session) {
  return static_cast<uint32_t>(session.entry - svod_entry(session.model.image, 0));
}

void print_infos(const Session& session) {
  for (uint32_t e = 0; e < entry_count(session); e++) {
    Printer(1) << (e > 0 ? "\n" : "") << "entry    " << svod_entry_name(e) << "\n";
    print_info(at_entry(session, e), false);
  }
}

void look_at_set(const Session& session, Text folder, AllGiven& all) {
  const uint32_t count = model_inputs(session);
  for (uint32_t k = 0; k < count; k++) {
    Path path;
    if (!data_path(path, folder, Text("input_"), k, Text(".pb"))) return;
    Given given = {};
    given.input = k;
    if (!is_file(path.text) || !look_at_file(session, path.text, given)) continue;
    for (uint32_t i = 0; i < count; i++)
      if (input_type(session, i).name == given.tensor.name) given.input = i;
    if (!all.add(given)) return;
  }
}

// Entries are prepared once, however many data sets are theirs.
class Verifier {
public:
  Verifier(Session& session, const Options& options, bool named, AllGiven all)
      : session_(session), options_(options), named_(named), all_(all) {}

  Exit run_set(Text folder, Printer& out, Printer& errors) {
    all_.count = 0;
    Exit status = EXIT_DONE;
    if (!named_) {
      look_at_set(session_, folder, all_);
      status = choose(session_, all_, errors);
    }
    if (status != EXIT_DONE) return status;
    Session*& ready = ready_[number_of(session_)];
    if (ready == nullptr) {
      ready = static_cast<Session*>(take_memory(sizeof(Session)));
      if (ready == nullptr) return EXIT_FILE;
      *ready = session_;
      status = prepare(*ready, options_.session, errors);
#ifdef SVOD_DEVICE
      if (status == EXIT_DONE)
        status = open_device(*ready, options_.session.place, errors);
#endif
#ifdef SVOD_MAKES_WEIGHTS
      if (status == EXIT_DONE)
        status = make_weights(*ready, options_.session.threads, errors);
#endif
    }
    return status == EXIT_DONE ? verify_set(*ready, folder, options_, out, errors)
                               : status;
  }

private:
  Session& session_;
  const Options& options_;
  bool named_;
  AllGiven all_;
  Session* ready_[kMostEntries] = {};
};

Exit verify_sets(Session& session, const Options& options, bool named, AllGiven all,
                 Printer& errors) {
  Verifier verifier(session, options, named, all);
  Printer out(1);
  return for_each_set(Text(options.verify), errors,
                      [&](Text folder) { return verifier.run_set(folder, out, errors); });
}

} // namespace

Text take_entry_name(int32_t& argc, char** argv) {
  Text name;
  for (Text found = take_option(argc, argv, "--entry"); found.data != nullptr;
       found = take_option(argc, argv, "--entry"))
    name = found;
  return name;
}

void print_entry_help(Printer& out) {
  out << "  --entry NAME           take this entry; without it the one whose shapes are "
         "the inputs'\n";
}

Exit enter(Session& session, const Options& options, Text name, bool& done,
           Printer& errors) {
  done = false;
  if (!entries_hold(session)) {
    print_error(errors, "the image in this program is of another kind");
    return EXIT_DAMAGED;
  }
  const bool named = name.data != nullptr;
  if (named) {
    const Exit status = choose_named(session, name, errors);
    if (status != EXIT_DONE) return status;
  }
  AllGiven all;
  all.list = static_cast<Given*>(take_memory(kMostTensors * sizeof(Given)));
  if (all.list == nullptr) return no_memory(errors);
  if (options.mode == Mode::Verify) {
    done = true;
    return verify_sets(session, options, named, all, errors);
  }
  if (options.mode == Mode::Info && !options.json && !named) {
    done = true;
    print_infos(session);
    return EXIT_DONE;
  }
  const bool runs = options.mode == Mode::Run || options.mode == Mode::Bench ||
                    options.mode == Mode::Profile;
  if (!runs) return EXIT_DONE;
  if (!named) {
    look_at_words(session, options, all);
    const Exit status = choose(session, all, errors);
    if (status != EXIT_DONE) return status;
  }
  if (options.mode != Mode::Run && !options.json)
    Printer(1) << "entry " << svod_entry_name(number_of(session)) << "\n";
  return EXIT_DONE;
}

} // namespace packed

#endif
