// In place of the client where gRPC's library was not found when svod-pack was built.
#include "packager/remote/remote_client.h"

namespace svod::packager {

std::unique_ptr<RemoteClient>
RemoteClient::connect(const RemoteAddress&, const std::string&, std::string& fault) {
  fault = "this svod-pack was built without gRPC";
  return nullptr;
}

bool has_remote_client() { return false; }

} // namespace svod::packager
