// The client over gRPC. An entry is an action of the API: a command that names it, with
// no input, whose one output file is the entry's bytes. So any server of the API keeps
// entries, and its rules for what stays and what goes hold for them.
//
// Blobs travel in one message where the server takes them so, else as a stream of bytes.
#include "packager/remote/remote_client.h"

#include "compiler/support/text.h"

#include "byte_stream.grpc.pb.h"
#include "remote_execution.grpc.pb.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include <unistd.h>

namespace svod::packager {

namespace {

namespace api = build::bazel::remote::execution::v2;
namespace stream = google::bytestream;

// A machine that is not there is known soon; one that answers has time for its disk.
constexpr std::chrono::milliseconds kConnect{2000}, kCall{10000};
// Of a blob, the slowest way that is waited for: 1 MiB in a second.
constexpr uint64_t kLeastRate = uint64_t{1} << 20;
// A message has a head of its own beside the blob.
constexpr uint64_t kMostMessage = uint64_t{4} << 20, kHead = 64 << 10;
constexpr size_t kPiece = 256 << 10; // of a stream

std::chrono::milliseconds time_for(uint64_t bytes) {
  return kCall + std::chrono::milliseconds(1000 * bytes / kLeastRate);
}

// What a server says may be anything.
std::string fault_of(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
      status.error_code() == grpc::StatusCode::CANCELLED)
    return "it does not answer in time";
  constexpr size_t kMostText = 200;
  std::string out = escaped(status.error_message(), kMostText);
  return out.empty() ? "gRPC's status " + std::to_string(status.error_code()) : out;
}

std::string fault_of(const api::BlobStatus& status) {
  return fault_of(
      grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message()));
}

bool is_absent(int code) { return code == grpc::StatusCode::NOT_FOUND; }

void put(const BlobName& name, api::Digest* to) {
  to->set_hash(name.hash.hex());
  to->set_size_bytes(static_cast<int64_t>(name.size));
}

template <class Message> BlobName name_of_message(const Message& message) {
  const std::string text = message.SerializeAsString();
  return name_of(std::as_bytes(std::span(text)));
}

// Its fields stand in their order, without maps: so it has the same bytes everywhere.
BlobName action_of(const std::string& path) {
  api::Command command;
  command.add_arguments("svod-pack");
  command.add_arguments(path);
  command.add_output_paths(path);
  api::Action action;
  put(name_of_message(command), action.mutable_command_digest());
  put(name_of({}), action.mutable_input_root_digest()); // of a folder with nothing in it
  return name_of_message(action);
}

std::string blob_path(const BlobName& blob) {
  return "blobs/" + blob.hash.hex() + "/" + std::to_string(blob.size);
}

// Writes of one blob by several machines are told apart by it; 32 digits of a digest have
// the form of one.
std::string upload_name(const BlobName& blob) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::string out =
      sha256(blob.hash.hex() + std::to_string(now) + std::to_string(getpid())).hex();
  out.resize(32);
  for (const size_t at : {8, 13, 18, 23}) out.insert(at, "-");
  return out;
}

class GrpcClient;

// One call: what cancel() reaches it by.
class Call {
public:
  Call(GrpcClient& client, std::chrono::milliseconds time);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  grpc::ClientContext context;

private:
  GrpcClient& client_;
};

class GrpcClient : public RemoteClient {
public:
  GrpcClient(const RemoteAddress& address, const std::string& roots);
  bool open(std::string& fault);

