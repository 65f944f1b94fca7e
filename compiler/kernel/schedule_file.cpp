#include "compiler/kernel/schedule_file.h"

#include "compiler/kernel/line_scanner.h"

namespace svod {

namespace {

// Lines from one heading to the next, as one text that begins on `first`.
struct Section {
  Digest digest;
  int first = 0;
  std::string text;
};

std::optional<std::vector<Section>> sections_of(std::string_view text, TextFault& fault) {
  std::vector<Section> out;
  bool inside = false;
  int last = 0;
  for (const NumberedLine& line : lines_of(text)) {
    if (line.text.starts_with("kernel ")) {
      inside = false;
    } else if (line.text.starts_with("schedule ")) {
      const std::string_view hex =
          line.text.substr(9, line.text.find_last_not_of(" \r") - 8);
      const std::optional<Digest> digest = digest_from_hex(hex);
      if (!digest) {
        fault = {line.number, "the digest of a kernel was expected after 'schedule'"};
        return std::nullopt;
      }
      out.push_back({*digest, line.number, ""});
      inside = true;
      last = line.number;
    } else if (inside) {
      // Empty lines keep the numbers right.
      out.back().text += std::string(static_cast<size_t>(line.number - last - 1), '\n');
      out.back().text += std::string(line.text) + "\n";
      last = line.number;
    }
  }
  return out;
}

std::string schedule_text(const ScheduledKernel& k, bool joined) {
  return "schedule " + digest_of(k, joined).hex() + "\n" +
         print(static_cast<const KernelSchedule&>(k));
}

} // namespace

std::optional<ScheduleFile> parse_schedule_file(std::string_view text, TextFault& fault) {
  const std::optional<std::vector<Section>> sections = sections_of(text, fault);
  if (!sections) return std::nullopt;
  ScheduleFile out;
  for (const Section& section : *sections) {
    std::optional<KernelSchedule> schedule = parse_schedule(section.text, fault);
    if (!schedule) {
      fault.line += section.first;
      return std::nullopt;
    }
    out.insert_or_assign(section.digest, std::move(*schedule));
  }
  return out;
}

std::string print_program(const std::string& name, const ScheduledKernel& program) {
  std::string out = "kernel " + name + "\n" + print(static_cast<const Kernel&>(program)) +
                    schedule_text(program, false);
  for (const ScheduledKernel& part : program.parts()) out += schedule_text(part, true);
  return out;
}

} // namespace svod
