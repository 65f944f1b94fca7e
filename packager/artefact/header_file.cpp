// C99 that C++11 and later take as well. Tensor names are the only model text in it: they
// are string literals in which every byte but letters, digits and a few marks is an octal
// escape, so that no name can end the literal or a line.
#include "packager/artefact/header_file.h"

#include "compiler/ir/dtype.h"
#include "compiler/plan/plan.h"
#include "packager/artefact/byte_list.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <sstream>
#include <utility>

namespace svod::packager {

std::string macro_prefix(std::string prefix) {
  for (char& c : prefix)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return prefix;
}

std::string c_literal(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    bool plain =
        std::isalnum(static_cast<unsigned char>(c)) && static_cast<uint8_t>(c) < 128;
    if (plain || c == '_' || c == '.' || c == '-' || c == '/' || c == ':') {
      out += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\%03o", static_cast<uint8_t>(c));
      out += escape;
    }
  }
  return out + "\"";
}

uint64_t made_bytes(const ImageContents& contents) {
  return SVOD_ALIGN + contents.weight_bytes;
}

namespace {

// The least number has no literal of its own in C.
std::string c_integer(int64_t value) {
  if (value == INT64_MIN) return "INT64_MIN";
  return "INT64_C(" + std::to_string(value) + ")";
}

class HeaderWriter {
public:
  explicit HeaderWriter(const HeaderFacts& facts)
      : facts_(facts), macro_(macro_prefix(facts.prefix)) {}
  std::string write();

private:
  void define(const std::string& name, const std::string& value) {
    out_ << "#define " << macro_ << "_" << name << " " << value << "\n";
  }
  void define(const std::string& name, uint64_t value) {
    define(name, std::to_string(value)); // of type int where it fits, as loops expect
  }
  void write_tensors(const std::string& kind, std::span<const ImageTensor> tensors);
  void write_tensor(const std::string& prefix, const ImageTensor& tensor);
  void write_open(const std::string& prefix, const ImageTensor& tensor);
  void write_fixed(const std::string& prefix, const ImageTensor& tensor);
  void write_values(const std::string& kind, const std::vector<ImageValue>& values);
  void write_pools(const std::vector<ImageContents::Pool>& pools);
  void write_entries();
  void write_extents(const std::string& prefix, const std::vector<ImageTensor>& tensors);
  void write_statuses();
  void write_run_functions();
  void write_reset_function();
  void write_init_function();
  void write_device_functions();
  void write_changed_function();
  void write_entry_functions();
  void write_functions();

