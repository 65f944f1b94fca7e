// NumPy's file: a magic, a version, and a Python dictionary of three known keys in ASCII,
// then the elements. The dictionary is searched for its keys; anything else about it is
// left alone. Data of Fortran order is turned into rows.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"

namespace packed {

namespace {

// What follows 'key': in the dictionary, without leading spaces; empty when it is not
// there.
Text value_of(Text header, Text key) {
  for (uint64_t i = 0; i + key.size <= header.size; i++) {
    if (!header.from(i).starts_with(key)) continue;
    Text rest = header.from(i + key.size);
    uint64_t colon = rest.find(':');
    if (colon == rest.size) return {};
    rest = rest.from(colon + 1);
    while (rest.size > 0 && rest.data[0] == ' ') rest = rest.from(1);
    return rest;
  }
  return {};
}

const char* read_shape(Text value, Tensor& out) {
  if (!value.starts_with("(")) return "its npy header has no shape";
  int64_t dims[SVOD_MAX_RANK];
  uint32_t rank = 0;
  uint64_t at = 1;
  for (;;) {
    while (at < value.size && (value.data[at] == ' ' || value.data[at] == ',')) at++;
    uint64_t start = at;
    while (at < value.size && value.data[at] >= '0' && value.data[at] <= '9') at++;
    if (at == start) break;
    if (rank == SVOD_MAX_RANK) return "it has too many dimensions";
    if (!read_signed(value.from(start).first(at - start), &dims[rank++])) {
      return "its npy shape is too large";
    }
  }
  if (at >= value.size || value.data[at] != ')') return "its npy shape is malformed";
  return set_dims(out, dims, rank) ? nullptr : "its npy shape is too large";
}

// NumPy has neither bfloat16 and the small floats nor integers of less than a byte: such
// arrays are stored as voids or as integers of the same size.
bool stands_for(Text descr, const Element& element) {
  bool foreign = element.packed() || element.kind >= ElementKind::BrainHalf;
  return foreign && descr.size == 2 && Text("Vui").find(descr.data[0]) < 3 &&
         static_cast<uint64_t>(descr.data[1] - '0') == element.bytes(1);
}

// S12: 12 bytes, U12: 12 characters of 4 bytes.
const char* read_string_descr(Text descr, Tensor& out) {
  uint64_t length = 0;
  constexpr uint64_t kMost = 1 << 24;
  if (!read_unsigned(descr.from(1), &length) || length > kMost)
    return "its npy element type is not known";
  out.element = find_element_named(Text("string"));
  out.width = descr.data[0] == 'U' ? 4 * length : length;
  return nullptr;
}

const char* read_descr(Text value, const Tensor& wanted, Tensor& out) {
  if (value.size < 2 || (value.data[0] != '\'' && value.data[0] != '"')) {
    return "its npy header has no descr";
  }
  Text descr = value.from(1);
  descr = descr.first(descr.find(value.data[0]));
  if (descr.starts_with(">")) return "its elements are big endian";
  if (descr.starts_with("<") || descr.starts_with("|") || descr.starts_with("=")) {
    descr = descr.from(1);
  }
  if (descr.starts_with("S") || descr.starts_with("U"))
    return read_string_descr(descr, out);
  out.element = find_element_npy(descr);
  if (wanted.element != nullptr && stands_for(descr, *wanted.element)) {
    out.element = wanted.element;
  }
  return out.element != nullptr ? nullptr : "its npy element type is not known";
}

// Element (i0 .. in) of Fortran order is at i0 + d0 * (i1 + d1 * ...).
const char* to_rows(Tensor& tensor) {
  auto rows =
      static_cast<uint8_t*>(take_memory(tensor.elements() * tensor.element_bytes()));
  if (rows == nullptr) return "there is no memory for it";
  uint64_t size = tensor.element_bytes();
  uint64_t count = tensor.elements();
  int64_t at[SVOD_MAX_RANK] = {};
  for (uint64_t i = 0; i < count; i++) {
    uint64_t from = 0;
    for (uint32_t d = tensor.rank; d-- > 0;) {
      from = from * static_cast<uint64_t>(tensor.dims[d]) + static_cast<uint64_t>(at[d]);
    }
    memcpy(rows + i * size, static_cast<const uint8_t*>(tensor.data) + from * size,
           static_cast<size_t>(size));
    for (uint32_t d = tensor.rank; d-- > 0;) {
      if (++at[d] < tensor.dims[d]) break;
      at[d] = 0;
    }
  }
  tensor.data = rows;
  return nullptr;
}

// From one element per byte.
const char* to_packed(Tensor& tensor) {
  auto to = take_memory(tensor.bytes());
  if (to == nullptr) return "there is no memory for it";
  uint64_t count = tensor.elements();
  for (uint64_t i = 0; i < count; i++) {
    store_bits(*tensor.element, to, i, static_cast<const uint8_t*>(tensor.data)[i]);
  }
  tensor.data = to;
  return nullptr;
}

} // namespace

const char* read_npy(Text content, const Tensor& wanted, Tensor& out) {
  if (content.size < 10 || !content.starts_with(Text("\x93NUMPY", 6))) {
    return "it is no npy file";
  }
  auto byte = [&](uint64_t i) { return uint64_t{static_cast<uint8_t>(content.data[i])}; };
  if (byte(6) < 1 || byte(6) > 3) return "its version of npy is not known";
  uint64_t start = byte(6) == 1 ? 10 : 12;
  if (content.size < start) return "it is cut off";
  uint64_t length = byte(8) | byte(9) << 8;
  if (start == 12) length |= byte(10) << 16 | byte(11) << 24;
  if (length > content.size - start) return "it is cut off";
  Text header = content.from(start).first(length);
  const char* error = read_descr(value_of(header, "'descr'"), wanted, out);
  if (error == nullptr) error = read_shape(value_of(header, "'shape'"), out);
  if (error != nullptr) return error;
  Text data = content.from(start + length);
  if (data.size != out.elements() * out.element_bytes()) {
    return "its size does not fit its npy shape";
  }
  out.data = data.data;
  const Text order = value_of(header, "'fortran_order'");
  const bool columns = order.starts_with("True");
  if (!columns && !order.starts_with("False")) return "its npy header has no order";
  if (columns && out.rank > 1 && out.elements() > 0) error = to_rows(out);
  if (error == nullptr && out.element->packed()) error = to_packed(out);
  Text descr = value_of(header, "'descr'");
  bool wide = is_text(*out.element) && descr.first(4).find('U') < 4;
  return error == nullptr && wide ? from_wide_characters(out) : error;
}

} // namespace packed