  const RemoteAbilities& abilities() const override { return abilities_; }
  std::optional<BlobName> find(const std::string& path, std::string& fault) override;
  std::optional<std::vector<std::byte>> read(const BlobName& blob,
                                             std::string& fault) override;
  bool write(const BlobName& blob, std::span<const std::byte> bytes,
             std::string& fault) override;
  bool record(const std::string& path, const BlobName& blob, std::string& fault) override;
  void cancel() override;

private:
  friend class Call;
  bool reach(std::string& fault);
  std::string why_unreached();
  bool in_one_message(const BlobName& blob) const {
    return blob.size <= abilities_.batch_bytes;
  }
  std::optional<std::vector<std::byte>> read_message(const BlobName& blob,
                                                     std::string& fault);
  std::optional<std::vector<std::byte>> read_stream(const BlobName& blob,
                                                    std::string& fault);
  bool write_message(const BlobName& blob, std::span<const std::byte> bytes,
                     std::string& fault);
  bool write_stream(const BlobName& blob, std::span<const std::byte> bytes,
                    std::string& fault);
  std::optional<bool> is_there(const BlobName& blob, std::string& fault);
  std::string resource(const std::string& path) const {
    return instance_.empty() ? path : instance_ + "/" + path;
  }

  std::string instance_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<api::Capabilities::Stub> capabilities_;
  std::unique_ptr<api::ActionCache::Stub> actions_;
  std::unique_ptr<api::ContentAddressableStorage::Stub> blobs_;
  std::unique_ptr<stream::ByteStream::Stub> streams_;
  RemoteAbilities abilities_;
  std::mutex mutex_; // of the calls
  std::set<grpc::ClientContext*> calls_;
  bool cancelled_ = false;
};

Call::Call(GrpcClient& client, std::chrono::milliseconds time) : client_(client) {
  context.set_deadline(std::chrono::system_clock::now() + time);
  const std::lock_guard lock(client.mutex_);
  client.calls_.insert(&context);
  if (client.cancelled_) context.TryCancel();
}

Call::~Call() {
  const std::lock_guard lock(client_.mutex_);
  client_.calls_.erase(&context);
}

GrpcClient::GrpcClient(const RemoteAddress& address, const std::string& roots)
    : instance_(address.instance) {
  grpc::ChannelArguments arguments;
  arguments.SetUserAgentPrefix("svod-pack");
  // One name, one connection: nobody asks for a configuration by DNS.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      grpc::InsecureChannelCredentials();
  if (address.tls) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = roots;
    credentials = grpc::SslCredentials(options);
  }
  channel_ =
      grpc::CreateCustomChannel("dns:///" + address.server, credentials, arguments);
  capabilities_ = api::Capabilities::NewStub(channel_);
  actions_ = api::ActionCache::NewStub(channel_);
  blobs_ = api::ContentAddressableStorage::NewStub(channel_);
  streams_ = stream::ByteStream::NewStub(channel_);
}

// A port that is closed is known at once; from a machine that is not there nothing comes.
bool GrpcClient::reach(std::string& fault) {
  const auto end = std::chrono::system_clock::now() + kConnect;
  for (grpc_connectivity_state state = channel_->GetState(true);
       state != GRPC_CHANNEL_READY; state = channel_->GetState(true)) {
    const bool failed = state == GRPC_CHANNEL_TRANSIENT_FAILURE;
    if (!failed && channel_->WaitForStateChange(state, end)) continue;
    fault = "it cannot be reached" + (failed ? why_unreached() : std::string(" in 2 s"));
    return false;
  }
  return true;
}

// A channel does not say why it failed; a call over it does.
std::string GrpcClient::why_unreached() {
  api::ServerCapabilities reply;
  Call call(*this, std::chrono::milliseconds(200));
  const grpc::Status status = capabilities_->GetCapabilities(
      &call.context, api::GetCapabilitiesRequest(), &reply);
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ? ": " + fault_of(status)
                                                              : "";
}

bool GrpcClient::open(std::string& fault) {
  if (!reach(fault)) return false;
  api::GetCapabilitiesRequest request;
  request.set_instance_name(instance_);
  api::ServerCapabilities reply;
  Call call(*this, kCall);
  const grpc::Status status =
      capabilities_->GetCapabilities(&call.context, request, &reply);
  if (!status.ok()) {
    fault = fault_of(status);
    return false;
  }
  const api::CacheCapabilities& cache = reply.cache_capabilities();
  if (std::ranges::count(cache.digest_functions(), api::SHA256) == 0) {
    fault = "it is no cache with SHA-256 for digests";
    return false;
  }
  abilities_.updates = cache.action_cache_update_capabilities().update_enabled();
  const int64_t most = cache.max_batch_total_size_bytes();
  const uint64_t batch =
      most > 0 ? std::min(static_cast<uint64_t>(most), kMostMessage) : kMostMessage;
  abilities_.batch_bytes = batch > kHead ? batch - kHead : 0;
  return true;
}

