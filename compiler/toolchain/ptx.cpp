#include "compiler/toolchain/ptx.h"

#include <algorithm>
#include <cctype>

namespace svod::toolchain {

namespace {

// A module says these once, before all else.
constexpr std::string_view kVersion = ".version ", kTarget = ".target ",
                           kAddresses = ".address_size ";

// Versions are numbers: 8.6 comes after 7.8, 10.0 after both. sm_90a is sm_90 and more.
bool comes_after(std::string_view a, std::string_view b) {
  const auto point = [](std::string_view s) { return std::min(s.find('.'), s.size()); };
  return point(a) != point(b) ? point(a) > point(b) : a > b;
}

bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// Clang's names of what is not to be seen outside begin so; kernels have plain names.
constexpr std::string_view kLocal = "_Z";

void add_line(std::string& out, std::string_view line, std::string_view name) {
  size_t begin = 0;
  for (size_t at = 0; (at = line.find(kLocal, at)) != line.npos;) {
    const bool whole = at == 0 || !is_part_of_name(line[at - 1]);
    while (at < line.size() && is_part_of_name(line[at])) at++;
    if (!whole) continue;
    out.append(line.substr(begin, at - begin)).append("_").append(name);
    begin = at;
  }
  out.append(line.substr(begin)).append("\n");
}

} // namespace

std::string one_module(const std::vector<PtxText>& texts) {
  std::string version, target, body;
  for (const auto& [text, name] : texts) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      at = end + 1;
      auto keep = [&](std::string& latest, std::string_view begin) {
        const std::string_view word = line.substr(begin.size());
        if (comes_after(word, latest)) latest = word;
      };
      if (line.starts_with(kVersion))
        keep(version, kVersion);
      else if (line.starts_with(kTarget))
        keep(target, kTarget);
      else if (!line.starts_with(kAddresses))
        add_line(body, line, name);
    }
  }
  std::string out(kVersion);
  out.append(version).append("\n").append(kTarget).append(target).append("\n");
  return out.append(kAddresses).append("64\n").append(body);
}

std::string target_of(std::string_view ptx) {
  const size_t at = ptx.find(kTarget);
  if (at == ptx.npos) return "";
  const std::string_view word = ptx.substr(at + kTarget.size());
  return std::string(word.substr(0, word.find_first_of(" ,\n")));
}

// Asked for at least one block on a multiprocessor, the driver's compiler keeps to
// registers; unasked it spilled 24 bytes of a product's to make room for five. An entry
// is printed as ".visible .entry name(", its parameters, ")" and a line "{".
std::string with_block_threads(std::string ptx, int threads) {
  const std::string directive =
      ".maxntid " + std::to_string(threads) + ", 1, 1\n.minnctapersm 1\n";
  for (size_t at = 0; (at = ptx.find(".entry ", at)) != std::string::npos;) {
    const size_t body = ptx.find("\n{", at);
    if (body == std::string::npos) break;
    ptx.insert(body + 1, directive);
    at = body + directive.size();
  }
  return ptx;
}

} // namespace svod::toolchain
