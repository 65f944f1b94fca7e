// Loads and stores by way of double and int64_t: a program converts a few thousand
// elements for people, never the tensors that kernels compute.
#include "runtime_stub/program/element.h"

#include "runtime_stub/platform.h"

namespace packed {

namespace {

// Types that share a descr of npy: the first one has it.
constexpr Element kElements[] = {
    {1, 32, ElementKind::Float, "f32", "f4"},
    {2, 8, ElementKind::Uint, "u8", "u1"},
    {3, 8, ElementKind::Int, "i8", "i1"},
    {4, 16, ElementKind::Uint, "u16", "u2"},
    {5, 16, ElementKind::Int, "i16", "i2"},
    {6, 32, ElementKind::Int, "i32", "i4"},
    {7, 64, ElementKind::Int, "i64", "i8"},
    {8, 8, ElementKind::Text, "string", "S"},
    {9, 8, ElementKind::Bool, "bool", "b1"},
    {10, 16, ElementKind::Half, "f16", "f2"},
    {11, 64, ElementKind::Float, "f64", "f8"},
    {12, 32, ElementKind::Uint, "u32", "u4"},
    {13, 64, ElementKind::Uint, "u64", "u8"},
    {14, 64, ElementKind::Complex, "c64", "c8"},
    {15, 128, ElementKind::Complex, "c128", "c16"},
    {16, 16, ElementKind::BrainHalf, "bf16", "V2"},
    {17, 8, ElementKind::Small, "f8e4m3fn", "V1", {4, 3, 7, Special::TopNan}},
    {18, 8, ElementKind::Small, "f8e4m3fnuz", "V1", {4, 3, 8, Special::ZeroNan}},
    {19, 8, ElementKind::Small, "f8e5m2", "V1", {5, 2, 15, Special::Ieee}},
    {20, 8, ElementKind::Small, "f8e5m2fnuz", "V1", {5, 2, 16, Special::ZeroNan}},
    {21, 4, ElementKind::Uint, "u4", "u1"},
    {22, 4, ElementKind::Int, "i4", "i1"},
    {23, 4, ElementKind::Small, "f4e2m1", "V1", {2, 1, 1, Special::None}},
    {24, 8, ElementKind::Exponent, "f8e8m0", "V1"},
    {25, 2, ElementKind::Uint, "u2", "u1"},
    {26, 2, ElementKind::Int, "i2", "i1"},
};

template <class T> T raw(const void* data, uint64_t i) {
  T value;
  __builtin_memcpy(&value, static_cast<const uint8_t*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

uint64_t raw_bits(const Element& element, const void* data, uint64_t i) {
  switch (element.bits) {
  case 8:
    return raw<uint8_t>(data, i);
  case 16:
    return raw<uint16_t>(data, i);
  case 32:
    return raw<uint32_t>(data, i);
  case 64:
    return raw<uint64_t>(data, i);
  default:
    break;
  }
  uint64_t at = i * element.bits, byte = raw<uint8_t>(data, at / 8);
  return byte >> at % 8 & ((1u << element.bits) - 1);
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

double power_of_two(int exponent) {
  double power = 1;
  for (; exponent > 0; exponent--) power *= 2;
  for (; exponent < 0; exponent++) power /= 2;
  return power;
}

double small_to_double(const SmallFormat& format, uint64_t bits) {
  uint64_t sign = uint64_t{1} << (format.exponent + format.mantissa), size = bits % sign;
  uint64_t least = uint64_t{1} << format.mantissa, mantissa = size % least;
  auto exponent = static_cast<int>(size / least);
  bool top = size >= sign - least;
  bool nan = (format.special == Special::Ieee && top && mantissa != 0) ||
             (format.special == Special::TopNan && size == sign - 1) ||
             (format.special == Special::ZeroNan && bits == sign);
  if (nan) return __builtin_nan("");
  double value =
      static_cast<double>(exponent == 0 ? mantissa : mantissa + least) *
      power_of_two((exponent == 0 ? 1 : exponent) - format.bias - format.mantissa);
  if (format.special == Special::Ieee && top) value = __builtin_inf();
  return bits >= sign ? -value : value;
}

// The nearest of the codes, which count upwards with the value; between two the even one.
// Saturates.
uint64_t double_to_small(const SmallFormat& format, double value) {
  uint64_t sign = uint64_t{1} << (format.exponent + format.mantissa);
  uint64_t top = sign - 1;
  if (format.special == Special::TopNan) top = sign - 2;
  if (format.special == Special::Ieee) top = sign - (uint64_t{1} << format.mantissa) - 1;
  bool one_zero = format.special == Special::ZeroNan;
  if (value != value)
    return one_zero ? sign : format.special == Special::None ? 0 : sign - 1;
  double size = value < 0 ? -value : value;
  uint64_t low = 0,
           high = top; // low's value is at most `size`, unless that is beyond top
  while (low < high) {
    uint64_t middle = (low + high + 1) / 2;
    if (small_to_double(format, middle) <= size) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (low < top) {
    double below = size - small_to_double(format, low);
    double above = small_to_double(format, low + 1) - size;
    if (above < below || (above == below && low % 2 == 1)) low++;
  }
  return __builtin_signbit(value) && !(one_zero && low == 0) ? low | sign : low;
}

uint64_t double_to_exponent(double value) {
  if (value != value) return 255;
  uint64_t code = 0;
  for (double power = power_of_two(-127) * 1.5; code < 254 && value >= power;
       power *= 2) {
    code++;
  }
  return code;
}

int64_t sign_extended(const Element& element, uint64_t bits) {
  uint32_t shift = 64 - element.bits;
  return static_cast<int64_t>(bits << shift) >> shift;
}

} // namespace

void store_bits(const Element& element, void* data, uint64_t i, uint64_t bits) {
  auto to = static_cast<uint8_t*>(data);
  if (!element.packed()) { // little endian everywhere
    __builtin_memcpy(to + i * (element.bits / 8), &bits, element.bits / 8);
    return;
  }
  uint64_t at = i * element.bits;
  uint32_t mask = ((1u << element.bits) - 1) << at % 8;
  uint32_t kept = to[at / 8] & ~mask;
  to[at / 8] =
      static_cast<uint8_t>(kept | (static_cast<uint32_t>(bits << at % 8) & mask));
}

uint64_t load_bits(const Element& element, const void* data, uint64_t i) {
  uint64_t bits = raw_bits(element, data, i);
  if (element.kind != ElementKind::Int) return bits;
  return static_cast<uint64_t>(sign_extended(element, bits));
}

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

const Element& part_of(const Element& element) {
  return element.kind == ElementKind::Complex ? *find_element(element.bits == 64 ? 1 : 11)
                                              : element;
}

double load(const Element& element, const void* data, uint64_t i) {
  uint64_t bits = raw_bits(element, data, i);
  switch (element.kind) {
  case ElementKind::Bool:
  case ElementKind::Uint:
  case ElementKind::Text:
    return static_cast<double>(bits);
  case ElementKind::Int:
    return static_cast<double>(sign_extended(element, bits));
  case ElementKind::Half:
    return static_cast<double>(half_to_float(static_cast<uint32_t>(bits)));
  case ElementKind::BrainHalf:
    return static_cast<double>(float_of(static_cast<uint32_t>(bits << 16)));
  case ElementKind::Small:
    return small_to_double(element.format, bits);
  case ElementKind::Exponent:
    return bits == 255 ? __builtin_nan("") : power_of_two(static_cast<int>(bits) - 127);
  case ElementKind::Complex:
  case ElementKind::Float:
    break;
  }
  if (element.bits == 64) return __builtin_bit_cast(double, bits);
  return static_cast<double>(float_of(static_cast<uint32_t>(bits)));
}

int64_t load_ordered(const Element& element, const void* data, uint64_t i) {
  uint64_t bits = raw_bits(element, data, i);
  bool is_signed = element.kind != ElementKind::Uint &&
                   element.kind != ElementKind::Bool &&
                   element.kind != ElementKind::Exponent;
  if (!is_signed) return static_cast<int64_t>(bits);
  int64_t value = sign_extended(element, bits);
  if (element.kind == ElementKind::Int || value >= 0) return value;
  // Negative floats count downwards from zero.
  uint64_t magnitude = bits & ~(uint64_t{1} << (element.bits - 1));
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
  case ElementKind::Small:
    return store_bits(element, data, i, double_to_small(element.format, value));
  case ElementKind::Exponent:
    return store_bits(element, data, i, double_to_exponent(value));
  case ElementKind::Float:
    if (element.bits == 64) {
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
  if (element.kind == ElementKind::Complex) {
    print_element(out, part_of(element), data, 2 * i);
    out << ",";
    return print_element(out, part_of(element), data, 2 * i + 1);
  }
  if (!is_float(element)) {
    uint64_t bits = raw_bits(element, data, i);
    if (element.kind == ElementKind::Int) {
      out << sign_extended(element, bits);
    } else {
      out << bits;
    }
    return;
  }
  uint32_t digits = element.bits == 64 ? 16 : element.bits == 32 ? 7 : 4;
  out.number(load(element, data, i), digits);
}

} // namespace packed
