// Division of any number by a positive one, rounded down and up.
#pragma once

#include <cstdint>

namespace svod {

constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

} // namespace svod
