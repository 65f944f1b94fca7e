// svod-pack ops: the list of operators as text, as JSON, or as the page
// docs/operators.md. A test holds the committed page against this output.
#include "compiler/support/join.h"
#include "importer/driver/operators.h"
#include "packager/report/json.h"
#include "packager/verbs.h"

#include <algorithm>
#include <map>

namespace svod::packager {

namespace {

constexpr const char* kByWords[] = {"nothing", "rule", "control flow", "function body"};

std::string full_domain(const std::string& domain) {
  return domain.empty() ? "ai.onnx" : domain;
}

// "1-12, 13-": an open end is the newest version of the domain.
std::string versions_text(const importer::OperatorSummary& op, bool with_bodies) {
  std::string out;
  for (const importer::OperatorRange& range : op.ranges) {
    out += (out.empty() ? "" : ", ") + std::to_string(range.first);
    if (range.last >= importer::newest_version(op.domain))
      out += range.first == range.last ? "" : "-";
    else if (range.last != range.first)
      out += "-" + std::to_string(range.last);
    if (with_bodies && range.by == importer::ImportedBy::Body) out += " (body)";
  }
  return out;
}

std::string as_text(const std::vector<importer::OperatorSummary>& all) {
  std::string out;
  for (const importer::OperatorSummary& op : all)
    if (!op.ranges.empty())
      out += op.domain + (op.domain.empty() ? "" : ".") + op.name + " " +
             versions_text(op, false) + "\n";
  return out;
}

void write_names(JsonWriter& json, const char* key,
                 const std::vector<std::string>& names) {
  json.key(key).begin_list();
  for (const std::string& name : names) json.value(name);
  json.end_list();
}

// One object per range of versions, so that `first` and `last` are numbers.
std::string as_json(const std::vector<importer::OperatorSummary>& all) {
  JsonWriter json;
  json.begin_list();
  for (const importer::OperatorSummary& op : all)
    for (const importer::OperatorRange& range : op.ranges) {
      json.begin_object().pair("domain", op.domain).pair("op", op.name);
      json.pair("first", range.first).pair("last", range.last);
      json.pair("by", kByWords[static_cast<size_t>(range.by)]);
      write_names(json, "types", op.types);
      write_names(json, "missing_types", op.missing_types);
      write_names(json, "limits", op.limits);
      json.end_object();
    }
  json.end_list();
  return json.text();
}

std::string limits_text(const importer::OperatorSummary& op) {
  std::vector<std::string> limits = op.limits;
  if (!op.missing_types.empty())
    limits.push_back("not of " + join(op.missing_types, ", "));
  return join(limits, "; ");
}

std::string domain_page(const std::string& domain,
                        const std::vector<importer::OperatorSummary>& all) {
  std::string rows, lacking;
  int held = 0, count = 0;
  for (const importer::OperatorSummary& op : all) {
    if (op.domain != domain) continue;
    ++count;
    if (op.ranges.empty()) {
      lacking += "| " + (op.name.empty() ? "all" : op.name) + " | " +
                 join(op.limits, "; ") + " |\n";
      continue;
    }
    ++held;
    rows += "| " + op.name + " | " + versions_text(op, true) + " | " +
            join(op.types, " ") + " | " + limits_text(op) + " |\n";
  }
  std::string out = "\n## " + full_domain(domain) + ", versions up to " +
                    std::to_string(importer::newest_version(domain)) + ": " +
                    std::to_string(held) + " of " + std::to_string(count) +
                    " operators\n\n";
  if (!rows.empty())
    out += "| operator | versions | element types | limits |\n"
           "| --- | --- | --- | --- |\n" +
           rows;
  if (!lacking.empty()) out += "\n| not supported | it |\n| --- | --- |\n" + lacking;
  return out;
}

std::string as_markdown(const std::vector<importer::OperatorSummary>& all) {
  std::string out =
      "# Operators\n\n"
      "Written by `svod-pack ops --format=markdown > docs/operators.md` from "
      "`importer/operators/onnx_ops.def`\n"
      "and the schemas of the pinned `onnx` package. Do not edit.\n\n"
      "Versions are those of the operator's domain; `13-` is 13 and later, (body): by "
      "the "
      "specification's function body.\nElement types are those of the operator's tensors "
      "that the specification allows and that can be held. What a model asks\nfor beyond "
      "this ends the pack with exit 3, and the message names the node.\n";
  std::vector<std::string> domains;
  for (const importer::OperatorSummary& op : all)
    if (std::ranges::find(domains, op.domain) == domains.end())
      domains.push_back(op.domain);
  for (const std::string& domain : domains) out += domain_page(domain, all);
  return out;
}

} // namespace

Exit ops_verb(const Options& options, const Console& console) {
  const std::vector<importer::OperatorSummary> all = importer::all_operators();
  if (options.json) console.tell("{\"operators\": " + as_json(all) + "}");
  if (options.json == "-") return Exit::Done;
  switch (options.format) {
  case ListFormat::Text:
    return console.print_out(as_text(all));
  case ListFormat::Markdown:
    return console.print_out(as_markdown(all));
  case ListFormat::Json:
    return console.print_out(as_json(all) + "\n");
  }
  __builtin_unreachable();
}

} // namespace svod::packager
