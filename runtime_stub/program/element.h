// Element types as the program sees them: a row per TensorProto.DataType that a package
// may have.
#ifndef SVOD_PROGRAM_ELEMENT_H
#define SVOD_PROGRAM_ELEMENT_H

#include "runtime_stub/program/text.h"

namespace packed {

// Strings are no numbers: strings.h reads and prints them. Exponent: a power of two by
// its exponent alone. Complex: two Floats.
enum class ElementKind : uint8_t {
  Bool,
  Int,
  Uint,
  Text,
  Complex,
  Float,
  Half,
  BrainHalf,
  Small,
  Exponent
};

// What the exponent of all ones means in a Small float.
enum class Special : uint8_t {
  Ieee,    // infinity and NaN
  TopNan,  // numbers, and NaN with all ones in the mantissa
  ZeroNan, // numbers; the code of -0 is NaN
  None,    // numbers
};

struct SmallFormat {
  uint8_t exponent, mantissa, bias;
  Special special;
};

struct Element {
  uint32_t onnx; // TensorProto.DataType
  uint32_t bits; // of a string: each tensor has its own; less than 8: elements share a
                 // byte, the first in the lowest bits
  ElementKind kind;
  char name[12]; // f32
  char npy[4];   // descr without byte order: f4; one element per byte at least
  SmallFormat format = {};

  uint64_t bytes(uint64_t count) const {
    return bits >= 8 ? count * (bits / 8) : (count + 8 / bits - 1) / (8 / bits);
  }
  bool packed() const { return bits < 8; }
};

const Element* find_element(uint32_t onnx); // null: unknown
const Element* find_element_named(Text name);
const Element* find_element_npy(Text descr);
// What the two halves of a complex element are; any other element is its own part.
const Element& part_of(const Element& element);

inline bool is_text(const Element& element) { return element.kind == ElementKind::Text; }
inline bool is_float(const Element& element) {
  return element.kind >= ElementKind::Float;
}

// Element `i` of an array, as a double; 64-bit integers lose what a double cannot hold.
double load(const Element& element, const void* data, uint64_t i);
// Integers exactly, floats as their bits in an order that counts units in the last place.
int64_t load_ordered(const Element& element, const void* data, uint64_t i);
// The element's bits; those of a signed integer with copies of its sign above them.
uint64_t load_bits(const Element& element, const void* data, uint64_t i);
void store_bits(const Element& element, void* data, uint64_t i, uint64_t bits);
// Rounds to nearest; integers saturate.
void store(const Element& element, void* data, uint64_t i, double value);
void store_integer(const Element& element, void* data, uint64_t i, int64_t value);
void print_element(Printer& out, const Element& element, const void* data, uint64_t i);

} // namespace packed

#endif
