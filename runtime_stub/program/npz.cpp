// NumPy names the arrays of an archive by the file names of its members: x is x.npy, and
// arrays that were given no name are arr_0, arr_1 and so on, in their order.
#include "runtime_stub/program/npz.h"

#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/open_inputs.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/words.h"

namespace packed {

namespace {

// "all.npz: member 'x.npy': ..."; what is said of it also names the input's type.
Exit bind_member(Session& session, uint32_t i, const char* path, const Member& member,
                 Printer& errors) {
  const Tensor wanted = input_type(session, i);
  Text content;
  Tensor tensor;
  const char* error = take_out(member, most_bytes_of(wanted), content);
  if (error == nullptr) error = read_npy(content, wanted, tensor);
  if (error == nullptr) return bind_input(session, i, tensor, Text(path), errors);
  errors << "error: " << path << ": member '";
  errors.name(member.name) << "': " << error << ", for input '";
  errors.name(wanted.name) << "' ";
  print_type(errors, wanted.element, wanted.rank, wanted.dims);
  errors << "\n";
  return EXIT_BAD_DATA;
}

Exit none_found(const Session& session, const char* path, const Archive& archive,
                Printer& errors) {
  constexpr uint32_t kMostListed = 32;
  errors << "error: " << path << ": no member is an input's: ";
  uint64_t place = 0;
  Member member;
  for (uint32_t i = 0; i < kMostListed && archive.next(place, member); i++) {
    errors << (i > 0 ? ", " : "");
    errors.name(member.name);
  }
  errors << "\n";
  list_names(errors, session, Side::Input);
  return EXIT_BAD_DATA;
}

} // namespace

bool find_input_member(const Archive& archive, const Tensor& input, uint32_t i,
                       Member& member) {
  if (archive.find(input.name, member)) return true;
  char name[16];
  Printer out(name, sizeof(name));
  out << "arr_" << i;
  out.flush();
  return archive.find(Text(name, out.written()), member);
}

Exit bind_archive(Session& session, const char* path, Printer& errors) {
  Text content;
  const int32_t status = read_file(path, content);
  if (status < 0) return file_error(errors, path, "read", -status);
  Archive archive;
  if (const char* error = archive.open(content)) {
    errors << "error: " << path << ": " << error << "\n";
    return EXIT_BAD_DATA;
  }
  bool found = false;
  for (uint32_t i = 0; i < model_inputs(session); i++) {
    Member member;
    if (session.inputs[i] != nullptr ||
        !find_input_member(archive, input_type(session, i), i, member))
      continue;
    found = true;
    const Exit bound = bind_member(session, i, path, member, errors);
    if (bound != EXIT_DONE) return bound;
  }
  return found ? EXIT_DONE : none_found(session, path, archive, errors);
}

const char* unfit_for_archive(const Session& session, uint32_t first, uint32_t end) {
  uint64_t bytes = 0;
  for (uint32_t i = first; i < end; i++) {
    const Tensor tensor = output_type(session, i);
    // A byte at least for each element; what is around them is short.
    bytes += tensor.bytes() + tensor.elements() + 2 * tensor.name.size + 1024;
    if (bytes > kMostArchiveBytes || tensor.name.size > kMostMemberName)
      return "this is too large for an archive; write outputs as .npy";
  }
  return nullptr;
}

bool write_archive(Printer& out, const Session& session, uint32_t first, uint32_t end) {
  auto members = static_cast<NewMember*>(take_memory((end - first) * sizeof(NewMember)));
  if (members == nullptr) return false;
  uint32_t count = 0;
  for (uint32_t i = first; i < end; i++) {
    if (!is_present(session, value_of(session, Side::Output, i))) continue;
    write_member(out, members[count++], output_type(session, i));
  }
  end_archive(out, members, count);
  return true;
}

} // namespace packed