  const HeaderFacts& facts_;
  std::string macro_;
  std::ostringstream out_;
};

// An empty initializer is no C: a scalar has one dimension less to loop over, not a
// value.
std::string dims_list(const ImageTensor& tensor) {
  std::string dims = "{";
  for (int64_t dim : tensor.dims) {
    dims += (dims.size() > 1 ? ", " : "") + std::to_string(dim);
  }
  if (tensor.dims.empty()) dims += "1";
  return dims + "}";
}

void HeaderWriter::write_tensor(const std::string& prefix, const ImageTensor& tensor) {
  out_ << "\n";
  define(prefix + "_NAME", c_literal(tensor.name));
  define(prefix + "_DTYPE", "\"" + onnx_type_text(tensor.onnx_type) + "\"");
  define(prefix + "_RANK", tensor.dims.size());
  define(prefix + "_DIMS", dims_list(tensor));
  define(prefix + "_COUNT", tensor.elements());
  define(prefix + "_BYTES", tensor.bytes);
  // One row per string, zeros after its end.
  if (tensor.onnx_type == info(DType::String).onnx)
    define(prefix + "_STRING_BYTES",
           tensor.elements() == 0 ? 0 : tensor.bytes / tensor.elements());
  define(prefix + "_ALIGN", uint64_t{tensor.alignment});
  write_fixed(prefix, tensor);
  if (tensor.shape_output != 0 && prefix.starts_with("INPUT")) {
    write_open(prefix, tensor);
  } else if (tensor.shape_output != 0) {
    out_ << "/* Bounds: outputs[i] holds elements as for _DIMS, of which the extents in\n"
         << "   outputs[" << tensor.shape_output - 1 << "] are the result. */\n";
    define(prefix + "_SHAPE_OUTPUT", uint64_t{tensor.shape_output} - 1);
  }
}

// An input of which each run decides sizes, or such an input's extents, whose
// shape_output is its open axes.
void HeaderWriter::write_open(const std::string& prefix, const ImageTensor& tensor) {
  if (tensor.role == SVOD_ROLE_PICTURE) {
    out_ << "/* How many bytes the picture file has, int64_t. */\n";
    return;
  }
  if (!tensor.prepared.empty()) {
    out_ << "/* A picture file, of at most so many bytes: inputs["
         << tensor.shape_output - 1
         << "] says how many it\n   has, and no others are read. It becomes\n   "
         << tensor.prepared << ". */\n";
    define(prefix + "_SHAPE_INPUT", uint64_t{tensor.shape_output} - 1);
    return;
  }
  if (tensor.role == SVOD_ROLE_SHAPE) {
    out_ << "/* The extents of an input, int64_t. Bit i of its open axes: the run "
            "decides\n"
            "   element i; the others are as in its _DIMS. */\n";
    define(prefix + "_OPEN_AXES", uint64_t{tensor.shape_output});
    return;
  }
  out_ << "/* Bounds: inputs[i] holds elements as for _DIMS, of which the extents in\n"
       << "   inputs[" << tensor.shape_output - 1 << "] are meant. */\n";
  define(prefix + "_SHAPE_INPUT", uint64_t{tensor.shape_output} - 1);
}

// An input of one value: its bytes as a list of numbers, so that a caller can pass them.
void HeaderWriter::write_fixed(const std::string& prefix, const ImageTensor& tensor) {
  if (tensor.fixed.empty()) return;
  out_ << "/* Packed for this value, in bytes; any other is " << macro_
       << "_BAD_ARGUMENT. */\n";
  define(prefix + "_FIXED_BYTES", byte_list(tensor.fixed));
}

void HeaderWriter::write_tensors(const std::string& kind,
                                 std::span<const ImageTensor> tensors) {
  define("NUM_" + kind + "S", tensors.size());
  for (size_t i = 0; i < tensors.size(); i++) {
    write_tensor(kind + "_" + std::to_string(i), tensors[i]);
  }
  out_ << "\n";
}

// Which tensors are one sequence, optional or map of the model. Elements of a sequence
// have names of their own; what a map's tensor is lacks its keys.
void HeaderWriter::write_values(const std::string& kind,
                                const std::vector<ImageValue>& values) {
  for (size_t i = 0; i < values.size(); i++) {
    const ImageValue& value = values[i];
    if (value.kind == SVOD_VALUE_TENSOR && value.flags == 0) continue;
    const std::string prefix = kind + "_VALUE_" + std::to_string(i);
    define(prefix + "_NAME", c_literal(value.name));
    define(prefix + "_FIRST", uint64_t{value.first});
    define(prefix + "_COUNT", uint64_t{value.count});
    if (value.presence != 0)
      define(prefix + "_PRESENCE_OUTPUT", uint64_t{value.presence} - 1);
    if (value.keys.empty()) continue;
    const bool texts = (value.flags & SVOD_VALUE_TEXT_KEYS) != 0;
    std::string keys = "{";
    for (const ImageKey& key : value.keys)
      keys += (keys.size() > 1 ? ", " : "") +
              (texts ? c_literal(key.text) : c_integer(key.number));
    define(prefix + "_KEY_COUNT", uint64_t{value.keys.size()});
    define(prefix + "_KEYS", keys + "}");
  }
}

// Names, types and ranks are those of entry 0.
void HeaderWriter::write_extents(const std::string& prefix,
                                 const std::vector<ImageTensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); i++) {
    const std::string name = prefix + "_" + std::to_string(i);
    define(name + "_DIMS", dims_list(tensors[i]));
    define(name + "_COUNT", tensors[i].elements());
    define(name + "_BYTES", tensors[i].bytes);
  }
}

void HeaderWriter::write_entries() {
  const std::vector<ImageEntry>& entries = facts_.contents->entries;
  if (entries.size() < 2) return;
  out_ << "/* The sets of shapes; what stands above is of entry 0. */\n";
  define("NUM_ENTRIES", entries.size());
  for (size_t e = 0; e < entries.size(); e++) {
    const std::string number = std::to_string(e);
    if (entries[e].name != number)
      define("ENTRY_" + macro_prefix(entries[e].name), uint64_t{e});
  }
  for (size_t e = 1; e < entries.size(); e++) {
    const std::string prefix = "ENTRY_" + std::to_string(e);
    out_ << "\n";
    write_extents(prefix + "_INPUT", entries[e].inputs);
    write_extents(prefix + "_OUTPUT", entries[e].outputs);
  }
  out_ << "\n";
}

