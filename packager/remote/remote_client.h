// The calls of the Remote Execution API that a cache needs, over one connection. Each has
// a time within which it ends; several threads may call at once.
#pragma once

#include "compiler/support/digest.h"
#include "packager/remote/remote_address.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace svod::packager {

// As the API names a blob.
struct BlobName {
  Digest hash;
  uint64_t size = 0;
  bool operator==(const BlobName&) const = default;
};
BlobName name_of(std::span<const std::byte> bytes);

// What a server says of itself.
struct RemoteAbilities {
  bool updates = false;     // of its table of actions
  uint64_t batch_bytes = 0; // of all blobs of one message
};

class RemoteClient {
public:
  // Nothing where the server does not answer, or names blobs by other digests than ours;
  // `fault` says why. `roots`: certificates that are trusted, for an address with TLS.
  static std::unique_ptr<RemoteClient>
  connect(const RemoteAddress& address, const std::string& roots, std::string& fault);
  virtual ~RemoteClient() = default;

  virtual const RemoteAbilities& abilities() const = 0;
  // The blob that an entry of this path was recorded with. Nothing with a `fault` is a
  // failure of the server or of the way to it; nothing without one is an answer: there is
  // none.
  virtual std::optional<BlobName> find(const std::string& path, std::string& fault) = 0;
  // As find(). What comes has the size of its name; its digest nobody has looked at.
  virtual std::optional<std::vector<std::byte>> read(const BlobName& blob,
                                                     std::string& fault) = 0;
  // False: with a `fault`.
  virtual bool write(const BlobName& blob, std::span<const std::byte> bytes,
                     std::string& fault) = 0;
  virtual bool record(const std::string& path, const BlobName& blob,
                      std::string& fault) = 0;
  // Ends the calls that are under way, and all later ones at once.
  virtual void cancel() = 0;
};

// Whether this svod-pack has a client: connect() needs gRPC's library.
bool has_remote_client();

} // namespace svod::packager
