// The image is found by its magic and believed by its checksum, as the program itself
// believes it. Tables of it are compared as bytes: they hold no names, which lie in the
// table of texts.
#include "packager/old_program.h"

#include "packager/report/json_reader.h"
#include "runtime_stub/checksum.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <elf.h>

namespace svod::packager {

namespace {

constexpr char kMagic[8] = "SVODIMG";

bool is_image(std::span<const std::byte> bytes, SvodHeader& header) {
  if (bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.image_bytes < sizeof(header) || header.image_bytes > bytes.size())
    return false;
  SvodHeader bare = header;
  bare.image_checksum = 0;
  SvodChecksum sum;
  sum.add(&bare, sizeof(bare));
  sum.add(bytes.data() + sizeof(bare), header.image_bytes - sizeof(bare));
  return sum.finish() == header.image_checksum;
}

// Of a program that is for a GPU as well there are two; such a one is refused later.
bool find_image(OldProgram& out) {
  const std::span<const std::byte> all = out.bytes;
  for (size_t at = 0; at + sizeof(kMagic) <= all.size(); at += SVOD_ALIGN) {
    if (std::memcmp(&all[at], kMagic, sizeof(kMagic)) != 0) continue;
    if (!is_image(all.subspan(at), out.header)) continue;
    out.image_at = at;
    out.image = all.subspan(at, out.header.image_bytes);
    return true;
  }
  return false;
}

// Whether no part of the file is cut off: the table of sections is its end.
template <class Header> bool is_whole(std::span<const std::byte> file) {
  Header header;
  if (file.size() < sizeof(header)) return false;
  std::memcpy(&header, file.data(), sizeof(header));
  const uint64_t sections = uint64_t{header.e_shnum} * header.e_shentsize;
  return header.e_shoff <= file.size() && sections <= file.size() - header.e_shoff;
}

bool is_whole_program(std::span<const std::byte> file) {
  if (file.size() < EI_NIDENT || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0)
    return false;
  const bool wide = file[EI_CLASS] == std::byte{ELFCLASS64};
  return wide ? is_whole<Elf64_Ehdr>(file) : is_whole<Elf32_Ehdr>(file);
}

std::string_view manifest_of(const OldProgram& old) {
  const SvodText& text = old.header.manifest;
  if (uint64_t{text.offset} + text.size > old.image.size()) return "";
  return {reinterpret_cast<const char*>(old.image.data()) + text.offset, text.size};
}

SizeFacts sizes_of(std::string_view manifest) {
  const auto members = json_members(manifest);
  if (!members || !members->contains("bytes")) return {};
  const auto bytes = json_members(members->at("bytes"));
  const auto number = [&](const char* name) -> uint64_t {
    uint64_t out = 0;
    if (!bytes || !bytes->contains(name)) return out;
    std::string_view text = bytes->at(name);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  };
  SizeFacts out;
  out.image = number("image"), out.code = number("code"), out.stub = number("stub");
  out.stack = number("stack"), out.stored = number("weights_stored");
  out.scratch = number("start_scratch");
  return out;
}

using Bytes = std::span<const std::byte>;

// Empty where it lies beyond the image.
template <class T> Bytes table(Bytes image, const SvodTable& table) {
  const uint64_t size = uint64_t{table.count} * sizeof(T);
  if (table.offset + size > image.size()) return {};
  return image.subspan(table.offset, static_cast<size_t>(size));
}

template <class T> std::vector<T> rows(Bytes image, const SvodTable& of) {
  const Bytes bytes = table<T>(image, of);
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

bool same(Bytes a, Bytes b) { return std::ranges::equal(a, b); }

bool same_tensors(Bytes a, Bytes b, const SvodHeader& of_a, const SvodHeader& of_b) {
  const auto left = rows<SvodTensor>(a, of_a.tensors);
  const auto right = rows<SvodTensor>(b, of_b.tensors);
  return std::ranges::equal(left, right,
                            [](const SvodTensor& x, const SvodTensor& y) {
                              return x.dtype == y.dtype && x.rank == y.rank &&
                                     x.bytes == y.bytes;
                            }) &&
         same(table<int64_t>(a, of_a.dims), table<int64_t>(b, of_b.dims));
}

bool same_steps(Bytes a, Bytes b, const SvodHeader& of_a, const SvodHeader& of_b) {
  const auto left = rows<SvodStep>(a, of_a.steps), right = rows<SvodStep>(b, of_b.steps);
  return std::ranges::equal(left, right,
                            [](const SvodStep& x, const SvodStep& y) {
                              return x.kind == y.kind && x.program == y.program &&
                                     x.first_arg == y.first_arg &&
                                     x.arg_count == y.arg_count && x.chunks == y.chunks &&
                                     x.followers == y.followers;
                            }) &&
         same(table<uint32_t>(a, of_a.args), table<uint32_t>(b, of_b.args)) &&
         same(table<SvodSlice>(a, of_a.slices), table<SvodSlice>(b, of_b.slices)) &&
         same(table<SvodRegion>(a, of_a.regions), table<SvodRegion>(b, of_b.regions));
}

// The ONNX nodes of the first step that runs the program.
std::string nodes_of(Bytes image, const SvodHeader& header, uint32_t program) {
  for (const SvodStep& step : rows<SvodStep>(image, header.steps)) {
    if (step.kind != SVOD_STEP_LAUNCH || step.program != program) continue;
    const SvodText& text = step.sources;
    if (uint64_t{text.offset} + text.size > image.size()) break;
    return {reinterpret_cast<const char*>(image.data()) + text.offset, text.size};
  }
  return "";
}

} // namespace

std::optional<OldProgram> old_program_of(Bytes bytes, std::string& fault) {
  OldProgram out;
  out.bytes = bytes;
  if (!is_whole_program(bytes) || !find_image(out)) {
    fault = "is no program that svod-pack wrote, or damaged";
  } else if (out.header.version != SVOD_FORMAT_VERSION) {
    fault = "was packed by another svod-pack; pack it anew";
  } else if (auto packed = read_packed_with(manifest_of(out))) {
    out.packed = std::move(*packed);
    out.sizes = sizes_of(manifest_of(out));
    if (const std::string option = unknown_value(out.packed); !option.empty())
      fault = "was packed with " + option +
              ", and what that brought is not in it; pack it anew";
  } else {
    fault =
        "does not say how it was packed, as libraries and older programs; swap-weights "
        "is for programs, so pack it anew";
  }
  return fault.empty() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<OldProgram> read_old_program(const std::string& path, std::string& fault) {
  auto file = std::make_unique<FileView>(path);
  if (file->bytes().empty()) {
    fault = "cannot open the file, or it is empty";
    return std::nullopt;
  }
  std::optional<OldProgram> out = old_program_of(file->bytes(), fault);
  if (!out) return std::nullopt;
  out->path = path;
  out->file = std::move(file);
  return out;
}

std::string plan_difference(const OldProgram& old, Bytes image,
                            const PackedWith& packed) {
  SvodHeader now;
  std::memcpy(&now, image.data(), sizeof(now));
  const SvodHeader& before = old.header;
  if (!same_tensors(old.image, image, before, now))
    return "its inputs or outputs are of other shapes or types";
  if (packed.programs.size() != old.packed.programs.size())
    return "its plan has " + std::to_string(packed.programs.size()) +
           " kernels that differ from each other, that of the program " +
           std::to_string(old.packed.programs.size());
  if (!same_steps(old.image, image, before, now))
    return "the steps of its plan are others";
  for (size_t i = 0; i < packed.programs.size(); i++)
    if (packed.programs[i] != old.packed.programs[i])
      return "kernel k" + std::to_string(i) + " (node '" +
             nodes_of(image, now, static_cast<uint32_t>(i)) +
             "') has other code: shapes differ, or values of weights that code depends "
             "on";
  if (before.weight_bytes != now.weight_bytes)
    return "its weights take " + std::to_string(now.weight_bytes) +
           " bytes, those of the "
           "program " +
           std::to_string(before.weight_bytes);
  if (!same(table<SvodSlot>(old.image, before.slots), table<SvodSlot>(image, now.slots)))
    return "its tensors lie at other places";
  return "";
}

} // namespace svod::packager
