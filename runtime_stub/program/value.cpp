// A model without sequences has no table of values: each tensor is one.
#include "runtime_stub/program/value.h"

#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/open_inputs.h"

namespace packed {

bool is_counter(const Session& session, uint32_t state) {
  for (uint32_t i = 0; i < session.entry->state_count; i++)
    if (svod_state(session.model.image, session.entry, i)->counter == state + 1)
      return true;
  return false;
}

// They come last.
static uint32_t counters(const Session& session) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < session.entry->state_count; i++)
    count += is_counter(session, i);
  return count;
}

// A state may be given, but is not shown.
uint32_t tensor_count(const Session& session, Side side) {
  return side == Side::Input
             ? model_inputs(session) + session.entry->state_count - counters(session)
             : model_outputs(session);
}

uint32_t named_tensor(const Session& session, Side side, uint32_t k) {
  if (side == Side::Output || k < model_inputs(session)) return k;
  return k - model_inputs(session) + session.entry->input_count -
         session.entry->state_count;
}

static uint32_t listed(const Session& session, Side side) {
  return side == Side::Input ? session.entry->input_values : session.entry->output_values;
}

uint32_t value_count(const Session& session, Side side) {
  uint32_t count = listed(session, side);
  if (session.entry->input_values + session.entry->output_values > 0) return count;
  return tensor_count(session, side);
}

Tensor tensor_at(const Session& session, Side side, uint32_t i) {
  return side == Side::Input ? input_type(session, i) : output_type(session, i);
}

Value value_at(const Session& session, Side side, uint32_t i) {
  Value out;
  const void* image = session.model.image;
  if (listed(session, side) == 0) {
    out.first = named_tensor(session, side, i);
    Tensor tensor = tensor_at(session, side, out.first);
    out.name = tensor.name;
    out.element = tensor.element;
    return out;
  }
  const SvodValue* value = side == Side::Input
                               ? svod_input_value(image, session.entry, i)
                               : svod_output_value(image, session.entry, i);
  out.name = text_of(session, value->name);
  out.kind = value->kind;
  out.flags = value->flags;
  out.first = value->first;
  out.count = value->count;
  out.keys = svod_at<SvodKey>(image, svod_header(image)->keys, value->first_key);
  out.key_count = value->key_count;
  out.element = out.count > 0 ? tensor_at(session, side, out.first).element
                              : find_element(value->dtype);
  out.presence = value->presence;
  return out;
}

Value value_of(const Session& session, Side side, uint32_t i) {
  Value out;
  for (uint32_t v = 0; v < value_count(session, side); v++) {
    out = value_at(session, side, v);
    if (out.first <= i && i - out.first < out.count) return out;
  }
  return out;
}

bool find_value(const Session& session, Side side, Text name, Value& out) {
  for (uint32_t v = 0; v < value_count(session, side); v++) {
    out = value_at(session, side, v);
    if (!out.is_tensor() && out.name == name) return true;
  }
  return false;
}

bool is_present(const Session& session, const Value& value) {
  if (value.has(SVOD_VALUE_ABSENT)) return false;
  if (value.presence == 0) return true;
  return *static_cast<const uint8_t*>(session.outputs[value.presence - 1]) != 0;
}

void print_value_kind(Printer& out, const Session& session, const Value& value) {
  constexpr uint32_t kMostKeys = 16;
  if (value.has(SVOD_VALUE_OPTIONAL)) out << "optional ";
  if (value.has(SVOD_VALUE_ABSENT)) {
    out << "that is left out";
    return;
  }
  if (value.kind == SVOD_VALUE_TENSOR) out << "tensor";
  if (value.kind == SVOD_VALUE_SEQUENCE) out << "sequence of " << value.count;
  if (value.kind == SVOD_VALUE_MAP) out << "map of ";
  if (value.kind == SVOD_VALUE_MAPS) out << "sequence of maps of ";
  if (value.kind == SVOD_VALUE_TENSOR || value.kind == SVOD_VALUE_SEQUENCE) return;
  out << value.key_count << " keys:";
  for (uint32_t i = 0; i < value.key_count && i < kMostKeys; i++) {
    out << " ";
    if (value.has(SVOD_VALUE_TEXT_KEYS)) {
      out.name(text_of(session, value.keys[i].text));
    } else {
      out << value.keys[i].number;
    }
  }
  if (value.key_count > kMostKeys) out << " ...";
}

Exit bind_tensors(Session& session, const Value& value, const ValueData& data,
                  Text origin, Printer& errors) {
  bool absent = value.has(SVOD_VALUE_ABSENT);
  const char* wrong = absent && data.present     ? "is given, but was packed as left out"
                      : !absent && !data.present ? "is left out, but was packed as given"
                                                 : nullptr;
  if (wrong == nullptr && data.count != value.count) wrong = "";
  if (wrong != nullptr) {
    errors << "error: ";
    errors.name(origin) << ": input '";
    errors.name(value.name) << "' ";
    if (*wrong != 0) {
      errors << wrong << "\n";
    } else {
      errors << "was packed with " << value.count << " elements, this has " << data.count
             << "\n";
    }
    return EXIT_BAD_DATA;
  }
  for (uint32_t i = 0; i < data.count; i++) {
    Exit status = bind_input(session, value.first + i, data.tensors[i], origin, errors);
    if (status != EXIT_DONE) return status;
  }
  return EXIT_DONE;
}

} // namespace packed
