// cache_server FOLDER [OPTION...]: a cache of the Remote Execution API on this machine,
// for tests of the client: actions and blobs are files of a folder, which a test may
// damage. It prints its port. Options are faults that servers have:
//   instance=NAME   it has this one
//   batch=BYTES     blobs of one message
//   updates=no      it says that it takes no results; updates=refused: it does not say so
//   digests=other   blobs are named by another function
//   slow=MS         before each answer about an action
//   hang=WORD       calls of this name never end: capabilities, find, read, stream
//   exit=N          it ends at its Nth call
//   cert=FILE key=FILE   with TLS
#include "byte_stream.grpc.pb.h"
#include "compiler/support/digest.h"
#include "remote_execution.grpc.pb.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>

using namespace svod;
using grpc::ServerContext, grpc::Status, grpc::StatusCode;
namespace api = build::bazel::remote::execution::v2;
namespace stream = google::bytestream;
namespace fs = std::filesystem;

namespace {

class Files {
public:
  explicit Files(fs::path folder) : folder_(std::move(folder)) {
    fs::create_directories(folder_);
  }
  std::optional<std::string> read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    if (!file) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void write(const std::string& name, const std::string& text) const {
    const fs::path temporary =
        folder_ /
        (name + "." +
         std::to_string(std::hash<std::thread::id>()(std::this_thread::get_id())));
    std::ofstream(temporary, std::ios::binary) << text;
    fs::rename(temporary, folder_ / name);
  }

private:
  fs::path folder_;
};

struct Setting {
  std::map<std::string, std::string> options;
  std::string of(const std::string& name) const {
    const auto found = options.find(name);
    return found == options.end() ? "" : found->second;
  }
};

bool is_name(const std::string& hash) { return digest_from_hex(hash).has_value(); }

class Server final : public api::Capabilities::Service,
                     public api::ActionCache::Service,
                     public api::ContentAddressableStorage::Service,
                     public stream::ByteStream::Service {
public:
  Server(const fs::path& folder, Setting setting)
      : actions_(folder / "actions"), blobs_(folder / "blobs"),
        setting_(std::move(setting)) {}

  Status GetCapabilities(ServerContext* context, const api::GetCapabilitiesRequest* asked,
                         api::ServerCapabilities* reply) override {
    if (Status status = begin(context, "capabilities", asked->instance_name());
        !status.ok())
      return status;
    api::CacheCapabilities* cache = reply->mutable_cache_capabilities();
    cache->add_digest_functions(setting_.of("digests") == "other" ? api::UNKNOWN
                                                                  : api::SHA256);
    cache->mutable_action_cache_update_capabilities()->set_update_enabled(
        setting_.of("updates") != "no");
    cache->set_max_batch_total_size_bytes(std::atoll(setting_.of("batch").c_str()));
    return Status::OK;
  }

  Status GetActionResult(ServerContext* context, const api::GetActionResultRequest* asked,
                         api::ActionResult* reply) override {
    if (Status status = begin(context, "find", asked->instance_name()); !status.ok())
      return status;
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::atoi(setting_.of("slow").c_str())));
    const auto text = actions_.read(asked->action_digest().hash());
    if (!text) return Status(StatusCode::NOT_FOUND, "no such action");
    return reply->ParseFromString(*text) ? Status::OK
                                         : Status(StatusCode::DATA_LOSS, "damaged");
  }

  Status UpdateActionResult(ServerContext* context,
                            const api::UpdateActionResultRequest* asked,
                            api::ActionResult* reply) override {
    if (Status status = begin(context, "record", asked->instance_name()); !status.ok())
      return status;
    if (!setting_.of("updates").empty())
      return Status(StatusCode::PERMISSION_DENIED, "results are not yours to write");
    for (const api::OutputFile& file : asked->action_result().output_files())
      if (!blobs_.read(file.digest().hash()))
        return Status(StatusCode::FAILED_PRECONDITION, "a blob is missing");
    actions_.write(asked->action_digest().hash(),
                   asked->action_result().SerializeAsString());
    *reply = asked->action_result();
    return Status::OK;
  }

  Status FindMissingBlobs(ServerContext* context,
                          const api::FindMissingBlobsRequest* asked,
                          api::FindMissingBlobsResponse* reply) override {
    if (Status status = begin(context, "missing", asked->instance_name()); !status.ok())
      return status;
    for (const api::Digest& digest : asked->blob_digests())
      if (!blobs_.read(digest.hash())) *reply->add_missing_blob_digests() = digest;
    return Status::OK;
  }

  Status BatchReadBlobs(ServerContext* context, const api::BatchReadBlobsRequest* asked,
                        api::BatchReadBlobsResponse* reply) override {
    if (Status status = begin(context, "read", asked->instance_name()); !status.ok())
      return status;
    for (const api::Digest& digest : asked->digests()) {
      api::BatchReadBlobsResponse::Response* one = reply->add_responses();
      *one->mutable_digest() = digest;
      if (const auto text = blobs_.read(digest.hash()))
        one->set_data(*text);
      else
        one->mutable_status()->set_code(StatusCode::NOT_FOUND);
    }
    return Status::OK;
  }

  // What is larger than a message has to come as a stream.
  Status BatchUpdateBlobs(ServerContext* context,
                          const api::BatchUpdateBlobsRequest* asked,
                          api::BatchUpdateBlobsResponse* reply) override {
    if (Status status = begin(context, "write", asked->instance_name()); !status.ok())
      return status;
    const long long most = std::atoll(setting_.of("batch").c_str());
    for (const auto& one : asked->requests()) {
      api::BatchUpdateBlobsResponse::Response* told = reply->add_responses();
      *told->mutable_digest() = one.digest();
      if (most != 0 && one.digest().size_bytes() > most)
        told->mutable_status()->set_code(StatusCode::INVALID_ARGUMENT);
      else
        keep(one.digest().hash(), one.data(), told->mutable_status());
    }
    return Status::OK;
  }

  Status Read(ServerContext* context, const stream::ReadRequest* asked,
              grpc::ServerWriter<stream::ReadResponse>* writer) override {
    const auto name = blob_of(asked->resource_name(), "");
    if (Status status = begin(context, "stream", name ? name->instance : "");
        !status.ok())
      return status;
    const auto text = name ? blobs_.read(name->hash) : std::nullopt;
    if (!text) return Status(StatusCode::NOT_FOUND, "no such blob");
    constexpr size_t kPiece = 10000;
    for (size_t at = 0; at < text->size(); at += kPiece) {
      stream::ReadResponse piece;
      piece.set_data(text->substr(at, kPiece));
      writer->Write(piece);
    }
    return Status::OK;
  }

  Status Write(ServerContext* context, grpc::ServerReader<stream::WriteRequest>* reader,
               stream::WriteResponse* reply) override {
    std::string text;
    std::optional<BlobName> name;
    bool finished = false;
    for (stream::WriteRequest piece; reader->Read(&piece);) {
      if (!name) name = blob_of(piece.resource_name(), "uploads");
      if (static_cast<size_t>(piece.write_offset()) != text.size())
        return Status(StatusCode::INVALID_ARGUMENT, "a piece is missing");
      text += piece.data();
      finished = piece.finish_write();
    }
    if (Status status = begin(context, "upload", name ? name->instance : "");
        !status.ok())
      return status;
    api::BlobStatus kept;
    if (!name || !finished || name->size != text.size())
      return Status(StatusCode::INVALID_ARGUMENT, "no whole blob");
    keep(name->hash, text, &kept);
    reply->set_committed_size(static_cast<int64_t>(text.size()));
    return Status(static_cast<StatusCode>(kept.code()), kept.message());
  }

