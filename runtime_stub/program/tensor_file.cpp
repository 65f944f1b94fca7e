// Which form a file has, whole files in memory, and writing. Reading the forms that can
// be malformed is in read_npy.cpp, read_proto.cpp and json_file.cpp.
#include "runtime_stub/program/tensor_file.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/wire.h"

namespace packed {

namespace {

// Data that arrives through a pipe has no size beforehand.
int32_t read_stream(int32_t file, Text& content) {
  uint64_t size = 0, room = 1 << 20;
  auto data = static_cast<char*>(take_memory(room));
  while (data != nullptr) {
    int64_t got = svod_read(file, data + size, room - size);
    if (got < 0) return static_cast<int32_t>(got);
    size += static_cast<uint64_t>(got);
    if (size < room) {
      content = {data, size};
      return 0;
    }
    auto larger = static_cast<char*>(take_memory(room * 2));
    if (larger == nullptr) break;
    memcpy(larger, data, static_cast<size_t>(size));
    drop_memory(data, room);
    data = larger;
    room *= 2;
  }
  return -12; // ENOMEM
}

Text bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data), tensor.bytes()};
}

// npy has no elements of less than a byte: each gets one of its own.
void write_unpacked(Printer& out, const Tensor& tensor) {
  const Element& element = *tensor.element;
  uint64_t count = tensor.elements();
  for (uint64_t i = 0; i < count; i++) {
    auto byte = static_cast<char>(load_bits(element, tensor.data, i));
    out << Text(&byte, 1);
  }
}

void write_npy(Printer& out, const Tensor& tensor) {
  // A dictionary in a fixed field, so that its length is known beforehand.
  constexpr uint32_t kHeader = 502;
  const uint64_t end = out.written() + 10 + kHeader;
  out << Text("\x93NUMPY\x01\x00\xf6\x01", 10) << "{'descr': '";
  out << (tensor.element->bits <= 8 ? "|" : "<") << tensor.element->npy;
  if (is_text(*tensor.element)) out << tensor.width;
  out << "', 'fortran_order': False, 'shape': (";
  for (uint32_t i = 0; i < tensor.rank; i++) out << tensor.dims[i] << ", ";
  out << "), }";
  while (out.written() < end - 1) out << " ";
  out << "\n";
  if (tensor.element->packed()) return write_unpacked(out, tensor);
  out << bytes_of(tensor);
}

} // namespace

void write_proto(Printer& out, const Tensor& tensor) {
  for (uint32_t i = 0; i < tensor.rank; i++) {
    put_number(out, 1, static_cast<uint64_t>(tensor.dims[i]));
  }
  put_number(out, 2, tensor.element->onnx);
  put_bytes(out, 8, tensor.name);
  if (!is_text(*tensor.element)) return put_bytes(out, 9, bytes_of(tensor));
  for (uint64_t i = 0; i < tensor.elements(); i++)
    put_bytes(out, 6, string_at(tensor, i));
}

bool form_of_suffix(Text path, FileForm& form) {
  struct Row {
    char suffix[8];
    FileForm form;
  };
  static constexpr Row kRows[] = {{".npy", FileForm::Npy},  {".npz", FileForm::Npz},
                                  {".pb", FileForm::Proto}, {".json", FileForm::Json},
                                  {".raw", FileForm::Raw},  {".bin", FileForm::Raw}};
  for (const Row& row : kRows) {
    if (!path.ends_with(Text(row.suffix))) continue;
    form = row.form;
    return true;
  }
  return false;
}

FileForm form_of(Text path, Text content) {
  FileForm form = FileForm::Raw;
  bool known = form_of_suffix(path, form) && form != FileForm::Raw;
  bool npy = !known && content.starts_with(Text("\x93NUMPY", 6));
  return npy ? FileForm::Npy : form;
}

const char* read_tensor(FileForm form, Text content, const Tensor& wanted, Tensor& out) {
  if (form == FileForm::Npy) return read_npy(content, wanted, out);
  if (form == FileForm::Npz) return read_npz(content, wanted, most_bytes_of(wanted), out);
  if (form == FileForm::Proto) return read_proto(content, wanted.element, out);
  if (form == FileForm::Json) return read_json(content, wanted, out);
  out = wanted;
  out.data = content.data;
  return content.size == wanted.bytes() ? nullptr
                                        : "as raw data its size is not the input's";
}

void write_tensor(Printer& out, FileForm form, const Tensor& tensor) {
  if (form == FileForm::Npy) write_npy(out, tensor);
  if (form == FileForm::Proto) write_proto(out, tensor);
  if (form == FileForm::Json) write_json(out, tensor);
  if (form == FileForm::Raw) out << bytes_of(tensor);
}

#ifdef SVOD_SEVERAL_ENTRIES
// Shapes are looked at before data is taken, and what comes from a stream comes once.
static int32_t read_standard_input(Text& content) {
  static Text all;
  static int32_t status = 1;
  if (status > 0) status = read_stream(0, all);
  content = all;
  return status;
}
#else
static int32_t read_standard_input(Text& content) { return read_stream(0, content); }
#endif

int32_t read_file(const char* path, Text& content) {
  if (Text(path) == Text("-")) return read_standard_input(content);
  int32_t file = svod_open(path, SVOD_OPEN_READ);
  if (file < 0) return file;
  SvodFileInfo info = {};
  int32_t status = svod_stat(file, &info);
  if (status == 0 && info.is_directory) status = -SVOD_EISDIR;
  if (status == 0 && info.is_regular && info.bytes > 0) {
    auto data = static_cast<const char*>(svod_map_file(file, info.bytes));
    content = {data, info.bytes};
    if (data == nullptr) status = -12;
    hold_memory(data, info.bytes);
  } else if (status == 0) {
    status = read_stream(file, content);
  }
  svod_close(file);
  return status;
}

} // namespace packed
