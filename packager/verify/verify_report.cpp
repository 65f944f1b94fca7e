// A set of data is a line, its outputs are the lines below that begin with spaces:
//   scores f32[1,10]: max abs 6.217e-15, max rel 3.399e-6, max ULP 47, cosine 1
#include "packager/verify/verify_report.h"

#include "packager/report/json.h"

#include <charconv>
#include <cmath>
#include <sstream>

namespace svod::packager {

namespace {

// "max ULP" as a key of JSON.
std::string key_of(std::string_view words) {
  std::string out;
  for (char c : words) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    out += c == ' ' ? '_' : c;
  }
  return out;
}

// "3 of 10 wrong", "max abs 1e-6", or a remark that is kept as it is.
void write_fact(JsonWriter& json, const std::string& fact) {
  if (const size_t of = fact.find(" of ");
      of != std::string::npos && fact.ends_with(" wrong")) {
    json.key("wrong").raw(fact.substr(0, of));
    return;
  }
  const size_t space = fact.rfind(' ');
  if (space == std::string::npos || fact.find(':') != std::string::npos) {
    json.pair("remark", fact);
    return;
  }
  const std::string text = fact.substr(space + 1);
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  json.key(key_of(fact.substr(0, space)));
  if (whole && std::isfinite(number))
    json.raw(text);
  else
    json.value(text);
}

void write_output(JsonWriter& json, std::string line) {
  line.erase(0, line.find_first_not_of(' '));
  json.begin_object();
  const size_t facts = line.find(": max abs ");
  if (facts == std::string::npos) {
    json.pair("text", line).end_object();
    return;
  }
  const size_t type = line.rfind(' ', facts);
  json.pair("name", line.substr(0, type));
  if (type != std::string::npos)
    json.pair("type", line.substr(type + 1, facts - type - 1));
  for (size_t at = facts + 2; at < line.size();) {
    const size_t end = std::min(line.find(", ", at), line.size());
    write_fact(json, line.substr(at, end - at));
    at = end + 2;
  }
  json.end_object();
}

} // namespace

std::string verify_json(const std::string& data, const std::string& said, Exit exit) {
  JsonWriter json;
  json.begin_object().pair("data", data);
  json.key("passed").boolean(exit == Exit::Done);
  json.key("sets").begin_list();
  bool in_set = false;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line == "  mismatch") continue;
    if (!line.starts_with(" ")) {
      if (in_set) json.end_list().end_object();
      json.begin_object().pair("data", line).key("outputs").begin_list();
      in_set = true;
    } else if (in_set) {
      write_output(json, line);
    }
  }
  if (in_set) json.end_list().end_object();
  json.end_list().end_object();
  return json.text();
}

} // namespace svod::packager