std::optional<BlobName> GrpcClient::find(const std::string& path, std::string& fault) {
  api::GetActionResultRequest request;
  request.set_instance_name(instance_);
  put(action_of(path), request.mutable_action_digest());
  api::ActionResult reply;
  Call call(*this, kCall);
  const grpc::Status status = actions_->GetActionResult(&call.context, request, &reply);
  if (!status.ok()) {
    if (!is_absent(status.error_code())) fault = fault_of(status);
    return std::nullopt;
  }
  // Of another entry, or of nothing of ours: it is not there.
  if (reply.exit_code() != 0 || reply.output_files_size() != 1) return std::nullopt;
  const api::OutputFile& file = reply.output_files(0);
  const auto hash = digest_from_hex(file.digest().hash());
  if (file.path() != path || !hash || file.digest().size_bytes() < 0) return std::nullopt;
  return BlobName{*hash, static_cast<uint64_t>(file.digest().size_bytes())};
}

std::optional<std::vector<std::byte>> GrpcClient::read(const BlobName& blob,
                                                       std::string& fault) {
  return in_one_message(blob) ? read_message(blob, fault) : read_stream(blob, fault);
}

std::optional<std::vector<std::byte>> GrpcClient::read_message(const BlobName& blob,
                                                               std::string& fault) {
  api::BatchReadBlobsRequest request;
  request.set_instance_name(instance_);
  put(blob, request.add_digests());
  api::BatchReadBlobsResponse reply;
  Call call(*this, time_for(blob.size));
  const grpc::Status status = blobs_->BatchReadBlobs(&call.context, request, &reply);
  if (!status.ok()) {
    fault = fault_of(status);
    return std::nullopt;
  }
  if (reply.responses_size() != 1) return std::nullopt;
  const api::BatchReadBlobsResponse::Response& one = reply.responses(0);
  if (const int code = one.status().code(); code != grpc::StatusCode::OK) {
    if (!is_absent(code)) fault = fault_of(one.status());
    return std::nullopt;
  }
  const auto bytes = std::as_bytes(std::span(one.data()));
  return std::vector(bytes.begin(), bytes.end());
}

