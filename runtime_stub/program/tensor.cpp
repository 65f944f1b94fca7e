// Shapes and their text form.
#include "runtime_stub/program/tensor.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/strings.h"

namespace packed {

uint64_t Tensor::elements() const {
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank; i++) count *= static_cast<uint64_t>(dims[i]);
  return count;
}

void print_type(Printer& out, const Element* element, uint32_t rank,
                const int64_t* dims) {
  if (element != nullptr) {
    out << element->name;
  } else {
    out << "?";
  }
  out << "[";
  for (uint32_t i = 0; i < rank; i++) out << (i > 0 ? "," : "") << dims[i];
  out << "]";
}

void print_value(Printer& out, const Tensor& tensor, uint64_t most) {
  for (uint32_t i = 0; i < tensor.rank; i++) out << tensor.dims[i] << "x";
  out << tensor.element->name << "=[";
  uint64_t count = tensor.elements();
  for (uint64_t i = 0; i < count && i < most; i++) {
    if (i > 0) out << " ";
    if (is_text(*tensor.element)) {
      print_quoted(out, string_at(tensor, i));
    } else {
      print_element(out, *tensor.element, tensor.data, i);
    }
  }
  if (count > most) out << " ...";
  out << "]\n";
}

bool set_dims(Tensor& tensor, const int64_t* dims, uint32_t rank) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  if (rank > SVOD_MAX_RANK) return false;
  tensor.rank = rank;
  uint64_t elements = 1;
  for (uint32_t i = 0; i < rank; i++) {
    tensor.dims[i] = dims[i];
    if (dims[i] < 0 || dims[i] > 0x7fffffff) return false;
    // Below 2^40 and 2^31: the product does not wrap before it is refused.
    uint64_t high = (elements >> 20) * static_cast<uint64_t>(dims[i]);
    uint64_t low = (elements & 0xfffff) * static_cast<uint64_t>(dims[i]);
    if (high > kMost >> 20) return false;
    elements = (high << 20) + low;
    if (elements > kMost) return false;
  }
  return true;
}

bool same_type(const Tensor& a, const Tensor& b) {
  if (a.element != b.element || a.rank != b.rank) return false;
  for (uint32_t i = 0; i < a.rank; i++) {
    if (a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

} // namespace packed
