// A JSON object a line on standard input, one a line on standard output: for callers that
// have no arrays in memory. An object has the inputs that no word of the command line
// gives, by name, as lists in lists; a line that begins otherwise is the only input
// itself. An answer has all outputs, or "error": then the next line is read as ever.
// Memory of a line is given back behind it, and a line has a most length, so that no
// caller takes more than its inputs need.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/json_text.h"
#include "runtime_stub/program/modes.h"
#include "runtime_stub/program/open_inputs.h"
#ifdef SVOD_PICTURES
#include "runtime_stub/program/pictures.h"
#endif
#include "runtime_stub/program/shortest.h"
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/words.h"

namespace packed {

namespace {

// What is read lies in memory of `room` bytes: a line and its end are at most as long.
class Lines {
public:
  enum class Got : uint8_t { Line, Long, End, Failed };
  bool begin(uint64_t room) {
    data_ = static_cast<char*>(take_memory(room));
    room_ = room;
    return data_ != nullptr;
  }

  // Without its end. Of one that is too long nothing is left.
  Got next(Text& line) {
    uint64_t seen = 0; // of the line, without an end
    bool is_long = false;
    for (;;) {
      const Text unread(data_ + start_, end_ - start_);
      const uint64_t length = seen + unread.from(seen).find('\n');
      if (length < unread.size || (ended_ && unread.size > 0)) {
        line = unread.first(length);
        start_ += length < unread.size ? length + 1 : length;
        return is_long ? Got::Long : Got::Line;
      }
      if (ended_) return is_long ? Got::Long : Got::End;
      seen = unread.size;
      if (seen == room_) {
        is_long = true;
        seen = start_ = end_ = 0;
      }
      if (!read()) return Got::Failed;
    }
  }
  int32_t failure() const { return failure_; }

private:
  bool read() {
    if (start_ > 0) {
      memmove(data_, data_ + start_, static_cast<size_t>(end_ - start_));
      end_ -= start_;
      start_ = 0;
    }
    const int64_t got = svod_read_some(0, data_ + end_, room_ - end_);
    if (got < 0) failure_ = static_cast<int32_t>(-got);
    if (got == 0) ended_ = true;
    if (got > 0) end_ += static_cast<uint64_t>(got);
    return got >= 0;
  }

  char* data_ = nullptr;
  uint64_t room_ = 0, start_ = 0, end_ = 0;
  bool ended_ = false;
  int32_t failure_ = 0;
};

// Of the lists in a text; false where it has fewer axes. Its other lists are compared
// with the first ones when it is read.
bool set_extents(Text value, Tensor& type) {
  int64_t dims[SVOD_MAX_RANK];
  for (uint32_t axis = 0; axis < type.rank; axis++) {
    value = skip_spaces(value);
    if (!value.starts_with("[")) return false;
    Text first = skip_spaces(value.from(1)), rest = first;
    for (dims[axis] = 0; rest.size > 0 && rest.data[0] != ']'; dims[axis]++) {
      const uint64_t size = json_value_size(rest);
      if (size == 0) return false;
      rest = skip_spaces(rest.from(size));
      if (rest.starts_with(",")) rest = skip_spaces(rest.from(1));
    }
    if (rest.size == 0) return false;
    value = first;
    if (dims[axis] > 0) continue;
    while (++axis < type.rank) dims[axis] = type.dims[axis];
  }
  return set_dims(type, dims, type.rank);
}

class JsonLines {
public:
  JsonLines(Session& session, const Options& options)
      : session_(session), options_(options), free_(session) {}
  uint64_t most_bytes() const;
  // One line; what is wrong with it goes to `errors`.
  Exit run_line(Text line, Printer& errors);
  void write(Printer& out) const;

private:
  Exit bind_line(Text line, Printer& errors);
  Exit bind_member(Text key, Text value, Printer& errors);
  Exit bind_value(uint32_t i, Text value, Printer& errors);
  Exit malformed(Printer& errors) const {
    print_error(errors, "the line is no JSON object of inputs by name");
    return EXIT_BAD_DATA;
  }

