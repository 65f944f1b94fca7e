// Bytes as the initializer of an array of numbers, in C and in C++.
#pragma once

#include <string>

namespace svod::packager {

std::string byte_list(const std::string& bytes);

} // namespace svod::packager
