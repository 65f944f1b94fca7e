// The version of svod-pack: in --version, in manifests, and in every plan key.
#pragma once

namespace svod::packager {

inline constexpr char kVersion[] = "0.1.0";

} // namespace svod::packager
