// Inputs that are picture files (svod-pack --image): what the program reads are bytes,
// and a step of the run decodes and prepares them. Only programs with such an input have
// this (SVOD_PICTURES).
#ifndef SVOD_PROGRAM_PICTURES_H
#define SVOD_PROGRAM_PICTURES_H

#include "runtime_stub/program/binding.h"

namespace packed {

// Whether input `i` is the bytes of a picture file.
bool is_picture(const Session& session, uint32_t i);
// Whether one of these inputs is.
bool has_picture(const Session& session, const FreeInputs& inputs);
inline constexpr const char* kNoStreamOfPictures =
    "a picture file has no fixed size; --batch-dir reads pictures in a folder";
// Whether a file of this name is a picture: .jpg, .png and the like.
bool is_picture_name(Text name);
// The k-th suffix of such names; empty behind the last one.
Text picture_suffix(uint32_t k);
// Input `i` from a file of this content, whatever it is: only decoding tells.
Exit bind_picture(Session& session, uint32_t i, Text content, Text origin,
                  Printer& errors);
// A picture that is made: "zeros", or random pixels.
Exit make_picture(Session& session, uint32_t i, Text how, uint64_t seed, Printer& errors);
// Memory for the names of files, for as long as the session; false: there is too little.
bool keep_origins(Session& session);
// Input `i` was given as this.
void note_origin(Session& session, uint32_t i, Text origin);
// "picture file, to rgb,resize=256,..."
void print_picture(Printer& out, const Session& session, uint32_t i);
// The input that a step makes a picture of, or the number of inputs.
uint32_t picture_of(const Session& session, const SvodStep& step);
// Why that step failed. `arena`: as the run had it.
Exit picture_error(const Session& session, const SvodStep& step, int32_t status,
                   const void* arena, Printer& errors);

} // namespace packed

#endif
