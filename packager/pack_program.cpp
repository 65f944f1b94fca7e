// Programs of the cache. What is linked is nearly the same bytes each time; what is large
// in it are the weights, which the plan says how to pack. So an entry is the program
// without them: what stands in front of them and what follows. A pack of the same plan
// writes these, packs its weights into the file between them, and writes its own image,
// which has names and digests, over the other one: no object is read, named or linked.
//
// The image's size decides where all else lies: with longer names a program is linked
// again, from the plan and the objects of the cache. A link leaves a room for the
// weights, which are packed into it in the same way: a linker that is given them copies
// them twice, which for 657 MB takes longer than all else.
#include "packager/packing.h"

#include "compiler/support/byte_form.h"
#include "packager/program_file.h"
#include "runtime_stub/checksum.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace svod::packager {

namespace {

struct StoredProgram {
  std::string key;
  SizeFacts sizes;
  std::vector<uint64_t> kernel_bytes;
  KernelSpills spills;
  std::vector<std::string> remedies;
  std::vector<MergedGroup> merged;
  uint64_t objects = 0; // that it was linked from
  Digest made_for;      // the key of graph and weights, which have this checksum
  uint64_t weight_checksum = 0;
  uint64_t image_at = 0;              // in front of the weights
  std::vector<std::byte> front, back; // of the weights
};

std::optional<uint64_t> find_image(std::span<const std::byte> program,
                                   const std::vector<std::byte>& image) {
  const auto found = std::ranges::search(program, image);
  if (found.empty()) return std::nullopt;
  return static_cast<uint64_t>(found.begin() - program.begin());
}

// Where the weights lie in a program that they were linked into: they are looked for by
// how they begin, and believed by their checksum.
std::optional<uint64_t> find_weights(std::span<const std::byte> program,
                                     const ImageContents& contents,
                                     std::span<const std::byte> begin) {
  const auto size = static_cast<size_t>(contents.weight_bytes);
  if (size == 0) return program.size();
  for (size_t at = 0; at + size <= program.size(); at += contents.align) {
    if (std::memcmp(program.data() + at, begin.data(), begin.size()) != 0) continue;
    if (svod_checksum(program.data() + at, size) == contents.weight_checksum) return at;
  }
  return std::nullopt;
}

} // namespace

// Of one set of shapes, with all that it needs inside.
bool Packing::fills_program() const {
  return sets_.empty() && !files_.empty() && options_.emit == Output::Executable &&
         options_.weights == WeightPlace::Embed && !options_.device;
}

bool Packing::caches_program() const {
  return plan_state_ != PlanState::Off && cache_ && fills_program();
}

// What the manifest says before there are objects.
std::string Packing::manifest_of(const SizeFacts& sizes) const {
  Summary facts = summary();
  facts.sizes = sizes;
  return manifest_json(facts);
}

// All that decides the program's code, and where it lies: plan, options, and the room
// that names take.
std::string Packing::program_key() const {
  ImageContents bare = contents_;
  bare.manifest = manifest_of({});
  ByteWriter key;
  key.put(plan_key_);
  key.put(front_->structure_key);
  key.put(uint64_t{build_image(bare).size()});
  const std::vector<std::byte>& bytes = key.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// At their place; the image learns their checksum. Threads that write one file take turns
// in the kernel, where they spin. Here the core of one that waits packs the next weight.
void Packing::put_weights_into(FileWriter& file, uint64_t at) {
  SvodChecksum checksum;
  std::mutex turn;
  produce_weights(
      kernels_->plan,
      [&](uint64_t offset, std::span<const std::byte> bytes) {
        const std::scoped_lock mine(turn);
        file.write_at(at + offset, bytes);
      },
      [&](std::span<const std::byte> bytes) {
        checksum.add(bytes.data(), bytes.size());
      });
  contents_.weight_checksum = checksum.finish();
}

// What was linked around the weights gets them, and its image their checksum.
bool Packing::fill_program(uint64_t at) {
  const std::string& path = files_[0].temporary();
  std::optional<uint64_t> image_at;
  uint64_t size = 0;
  {
    const FileView file(path);
    size = file.bytes().size();
    if (at <= size) image_at = find_image(file.bytes().first(at), build_image(contents_));
  }
  if (!image_at) return false;
  FileWriter file(path);
  file.reserve(size);
  put_weights_into(file, at);
  file.write_at(*image_at, build_image(contents_));
  return file.good();
}

bool Packing::take_program() {
  if (!caches_program() || plan_state_ != PlanState::Hit) return false;
  const std::string key = program_key();
  const auto entry = cache_->load(sha256(key), toolchain::EntryKind::Program);
  if (!entry) return false;
  ByteReader in(*entry);
  auto found = in.get<StoredProgram>();
  if (in.failed() || !in.at_end() || found.key != key) return false;
  contents_.manifest = manifest_of(found.sizes);
  if (build_image(contents_).size() != found.sizes.image ||
      found.image_at + found.sizes.image > found.front.size())
    return false;
  console_.progress("writing " + options_.model_name());
  FileWriter file(files_[0].temporary());
  const uint64_t weights_at = found.front.size();
  file.reserve(weights_at + contents_.weight_bytes + found.back.size());
  file.write_at(0, found.front);
  put_weights_into(file, weights_at);
  file.write_at(weights_at + contents_.weight_bytes, found.back);
  file.write_at(found.image_at, build_image(contents_));
  file.make_program();
  // What is wrong with the file the linker says better.
  if (!file.good()) return false;
  if (found.made_for == key_ && contents_.weight_checksum != found.weight_checksum)
    return false;
  objects_.emplace();
  objects_->sizes = found.sizes;
  objects_->kernel_bytes = std::move(found.kernel_bytes);
  objects_->spills = std::move(found.spills);
  objects_->remedies = std::move(found.remedies);
  objects_->reused = found.objects;
  merged_ = std::move(found.merged);
  console_.verbose("program: from the cache");
  return true;
}

void Packing::keep_program(std::optional<uint64_t> at) {
  if (!caches_program()) return;
  const FileView file(files_[0].temporary());
  if (!at) at = find_weights(file.bytes(), contents_, objects_->first_weights);
  if (!at) return;
  const auto weights = static_cast<size_t>(contents_.weight_bytes);
  const auto front = file.bytes().first(*at), back = file.bytes().subspan(*at + weights);
  const std::optional<uint64_t> image_at = find_image(front, build_image(contents_));
  if (!image_at) return;
  StoredProgram out;
  out.key = program_key();
  out.sizes = objects_->sizes;
  out.kernel_bytes = objects_->kernel_bytes;
  out.spills = objects_->spills;
  out.remedies = objects_->remedies;
  out.merged = merged_;
  out.objects = objects_->compiled + objects_->reused;
  out.made_for = key_;
  out.weight_checksum = contents_.weight_checksum;
  out.image_at = *image_at;
  out.front.assign(front.begin(), front.end());
  out.back.assign(back.begin(), back.end());
  ByteWriter bytes;
  bytes.put(out);
  // A full disk makes the next pack slower, not this one wrong.
  (void)cache_->store(sha256(out.key), bytes.bytes(), toolchain::EntryKind::Program);
}

} // namespace svod::packager
