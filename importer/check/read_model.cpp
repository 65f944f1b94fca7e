// From a path to a checked model: map, decode, check. Every failure of the decoder ends
// here as an entry of Diags.
#include "importer/check/read_model.h"

#include "importer/check/repair_model.h"
#include "importer/check/sort_nodes.h"
#include "importer/model/mapped_file.h"
#include "importer/model/model_reader.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace svod::importer {

namespace {

std::optional<Model> read(std::string_view bytes, std::string folder,
                          std::shared_ptr<const void> owner, const Limits& limits,
                          Diags& diags, std::future<Digest>* digest) {
  try {
    if (bytes.empty()) fail_read("the file is empty");
    refuse_lfs_pointer(bytes, "the file");
    if (digest)
      *digest = std::async(std::launch::async, [bytes, owner] { return sha256(bytes); });
    ModelReader reader(limits, std::move(folder), std::move(owner));
    Model model = reader.model(bytes);
    // Before IR version 3 a model that imports no opset means the first.
    if (model.opsets.empty() && model.ir_version < 3) model.opsets[""] = 1;
    if (!digest) model.digest = sha256(bytes);
    repair_model(model, limits, diags);
    if (sort_nodes(model.graph))
      diags.warning("nodes stand before others whose results they use; they were put in "
                    "order, and numbers of nodes below are of that order");
    check_model(model, limits, diags);
    if (diags.failed()) return std::nullopt;
    return model;
  } catch (const ReadFailure& failure) {
    diags.error(failure.exit, failure.message);
    return std::nullopt;
  }
}

} // namespace

std::optional<Model> read_model_bytes(std::string_view bytes, const Limits& limits,
                                      Diags& diags) {
  return read(bytes, "", nullptr, limits, diags, nullptr);
}

std::optional<Model> read_model(const std::string& path, const Limits& limits,
                                Diags& diags, std::future<Digest>* digest) {
  const auto fail = [&](const std::string& why) {
    diags.error(Exit::File, why);
    return std::nullopt;
  };
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0)
    return fail("cannot open the file: " + std::string(strerror(errno)));
  if (!S_ISREG(status.st_mode)) return fail("is no regular file");
  if (status.st_size > limits.file_bytes) {
    diags.error(
        Exit::InvalidModel,
        "the file is larger than the limit of " + std::to_string(limits.file_bytes) +
            " bytes; protobuf ends at 2 GiB, larger weights belong in external data");
    return std::nullopt;
  }
  MappedFile mapped;
  if (!map_file(file.get(), static_cast<size_t>(status.st_size), mapped))
    return fail("cannot map the file: " + std::string(strerror(errno)));
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return read(mapped.bytes, folder, mapped.owner, limits, diags, digest);
}

} // namespace svod::importer