private:
  struct BlobName {
    std::string instance, hash;
    size_t size = 0;
  };

  // INSTANCE/[uploads/UUID/]blobs/HASH/SIZE
  static std::optional<BlobName> blob_of(const std::string& resource,
                                         const std::string& uploads) {
    BlobName out;
    const size_t at = resource.rfind("blobs/");
    if (at == resource.npos) return std::nullopt;
    const std::string front = resource.substr(0, at), back = resource.substr(at + 6);
    const size_t instance = uploads.empty() ? front.size() : front.rfind(uploads + "/");
    if (instance == front.npos) return std::nullopt;
    out.instance = front.substr(0, instance);
    if (out.instance.ends_with('/')) out.instance.pop_back();
    const size_t slash = back.find('/');
    out.hash = back.substr(0, slash);
    if (slash == back.npos || !is_name(out.hash)) return std::nullopt;
    out.size = static_cast<size_t>(std::atoll(back.substr(slash + 1).c_str()));
    return out;
  }

  Status begin(ServerContext* context, const std::string& call,
               const std::string& instance) {
    const std::string last = setting_.of("exit");
    if (!last.empty() && ++calls_ >= std::atoi(last.c_str())) std::_Exit(0);
    while (setting_.of("hang") == call && !context->IsCancelled())
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (instance != setting_.of("instance"))
      return Status(StatusCode::INVALID_ARGUMENT,
                    "no instance \x1b[31m'" + instance + "'");
    return Status::OK;
  }

  void keep(const std::string& hash, const std::string& text, api::BlobStatus* status) {
    if (sha256(text).hex() == hash)
      blobs_.write(hash, text);
    else
      status->set_code(StatusCode::INVALID_ARGUMENT);
  }

  Files actions_, blobs_;
  Setting setting_;
  std::atomic<int> calls_ = 0;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  Setting setting;
  for (int i = 2; i < count; i++) {
    const std::string word = arguments[i];
    const size_t equals = std::min(word.find('='), word.size() - 1);
    setting.options[word.substr(0, equals)] = word.substr(equals + 1);
  }
  auto credentials = grpc::InsecureServerCredentials();
  if (!setting.of("cert").empty()) {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back(
        {text_of(setting.of("key")), text_of(setting.of("cert"))});
    credentials = grpc::SslServerCredentials(tls);
  }
  Server server(arguments[1], setting);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  builder.RegisterService(static_cast<api::Capabilities::Service*>(&server));
  builder.RegisterService(static_cast<api::ActionCache::Service*>(&server));
  builder.RegisterService(static_cast<api::ContentAddressableStorage::Service*>(&server));
  builder.RegisterService(static_cast<stream::ByteStream::Service*>(&server));
  const auto running = builder.BuildAndStart();
  if (!running) return 1;
  std::printf("%d\n", port);
  std::fflush(stdout);
  running->Wait();
}
