// The image says of an input that it is a picture by the role of its extents, and the
// manifest how it is prepared. Why a picture cannot be taken is in front of the memory
// that its step works in.
#include "runtime_stub/program/pictures.h"

#include "runtime_stub/picture_note.h"
#include "runtime_stub/platform.h"
#include "runtime_stub/program/json_text.h"
#include "runtime_stub/program/literal.h"
#include "runtime_stub/program/open_inputs.h"
#include "runtime_stub/program/strings.h"

namespace packed {

namespace {

constexpr char kSuffixes[][6] = {".jpg",  ".jpeg", ".png", ".webp", ".bmp", ".tif",
                                 ".tiff", ".jp2",  ".ppm", ".pgm",  ".pbm", ".pnm"};

// In lower case; a longer suffix than any is no suffix.
bool ends_with_any_case(Text name, Text suffix) {
  if (name.size <= suffix.size) return false;
  for (uint64_t i = 0; i < suffix.size; i++) {
    const char c = name.data[name.size - suffix.size + i];
    const bool is_upper = c >= 'A' && c <= 'Z';
    if ((is_upper ? static_cast<char>(c + 32) : c) != suffix.data[i]) return false;
  }
  return true;
}

// Of input `i`: the manifest lists them in the model's order.
Text prepared_text(const Session& session, uint32_t i) {
  uint32_t before = 0;
  for (uint32_t k = 0; k < i; k++) before += is_picture(session, k);
  const Text key = "\"prepared\": ";
  Text rest = text_of(session, svod_header(session.model.image)->manifest);
  for (; rest.size > key.size; rest = rest.from(1)) {
    if (!rest.starts_with(key) || before-- > 0) continue;
    const Text scalar = json_scalar(rest.from(key.size));
    // A spec has nothing that is escaped; what is quoted lies between two quotes.
    return scalar.size > 2 ? Text(scalar.data + 1, scalar.size - 2) : Text();
  }
  return {};
}

Text formats_text(const Session& session, uint32_t i) {
  const Text text = prepared_text(session, i), key = "formats=";
  for (uint64_t at = 0; at + key.size < text.size; at++)
    if (text.from(at).starts_with(key)) return text.from(at + key.size);
  return {};
}

const SvodSlot& slot_of(const Session& session, const SvodStep& step, uint32_t arg) {
  const void* image = session.model.image;
  const SvodHeader* header = svod_header(image);
  const uint32_t slot = *svod_at<uint32_t>(image, header->args, step.first_arg + arg);
  return *svod_at<SvodSlot>(image, header->slots, session.entry->first_slot + slot);
}

void print_too_large(Printer& errors, const svod::PictureNote& note) {
  const bool is_long = note.height > note.most_side || note.width > note.most_side;
  const bool is_over = note.height * note.width > note.most_pixels;
  errors << "a picture " << note.width << " pixels wide and " << note.height << " high";
  if (is_long)
    errors << " is longer than the " << note.most_side
           << " pixels that were packed; pack with a larger --limit-image, or make it "
              "smaller";
  else if (is_over)
    errors << " is larger than the " << note.most_pixels
           << " pixels that were packed; pack with a larger --limit-image, or make it "
              "smaller";
  else
    errors << " takes more memory than was packed for " << note.most_pixels
           << " pixels; pack with a larger --limit-image";
}

} // namespace

bool is_picture(const Session& session, uint32_t i) {
  const void* image = session.model.image;
  const SvodTensor* input = svod_input(image, session.entry, i);
  if (!is_open(session, i)) return false;
  return svod_input(image, session.entry, input->shape_output - 1)->role ==
         SVOD_ROLE_PICTURE;
}

bool has_picture(const Session& session, const FreeInputs& inputs) {
  for (uint32_t i = 0; i < model_inputs(session); i++)
    if (inputs.has(i) && is_picture(session, i)) return true;
  return false;
}

Text picture_suffix(uint32_t k) {
  constexpr uint32_t kCount = sizeof(kSuffixes) / sizeof(kSuffixes[0]);
  return k < kCount ? Text(kSuffixes[k]) : Text();
}

bool is_picture_name(Text name) {
  for (const char* suffix : kSuffixes)
    if (ends_with_any_case(name, suffix)) return true;
  return false;
}

Exit bind_picture(Session& session, uint32_t i, Text content, Text origin,
                  Printer& errors) {
  Tensor tensor = input_type(session, i);
  const uint64_t most = tensor.bytes();
  if (content.size > most) {
    errors << "error: ";
    errors.name(origin) << ": a picture file of " << content.size
                        << " bytes is larger than the " << most
                        << " that were packed (--limit-image)\n";
    return EXIT_BAD_DATA;
  }
  tensor.dims[0] = static_cast<int64_t>(content.size);
  tensor.data = content.data;
  return bind_input(session, i, tensor, origin, errors);
}

// A portable pixmap, within what the input may have: four bytes for a pixel.
Exit make_picture(Session& session, uint32_t i, Text how, uint64_t seed,
                  Printer& errors) {
  constexpr uint64_t kHeight = 240, kWidth = 320, kHeader = 65536;
  Tensor tensor = input_type(session, i);
  const uint64_t pixels = (tensor.bytes() - kHeader) / 4;
  const uint64_t width = pixels < kWidth ? pixels : kWidth;
  const uint64_t height = pixels / width < kHeight ? pixels / width : kHeight;
  char header[64];
  Printer out(header, sizeof(header));
  out << "P6 " << width << " " << height << " 255\n";
  out.flush();
  const uint64_t size = out.written() + 3 * width * height;
  tensor.dims[0] = static_cast<int64_t>(size);
  auto bytes = static_cast<char*>(take_memory(size));
  if (bytes == nullptr) return no_memory(errors);
  if (!(how == Text("zeros"))) {
    Tensor made;
    if (!fill_random(tensor, seed, made)) return no_memory(errors);
    memcpy(bytes, made.data, static_cast<size_t>(size));
  }
  memcpy(bytes, header, static_cast<size_t>(out.written()));
  tensor.data = bytes;
  return bind_input(session, i, tensor, how, errors);
}

bool keep_origins(Session& session) {
  if (session.origins == nullptr)
    session.origins =
        static_cast<Text*>(take_memory(session.entry->input_count * sizeof(Text)));
  return session.origins != nullptr;
}

void note_origin(Session& session, uint32_t i, Text origin) {
  auto copy = static_cast<char*>(take_memory(origin.size));
  if (copy != nullptr) memcpy(copy, origin.data, static_cast<size_t>(origin.size));
  session.origins[i] = copy == nullptr ? Text() : Text(copy, origin.size);
}

void print_picture(Printer& out, const Session& session, uint32_t i) {
  out << "picture file, at most " << input_type(session, i).bytes() << " bytes, to "
      << prepared_text(session, i);
}

uint32_t picture_of(const Session& session, const SvodStep& step) {
  const uint32_t none = session.entry->input_count;
  constexpr uint32_t kArguments = 4; // bytes, how many, pixels, memory
  if (step.kind != SVOD_STEP_LAUNCH || step.arg_count != kArguments) return none;
  const SvodSlot &bytes = slot_of(session, step, 0), &memory = slot_of(session, step, 3);
  if (bytes.slot_class != SVOD_SLOT_INPUT || memory.slot_class != SVOD_SLOT_TEMPORARY)
    return none;
  return is_picture(session, bytes.io) ? bytes.io : none;
}

Exit picture_error(const Session& session, const SvodStep& step, int32_t status,
                   const void* arena, Printer& errors) {
  const uint32_t i = picture_of(session, step);
  svod::PictureNote note;
  memcpy(&note, static_cast<const uint8_t*>(arena) + slot_of(session, step, 3).offset,
         sizeof(note));
  errors << "error: ";
  errors.name(session.origins[i]) << ": ";
  if (status == SVOD_LIMIT) {
    print_too_large(errors, note);
  } else if (note.height > 0) {
    errors << "the picture " << note.width << " pixels wide and " << note.height
           << " high is damaged, cut short, or of a kind that is not decoded";
  } else {
    errors << "is no picture of a kind that was packed (" << formats_text(session, i)
           << "/pnm), or is damaged or cut short";
  }
  errors << "; for input '";
  errors.name(input_type(session, i).name) << "'\n";
  return status == SVOD_LIMIT ? EXIT_INDEX : EXIT_BAD_DATA;
}

} // namespace packed
