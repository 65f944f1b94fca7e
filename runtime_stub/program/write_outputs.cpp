// Every word is understood before the model runs: a name that is wrong must not cost the
// run, nor leave some of the files written.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/data_sets.h"
#include "runtime_stub/program/npz.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/words.h"

namespace packed {

namespace {

// A word --output [NAME=]@FILE: a tensor, a whole value when `value` is none, or an
// archive of the tensors before `end`.
struct Place {
  uint32_t tensor = 0, end = 0;
  bool whole = false;
  Value value;
  const char* path = nullptr;
  FileForm form = FileForm::Raw;
};

// Devices and pipes take the bytes alone.
bool choose_form(Text path, FileForm& form) {
  return path == Text("-") || form_of_suffix(path, form) || path.starts_with("/dev/") ||
         path.starts_with("/proc/");
}

Exit check_place(const Session& session, Place& place, const char* word,
                 Printer& errors) {
  const bool known = choose_form(Text(place.path), place.form);
  const char* unfit = place.form == FileForm::Npz && !place.whole
                          ? unfit_for_archive(session, place.tensor, place.end)
                          : nullptr;
  if (unfit != nullptr) {
    errors << "error: --output " << word << ": " << unfit << "\n";
    return EXIT_USAGE;
  }
  if (known && (!place.whole || place.form == FileForm::Proto)) return EXIT_DONE;
  errors << "error: --output " << word << ": ";
  if (place.whole) {
    errors.name(place.value.name) << ", ";
    print_value_kind(errors, session, place.value);
    errors << ", is written as a whole, to a file .pb\n";
  } else {
    errors << "the suffix says how it is written: one of " << kKnownSuffixes << "\n";
  }
  return EXIT_USAGE;
}

// Without a name a word is for output `next`, or for the whole value that begins there.
// Moves `next` behind what it is for.
Exit find_place(const Session& session, const char* word, uint32_t& next, Place& place,
                Printer& errors) {
  uint32_t count = model_outputs(session);
  Word found = read_word(session, Side::Output, word);
  if (found.kind == WordKind::Unknown) {
    return unknown_name(session, Side::Output, Text(word), errors);
  }
  place.path = found.rest + (*found.rest == '@');
  place.whole = found.kind == WordKind::Value;
  place.value = found.value;
  place.tensor = found.kind == WordKind::Tensor ? found.tensor : next;
  if (!place.whole && place.tensor >= count) {
    errors << "error: --output " << word << ": the model has only " << count
           << " outputs\n";
    return EXIT_USAGE;
  }
  if (found.kind == WordKind::Nameless && Text(word).ends_with(".pb")) {
    place.value = value_of(session, Side::Output, next);
    place.whole = !place.value.is_tensor() && place.value.first == next;
  }
  // Without a name an archive is for all that are left.
  const bool rest = found.kind == WordKind::Nameless && Text(word).ends_with(".npz");
  place.end = rest ? count : place.tensor + 1;
  next += rest ? count - next : place.whole ? place.value.count : 1;
  return check_place(session, place, word, errors);
}

// A file that `print` prints; it says what fails besides writing, an errno.
template <class Print> Exit write_file(const char* path, Printer& errors, Print print) {
  int32_t file = svod_open(path, SVOD_OPEN_WRITE);
  int32_t failure = file < 0 ? -file : 0;
  if (file >= 0) {
    Printer out(file);
    failure = print(out);
    out.flush();
    if (failure == 0) failure = out.failure();
    int32_t closed = svod_close(file);
    if (failure == 0) failure = -closed;
  }
  return failure == 0 ? EXIT_DONE : file_error(errors, path, "written", failure);
}

Exit write_place(const Session& session, const Place& place, Printer& errors) {
  if (Text(place.path) == Text("-")) {
    Printer out(1);
    print_value(out, output_type(session, place.tensor), ~uint64_t{0});
    return EXIT_DONE;
  }
  return write_file(place.path, errors, [&](Printer& out) -> int32_t {
    constexpr int32_t kNoMemory = 12; // ENOMEM
    if (place.whole) {
      write_value(out, session, place.value);
    } else if (place.form == FileForm::Npz) {
      return write_archive(out, session, place.tensor, place.end) ? 0 : kNoMemory;
    } else {
      write_tensor(out, place.form, output_type(session, place.tensor));
    }
    return 0;
  });
}

// Optionals and sequences may have nothing to print.
void print_outputs(const Session& session, Printer& out) {
  constexpr uint64_t kMostPrinted = 1024;
  for (uint32_t v = 0; v < value_count(session, Side::Output); v++) {
    Value value = value_at(session, Side::Output, v);
    bool present = is_present(session, value);
    if (!present || value.count == 0) {
      out.name(value.name);
      out << (present ? ": an empty sequence\n" : ": left out\n");
      continue;
    }
    for (uint32_t i = 0; i < value.count; i++) {
      Tensor tensor = output_type(session, value.first + i);
      out.name(tensor.name);
      out << ": ";
      print_value(out, tensor, kMostPrinted);
    }
  }
}

template <class Action>
Exit for_each_output(const Session& session, const Options& options, Printer& errors,
                     Action action) {
  uint32_t next = 0;
  for (uint32_t w = 0; w < options.word_count; w++) {
    if (!options.is_output(w)) continue;
    Place place;
    Exit status = find_place(session, options.words[w], next, place, errors);
    if (status == EXIT_DONE) status = action(place);
    if (status != EXIT_DONE) return status;
  }
  return EXIT_DONE;
}

} // namespace

Exit check_outputs(const Session& session, const Options& options, Printer& errors) {
  return for_each_output(session, options, errors,
                         [](const Place&) { return EXIT_DONE; });
}

Exit write_answer(const Session& session, Path& path, Printer& errors) {
  Place place;
  place.end = model_outputs(session);
  place.form = FileForm::Npz;
  const char* suffix = ".npz";
  if (value_count(session, Side::Output) == 1) {
    place.value = value_at(session, Side::Output, 0);
    place.whole = !place.value.is_tensor();
    place.form = FileForm::Npy;
    suffix = place.whole ? ".pb" : ".npy";
  }
  if (!path.add(suffix))
    return file_error(errors, path.text, "written", SVOD_ENAMETOOLONG);
  place.path = path.text;
  return write_place(session, place, errors);
}

Exit write_outputs(const Session& session, const Options& options, Printer& errors) {
  Exit status = for_each_output(session, options, errors, [&](const Place& place) {
    return write_place(session, place, errors);
  });
  const bool best = options.labels.path != nullptr;
  if (status != EXIT_DONE || (options.output_count > 0 && !best)) return status;
  Printer out(1);
  best ? print_best(out, session, options.labels) : print_outputs(session, out);
  out.flush();
  return out.failure() == 0
             ? EXIT_DONE
             : file_error(errors, "standard output", "written", out.failure());
}

} // namespace packed
