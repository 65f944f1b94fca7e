#include "packager/report/report.h"

#include "packager/command/option_table.h"
#include "packager/output_file.h"
#include "packager/report/codes.h"
#include "packager/report/json.h"

namespace svod::packager {

namespace {

constexpr const char* kSeverities[] = {"error", "warning", "note"};

void write_place(JsonWriter& json, const ModelPlace& place) {
  json.key("node");
  if (place.node < 0)
    json.raw("null");
  else
    json.value(place.node);
  json.pair("name", place.name).pair("op", place.op);
  if (!place.graph.empty()) json.pair("graph", place.graph);
}

// What the console said by itself has no exit code of its own: that of the run is it.
void write_diagnostics(JsonWriter& json, const Console& console, Exit exit) {
  json.key("diagnostics").begin_list();
  for (const Diagnostic& said : console.said()) {
    const Exit own = said.exit == Exit::Done ? exit : said.exit;
    json.begin_object();
    json.pair("severity", kSeverities[static_cast<size_t>(said.severity)]);
    json.pair("code", code_of(said.severity, own, said.message));
    write_place(json, said.place);
    json.pair("text", said.message).end_object();
  }
  json.end_list();
}

} // namespace

std::string report_json(const Options& options, const Console& console, Exit exit) {
  JsonWriter json;
  json.begin_object();
  json.pair("verb", row_of(options.verb).word);
  if (!options.model.empty()) json.pair("file", options.model);
  if (const std::string& object = console.result(); object.size() > 2)
    json.raw(std::string_view(object).substr(1, object.size() - 2));
  json.pair("exit", static_cast<int>(exit));
  write_diagnostics(json, console, exit);
  json.end_object();
  return json.text();
}

Exit write_report(const Options& options, const Console& console, Exit exit) {
  if (!options.json) return exit;
  const std::string text = report_json(options, console, exit) + "\n";
  if (*options.json == "-") {
    const Exit printed = console.print_out(text);
    return exit == Exit::Done ? printed : exit;
  }
  std::string error;
  std::optional<OutputFile> file = OutputFile::create(*options.json, error);
  if (file && file->write(text, error) && file->commit(error)) return exit;
  console.error(*options.json + ": " + error);
  return exit == Exit::Done ? Exit::File : exit;
}

} // namespace svod::packager
