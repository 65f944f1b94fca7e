// The classes of a model by name: --labels FILE, of which line i is class i.
#ifndef SVOD_PROGRAM_LABELS_H
#define SVOD_PROGRAM_LABELS_H

#include "runtime_stub/program/session.h"

namespace packed {

struct Labels {
  const char* path = nullptr; // null: results are printed as numbers
  static constexpr uint64_t kTop = 5;
  uint64_t top = kTop;
  bool softmax = false;
  Text* list = nullptr;
  uint64_t count = 0;
  bool is_changed() const { return softmax || top != kTop; }
};

// Reads the file; an output must have as many classes as it has lines.
Exit read_labels(const Session& session, Labels& labels, Printer& errors);
// The best classes of each output that has as many: "0.9989  seven".
void print_best(Printer& out, const Session& session, const Labels& labels);

} // namespace packed

#endif
