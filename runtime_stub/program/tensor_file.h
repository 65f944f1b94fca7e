// Tensors in files: .npy (NumPy), .pb (TensorProto, or an OptionalProto or SequenceProto
// of one), .raw and .bin (elements only).
#ifndef SVOD_PROGRAM_TENSOR_FILE_H
#define SVOD_PROGRAM_TENSOR_FILE_H

#include "runtime_stub/program/tensor.h"

namespace packed {

enum class FileForm : uint8_t { Npy, Proto, Raw };

// By the name's suffix, else by the first bytes.
FileForm form_of(Text path, Text content);

// Why a file cannot be used, or null. `wanted` says what raw bytes are and which element
// type a void of npy or an integer stands for (null: itself).
const char* read_tensor(FileForm form, Text content, const Tensor& wanted, Tensor& out);
const char* read_npy(Text content, const Tensor& wanted, Tensor& out);
const char* read_proto(Text content, const Element* wanted, Tensor& out);

// A TensorProto.
void write_proto(Printer& out, const Tensor& tensor);

// False when it could not be written.
bool write_tensor(int32_t file, FileForm form, const Tensor& tensor);

// A whole file (or standard input for "-") in memory. 0 or a negative errno.
int32_t read_file(const char* path, Text& content);

} // namespace packed

#endif
