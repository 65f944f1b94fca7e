// SVOD_CHECK: a condition that only a bug of ours can break. No input may reach it.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace svod {

// Thrown by SVOD_CHECK; the driver turns it into exit code 5 with a report.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

namespace detail {
// Collects the message of a failed check and throws at the end of the statement.
class CheckFailure {
public:
  CheckFailure(const char* file, int line, const char* condition) {
    text_ << file << ':' << line << ": check failed: " << condition << ' ';
  }
  [[noreturn]] ~CheckFailure() noexcept(false) { throw InternalError(text_.str()); }
  template <class T> CheckFailure& operator<<(const T& value) {
    text_ << value;
    return *this;
  }

private:
  std::ostringstream text_;
};
} // namespace detail

#define SVOD_CHECK(condition)                                                            \
  if (condition) {                                                                       \
  } else                                                                                 \
    ::svod::detail::CheckFailure(__FILE__, __LINE__, #condition)

} // namespace svod
