// The texts of packager/report/page, put into one file. Names of a model are hostile:
// inside of the JSON no `<` is left that could end its element, scripts show names as
// text alone, and the browser is told to run this page's scripts, by their digest, and
// nothing else.
#include "packager/report/page.h"

#include "compiler/support/check.h"
#include "compiler/support/digest.h"

namespace svod::packager {

extern const char kText_frame[]; // packager/report/page/frame.html
extern const char kText_style[];
extern const char* const kPageScripts[];
extern const unsigned kPageScriptsCount;

// As a content security policy takes a digest.
static std::string base64(const Digest& digest) {
  constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < digest.bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = i; k < i + 3; ++k)
      bits = bits << 8 | (k < digest.bytes.size() ? digest.bytes[k] : 0);
    for (size_t k = 0; k < 4; ++k)
      out += i + k > digest.bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

static std::string without_tags(const std::string& json) {
  std::string out;
  for (char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

static void fill(std::string& page, std::string_view mark, const std::string& text) {
  const size_t at = page.find(mark);
  SVOD_CHECK(at != std::string::npos) << "the page has no place for " << mark;
  page.replace(at, mark.size(), text);
}

// The model's text comes last: a mark in it is not looked for.
std::string page_text(const std::string& json) {
  std::string script;
  for (unsigned i = 0; i < kPageScriptsCount; ++i) script += kPageScripts[i];
  std::string page = kText_frame;
  fill(page, "@SCRIPT_DIGEST@", "sha256-" + base64(sha256(script)));
  fill(page, "@STYLE@", kText_style);
  fill(page, "@SCRIPT@", script);
  fill(page, "@PACK@", without_tags(json));
  return page;
}

} // namespace svod::packager
