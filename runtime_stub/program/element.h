// Element types as the program sees them: a row per TensorProto.DataType that a package
// may have.
#ifndef SVOD_PROGRAM_ELEMENT_H
#define SVOD_PROGRAM_ELEMENT_H

#include "runtime_stub/program/text.h"

namespace packed {

enum class ElementKind : uint8_t { Bool, Int, Uint, Float, Half, BrainHalf };

struct Element {
  uint32_t onnx; // TensorProto.DataType
  uint32_t bytes;
  ElementKind kind;
  char name[8]; // f32
  char npy[8];  // descr without byte order: f4
};

const Element* find_element(uint32_t onnx); // null: unknown
const Element* find_element_named(Text name);
const Element* find_element_npy(Text descr);

inline bool is_float(const Element& element) {
  return element.kind >= ElementKind::Float;
}

// Element `i` of an array, as a double; 64-bit integers lose what a double cannot hold.
double load(const Element& element, const void* data, uint64_t i);
// Integers exactly, floats as their bits in an order that counts units in the last place.
int64_t load_ordered(const Element& element, const void* data, uint64_t i);
// Rounds to nearest; integers saturate.
void store(const Element& element, void* data, uint64_t i, double value);
void store_integer(const Element& element, void* data, uint64_t i, int64_t value);
void print_element(Printer& out, const Element& element, const void* data, uint64_t i);

} // namespace packed

#endif