  Session& session_;
  const Options& options_;
  FreeInputs free_;
};

// A number has 24 characters, and there may be as much around it.
uint64_t JsonLines::most_bytes() const {
  uint64_t most = 0;
  for_each_entry(session_, [&](const Session& at_entry) {
    uint64_t bytes = 1 << 16;
    for (uint32_t i = 0; i < model_inputs(at_entry); i++) {
      const Tensor type = input_type(at_entry, i);
      const uint64_t each = is_text(*type.element) ? 6 * type.width + 48 : 96;
      bytes += type.elements() * each + 6 * type.name.size;
    }
    if (bytes > most) most = bytes;
  });
  return most;
}

Exit JsonLines::bind_value(uint32_t i, Text value, Printer& errors) {
  Tensor type = input_type(session_, i), tensor;
  const char* error = nullptr;
  if (is_open(session_, i) && !set_extents(value, type))
    error = "its lists are not as deep as the shape says";
  // What does not fit is told before memory is taken for it.
  if (error == nullptr && takes_shape(session_, i, type))
    error = read_json(value, type, tensor);
  else
    tensor = type;
  if (error == nullptr) return bind_input(session_, i, tensor, "the line", errors);
  errors << "error: input '";
  errors.name(type.name) << "' ";
  print_input_type(errors, session_, i);
  errors << ": " << error << "\n";
  return EXIT_BAD_DATA;
}

Exit JsonLines::bind_member(Text key, Text value, Printer& errors) {
  auto buffer = static_cast<char*>(take_memory(key.size));
  Text name;
  if (buffer == nullptr || !read_json_string(key, buffer, name)) return malformed(errors);
  for (uint32_t i = 0; i < model_inputs(session_); i++) {
    if (!(input_type(session_, i).name == name)) continue;
    if (free_.has(i) && session_.inputs[i] == nullptr)
      return bind_value(i, value, errors);
    errors << "error: input '";
    errors.name(name) << "' is given twice\n";
    return EXIT_BAD_DATA;
  }
  errors << "error: no input is named '";
  errors.name(name) << "'\n";
  list_names(errors, session_, Side::Input);
  return EXIT_BAD_DATA;
}

Exit JsonLines::bind_line(Text line, Printer& errors) {
  Text rest = skip_spaces(line);
  if (!rest.starts_with("{")) {
    uint32_t only = 0, count = 0;
    for (uint32_t i = 0; i < model_inputs(session_); i++)
      if (free_.has(i)) only = i, count++;
    return count == 1 ? bind_value(only, rest, errors) : malformed(errors);
  }
  rest = skip_spaces(rest.from(1));
  while (!rest.starts_with("}")) {
    const uint64_t key = json_value_size(rest);
    const Text behind = skip_spaces(rest.from(key));
    if (key == 0 || !behind.starts_with(":")) return malformed(errors);
    const Text value = skip_spaces(behind.from(1));
    const uint64_t size = json_value_size(value);
    if (size == 0) return malformed(errors);
    const Exit status = bind_member(rest.first(key), value.first(size), errors);
    if (status != EXIT_DONE) return status;
    rest = skip_spaces(value.from(size));
    if (rest.starts_with("}")) break;
    if (!rest.starts_with(",")) return malformed(errors);
    rest = skip_spaces(rest.from(1));
    if (rest.starts_with("}")) return malformed(errors);
  }
  return skip_spaces(rest.from(1)).size == 0 ? EXIT_DONE : malformed(errors);
}

Exit JsonLines::run_line(Text line, Printer& errors) {
  free_.clear(session_);
  enter_next(session_);
  Exit status = bind_line(line, errors);
  if (status == EXIT_DONE) status = check_given(session_, "the line", errors);
  if (status == EXIT_DONE) status = check_finite(session_, options_, errors);
  return status == EXIT_DONE ? run(session_, errors) : status;
}

// NaN and the infinities are no numbers of JSON: they are strings, and are read as such.
void write_scalar(Printer& out, const Element& element, const Tensor& tensor,
                  uint64_t i) {
  if (is_text(element)) return write_json_string(out, string_at(tensor, i), true);
  if (!is_float(element)) return write_json_scalar(out, element, tensor, i);
  const double value = load(element, tensor.data, i);
  if (value - value == 0) return print_shortest(out, element, tensor.data, i);
  out << "\"";
  write_json_scalar(out, element, tensor, i);
  out << "\"";
}

void JsonLines::write(Printer& out) const {
  out << "{";
  for (uint32_t i = 0; i < model_outputs(session_); i++) {
    const Tensor tensor = output_type(session_, i);
    out << (i > 0 ? ", " : "");
    write_json_string(out, tensor.name, true);
    out << ": ";
    write_json_lists(out, tensor, write_scalar);
  }
  out << "}\n";
}

// What was printed as errors, without what says that it is one.
void write_error(Printer& out, Text told) {
  constexpr const char* kMark = "error: ";
  if (told.starts_with(kMark)) told = told.from(Text(kMark).size);
  if (told.ends_with("\n")) told = told.first(told.size - 1);
  out << "{\"error\": ";
  out.json(told) << "}\n";
}

bool has_tensors_alone(const Session& session) {
  constexpr Side kSides[] = {Side::Input, Side::Output};
  for (Side side : kSides)
    for (uint32_t k = 0; k < value_count(session, side); k++)
      if (!value_at(session, side, k).is_tensor()) return false;
  return true;
}

bool is_blank(Text line) { return skip_spaces(line).size == 0; }

} // namespace

Exit json_lines(Session& session, const Options& options, Printer& errors) {
  if (options.output_count > 0 || !has_tensors_alone(session)) {
    print_error(errors, options.output_count > 0
                            ? "--stream: outputs go to standard output, not to --output"
                            : "--stream=jsonl: sequences, maps and optionals are not for "
                              "lines");
    return EXIT_USAGE;
  }
  const Exit status = bind_words(session, options, errors);
  if (status != EXIT_DONE) return status;
#ifdef SVOD_PICTURES
  if (has_picture(session, FreeInputs(session))) {
    errors << "error: --stream=jsonl: " << kNoStreamOfPictures << "\n";
    return EXIT_USAGE;
  }
#endif
  JsonLines all(session, options);
  Lines lines;
  if (!lines.begin(all.most_bytes())) return no_memory(errors);
  Exit result = EXIT_DONE;
  for (;;) {
    Text line;
    const Lines::Got got = lines.next(line);
    if (got == Lines::Got::End) return result;
    if (got == Lines::Got::Failed)
      return file_error(errors, "standard input", "read", lines.failure());
    if (got == Lines::Got::Line && is_blank(line)) continue;
    MemoryScope scope;
    char room[4096];
    Printer told(room, sizeof(room)), out(1);
    Exit one = EXIT_BAD_DATA;
    if (got == Lines::Got::Long)
      told << "the line is longer than " << all.most_bytes() << " bytes";
    else
      one = all.run_line(line, told);
    told.flush();
    if (one == EXIT_DONE) {
      all.write(out);
    } else {
      const uint64_t size = told.written();
      write_error(out, Text(room, size < sizeof(room) ? size : sizeof(room)));
      result = EXIT_BAD_DATA;
    }
    out.flush();
    if (out.failure() != 0)
      return file_error(errors, "standard output", "written", out.failure());
  }
}

} // namespace packed
