#include "packager/artefact/link_output.h"

#include "compiler/support/bytes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace svod::packager {

toolchain::LinkInputs link_inputs(const Objects& objects, bool weights) {
  toolchain::LinkInputs inputs;
  for (const std::vector<std::byte>& object : objects.code)
    inputs.objects.push_back(object);
  inputs.files.push_back(&objects.image);
  if (weights && objects.weights) inputs.files.push_back(&*objects.weights);
  inputs.room = objects.room;
  for (const toolchain::MemoryFile* file : objects.device) inputs.files.push_back(file);
  return inputs;
}

namespace {

// `shared`: symbols that are not the library's alone.
toolchain::ObjectResult link_code(const Options& options,
                                  const toolchain::LinkInputs& inputs,
                                  std::vector<std::string> shared) {
  std::vector<std::string> keep = std::move(shared);
  for (const char* name :
       {"run", "run_sized", "run_changed", "run_pools", "run_entry", "find_entry", "init",
        "open", "close", "device_text", "runs_on_device", "run_device",
        "run_entry_device", "finish_device", "arena_bytes", "status_text", "info",
        "self_check", "reset"})
    keep.push_back(options.name + "_" + name);
  toolchain::ObjectResult joined = toolchain::partial_link(options.target, inputs);
  if (!joined.ok) return joined;
  // Functions that several libraries of one program hold alike: it keeps one of each.
  for (std::string& name : toolchain::weak_symbols(joined.object))
    if (name.starts_with("svod_")) keep.push_back(std::move(name));
  return toolchain::localize(joined.object, keep, {});
}

} // namespace

toolchain::LinkResult link_program(const Options& options, const Objects& objects,
                                   const std::string& path) {
  if (!objects.device.empty())
    return toolchain::link_hosted(options.target, link_inputs(objects, true), path);
  return toolchain::link_executable(options.target, link_inputs(objects, true), path);
}

toolchain::LinkResult link_shared(const Options& options, const Objects& objects,
                                  const std::string& path) {
  const std::string soname = std::filesystem::path(options.output).filename().string();
  return toolchain::link_shared(options.target, link_inputs(objects, true), soname, path,
                                !objects.device.empty());
}

toolchain::LinkResult link_module(const Options& options, const Objects& objects,
                                  const std::string& path) {
  std::vector<std::string> exports;
  for (const char* name : {"run", "status_text", "info"})
    exports.push_back(options.name + "_" + name);
  if (options.self_check) exports.push_back(options.name + "_self_check");
  return toolchain::link_module(options.target, link_inputs(objects, true), exports,
                                objects.sizes.stack, path);
}

// One object holds what others of ours in the same program hold, too: its symbols are
// weak.
toolchain::ObjectResult link_object(const Options& options, const Objects& objects) {
  toolchain::LinkInputs inputs = link_inputs(objects, true);
  std::vector<std::string> names;
  for (const std::vector<std::byte>& object : objects.shared) {
    inputs.objects.push_back(object);
    std::ranges::copy(toolchain::defined_symbols(object), std::back_inserter(names));
  }
  return link_code(options, inputs, std::move(names));
}

// A linker takes the first archive's member for a symbol that several define.
toolchain::LinkResult link_archive(const Options& options, const Objects& objects,
                                   const std::string& path) {
  toolchain::ObjectResult code = link_code(options, link_inputs(objects, false), {});
  if (!code.ok) return {false, code.diagnostics};
  std::vector<toolchain::ArchiveMember> members{{options.name + ".o", code.object}};
  if (objects.weights)
    members.push_back({options.name + "_weights.o", {}, &*objects.weights});
  for (size_t i = 0; i < objects.shared.size(); i++)
    members.push_back({"svod_shared" + std::to_string(i) + ".o", objects.shared[i]});
  return toolchain::write_archive(path, members);
}

static toolchain::LinkResult write_object(const toolchain::ObjectResult& linked,
                                          const std::string& path) {
  if (!linked.ok) return {false, linked.diagnostics};
  std::ofstream file(path, std::ios::binary);
  file << text_of(linked.object);
  file.close();
  return file ? toolchain::LinkResult{true, ""}
              : toolchain::LinkResult{false, path + " cannot be written\n"};
}

toolchain::LinkResult link_output(const Options& options, const Objects& objects,
                                  const std::string& path) {
  switch (options.emit) {
  case Output::Static:
    return link_archive(options, objects, path);
  case Output::Shared:
    return link_shared(options, objects, path);
  case Output::Module:
    return link_module(options, objects, path);
  case Output::Object:
    return write_object(link_object(options, objects), path);
  default:
    return link_program(options, objects, path);
  }
}

bool write_weights(const Objects& objects, const std::string& path) {
  std::ifstream from(objects.weight_file->path(), std::ios::binary);
  std::ofstream to(path, std::ios::binary);
  to << from.rdbuf();
  to.close();
  return from && to;
}

} // namespace svod::packager
