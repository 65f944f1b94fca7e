#include "packager/fleet_options.h"

#include "packager/command/words.h"
#include "packager/remote/remote_client.h"
#include "packager/whole_number.h"

#include <algorithm>
#include <cstdlib>

namespace svod::packager {

namespace {

// A value and who gave it: the command line, or else the environment.
struct Given {
  std::string text, by;
  bool by_command = false;
};

Given given(const std::string& value, const char* option, const char* variable) {
  if (!value.empty()) return {value, option, true};
  const char* other = std::getenv(variable);
  return {other ? other : "", variable};
}

std::string mode_fault(const Given& mode, Options& options) {
  if (mode.text.empty()) return "";
  const auto* row = std::ranges::find_if(
      kRemoteModes, [&](const auto& word) { return mode.text == word.word; });
  if (row == std::end(kRemoteModes))
    return mode.by + ": '" + mode.text + "' is none of " + choice_of(kRemoteModes);
  options.remote_read_only = row->value;
  return "";
}

std::string address_fault(const Given& address, Options& options) {
  std::string fault;
  const auto read = parse_remote_address(address.text, fault);
  if (!read)
    return address.by + ": '" + address.text + "' " + fault +
           "; it is grpc://HOST:PORT[/INSTANCE]";
  if (!has_remote_client())
    return address.by + ": this svod-pack was built without the remote cache; with "
                        "gRPC's library (libgrpc++-dev, protobuf-compiler-grpc) a build "
                        "has it";
  options.remote = read;
  return "";
}

// The I of I/N counts from 1, as arrays of jobs do.
std::string shard_fault(const std::string& text, Shard& shard) {
  const size_t slash = std::min(text.find('/'), text.size());
  const auto number = whole_number(text.substr(0, slash));
  const auto count =
      slash < text.size() ? whole_number(text.substr(slash + 1)) : std::nullopt;
  if (!number || !count) return "--shard: '" + text + "' is not I/N, as 1/4";
  if (*number < 1 || *number > *count)
    return "--shard: " + text + " is no share; they are numbered from 1 to N";
  shard = {static_cast<size_t>(*number - 1), static_cast<size_t>(*count)};
  return "";
}

} // namespace

// What the environment says serves all packs of a user: what is wrong with it stops none
// of them.
std::string read_remote(const RawOptions& raw, Options& options) {
  const Given address = given(raw.cache_remote, "--cache-remote", "SVOD_CACHE_REMOTE");
  const Given mode =
      given(raw.cache_remote_mode, "--cache-remote-mode", "SVOD_CACHE_REMOTE_MODE");
  if (raw.no_cache) return "";
  std::string fault = mode_fault(mode, options);
  if (!fault.empty() && mode.by_command) return fault;
  if (address.text.empty()) return "";
  if (fault.empty()) {
    fault = address_fault(address, options);
    if (!fault.empty() && address.by_command) return fault;
  }
  options.remote_fault = fault;
  return "";
}

std::string read_tune_verb(const RawOptions& raw, Options& options) {
  constexpr double kMinutes = 10; // of --tune without a number
  if (options.verb != Verb::Tune) return "";
  if (options.tuning.empty())
    return "tune: no file is given for what is found (--tuning FILE)";
  if (!options.output.empty())
    return "tune: it writes the file of --tuning and packs nothing; leave -o out, or "
           "pack with --tune";
  if (!options.tune_minutes) options.tune_minutes = kMinutes;
  return raw.shard.empty() ? "" : shard_fault(raw.shard, options.shard);
}

} // namespace svod::packager
