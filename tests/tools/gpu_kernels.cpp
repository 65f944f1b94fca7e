// gpu_kernels MODEL OUTPUT.so DEVICE [DATA_SET | OPERATORS.cpp | NAME=SIZE...]: what a
// program that is packed for the device runs there, for the driver that stands in for
// NVIDIA's in tests (stand_in_driver.cpp). The data set is that of --shape-from, the file
// of operators that of --custom-op, each NAME=SIZE an entry: its kernels' numbers follow
// those of the one before.
#include "compiler/codegen/read_custom_ops.h"
#include "compiler/pipeline.h"
#include "importer/check/read_model.h"
#include "importer/driver/import.h"
#include "importer/inputs/data_shapes.h"
#include "tests/support/run_kernels.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

using namespace svod;

namespace {

// The kernels of another entry, too.
void append(codegen::Kernels& to, codegen::Kernels from) {
  const auto first = static_cast<uint32_t>(to.plan.programs.size());
  for (codegen::KernelSource& source : from.sources) {
    source.program += first;
    source.symbol = codegen::program_symbol(source.program, source.level);
    to.sources.push_back(std::move(source));
  }
  for (ScheduledKernel& program : from.plan.programs)
    to.plan.programs.push_back(std::move(program));
}

// NAME=SIZE, of a dimension.
std::pair<std::string, Shape> read_size(const std::string& word) {
  const size_t sign = word.find('=');
  return {word.substr(0, sign), {std::atoll(word.c_str() + sign + 1)}};
}

} // namespace

int main(int count, char** arguments) {
  const auto device = count >= 4 ? find_device(arguments[3]) : std::nullopt;
  if (!device) return 2;
  Diags diags;
  importer::ImportOptions importing;
  importing.keep_halves = true; // as the packer does for a GPU
  const auto model = importer::read_model(arguments[1], importing.limits, diags);
  const bool sizes = count >= 5 && std::strchr(arguments[4], '=') != nullptr;
  const std::string_view more = count == 5 && !sizes ? arguments[4] : "";
  if (more.ends_with(".cpp")) {
    std::ifstream file(arguments[4]);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::vector<std::string> faults;
    importing.custom_ops = codegen::read_custom_ops(arguments[4], text, faults);
    if (!faults.empty()) return 3;
  } else if (model && !more.empty()) {
    auto set = importer::read_data_set(arguments[4], *model, importing.limits, diags);
    if (!set) return 3;
    importing.data_shapes = std::move(set->shapes);
    importing.data_values = std::move(set->values);
    importing.data_ports = std::move(set->ports);
  }
  CompileOptions options;
  options.target = *device;
  codegen::Kernels kernels;
  for (int entry = 4; entry == 4 || (sizes && entry < count); entry++) {
    if (sizes) importing.shapes = {read_size(arguments[entry])};
    const auto graph =
        model ? importer::import_model(*model, importing, diags) : std::nullopt;
    if (!graph) return 3;
    append(kernels, compile(*graph, options));
  }
  const std::string error = test::link_gpu_kernels(kernels, *device, arguments[2]);
  std::fputs(error.c_str(), stderr);
  return error.empty() ? 0 : 1;
}