void HeaderWriter::write_statuses() {
  struct Row {
    const char* name;
    int value;
    const char* meaning;
  };
  constexpr Row kStatuses[] = {
      {"OK", SVOD_OK, "outputs are written"},
      {"BAD_ARGUMENT", SVOD_BAD_ARGUMENT,
       "a pointer is null, or an input is not what was packed"},
      {"MISALIGNED", SVOD_MISALIGNED, "a pointer is not aligned"},
      {"ARENA_SMALL", SVOD_ARENA_SMALL, "the arena is too small"},
      {"ABI", SVOD_ABI, "header and library do not match"},
      {"INDEX", SVOD_INDEX, "an index in the data is out of range"},
      {"CPU", SVOD_CPU, "this CPU lacks what was packed"},
      {"CORRUPT", SVOD_CORRUPT, "the library is damaged"},
      {"LIMIT", SVOD_LIMIT, "a loop or a picture is larger than was packed"},
      {"NO_WEIGHTS", SVOD_NO_WEIGHTS, "_init was not called, where there is one"},
      {"NO_DEVICE", SVOD_NO_DEVICE, "no GPU runs this, or the arena is not open for one"},
      {"DEVICE_FAULT", SVOD_DEVICE_FAULT, "the GPU's driver refused"},
  };
  out_ << "/* What the functions below return. Numbers never change. */\n"
       << "enum " << facts_.prefix << "_status {\n";
  for (const Row& row : kStatuses) {
    bool last = &row == std::end(kStatuses) - 1;
    out_ << "  " << macro_ << "_" << row.name << " = " << row.value << (last ? "" : ",")
         << " /* " << row.meaning << " */\n";
  }
  out_ << "};\n\n";
}

// The number of a memory among those of a run, and what it has to hold.
void HeaderWriter::write_pools(const std::vector<ImageContents::Pool>& pools) {
  define("NUM_POOLS", uint64_t{pools.size()});
  for (size_t i = 0; i < pools.size(); i++) {
    const std::string name = "POOL_" + macro_prefix(pools[i].name);
    define(name, uint64_t{i});
    define(name + "_BYTES", pools[i].bytes);
  }
}

void HeaderWriter::write_run_functions() {
  const std::string& p = facts_.prefix;
  if (!facts_.contents->pools.empty()) {
    out_
        << "/* Runs the model. pools[" << macro_ << "_POOL_x] is " << macro_
        << "_POOL_x_BYTES long and aligned to\n   " << macro_
        << "_ARENA_ALIGN; a call owns them, and their content may be anything. inputs[i] "
           "and\n   outputs[i] are "
        << macro_ << "_INPUT_i_BYTES and " << macro_ << "_OUTPUT_i_BYTES long. */\n"
        << "int " << p << "_run_pools(void* const pools[], const void* const inputs[],\n"
        << "                    void* const outputs[]);\n\n";
    return;
  }
  const bool keeps = !facts_.contents->entries.front().states.empty();
  out_ << "/* Runs the model. `arena` is " << macro_
       << "_ARENA_BYTES long and aligned to " << macro_ << "_ARENA_ALIGN;\n"
       << "   a call owns it, and its content may be anything"
       << (keeps ? " before the first call" : "")
       << ". inputs[i] and outputs[i] "
          "are\n"
       << "   " << macro_ << "_INPUT_i_BYTES and " << macro_
       << "_OUTPUT_i_BYTES long. Calls "
       << "with different arenas may run\n   at the same time. */\n"
       << "int " << p << "_run(void* arena, const void* const inputs[], "
       << "void* const outputs[]);\n\n"
       << "/* The same, and " << macro_
       << "_ARENA_SMALL when `arena_bytes` is not enough. */\n"
       << "int " << p << "_run_sized(void* arena, size_t arena_bytes, "
       << "const void* const inputs[],\n                    void* const outputs[]);\n\n"
       << "size_t " << p << "_arena_bytes(void);\n";
}

