// One array of an archive of NumPy: the member that is named as the input, with .npy.
#include "runtime_stub/program/archive.h"
#include "runtime_stub/program/tensor_file.h"

namespace packed {

uint64_t most_bytes_of(const Tensor& input) {
  // Another element type is told as such, and strings are padded, in characters of four
  // bytes; a header is short.
  return 16 * input.bytes() + (1 << 20);
}

const char* read_npz(Text content, const Tensor& wanted, uint64_t most, Tensor& out) {
  Archive archive;
  Member member;
  if (const char* error = archive.open(content)) return error;
  if (!archive.find(wanted.name, member)) return "the archive has no member NAME.npy";
  if (const char* error = take_out(member, most, content)) return error;
  return read_npy(content, wanted, out);
}

} // namespace packed
