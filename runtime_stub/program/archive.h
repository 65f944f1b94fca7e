// Archives of NumPy's savez and savez_compressed: zip files whose members are .npy files,
// stored or deflated.
#ifndef SVOD_PROGRAM_ARCHIVE_H
#define SVOD_PROGRAM_ARCHIVE_H

#include "runtime_stub/crc32.h"
#include "runtime_stub/program/tensor.h"
#include "runtime_stub/program/text.h"

namespace packed {

// A file in an archive, as the directory at its end tells.
struct Member {
  Text name;
  Text stored;        // its bytes as they lie in the archive
  uint64_t bytes = 0; // it has once it is out
  uint32_t check_sum = 0, method = 0;
};

class Archive {
public:
  // Why this is no archive that can be read, or null. Nothing else is called then.
  const char* open(Text content);
  // The member at `place`, which moves on; the first is at 0. False behind the last.
  bool next(uint64_t& place, Member& member) const;
  // The last one of this name and .npy, as other readers choose.
  bool find(Text name, Member& member) const;

private:
  Text content_, directory_;
};

// The member's content; why that cannot be had, or null. A stored member is not copied,
// and of a deflated one no more than `most` bytes are made.
const char* take_out(const Member& member, uint64_t most, Text& content);

// What is written of a member besides its content.
struct NewMember {
  Text name; // without .npy
  uint64_t at = 0;
  uint64_t bytes = 0;
  svod::Crc32 check_sum;
};

constexpr uint64_t kMostArchiveBytes = 0xfff00000; // sizes have 32 bits
constexpr uint64_t kMostMemberName = 60000;

// NAME.npy of an archive. The content is written twice: its size and check sum stand in
// front of it.
void write_member(Printer& out, NewMember& member, const Tensor& tensor);
// Behind all members.
void end_archive(Printer& out, const NewMember* members, uint32_t count);

} // namespace packed

#endif
