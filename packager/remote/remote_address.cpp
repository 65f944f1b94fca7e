#include "packager/remote/remote_address.h"

#include "packager/whole_number.h"

#include <algorithm>

namespace svod::packager {

namespace {

constexpr std::string_view kPlain = "grpc://", kTls = "grpcs://";

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 127; });
}

// Of HOST:PORT, where HOST may be an address of version 6 in brackets.
std::string server_fault(std::string_view server) {
  const size_t colon = server.rfind(':');
  const std::string_view host = server.substr(0, std::min(colon, server.size()));
  const bool bracket = host.starts_with('[');
  if (host.empty() || (bracket && !host.ends_with(']'))) return "names no host";
  if (colon == server.npos || (!bracket && host.find(':') != host.npos))
    return "names no port; a host of colons stands in brackets";
  constexpr int64_t kMostPort = 65535;
  const auto port = whole_number(server.substr(colon + 1));
  return port && *port > 0 && *port <= kMostPort ? "" : "has a port that is none";
}

} // namespace

std::optional<RemoteAddress> parse_remote_address(const std::string& text,
                                                  std::string& fault) {
  RemoteAddress out{text, text.starts_with(kTls), "", ""};
  if (!out.tls && !text.starts_with(kPlain)) {
    fault = "begins with neither grpc:// nor grpcs://";
    return std::nullopt;
  }
  const std::string rest = text.substr((out.tls ? kTls : kPlain).size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  out.server = rest.substr(0, slash);
  if (slash < rest.size()) out.instance = rest.substr(slash + 1);
  if (!is_plain(rest) || rest.find_first_of("@?#") != rest.npos)
    fault = "holds what is no host, port or instance";
  else
    fault = server_fault(out.server);
  return fault.empty() ? std::optional(out) : std::nullopt;
}

} // namespace svod::packager