void HeaderWriter::write_changed_function() {
  const std::string& p = facts_.prefix;
  if (facts_.contents->changes.masks.empty()) return;
  out_ << "\n/* A run behind another with this arena, which nobody has written to since, "
          "nor to its outputs.\n   Bit i of `changed` says that input i may hold other "
          "bytes than then (bit "
       << plan::kLastChangeBit << ": any from that one\n   on). What hangs on none of "
       << "them is left out, outputs too: they stay as they are. After\n   a run that "
          "failed, and in a new arena, all is done. */\n"
       << "int " << p
       << "_run_changed(void* arena, const void* const inputs[], void* const "
          "outputs[],\n                     uint64_t changed);\n\n";
}

void HeaderWriter::write_entry_functions() {
  const std::string& p = facts_.prefix;
  if (facts_.contents->entries.size() < 2) return;
  const bool grows = facts_.contents->entries.front().has_counters();
  out_ << "\n/* The same with the shapes of an entry; " << p << "_run is "
       << (grows ? "the first that has room\n   for what its states hold, " + p +
                       "_next_entry"
                 : "entry 0")
       << ". The arena is as long for all. */\n"
       << "int " << p << "_run_entry(size_t entry, void* arena, "
       << "const void* const inputs[],\n                    void* const outputs[]);\n\n"
       << "/* The entry whose inputs have these extents, dims[i] being " << macro_
       << "_INPUT_i_RANK\n   of them; " << macro_
       << "_NUM_ENTRIES when there is none. */\n"
       << "size_t " << p << "_find_entry(const int64_t* const dims[]);\n\n";
  if (grows) out_ << "size_t " << p << "_next_entry(const void* arena);\n\n";
}

// Firmware has no place to note that an arena is new.
void HeaderWriter::write_reset_function() {
  const ImageEntry& entry = facts_.contents->entries.front();
  if (entry.states.empty()) return;
  out_ << "\n/* What stays in the arena from run to run";
  bool first = true;
  for (size_t i = 0; i < entry.states.size(); i++) {
    if (is_counter(entry, i)) continue;
    out_ << (std::exchange(first, false) ? ": " : ", ")
         << c_literal(entry.inputs[entry.states[i].input].name);
  }
  if (entry.has_counters())
    out_ << ".\n   A run that begins with more rows than were packed is " << macro_
         << "_LIMIT, and changes nothing";
  out_ << ".\n   " << facts_.prefix << "_reset makes it zeros again; "
       << (facts_.contents->straight ? "call it before the first run."
                                     : "in a new arena it is so before the first run.")
       << " */\nvoid " << facts_.prefix << "_reset(void* arena);\n\n";
}

void HeaderWriter::write_init_function() {
  const std::string& p = facts_.prefix;
  if (!facts_.init_scratch) return;
  out_ << "/* Before the first run with an arena: makes the weights in `weights`, "
       << macro_ << "_MADE_BYTES long,\n   with the help of `scratch`, " << macro_
       << "_INIT_SCRATCH_BYTES long, both aligned to " << macro_
       << "_ARENA_ALIGN.\n   Runs with this arena read them. For further arenas give the "
          "same weights, which are made\n   once, and null for scratch; the first call "
          "has "
          "to be done then. Without it runs return\n   "
       << macro_ << "_NO_WEIGHTS. */\n"
       << "int " << p << "_init(void* arena, void* weights, void* scratch);\n\n";
}

