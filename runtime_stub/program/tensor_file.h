// Tensors in files: .npy (NumPy), .npz (an archive of those), .pb (TensorProto, or an
// OptionalProto or SequenceProto of one), .json (lists in lists), .raw and .bin (elements
// only).
#ifndef SVOD_PROGRAM_TENSOR_FILE_H
#define SVOD_PROGRAM_TENSOR_FILE_H

#include "runtime_stub/program/tensor.h"

namespace packed {

enum class FileForm : uint8_t { Npy, Npz, Proto, Json, Raw };
inline constexpr const char* kKnownSuffixes = ".npy, .npz, .pb, .json, .raw, .bin";

// False: the suffix is none of those.
bool form_of_suffix(Text path, FileForm& form);

// By the name's suffix, else by the first bytes.
FileForm form_of(Text path, Text content);

// Why a file cannot be used, or null. `wanted` says what raw bytes are and which element
// type a void of npy or an integer stands for (null: itself).
const char* read_tensor(FileForm form, Text content, const Tensor& wanted, Tensor& out);
const char* read_npy(Text content, const Tensor& wanted, Tensor& out);
// The member NAME.npy, by the name of `wanted`, of at most `most` bytes.
const char* read_npz(Text content, const Tensor& wanted, uint64_t most, Tensor& out);
// No memory beyond this is spent on a member that is to be the input.
uint64_t most_bytes_of(const Tensor& input);
const char* read_proto(Text content, const Element* wanted, Tensor& out);
const char* read_json(Text content, const Tensor& wanted, Tensor& out);

void write_proto(Printer& out, const Tensor& tensor); // a TensorProto
void write_json(Printer& out, const Tensor& tensor);
void write_tensor(Printer& out, FileForm form, const Tensor& tensor);

// A whole file (or standard input for "-") in memory. 0 or a negative errno.
int32_t read_file(const char* path, Text& content);

} // namespace packed

#endif
