// grpc://HOST:PORT[/INSTANCE]: where a cache that machines share is to be had.
#pragma once

#include <optional>
#include <string>

namespace svod::packager {

struct RemoteAddress {
  std::string text;     // as it was given
  bool tls = false;     // grpcs://
  std::string server;   // "cache.example:8980", "[::1]:8980"
  std::string instance; // one of several caches behind one server; mostly empty
};

// Nothing where the text is no such address; `fault` says why.
std::optional<RemoteAddress> parse_remote_address(const std::string& text,
                                                  std::string& fault);

} // namespace svod::packager