// Ends a call when no piece of a stream has come for the time that a call has.
class Patience {
public:
  explicit Patience(grpc::ClientContext& context)
      : thread_([this, &context] {
          std::unique_lock lock(mutex_);
          for (size_t seen = 0; !done_; seen = pieces_)
            if (!changed_.wait_for(lock, kCall, [&] { return done_ || pieces_ != seen; }))
              return context.TryCancel();
        }) {}
  ~Patience() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  void note_piece() {
    const std::lock_guard lock(mutex_);
    ++pieces_;
    changed_.notify_all();
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t pieces_ = 0;
  bool done_ = false;
  std::thread thread_; // last: it uses the others
};

// A server that sends more than it has named is not listened to any longer.
std::optional<std::vector<std::byte>> GrpcClient::read_stream(const BlobName& blob,
                                                              std::string& fault) {
  stream::ReadRequest request;
  request.set_resource_name(resource(blob_path(blob)));
  Call call(*this, time_for(blob.size));
  const auto reader = streams_->Read(&call.context, request);
  std::vector<std::byte> out;
  Patience patience(call.context);
  for (stream::ReadResponse piece; reader->Read(&piece);) {
    patience.note_piece();
    const auto bytes = std::as_bytes(std::span(piece.data()));
    out.insert(out.end(), bytes.begin(), bytes.end());
    if (out.size() > blob.size) {
      call.context.TryCancel();
      (void)reader->Finish();
      return out;
    }
  }
  const grpc::Status status = reader->Finish();
  if (status.ok()) return out;
  if (!is_absent(status.error_code())) fault = fault_of(status);
  return std::nullopt;
}

bool GrpcClient::write(const BlobName& blob, std::span<const std::byte> bytes,
                       std::string& fault) {
  return in_one_message(blob) ? write_message(blob, bytes, fault)
                              : write_stream(blob, bytes, fault);
}

bool GrpcClient::write_message(const BlobName& blob, std::span<const std::byte> bytes,
                               std::string& fault) {
  api::BatchUpdateBlobsRequest request;
  request.set_instance_name(instance_);
  api::BatchUpdateBlobsRequest::Request* one = request.add_requests();
  put(blob, one->mutable_digest());
  one->set_data(bytes.data(), bytes.size());
  api::BatchUpdateBlobsResponse reply;
  Call call(*this, time_for(blob.size));
  const grpc::Status status = blobs_->BatchUpdateBlobs(&call.context, request, &reply);
  if (!status.ok())
    fault = fault_of(status);
  else if (reply.responses_size() != 1)
    fault = "it does not say whether it has kept a blob";
  else if (reply.responses(0).status().code() != grpc::StatusCode::OK)
    fault = fault_of(reply.responses(0).status());
  return fault.empty();
}

std::optional<bool> GrpcClient::is_there(const BlobName& blob, std::string& fault) {
  api::FindMissingBlobsRequest request;
  request.set_instance_name(instance_);
  put(blob, request.add_blob_digests());
  api::FindMissingBlobsResponse reply;
  Call call(*this, kCall);
  const grpc::Status status = blobs_->FindMissingBlobs(&call.context, request, &reply);
  if (status.ok()) return reply.missing_blob_digests_size() == 0;
  fault = fault_of(status);
  return std::nullopt;
}

// Large blobs are worth the question whether they are there.
bool GrpcClient::write_stream(const BlobName& blob, std::span<const std::byte> bytes,
                              std::string& fault) {
  const std::optional<bool> known = is_there(blob, fault);
  if (!known || *known) return known.has_value();
  const std::string name =
      resource("uploads/" + upload_name(blob) + "/" + blob_path(blob));
  stream::WriteResponse reply;
  Call call(*this, time_for(blob.size));
  const auto writer = streams_->Write(&call.context, &reply);
  for (size_t at = 0; at < bytes.size();) {
    const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
    stream::WriteRequest request;
    if (at == 0) request.set_resource_name(name);
    request.set_write_offset(static_cast<int64_t>(at));
    request.set_data(piece.data(), piece.size());
    at += piece.size();
    request.set_finish_write(at == bytes.size());
    // It ends early where somebody else has brought the blob meanwhile.
    if (!writer->Write(request)) break;
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  // -1: of a compressed blob that is there.
  const int64_t kept = reply.committed_size();
  if (!status.ok())
    fault = fault_of(status);
  else if (kept != -1 && static_cast<uint64_t>(kept) != blob.size)
    fault = "it has kept " + std::to_string(kept) + " of " + std::to_string(blob.size) +
            " bytes";
  return fault.empty();
}

bool GrpcClient::record(const std::string& path, const BlobName& blob,
                        std::string& fault) {
  api::UpdateActionResultRequest request;
  request.set_instance_name(instance_);
  put(action_of(path), request.mutable_action_digest());
  api::OutputFile* file = request.mutable_action_result()->add_output_files();
  file->set_path(path);
  put(blob, file->mutable_digest());
  api::ActionResult reply;
  Call call(*this, kCall);
  const grpc::Status status =
      actions_->UpdateActionResult(&call.context, request, &reply);
  if (!status.ok()) fault = fault_of(status);
  return status.ok();
}

void GrpcClient::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
}

} // namespace

std::unique_ptr<RemoteClient> RemoteClient::connect(const RemoteAddress& address,
                                                    const std::string& roots,
                                                    std::string& fault) {
  // What gRPC finds worth a line on stderr, a fault tells its user.
  gpr_set_log_function([](gpr_log_func_args*) {});
  auto out = std::make_unique<GrpcClient>(address, roots);
  if (!out->open(fault)) return nullptr;
  return out;
}

bool has_remote_client() { return true; }

} // namespace svod::packager
