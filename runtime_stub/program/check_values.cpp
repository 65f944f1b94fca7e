// The part of an image that only a program reads is checked by the program, so that a
// library does not carry the code: every number of a value that is used as an index.
#include "runtime_stub/image_bounds.h"
#include "runtime_stub/program/value.h"

namespace packed {

using namespace svod_image;

namespace {

// A map has one tensor with an element per key, several maps one with a row per map.
bool map_holds(const SvodHeader& header, const SvodTensor& tensor,
               const SvodValue& value) {
  uint32_t rank = value.kind == SVOD_VALUE_MAPS ? 2 : 1;
  if (tensor.rank != rank || tensor.elements == 0) return tensor.rank == rank;
  return svod_dims(&header, &tensor)[rank - 1] == int64_t{value.key_count};
}

// `tensors`: how many inputs or outputs there are, from `first` on in the table.
bool value_holds(const SvodHeader& header, const SvodEntry& entry, const SvodValue& value,
                 uint32_t first, uint32_t tensors) {
  if (!text_fits(header, value.name) || value.kind > SVOD_VALUE_MAPS ||
      !within(value.first, value.count, tensors) ||
      !within(value.first_key, value.key_count, header.keys.count) ||
      value.presence > entry.output_count) {
    return false;
  }
  if (value.presence != 0 &&
      svod_output(&header, &entry, value.presence - 1)->bytes == 0) {
    return false;
  }
  for (uint32_t i = 0; i < value.key_count; i++) {
    const SvodKey* key = svod_at<SvodKey>(&header, header.keys, value.first_key + i);
    if (!text_fits(header, key->text) || key->place >= value.key_count) return false;
  }
  if (value.kind == SVOD_VALUE_SEQUENCE || value.count == 0) return true;
  if (value.count != 1) return false;
  const SvodTensor* tensor =
      svod_at<SvodTensor>(&header, header.tensors, uint64_t{first} + value.first);
  return value.kind == SVOD_VALUE_TENSOR || map_holds(header, *tensor, value);
}

} // namespace

bool values_hold(const Session& session) {
  const SvodHeader& header = *svod_header(session.model.image);
  const SvodEntry& entry = *session.entry;
  if (!table_fits(header, header.values, sizeof(SvodValue)) ||
      !table_fits(header, header.keys, sizeof(SvodKey))) {
    return false;
  }
  if (!within(entry.first_input_value, entry.input_values, header.values.count) ||
      !within(entry.first_output_value, entry.output_values, header.values.count)) {
    return false;
  }
  for (uint32_t i = 0; i < entry.input_values; i++) {
    if (!value_holds(header, entry, *svod_input_value(&header, &entry, i),
                     entry.first_input, entry.input_count))
      return false;
  }
  for (uint32_t i = 0; i < entry.output_values; i++) {
    if (!value_holds(header, entry, *svod_output_value(&header, &entry, i),
                     entry.first_output, entry.output_count))
      return false;
  }
  return true;
}

} // namespace packed
