// The plan as an image holds it: Allocate and Deallocate are gone, since every slot
// has its offset, and model strings are in one table.
#pragma once

#include "compiler/plan/plan.h"
#include "importer/driver/import.h"
#include "packager/artefact/image.h"

namespace svod::packager {

// `key` is the plan key. Manifest, weight checksum and threads are left to the caller.
ImageContents image_contents(const plan::Plan& plan,
                             const importer::ModelInterface& interface,
                             const Digest& model, const Digest& key);

} // namespace svod::packager
