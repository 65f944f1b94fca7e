// What the model calls one input or output: a tensor, or the tensors of a sequence, an
// optional or a map; and such values in files (SequenceProto, OptionalProto, MapProto).
#ifndef SVOD_PROGRAM_VALUE_H
#define SVOD_PROGRAM_VALUE_H

#include "runtime_stub/program/options.h"

namespace packed {

struct Value {
  Text name;
  uint32_t kind = SVOD_VALUE_TENSOR, flags = 0;
  uint32_t first = 0, count = 1; // tensors
  const SvodKey* keys = nullptr; // sorted
  uint32_t key_count = 0;
  const Element* element = nullptr; // null for one that has no tensor
  uint32_t presence = 0;            // as of SvodValue

  bool is_tensor() const { return kind == SVOD_VALUE_TENSOR && flags == 0; }
  bool has(SvodValueFlag flag) const { return (flags & flag) != 0; }
};

// Which tensors a value's numbers mean.
enum class Side : uint8_t { Input, Output };

// False: the table of values is damaged. Nothing below may be used then.
bool values_hold(const Session& session);

// Tensors that have a name there: those of the model, and states that a run may begin
// with.
uint32_t tensor_count(const Session& session, Side side);
// Whether state number `state` says how many rows others hold.
bool is_counter(const Session& session, uint32_t state);
// Which tensor the k-th of these is: what holds extents stands between the two.
uint32_t named_tensor(const Session& session, Side side, uint32_t k);
uint32_t value_count(const Session& session, Side side);
Value value_at(const Session& session, Side side, uint32_t i);
// The value that tensor number `i` belongs to.
Value value_of(const Session& session, Side side, uint32_t i);
Tensor tensor_at(const Session& session, Side side, uint32_t i);
// The value of this name that is no tensor; false when there is none.
bool find_value(const Session& session, Side side, Text name, Value& out);
// After a run: false for an optional output that is not there.
bool is_present(const Session& session, const Value& value);

// "sequence of 3", "optional", "map of 10 keys: 0 1 2"
void print_value_kind(Printer& out, const Session& session, const Value& value);

// A value as a file has it.
struct ValueData {
  Text name;
  bool present = true;
  uint32_t count = 0;
  Tensor* tensors = nullptr;
};

// Why the file cannot be used, or null. A map's tensor is in the order of the packed
// keys.
const char* read_value(const Session& session, Side side, const Value& value,
                       Text content, ValueData& out);

// Gives the value's tensors to the run; `origin` names the file in errors.
Exit bind_tensors(Session& session, const Value& value, const ValueData& data,
                  Text origin, Printer& errors);

// As SequenceProto, OptionalProto, MapProto or TensorProto, of the run's outputs.
void write_value(Printer& out, const Session& session, const Value& value);

} // namespace packed

#endif
