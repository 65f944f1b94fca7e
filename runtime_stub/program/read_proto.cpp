// TensorProto in protobuf's wire format: fields of (number, wire type, value). Elements
// are in raw_data, or one by one in the field of their type; that must be exactly one of
// them. A sequence or an optional holds its tensor as field 3 and a type number as
// field 2.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/wire.h"

namespace packed {

namespace {

enum FieldNumber : uint64_t {
  DIMS = 1,
  DATA_TYPE = 2,
  SEGMENT_OR_TENSOR = 3,
  FLOATS = 4,
  INT32S = 5,
  STRINGS = 6,
  INT64S = 7,
  NAME = 8,
  RAW = 9,
  DOUBLES = 10,
  UINT64S = 11,
};

// Which field holds elements of a type when raw_data does not.
uint64_t field_of(const Element& element) {
  if (element.kind == ElementKind::Float) return element.bits == 32 ? FLOATS : DOUBLES;
  if (element.kind == ElementKind::Uint && element.bits >= 32) return UINT64S;
  return element.kind == ElementKind::Int && element.bits == 64 ? INT64S : INT32S;
}

uint64_t fixed_bytes(uint64_t field) {
  return field == FLOATS ? 4 : field == DOUBLES ? 8 : 0;
}

struct Scan {
  Tensor& out;
  int64_t dims[SVOD_MAX_RANK];
  uint32_t rank = 0;
  Text raw, wrapped;
  bool has_raw = false, has_listed = false, has_wrapped = false;
  uint32_t wrapped_count = 0;
};

bool add_dim(Scan& scan, uint64_t dim) {
  if (scan.rank == SVOD_MAX_RANK) return false;
  scan.dims[scan.rank++] = static_cast<int64_t>(dim);
  return true;
}

bool scan_field(const Field& field, Scan& scan) {
  if (field.number == DIMS && field.wire == 0) return add_dim(scan, field.value);
  if (field.number == DIMS && field.wire == 2) {
    Reader packed(field.bytes);
    uint64_t dim = 0;
    while (!packed.done()) {
      // The name of a sequence has this number, too; it is no list of dimensions then.
      if (!packed.varint(dim) || !add_dim(scan, dim)) break;
    }
  }
  if (field.number == DATA_TYPE && field.wire == 0) {
    scan.out.element = find_element(static_cast<uint32_t>(field.value));
  }
  if (field.number == NAME && field.wire == 2) scan.out.name = field.bytes;
  if (field.number == RAW && field.wire == 2) {
    scan.raw = field.bytes;
    scan.has_raw = true;
  }
  scan.has_listed |= field.number == FLOATS || field.number == INT32S ||
                     field.number == INT64S || field.number == DOUBLES ||
                     field.number == UINT64S;
  if (field.number == SEGMENT_OR_TENSOR && field.wire == 2) {
    scan.wrapped = field.bytes;
    scan.has_wrapped = true;
    scan.wrapped_count++;
  }
  return true;
}

// Elements as their field has them: the halves of complex numbers one by one, several
// elements of less than a byte as one number.
const Element& listed_as(const Element& element) {
  return element.packed() ? *find_element(2) : part_of(element);
}

void store_number(const Element& element, void* data, uint64_t i, uint64_t bits) {
  if (element.kind == ElementKind::Bool) bits = bits != 0;
  store_bits(element, data, i, bits);
}

// Elements of the field that fits the type, packed or one by one.
const char* read_elements(Text content, Tensor& out) {
  const Element& element = listed_as(*out.element);
  uint64_t wanted = field_of(element), fixed = fixed_bytes(wanted);
  uint64_t count = 0, elements = out.bytes() / element.bytes(1), value = 0;
  auto data = static_cast<uint8_t*>(take_memory(out.bytes()));
  if (data == nullptr) return "there is no memory for it";
  Reader reader(content);
  for (Field field; !reader.done() && reader.next(field);) {
    if (field.number != wanted) continue;
    if (field.wire != 2) {
      if (count < elements) store_number(element, data, count, field.value);
      count++;
      continue;
    }
    for (Reader packed(field.bytes); !packed.done(); count++) {
      if (!(fixed != 0 ? packed.fixed(fixed, value) : packed.varint(value))) {
        return "it is malformed";
      }
      if (count < elements) store_number(element, data, count, value);
    }
  }
  out.data = data;
  return count == elements ? nullptr : "its number of elements does not fit its dims";
}

const char* read_strings(Text content, Tensor& out) {
  StringRows rows;
  for (int32_t pass = 0; pass < 2; pass++) {
    bool counting = pass == 0;
    Reader reader(content);
    for (Field field; !reader.done() && reader.next(field);) {
      if (field.number != STRINGS || field.wire != 2) continue;
      counting ? rows.count(field.bytes) : rows.put(field.bytes);
    }
    if (!counting) break;
    if (rows.size() != out.elements())
      return "its number of elements does not fit its dims";
    if (rows.has_zero()) return "a string has a zero byte in it";
    if (!rows.begin(out)) return "there is no memory for it";
  }
  return nullptr;
}

// `wraps`: the message may be a sequence or an optional around a tensor.
const char* read_message(Text content, bool wraps, Tensor& out) {
  out = {};
  Scan scan{out, {}, 0, {}, {}, false, false, false, 0};
  Reader reader(content);
  for (Field field; !reader.done();) {
    if (!reader.next(field)) return "it is malformed";
    if (!scan_field(field, scan)) return "it has too many dimensions";
  }
  if (scan.wrapped_count > 1) return "it is a sequence of more than one tensor";
  if (scan.has_wrapped && !scan.has_raw && wraps) {
    return read_message(scan.wrapped, false, out);
  }
  if (out.element == nullptr) return "its element type is not known";
  if (!set_dims(out, scan.dims, scan.rank)) return "its dims are too large";
  if (is_text(*out.element)) return read_strings(content, out);
  if (!scan.has_raw) return read_elements(content, out);
  if (scan.has_listed) return "its elements are in two fields";
  if (scan.raw.size != out.bytes()) return "its raw data does not fit its dims";
  // Inside a file the bytes lie anywhere; kernels want whole elements aligned.
  auto data = static_cast<uint8_t*>(take_memory(out.bytes()));
  if (data == nullptr) return "there is no memory for it";
  memcpy(data, scan.raw.data, static_cast<size_t>(scan.raw.size));
  out.data = data;
  return nullptr;
}

// NumPy knows neither bfloat16 nor the small floats: ONNX before 1.19 wrote arrays of
// them as unsigned integers of the same size, bit for bit.
bool bits_of_foreign(const Element& given, const Element& wanted) {
  return given.kind == ElementKind::Uint && wanted.kind >= ElementKind::BrainHalf &&
         given.bits == wanted.bits;
}

} // namespace

const char* read_proto(Text content, const Element* wanted, Tensor& out) {
  const char* error = read_message(content, true, out);
  if (error == nullptr && wanted != nullptr && bits_of_foreign(*out.element, *wanted)) {
    out.element = wanted;
  }
  return error;
}

} // namespace packed
