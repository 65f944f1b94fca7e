// Loads and stores by way of double and int64_t: a program converts a few thousand
// elements for people, never the tensors that kernels compute.
#include "runtime_stub/program/element.h"

#include "runtime_stub/platform.h"

namespace packed {

namespace {

constexpr Element kElements[] = {
    {1, 4, ElementKind::Float, "f32", "f4"},
    {2, 1, ElementKind::Uint, "u8", "u1"},
    {3, 1, ElementKind::Int, "i8", "i1"},
    {4, 2, ElementKind::Uint, "u16", "u2"},
    {5, 2, ElementKind::Int, "i16", "i2"},
    {6, 4, ElementKind::Int, "i32", "i4"},
    {7, 8, ElementKind::Int, "i64", "i8"},
    {9, 1, ElementKind::Bool, "bool", "b1"},
    {10, 2, ElementKind::Half, "f16", "f2"},
    {11, 8, ElementKind::Float, "f64", "f8"},
    {12, 4, ElementKind::Uint, "u32", "u4"},
    {13, 8, ElementKind::Uint, "u64", "u8"},
    {16, 2, ElementKind::BrainHalf, "bf16", "V2"},
};

template <class T> T raw(const void* data, uint64_t i) {
  T value;
  __builtin_memcpy(&value, static_cast<const uint8_t*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

uint64_t raw_bits(const Element& element, const void* data, uint64_t i) {
  switch (element.bytes) {
  case 1:
    return raw<uint8_t>(data, i);
  case 2:
    return raw<uint16_t>(data, i);
  case 4:
    return raw<uint32_t>(data, i);
  default:
    return raw<uint64_t>(data, i);
  }
}

void store_bits(const Element& element, void* data, uint64_t i, uint64_t bits) {
  // Little endian everywhere.
  __builtin_memcpy(static_cast<uint8_t*>(data) + i * element.bytes, &bits, element.bytes);
}

float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

float half_to_float(uint32_t half) {
  uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31,
           mantissa = half & 1023;
  if (exponent == 31) return float_of(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  float value = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -value : value;
}

// Adding a number whose last place is the half's last place rounds to nearest even.
uint32_t float_to_half(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;
  if (bits >= 0x477ff000) return sign | 0x7c00;
  if (bits < 0x38800000) {
    return sign | (bits_of(float_of(bits) + 0x1p-1f) - bits_of(0x1p-1f));
  }
  return sign | (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
}

uint32_t float_to_brain_half(float value) {
  uint32_t bits = bits_of(value);
  if (value != value) return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

int64_t sign_extended(const Element& element, uint64_t bits) {
  uint32_t shift = 64 - 8 * element.bytes;
  return static_cast<int64_t>(bits << shift) >> shift;
}

} // namespace

const Element* find_element(uint32_t onnx) {
  for (const Element& element : kElements) {
    if (element.onnx == onnx) return &element;
  }
  return nullptr;
}

const Element* find_element_named(Text name) {
  for (const Element& element : kElements) {
    if (name == Text(element.name)) return &element;
  }
  return nullptr;
}

const Element* find_element_npy(Text descr) {
  for (const Element& element : kElements) {
    if (descr == Text(element.npy)) return &element;
  }
  return nullptr;
}

double load(const Element& element, const void* data, uint64_t i) {
  uint64_t bits = raw_bits(element, data, i);
  switch (element.kind) {
  case ElementKind::Bool:
  case ElementKind::Uint:
    return static_cast<double>(bits);
  case ElementKind::Int:
    return static_cast<double>(sign_extended(element, bits));
  case ElementKind::Half:
    return static_cast<double>(half_to_float(static_cast<uint32_t>(bits)));
  case ElementKind::BrainHalf:
    return static_cast<double>(float_of(static_cast<uint32_t>(bits << 16)));
  case ElementKind::Float:
    break;
  }
  if (element.bytes == 8) return __builtin_bit_cast(double, bits);
  return static_cast<double>(float_of(static_cast<uint32_t>(bits)));
}

int64_t load_ordered(const Element& element, const void* data, uint64_t i) {
  uint64_t bits = raw_bits(element, data, i);
  if (element.kind == ElementKind::Uint || element.kind == ElementKind::Bool) {
    return static_cast<int64_t>(bits);
  }
  int64_t value = sign_extended(element, bits);
  if (element.kind == ElementKind::Int || value >= 0) return value;
  // Negative floats count downwards from zero.
  uint64_t magnitude = bits & ~(uint64_t{1} << (8 * element.bytes - 1));
  return -static_cast<int64_t>(magnitude);
}

void store_integer(const Element& element, void* data, uint64_t i, int64_t value) {
  if (is_float(element)) return store(element, data, i, static_cast<double>(value));
  if (element.kind == ElementKind::Bool) value = value != 0;
  store_bits(element, data, i, static_cast<uint64_t>(value));
}

void store(const Element& element, void* data, uint64_t i, double value) {
  switch (element.kind) {
  case ElementKind::Half:
    return store_bits(element, data, i, float_to_half(static_cast<float>(value)));
  case ElementKind::BrainHalf:
    return store_bits(element, data, i, float_to_brain_half(static_cast<float>(value)));
  case ElementKind::Float:
    if (element.bytes == 8) {
      return store_bits(element, data, i, __builtin_bit_cast(uint64_t, value));
    }
    return store_bits(element, data, i, bits_of(static_cast<float>(value)));
  default:
    break;
  }
  if (value != value) value = 0;
  if (value > 9e18) value = 9e18;
  if (value < -9e18) value = -9e18;
  store_integer(element, data, i, static_cast<int64_t>(value + (value < 0 ? -0.5 : 0.5)));
}

void print_element(Printer& out, const Element& element, const void* data, uint64_t i) {
  if (!is_float(element)) {
    uint64_t bits = raw_bits(element, data, i);
    if (element.kind == ElementKind::Int) {
      out << sign_extended(element, bits);
    } else {
      out << bits;
    }
    return;
  }
  uint32_t digits = element.bytes == 8 ? 16 : element.bytes == 4 ? 7 : 4;
  out.number(load(element, data, i), digits);
}

} // namespace packed
