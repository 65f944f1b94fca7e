// What tells this build of svod-pack from all others.
#pragma once

#include <string>

namespace svod::packager {

// The build id that the linker made of the whole program; empty where there is none. Two
// builds of one version may have other passes, and a cached plan is right only for the
// build that made it.
std::string build_identity();

} // namespace svod::packager
