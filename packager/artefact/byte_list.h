// Numbers as the initializer of an array, in C and in C++.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace svod::packager {

std::string byte_list(const std::string& bytes);
// Without braces and spaces.
std::string mask_list(const std::vector<uint64_t>& masks);

} // namespace svod::packager
