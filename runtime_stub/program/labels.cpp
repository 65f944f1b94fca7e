// The best classes are looked for one after the other: few of them are shown.
#include "runtime_stub/program/labels.h"

#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/value.h"
#include "runtime_stub/program/words.h"

namespace packed {

namespace {

// The line at the beginning of `rest`, which moves behind it.
Text next_line(Text& rest) {
  const uint64_t end = rest.find('\n');
  Text line = rest.first(end);
  rest = rest.from(end < rest.size ? end + 1 : end);
  if (line.ends_with("\r")) line = line.first(line.size - 1);
  return line;
}

// One number for each label and no more.
bool has_classes(const Tensor& tensor, uint64_t count) {
  const bool is_number =
      is_float(*tensor.element) && tensor.element->kind != ElementKind::Complex;
  return is_number && tensor.rank > 0 && tensor.elements() == count &&
         static_cast<uint64_t>(tensor.dims[tensor.rank - 1]) == count;
}

// e^x for x <= 0: 2^n e^r, where |r| is at most half of ln 2.
double exponential(double x) {
  constexpr double kLn2 = 0.69314718055994530942;
  if (!(x > -700)) return 0;
  const auto n = static_cast<int32_t>(x / kLn2 - 0.5);
  const double r = x - n * kLn2;
  double sum = 1;
  for (int32_t k = 14; k > 0; k--) sum = 1 + sum * r / k;
  for (int32_t i = n; i < 0; i++) sum /= 2;
  return sum;
}

class Scores {
public:
  Scores(const Tensor& tensor, bool softmax) : tensor_(tensor) {
    if (!softmax) return;
    best_ = at(next(tensor.elements()));
    double sum = 0;
    for (uint64_t i = 0; i < tensor.elements(); i++) sum += exponential(at(i) - best_);
    sum_ = sum;
  }

  double at(uint64_t i) const { return load(*tensor_.element, tensor_.data, i); }
  double shown(uint64_t i) const {
    return sum_ == 0 ? at(i) : exponential(at(i) - best_) / sum_;
  }

  // The best one behind `last` (of all, where that is none): the larger number, then the
  // lower class; what is no number comes last.
  uint64_t next(uint64_t last) const {
    const uint64_t count = tensor_.elements();
    uint64_t best = count;
    for (uint64_t i = 0; i < count; i++) {
      if (last < count && !is_before(last, i)) continue;
      if (best == count || is_before(i, best)) best = i;
    }
    return best;
  }

private:
  bool is_before(uint64_t a, uint64_t b) const {
    const double x = at(a), y = at(b);
    if (x != x || y != y) return y != y && (x == x || a < b);
    return x > y || (x == y && a < b);
  }
  const Tensor& tensor_;
  double best_ = 0, sum_ = 0;
};

} // namespace

Exit read_labels(const Session& session, Labels& labels, Printer& errors) {
  Text content;
  const int32_t status = read_file(labels.path, content);
  if (status < 0) return file_error(errors, labels.path, "read", -status);
  for (Text rest = content; rest.size > 0; labels.count++) next_line(rest);
  labels.list = static_cast<Text*>(take_memory(labels.count * sizeof(Text)));
  if (labels.list == nullptr) return no_memory(errors);
  for (uint64_t i = 0; i < labels.count; i++) labels.list[i] = next_line(content);
  for (uint32_t i = 0; i < model_outputs(session); i++)
    if (has_classes(output_type(session, i), labels.count)) return EXIT_DONE;
  errors << "error: " << labels.path << " has " << labels.count
         << " lines, which is no output's number of classes\n";
  list_names(errors, session, Side::Output);
  return EXIT_BAD_DATA;
}

void print_best(Printer& out, const Session& session, const Labels& labels) {
  for (uint32_t i = 0; i < model_outputs(session); i++) {
    const Tensor tensor = output_type(session, i);
    if (!has_classes(tensor, labels.count)) continue;
    const Scores scores(tensor, labels.softmax);
    uint64_t at = labels.count;
    for (uint64_t k = 0; k < labels.top && k < labels.count; k++) {
      at = scores.next(at);
      out.fixed(scores.shown(at), 4) << "  ";
      print_plain(out, labels.list[at]);
      out << "\n";
    }
  }
}

} // namespace packed
