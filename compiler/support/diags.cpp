// Diagnostics carry positions in the model, not in our sources; text() is their one text
// form.
#include "compiler/support/diags.h"

#include <algorithm>

namespace svod {

void Diags::error(Exit exit, std::string message, ModelPlace place) {
  ++errors_;
  entries_.push_back({Severity::Error, exit, std::move(place), std::move(message)});
}

void Diags::warning(std::string message, ModelPlace place) {
  entries_.push_back(
      {Severity::Warning, Exit::Done, std::move(place), std::move(message)});
}

void Diags::note(std::string message, ModelPlace place) {
  entries_.push_back({Severity::Note, Exit::Done, std::move(place), std::move(message)});
}

Exit Diags::exit() const {
  Exit worst = Exit::Done;
  for (const Diagnostic& entry : entries_) {
    if (entry.severity != Severity::Error) continue;
    worst = worst == Exit::Done ? entry.exit : std::min(worst, entry.exit);
  }
  return worst;
}

static std::string place_text(const ModelPlace& place) {
  std::string out = place.graph.empty() ? "" : "graph " + escaped(place.graph) + ": ";
  if (place.node < 0) return out;
  out += "node " + std::to_string(place.node);
  if (!place.name.empty()) out += " " + quoted(place.name);
  if (!place.op.empty()) out += " (" + escaped(place.op) + ")";
  return out + ": ";
}

std::string Diags::text(const std::string& file) const {
  static const char* words[] = {"error: ", "warning: ", "note: "};
  std::string out;
  for (const Diagnostic& entry : entries_)
    out += escaped(file, 4096) + ": " + place_text(entry.place) +
           words[static_cast<int>(entry.severity)] + entry.message + "\n";
  if (errors_ != 0)
    out += std::to_string(errors_) + (errors_ == 1 ? " error" : " errors") +
           ", nothing was written\n";
  return out;
}

} // namespace svod
