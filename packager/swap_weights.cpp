// svod-pack swap-weights PROGRAM MODEL -o FILE. The model is planned with the options
// that the program was packed with, and its plan must be the program's but for the
// weights. Then a pack of the model has the same code at the same addresses, and other
// bytes only in the image, which has the model's digest, and in the weights: these are
// written over a copy of the program. Where the image or what is stored of the weights is
// of another size, everything behind it lies elsewhere: then the program is linked anew,
// from kernels of the cache.
#include "packager/old_program.h"
#include "packager/packing.h"

#include "compiler/support/round_up.h"
#include "runtime_stub/checksum.h"

namespace svod::packager {

namespace {

// Where the weights lie, right behind the image; nothing where others are there.
std::optional<uint64_t> weights_at(const OldProgram& old, uint64_t align) {
  const uint64_t at = round_up(old.image_at + old.image.size(), align);
  const uint64_t size = old.header.weight_bytes;
  const std::span<const std::byte> all = old.bytes;
  if (at > all.size() || size > all.size() - at) return std::nullopt;
  const bool right = svod_checksum(&all[at], size) == old.header.weight_checksum;
  return right ? std::optional(at) : std::nullopt;
}

} // namespace

// The image of the new model as if it were packed, were its weights those of
// weight_checksum.
std::vector<std::byte> Packing::swapped_image(const SizeFacts& sizes) {
  objects_->sizes = sizes;
  contents_.manifest = manifest_json(summary());
  return build_image(contents_);
}

Exit Packing::compare_plans() {
  objects_.emplace();
  const PackedWith packed = packed_with(options_, *kernels_, unsearched_);
  if (packed.stub != old_->packed.stub) {
    console_.error(old_->path + ": was packed by another svod-pack; pack it anew");
    return Exit::Usage;
  }
  const std::string difference =
      plan_difference(*old_, swapped_image(old_->sizes), packed);
  if (difference.empty()) return Exit::Done;
  console_.error(options_.model_name() + " has another plan than " + old_->path + ": " +
                 difference + "; pack it anew");
  return Exit::Unsupported;
}

// Weights first, since the image holds their checksum.
bool Packing::write_swapped(uint64_t place) {
  const std::span<const std::byte> all = old_->bytes;
  const bool beside = options_.weights == WeightPlace::File;
  FileWriter program(files_[0].temporary());
  SvodChecksum checksum;
  const auto produce = [&](FileWriter& to) {
    const ByteSink sink = [&](std::span<const std::byte> bytes) {
      checksum.add(bytes.data(), bytes.size());
      to.write(bytes);
    };
    if (entries_)
      produce_weights(plans(), entries_->weights, sink);
    else
      produce_weights(kernels_->plan, sink);
  };
  bool good = true;
  if (beside) {
    FileWriter weights(files_[1].temporary());
    produce(weights);
    contents_.weight_checksum = checksum.finish();
    const SvodWeightsEnd end = weights_end(contents_);
    weights.write(std::as_bytes(std::span(&end, 1)));
    good = weights.good();
    program.write(all);
  } else {
    program.write(all.first(place));
    produce(program);
    contents_.weight_checksum = checksum.finish();
    program.write(all.subspan(place + old_->header.weight_bytes));
  }
  program.write_at(old_->image_at, swapped_image(old_->sizes));
  program.make_program();
  return good && program.good();
}

Exit Packing::put_weights() {
  const bool same_size = swapped_image(old_->sizes).size() == old_->image.size();
  const bool beside = options_.weights == WeightPlace::File;
  const std::optional<uint64_t> place =
      beside ? std::optional(uint64_t{0}) : weights_at(*old_, contents_.align);
  if (is_made_at_start(options_.weights) || !same_size || !place) {
    objects_.reset();
    Exit status = build();
    if (status == Exit::Done) status = link();
    if (status != Exit::Done) return status;
    console_.note("linked anew, since " +
                  std::string(same_size ? "stored weights are of another size"
                                        : "names in the model take other room") +
                  "; " + std::to_string(objects_->compiled) +
                  " of its objects were not "
                  "in the cache and were compiled");
    return Exit::Done;
  }
  clock_.lap();
  console_.progress("writing " + options_.model_name());
  if (!write_swapped(*place))
    return file_error(files_[0].temporary(), "cannot be written");
  note_time("link", clock_.lap());
  return Exit::Done;
}

Exit Packing::swap_weights(const OldProgram& old) {
  using Stage = Exit (Packing::*)();
  old_ = &old;
  for (const std::string& kernel : old.packed.unsearched)
    if (const auto digest = digest_from_hex(kernel)) unsearched_.insert(*digest);
  Exit status = Exit::Done;
  for (Stage stage : std::initializer_list<Stage>{
           &Packing::open_outputs, &Packing::read, &Packing::compile_graph,
           &Packing::check_weights, &Packing::compare_plans, &Packing::put_weights,
           &Packing::verify_or_bisect, &Packing::commit})
    if (status == Exit::Done) status = (this->*stage)();
  tell(status);
  return status;
}

// The options that the program was packed with, and those of this command that say where
// something is kept or told.
static Options options_as_packed(const Options& options, const OldProgram& old) {
  std::vector<std::string> words{"svod-pack", options.model, "-o", options.output,
                                 "--emit=exe"};
  words.insert(words.end(), old.packed.options.begin(), old.packed.options.end());
  if (!options.verify.empty()) words.push_back("--verify=" + options.verify);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  auto read = read_options(static_cast<int>(pointers.size()), pointers.data());
  Options out = std::get<Options>(std::move(read));
  out.cache_folder = options.cache_folder;
  out.quiet = options.quiet, out.verbose = options.verbose, out.color = options.color;
  out.json = options.json, out.command = options.command, out.words = options.words;
  return out;
}

Exit swap_weights(const Options& options, const Console& console) {
  std::string fault;
  const std::optional<OldProgram> old = read_old_program(options.other, fault);
  if (!old) {
    console.error(options.other + ": " + fault);
    return fault.starts_with("cannot open") ? Exit::File : Exit::Usage;
  }
  const Options as_packed = options_as_packed(options, *old);
  if (!as_packed.usage_error.empty()) {
    console.error(options.other + ": its options are not those of this svod-pack (" +
                  as_packed.usage_error + "); pack it anew");
    return Exit::Usage;
  }
  return Packing(as_packed, console).swap_weights(*old);
}

} // namespace svod::packager
