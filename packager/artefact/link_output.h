// The packed program or library, linked from its objects into a file.
#pragma once

#include "compiler/toolchain/link.h"
#include "packager/artefact/objects.h"
#include "packager/options.h"

namespace svod::packager {

// What options ask for, written to `path`.
[[nodiscard]] toolchain::LinkResult
link_output(const Options& options, const Objects& objects, const std::string& path);

// The file of weights beside a program; false when it cannot be written.
[[nodiscard]] bool write_weights(const Objects& objects, const std::string& path);

// Code and image, with the weights or without them; `objects` outlive them.
toolchain::LinkInputs link_inputs(const Objects& objects, bool weights);

[[nodiscard]] toolchain::LinkResult
link_program(const Options& options, const Objects& objects, const std::string& path);

[[nodiscard]] toolchain::LinkResult
link_shared(const Options& options, const Objects& objects, const std::string& path);

[[nodiscard]] toolchain::LinkResult
link_module(const Options& options, const Objects& objects, const std::string& path);

// Code, image and weights in one object whose only global names are the API.
[[nodiscard]] toolchain::ObjectResult link_object(const Options& options,
                                                  const Objects& objects);
// Such an object, but for the weights: they may be large and stay a member of their own.
[[nodiscard]] toolchain::LinkResult
link_archive(const Options& options, const Objects& objects, const std::string& path);

} // namespace svod::packager
