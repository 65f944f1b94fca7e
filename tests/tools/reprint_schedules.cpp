// Reads what --emit=schedule printed, on standard input, and prints it again from what it
// understood: equal texts mean that kernels and schedules read back what they write.
#include "compiler/kernel/schedule_file.h"

#include <iostream>
#include <iterator>
#include <string>

namespace {

// The lines from `begin` up to the next heading.
std::string section(const std::string& text, size_t& begin) {
  std::string out;
  while (begin < text.size() && text.compare(begin, 7, "kernel ") != 0 &&
         text.compare(begin, 9, "schedule ") != 0) {
    const size_t end = text.find('\n', begin) + 1;
    out += text.substr(begin, end - begin);
    begin = end;
  }
  return out;
}

} // namespace

int main() {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  svod::TextFault fault;
  for (size_t at = 0; at < text.size();) {
    const bool is_kernel = text.compare(at, 7, "kernel ") == 0;
    const size_t end = text.find('\n', at) + 1;
    std::cout << text.substr(at, end - at);
    at = end;
    const std::string body = section(text, at);
    std::string again;
    if (is_kernel) {
      if (const auto kernel = svod::parse_kernel(body, fault))
        again = svod::print(*kernel);
    } else if (const auto schedule = svod::parse_schedule(body, fault)) {
      again = print(*schedule);
    }
    if (again.empty() && !body.empty()) {
      std::cerr << "line " << fault.line << " of\n" << body << ": " << fault.why << "\n";
      return 1;
    }
    std::cout << again;
  }
  return 0;
}
