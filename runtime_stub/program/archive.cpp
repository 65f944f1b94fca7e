// Zip as PKWARE's APPNOTE has it, so far as NumPy writes it: the directory at the end
// says where members are and how long; fields of 32 bits that are too short for it have
// their numbers behind them (zip64). An archive is hostile: each place is compared with
// the file's end before it is read, and memory is taken for no more than is wanted.
// Records are little endian, as everything that programs run on.
#include "runtime_stub/program/archive.h"

#include "runtime_stub/inflate.h"
#include "runtime_stub/platform.h"
#include "runtime_stub/program/tensor_file.h"

namespace packed {

namespace {

constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint32_t kAllOnes = ~0u; // the number is among the extra fields

// What a member's own record and its entry in the directory have in common.
struct [[gnu::packed]] Facts {
  uint16_t version = 20, flags = 0, method = kStored;
  uint32_t time = 0x210000; // the first day there is
  uint32_t check_sum, stored, bytes;
  uint16_t name, extra = 0;
};

struct [[gnu::packed]] MemberRecord {
  static constexpr uint32_t kMark = 0x04034b50;
  uint32_t mark = kMark;
  Facts facts;
};

struct [[gnu::packed]] EntryRecord {
  static constexpr uint32_t kMark = 0x02014b50;
  uint32_t mark = kMark;
  uint16_t made_by = 20;
  Facts facts;
  uint16_t comment = 0, disk = 0, kind = 0;
  uint32_t rights = 0, place;
};

struct [[gnu::packed]] EndRecord {
  static constexpr uint32_t kMark = 0x06054b50;
  uint32_t mark = kMark;
  uint32_t disks = 0;
  uint16_t own_count, count;
  uint32_t bytes, place;
  uint16_t comment = 0;
};

struct [[gnu::packed]] WidePlaceRecord {
  static constexpr uint32_t kMark = 0x07064b50;
  uint32_t mark, disk;
  uint64_t place;
  uint32_t disks;
};

struct [[gnu::packed]] WideEndRecord {
  static constexpr uint32_t kMark = 0x06064b50;
  uint32_t mark;
  uint8_t unused[28];
  uint64_t count, bytes, place;
};

static_assert(sizeof(MemberRecord) == 30 && sizeof(EntryRecord) == 46 &&
              sizeof(EndRecord) == 22 && sizeof(WidePlaceRecord) == 20 &&
              sizeof(WideEndRecord) == 56);

// Whether `bytes` bytes are there from `at` on.
bool holds(Text text, uint64_t at, uint64_t bytes) {
  return at <= text.size && bytes <= text.size - at;
}

bool copy_record(Text text, uint64_t at, void* record, uint64_t bytes, uint32_t mark) {
  if (!holds(text, at, bytes) || memcmp(text.data + at, &mark, sizeof(mark)) != 0)
    return false;
  memcpy(record, text.data + at, static_cast<size_t>(bytes));
  return true;
}

template <class Record> bool read_record(Text text, uint64_t at, Record& record) {
  return copy_record(text, at, &record, sizeof(record), Record::kMark);
}

template <class Record> void put_record(Printer& out, const Record& record) {
  out << Text(reinterpret_cast<const char*>(&record), sizeof(record));
}

// The last record: only its comment may follow it.
bool find_end(Text content, EndRecord& end, uint64_t& at) {
  constexpr uint64_t kMostComment = 65535;
  for (uint64_t comment = 0; comment <= kMostComment; comment++) {
    at = content.size - sizeof(end) - comment;
    if (content.size < sizeof(end) + comment) return false;
    if (read_record(content, at, end) && end.comment == comment) return true;
  }
  return false;
}

// An entry's numbers that are all ones stand in one of the extra fields, in their order.
class WideNumbers {
public:
  explicit WideNumbers(Text extra) {
    uint16_t kind_and_bytes[2];
    while (extra.size >= sizeof(kind_and_bytes)) {
      memcpy(kind_and_bytes, extra.data, sizeof(kind_and_bytes));
      extra = extra.from(sizeof(kind_and_bytes));
      if (kind_and_bytes[1] > extra.size) return;
      if (kind_and_bytes[0] == 1) rest_ = extra.first(kind_and_bytes[1]);
      extra = extra.from(kind_and_bytes[1]);
    }
  }
  bool read(uint32_t narrow, uint64_t& number) {
    number = narrow;
    if (narrow != kAllOnes) return true;
    if (rest_.size < sizeof(number)) return false;
    memcpy(&number, rest_.data, sizeof(number));
    rest_ = rest_.from(sizeof(number));
    return true;
  }

private:
  Text rest_;
};

struct ByteSource {
  Text rest;
  int32_t next() {
    if (rest.size == 0) return -1;
    const auto byte = static_cast<uint8_t>(rest.data[0]);
    rest = rest.from(1);
    return byte;
  }
};

const char* inflate(const Member& member, Text& content) {
  using Inflate = svod::Inflate<ByteSource>;
  auto out = static_cast<uint8_t*>(take_memory(member.bytes));
  auto stream = static_cast<Inflate*>(take_memory(sizeof(Inflate)));
  if (out == nullptr || stream == nullptr) return "there is no memory for it";
  ByteSource source{member.stored};
  stream->begin(&source);
  uint64_t done = 0;
  int32_t byte;
  while ((byte = stream->next()) >= 0 && done < member.bytes)
    out[done++] = static_cast<uint8_t>(byte);
  drop_memory(stream, sizeof(Inflate));
  content = {reinterpret_cast<const char*>(out), member.bytes};
  if (byte >= 0) return "it is longer than its archive says";
  return done == member.bytes ? nullptr : "its compressed data is cut off or damaged";
}

Facts facts_of(const NewMember& member) {
  constexpr uint16_t kUtf8 = 0x800;
  Facts out;
  for (uint64_t i = 0; i < member.name.size; i++)
    if ((member.name.data[i] & 0x80) != 0) out.flags = kUtf8;
  out.check_sum = member.check_sum.value();
  out.stored = out.bytes = static_cast<uint32_t>(member.bytes);
  out.name = static_cast<uint16_t>(member.name.size + 4);
  return out;
}

} // namespace

const char* Archive::open(Text content) {
  constexpr const char* kDamaged = "the directory of the archive is damaged";
  constexpr uint64_t kMostMembers = 65535;
  EndRecord end;
  uint64_t at = 0;
  if (!find_end(content, end, at)) return "it is no archive, or is cut off";
  uint64_t count = end.count, bytes = end.bytes, start = end.place;
  WidePlaceRecord wide;
  WideEndRecord wide_end;
  if (at >= sizeof(wide) && read_record(content, at - sizeof(wide), wide)) {
    if (!read_record(content, wide.place, wide_end)) return kDamaged;
    count = wide_end.count, bytes = wide_end.bytes, start = wide_end.place;
  }
  if (!holds(content, start, bytes)) return kDamaged;
  if (count > kMostMembers) return "the archive has too many members";
  content_ = content;
  directory_ = content.from(start).first(bytes);
  Member member;
  for (uint64_t place = 0; next(place, member);) count--;
  return count == 0 ? nullptr : kDamaged;
}

bool Archive::next(uint64_t& place, Member& member) const {
  constexpr uint16_t kEncrypted = 1;
  EntryRecord entry;
  if (!read_record(directory_, place, entry)) return false;
  const Facts& facts = entry.facts;
  const uint64_t at = place + sizeof(entry);
  const uint64_t behind = uint64_t{facts.name} + facts.extra + entry.comment;
  if (!holds(directory_, at, behind)) return false;
  member.name = directory_.from(at).first(facts.name);
  member.check_sum = facts.check_sum;
  member.method = (facts.flags & kEncrypted) != 0 ? kAllOnes : facts.method;
  uint64_t stored = 0, start = 0;
  WideNumbers wide(directory_.from(at + facts.name).first(facts.extra));
  MemberRecord own;
  if (!wide.read(facts.bytes, member.bytes) || !wide.read(facts.stored, stored) ||
      !wide.read(entry.place, start) || !read_record(content_, start, own))
    return false;
  // The member's own record may have other extra fields than its entry.
  start += sizeof(own) + own.facts.name + own.facts.extra;
  if (!holds(content_, start, stored)) return false;
  member.stored = content_.from(start).first(stored);
  place = at + behind;
  return true;
}

bool Archive::find(Text name, Member& member) const {
  bool found = false;
  Member each;
  for (uint64_t place = 0; next(place, each);) {
    if (each.name.size != name.size + 4 || !each.name.starts_with(name) ||
        !each.name.ends_with(".npy"))
      continue;
    member = each;
    found = true;
  }
  return found;
}

const char* take_out(const Member& member, uint64_t most, Text& content) {
  const char* error = nullptr;
  if (member.method == kStored) {
    content = member.stored;
    if (content.size != member.bytes) error = "its sizes in the archive differ";
  } else if (member.method != kDeflated) {
    error = "it is encrypted, or compressed in another way than Deflate";
  } else {
    error = member.bytes > most ? "it is far larger than the input"
                                : inflate(member, content);
  }
  if (error != nullptr) return error;
  svod::Crc32 sum;
  sum.add(reinterpret_cast<const uint8_t*>(content.data),
          static_cast<size_t>(content.size));
  return sum.value() == member.check_sum ? nullptr : "its check sum is wrong";
}

// In front of the content, of which size and check sum are known. Sets where it is.
static void begin_member(Printer& out, NewMember& member) {
  member.at = out.written();
  MemberRecord record;
  record.facts = facts_of(member);
  put_record(out, record);
  out << member.name << ".npy";
}

void write_member(Printer& out, NewMember& member, const Tensor& tensor) {
  member = {};
  member.name = tensor.name;
  Printer counter(Printer::kNowhere);
  counter.watch(&member.check_sum);
  write_tensor(counter, FileForm::Npy, tensor);
  counter.flush();
  member.bytes = counter.written();
  begin_member(out, member);
  write_tensor(out, FileForm::Npy, tensor);
}

void end_archive(Printer& out, const NewMember* members, uint32_t count) {
  EndRecord end;
  const uint64_t start = out.written();
  for (uint32_t i = 0; i < count; i++) {
    EntryRecord entry;
    entry.facts = facts_of(members[i]);
    entry.place = static_cast<uint32_t>(members[i].at);
    put_record(out, entry);
    out << members[i].name << ".npy";
  }
  end.own_count = end.count = static_cast<uint16_t>(count);
  end.place = static_cast<uint32_t>(start);
  end.bytes = static_cast<uint32_t>(out.written() - start);
  put_record(out, end);
}

} // namespace packed
