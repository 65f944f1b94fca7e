// gpu_kernels MODEL OUTPUT.so DEVICE [DATA_SET | OPERATORS.cpp]: what a program that is
// packed for the device runs there, for the driver that stands in for NVIDIA's in tests
// (stand_in_driver.cpp). The data set is that of --shape-from, the file of operators that
// of --custom-op.
#include "compiler/codegen/read_custom_ops.h"
#include "compiler/pipeline.h"
#include "importer/check/read_model.h"
#include "importer/driver/import.h"
#include "importer/inputs/data_shapes.h"
#include "tests/support/run_kernels.h"

#include <cstdio>
#include <fstream>
#include <string_view>

using namespace svod;

int main(int count, char** arguments) {
  const auto device = count >= 4 ? find_device(arguments[3]) : std::nullopt;
  if (!device) return 2;
  Diags diags;
  importer::ImportOptions importing;
  importing.keep_halves = true; // as the packer does for a GPU
  const auto model = importer::read_model(arguments[1], importing.limits, diags);
  const std::string_view more = count == 5 ? arguments[4] : "";
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
  const auto graph =
      model ? importer::import_model(*model, importing, diags) : std::nullopt;
  if (!graph) return 3;
  CompileOptions options;
  options.target = *device;
  const std::string error =
      test::link_gpu_kernels(compile(*graph, options), *device, arguments[2]);
  std::fputs(error.c_str(), stderr);
  return error.empty() ? 0 : 1;
}
