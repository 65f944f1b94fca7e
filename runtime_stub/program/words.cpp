// A word's name is looked up before anything is done with what follows it.
#include "runtime_stub/program/words.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/literal.h"
#include "runtime_stub/program/nearest.h"
#include "runtime_stub/program/open_inputs.h"

namespace packed {

namespace {

bool is_named(Text word, Text name, const char*& rest) {
  if (name.size >= word.size || !word.starts_with(name) || word.data[name.size] != '=') {
    return false;
  }
  rest = word.data + name.size + 1;
  return true;
}

} // namespace

// The tensors of a sequence have names of their own, which are listed with it.
void list_names(Printer& errors, const Session& session, Side side) {
  constexpr uint32_t kMostListed = 32;
  uint32_t count = value_count(session, side);
  errors << (side == Side::Input ? "inputs:" : "outputs:");
  for (uint32_t v = 0; v < count && v < kMostListed; v++) {
    Value value = value_at(session, side, v);
    errors << (v > 0 ? ", " : " ");
    errors.name(value.name) << " ";
    if (value.is_tensor()) {
      Tensor tensor = tensor_at(session, side, value.first);
      print_type(errors, tensor.element, tensor.rank, tensor.dims);
    } else {
      print_value_kind(errors, session, value);
    }
  }
  errors << (count > kMostListed ? ", ...\n" : "\n");
}

Word read_word(const Session& session, Side side, const char* word) {
  Text whole(word);
  Word out;
  out.rest = word;
  bool whole_value = false;
  for (uint32_t v = 0; v < value_count(session, side); v++) {
    Value value = value_at(session, side, v);
    if (value.is_tensor() || !is_named(whole, value.name, out.rest)) continue;
    out.value = value;
    whole_value = true;
    if (whole.ends_with(".pb")) return out.kind = WordKind::Value, out;
  }
  uint32_t count = tensor_count(session, side);
  for (uint32_t k = 0; k < count; k++) {
    const uint32_t i = named_tensor(session, side, k);
    if (!is_named(whole, tensor_at(session, side, i).name, out.rest)) continue;
    out.tensor = i;
    return out.kind = WordKind::Tensor, out;
  }
  if (whole_value) return out.kind = WordKind::Value, out;
  uint64_t equals = whole.find('='), number = 0;
  if (equals == whole.size || *word == '@') return out;
  if (read_unsigned(whole.first(equals), &number) && number < count) {
    out.tensor = named_tensor(session, side, static_cast<uint32_t>(number));
    out.rest = word + equals + 1;
    return out.kind = WordKind::Tensor, out;
  }
  Tensor literal;
  bool nameless = side == Side::Input &&
                  (read_literal_type(whole.first(equals), literal) || is_file(word));
  if (!nameless) out.kind = WordKind::Unknown;
  return out;
}

bool is_file(const char* path) {
  SvodFileInfo info = {};
  return svod_stat_path(path, &info) == 0;
}

Exit unknown_name(const Session& session, Side side, Text word, Printer& errors) {
  Text given = word.first(word.find('='));
  Nearest nearest(given);
  for (uint32_t v = 0; v < value_count(session, side); v++) {
    nearest.consider(value_at(session, side, v).name);
  }
  for (uint32_t k = 0; k < tensor_count(session, side); k++) {
    nearest.consider(tensor_at(session, side, named_tensor(session, side, k)).name);
  }
  const char* what = side == Side::Input ? "input" : "output";
  errors << "error: --" << what << " ";
  errors.name(word) << ": no " << what << " is named '";
  errors.name(given) << "'";
  if (nearest.name().size > 0) {
    errors << "; is it '";
    errors.name(nearest.name()) << "'?";
  }
  errors << "\n";
  list_names(errors, session, side);
  return EXIT_USAGE;
}

Text take_option(int32_t& argc, char** argv, Text name) {
  for (int32_t i = 1; i < argc; i++) {
    const Text word(argv[i]), own = word.first(word.find('='));
    if (!(own == name)) continue;
    int32_t taken = 1;
    Text value("");
    if (own.size < word.size)
      value = word.from(own.size + 1);
    else if (i + 1 < argc)
      value = Text(argv[i + 1]), taken = 2;
    argc -= taken;
    for (int32_t j = i; j < argc; j++) argv[j] = argv[j + taken];
    return value;
  }
  return {};
}

Exit file_error(Printer& errors, const char* path, const char* what, int32_t failure) {
  errors << "error: " << path << ": cannot be " << what << ": ";
  Text words = failure_text(failure);
  if (words.size > 0) {
    errors << words << "\n";
  } else {
    errors << "error " << failure << "\n";
  }
  return EXIT_FILE;
}

} // namespace packed