void HeaderWriter::write_device_functions() {
  const std::string& p = facts_.prefix;
  if (!facts_.device) return;
  out_
      << "\n/* Where runs with an arena go. */\nenum " << p << "_place {\n  " << macro_
      << "_ON_AUTO = 0, /* a GPU if there is one, else the processor */\n  " << macro_
      << "_ON_CPU = 1,\n  " << macro_ << "_ON_CUDA = 2\n};\n\n"
      << "/* Opens an arena for a place: the driver (libcuda.so.1), the GPU of the "
         "calling "
         "thread's context\n   or else the first one that fits, its memory with the "
         "weights, and the kernels. "
      << macro_ << "_NO_DEVICE\n   and " << macro_ << "_DEVICE_FAULT are of " << macro_
      << "_ON_CUDA alone. An arena that was not opened runs on the processor.\n   " << p
      << "_close gives back what the GPU holds for it; the arena must not move "
         "between. */\n"
      << "int " << p << "_open(void* arena, int place);\nvoid " << p
      << "_close(void* arena);\n"
      << "/* Whether runs with the arena go to a GPU; and which one it is, why it is "
         "none, "
         "or what went wrong\n   last. The text lies in the arena. */\n"
      << "int " << p << "_runs_on_device(void* arena);\nconst char* " << p
      << "_device_text(void* arena);\n\n"
      << "/* A run whose tensors lie on the GPU, aligned to " << macro_
      << "_ARENA_ALIGN, put on `stream` (a CUstream;\n   null: the default one): "
      << (facts_.waits
              ? "the processor runs some steps, and the stream is waited for\n   before "
                "them, so it must not be captured. Runs with one arena follow each other,"
              : "nothing is copied or waited for. Runs with one arena follow each other,")
      << "\n   on one stream or by the caller's care. " << p
      << "_finish_device waits for them and returns " << macro_
      << "_INDEX\n   where an index in the data was out of range. Values that "
         "were packed are not checked. */\n"
      << "int " << p
      << "_run_device(void* arena, const void* const inputs[], void* const "
         "outputs[],\n                     void* stream);\nint "
      << p << "_finish_device(void* arena);\n";
  if (facts_.contents->entries.size() > 1)
    out_ << "/* The same with the shapes of an entry. */\nint " << p
         << "_run_entry_device(size_t entry, void* arena, const void* const inputs[],\n"
         << "                           void* const outputs[], void* stream);\n";
  out_ << "\n";
}

void HeaderWriter::write_functions() {
  const std::string& p = facts_.prefix;
  write_init_function();
  write_run_functions();
  write_changed_function();
  write_reset_function();
  write_entry_functions();
  write_device_functions();
  out_ << "const char* " << p << "_status_text(int status);\n"
       << "/* What was packed, as JSON. */\n"
       << "const char* " << p << "_info(void);\n";
  if (facts_.self_check)
    out_ << "/* Reads all weights and the JSON: " << macro_ << "_CORRUPT when a bit of "
         << "them has changed. */\n"
         << "int " << p << "_self_check(void);\n";
}

std::string HeaderWriter::write() {
  const ImageContents& contents = *facts_.contents;
  const ImageEntry& entry = contents.entries.front();
  out_ << "/* A packed model: " << facts_.prefix
       << "_run computes it. No heap, no globals,\n"
       << "   no library beneath. Made by svod-pack; the library beside it belongs to "
          "it. */\n"
       << "#ifndef " << macro_ << "_SVOD_H\n#define " << macro_ << "_SVOD_H\n\n"
       << "#include <stddef.h>\n#include <stdint.h>\n\n"
       << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  define("ABI_VERSION", SVOD_FORMAT_VERSION);
  define("MODEL_SHA256", "\"" + contents.model.hex() + "\"");
  out_ << "/* Of one run: temporaries " << facts_.arena.temporaries << ", scratch "
       << facts_.arena.scratch << ", tables " << facts_.arena.tables
       << (facts_.arena.states != 0 ? ", states " + std::to_string(facts_.arena.states)
                                    : "")
       << (facts_.arena.device != 0 ? ", for a GPU " + std::to_string(facts_.arena.device)
                                    : "")
       << ". The stack is the longest chain\n   of calls, beside it";
  if (!facts_.stack_of.empty())
    out_ << ": compiled by Clang for " << facts_.stack_of
         << ", and another\n   compiler's frames may be larger (gcc -fstack-usage)";
  out_ << ". */\n";
  if (contents.pools.empty())
    define("ARENA_BYTES", facts_.arena.all());
  else
    write_pools(contents.pools);
  define("ARENA_ALIGN", contents.align);
  define("STACK_BYTES", facts_.stack_bytes);
  define("WEIGHT_BYTES", contents.weight_bytes);
  if (facts_.device) define("DEVICE", uint64_t{1});
  if (facts_.init_scratch) {
    define("MADE_BYTES", made_bytes(contents));
    define("INIT_SCRATCH_BYTES", std::max(*facts_.init_scratch, contents.align));
  }
  out_ << "\n";
  write_tensors("INPUT", callers(entry.inputs));
  write_tensors("OUTPUT", callers(entry.outputs));
  write_values("INPUT", entry.input_values);
  write_values("OUTPUT", entry.output_values);
  write_entries();
  write_statuses();
  write_functions();
  out_ << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return out_.str();
}

} // namespace

std::string header_text(const HeaderFacts& facts) { return HeaderWriter(facts).write(); }

} // namespace svod::packager
