// The texts of packager/report/page, put into one file. Names of a model are hostile:
// inside of the JSON no `<` is left that could end its element, scripts show names as
// text alone, and the browser is told to run this page's scripts, by their digest, and
// nothing else.
#include "packager/report/page.h"

#include "compiler/support/check.h"
#include "compiler/support/digest.h"

#include <initializer_list>
#include <utility>

namespace svod::packager {

// One for each file of packager/report/page.
extern const char kText_frame_top[], kText_pack_frame[], kText_comparison_frame[],
    kText_profile_frame[], kText_style[];
extern const char kText_elements[], kText_numbers[], kText_charts[], kText_head[],
    kText_sorted_table[], kText_kernels[], kText_roofline[], kText_memory[],
    kText_accuracy[], kText_bytes[], kText_layered[], kText_graph[], kText_start[],
    kText_comparison[], kText_profile[];

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

using Filling = std::initializer_list<std::pair<std::string_view, std::string>>;

// The frame with a text in place of each mark, in their order: no mark is looked for in
// what took another one's place.
static std::string filled_page(std::string_view frame, const Filling& texts) {
  std::string out;
  for (const auto& [mark, text] : texts) {
    const size_t at = frame.find(mark);
    SVOD_CHECK(at != std::string_view::npos) << "the page has no place for " << mark;
    out.append(frame.substr(0, at)).append(text);
    frame.remove_prefix(at + mark.size());
  }
  return out.append(frame);
}

static std::string joined_scripts(std::initializer_list<const char*> scripts) {
  std::string out;
  for (const char* script : scripts) out += script;
  return out;
}

static std::string policy_of(const std::string& script) {
  return "sha256-" + base64(sha256(script));
}

static std::string page_of(const char* title, const std::string& script,
                           const char* frame, const Filling& texts) {
  return filled_page(kText_frame_top, {{"@SCRIPT_DIGEST@", policy_of(script)},
                                       {"@TITLE@", title},
                                       {"@STYLE@", kText_style},
                                       {"@TITLE@", title}}) +
         filled_page(frame, texts);
}

std::string page_text(const std::string& json) {
  const std::string script = joined_scripts(
      {kText_elements, kText_numbers, kText_charts, kText_head, kText_sorted_table,
       kText_kernels, kText_layered, kText_graph, kText_roofline, kText_memory,
       kText_accuracy, kText_bytes, kText_start});
  return page_of("svod-pack report", script, kText_pack_frame,
                 {{"@PACK@", without_tags(json)}, {"@SCRIPT@", script}});
}

std::string comparison_text(const std::string& before, const std::string& after) {
  const std::string script =
      joined_scripts({kText_elements, kText_numbers, kText_comparison});
  return page_of("svod-pack comparison", script, kText_comparison_frame,
                 {{"@BEFORE@", without_tags(before)},
                  {"@AFTER@", without_tags(after)},
                  {"@SCRIPT@", script}});
}

std::string profile_text(const std::string& profile, const std::string& machine) {
  const std::string script =
      joined_scripts({kText_elements, kText_numbers, kText_charts, kText_sorted_table,
                      kText_roofline, kText_profile});
  return page_of("svod-pack report", script, kText_profile_frame,
                 {{"@PROFILE@", without_tags(profile)},
                  {"@MACHINE@", without_tags(machine)},
                  {"@SCRIPT@", script}});
}

} // namespace svod::packager
