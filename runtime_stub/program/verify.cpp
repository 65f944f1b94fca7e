// Runs the inputs of an ONNX test data set and compares outputs element by element. An
// integer is right when it is equal, a NaN where a NaN is expected, and a float when
// |got - expected| <= atol + rtol * |expected| + rtol / 100 * largest.
//
// `largest` is the largest magnitude in the expected tensor. What a sum rounds away is a
// part of its terms, not of its result: an element near zero among large ones differs
// from one right program to the next by more than a part of itself. --strict leaves that
// term out.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/data_sets.h"
#include "runtime_stub/program/modes.h"
#include "runtime_stub/program/open_inputs.h"
#include "runtime_stub/program/strings.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/words.h"

namespace packed {

namespace {

struct Difference {
  double max_abs = 0, max_rel = 0, cosine = 1;
  uint64_t max_ulp = 0, wrong = 0, first_wrong = 0;
};

double square_root(double x) {
  if (!(x > 0)) return 0;
  double root = x > 1 ? x : 1;
  for (int i = 0; i < 1100; i++) { // Newton, from above
    double next = (root + x / root) / 2;
    if (!(next < root)) break;
    root = next;
  }
  return root;
}

double magnitude(double x) { return x < 0 ? -x : x; }

bool is_right(const Element& element, double got, double expected, double abs,
              const Options& options, double largest) {
  if (got == expected || (got != got && expected != expected)) return true;
  if (!is_float(element)) return false;
  const double of_scale = options.strict ? 0 : options.rtol / 100 * largest;
  return abs <= options.atol + options.rtol * magnitude(expected) + of_scale &&
         abs - abs == 0;
}

double largest_in(const Element& element, const Tensor& tensor, uint64_t count) {
  double largest = 0;
  for (uint64_t i = 0; i < count; i++) {
    double size = magnitude(load(element, tensor.data, i));
    if (size > largest && size - size == 0) largest = size;
  }
  return largest;
}

Difference compare(const Tensor& got, const Tensor& expected, const Options& options) {
  Difference out;
  double dot = 0, got_square = 0, expected_square = 0;
  const Element& element = part_of(*got.element);
  uint64_t count = got.elements() * (&element == got.element ? 1 : 2);
  const double largest = largest_in(element, expected, count);
  for (uint64_t i = 0; i < count; i++) {
    double a = load(element, got.data, i), b = load(element, expected.data, i);
    int64_t x = load_ordered(element, got.data, i);
    int64_t y = load_ordered(element, expected.data, i);
    bool equal = a == b || (a != a && b != b);
    double abs = equal ? 0 : magnitude(a - b);
    bool right =
        is_right(element, a, b, abs, options, largest) && (is_float(element) || x == y);
    if (!right && out.wrong++ == 0) out.first_wrong = i;
    if (!equal && !(abs <= out.max_abs)) out.max_abs = abs;
    if (!equal && b != 0 && abs / magnitude(b) > out.max_rel) {
      out.max_rel = abs / magnitude(b);
    }
    uint64_t ulp = x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
                         : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
    if (!equal && ulp > out.max_ulp) out.max_ulp = ulp;
    dot += a * b;
    got_square += a * a;
    expected_square += b * b;
  }
  double scale = square_root(got_square) * square_root(expected_square);
  if (scale > 0) out.cosine = dot / scale;
  return out;
}

// Strings are equal or wrong.
void print_strings_difference(Printer& out, const Tensor& got, const Tensor& expected,
                              const Difference& difference) {
  out << "  ";
  out.name(got.name) << " ";
  print_type(out, got.element, got.rank, got.dims);
  out << ": " << difference.wrong << " of " << got.elements() << " wrong";
  if (difference.wrong > 0) {
    out << ", first at " << difference.first_wrong << ": ";
    print_quoted(out, string_at(got, difference.first_wrong));
    out << " for ";
    print_quoted(out, string_at(expected, difference.first_wrong));
  }
  out << "\n";
}

Difference compare_strings(const Tensor& got, const Tensor& expected) {
  Difference out;
  for (uint64_t i = 0; i < got.elements(); i++) {
    if (string_at(got, i) == string_at(expected, i)) continue;
    if (out.wrong++ == 0) out.first_wrong = i;
  }
  return out;
}

void print_difference(Printer& out, const Tensor& got, const Tensor& expected,
                      const Difference& difference) {
  out << "  ";
  out.name(got.name) << " ";
  print_type(out, got.element, got.rank, got.dims);
  out << ": max abs ";
  out.number(difference.max_abs, 4) << ", max rel ";
  out.number(difference.max_rel, 4) << ", max ULP " << difference.max_ulp << ", cosine ";
  out.number(difference.cosine, 8);
  if (difference.wrong > 0) {
    uint64_t i = difference.first_wrong;
    out << ", " << difference.wrong << " of " << got.elements() << " wrong, first at "
        << i << ": ";
    print_element(out, part_of(*got.element), got.data, i);
    out << " for ";
    print_element(out, part_of(*got.element), expected.data, i);
  }
  out << "\n";
}

Exit bind_set(Session& session, Text folder, Printer& errors) {
  uint32_t count = session.entry->input_count;
  reset_states(session);
  if (!clear_inputs(session)) return no_memory(errors);
  const Exit given = bind_set_files(session, folder, errors);
  if (given != EXIT_DONE) return given;
  for (uint32_t i = 0; i < count; i++) {
    if (session.inputs[i] != nullptr || is_state(session, i)) continue;
    if (Tensor packed = packed_value(session, i); packed.data != nullptr) {
      Exit bound = bind_input(session, i, packed, packed.name, errors);
      if (bound != EXIT_DONE) return bound;
      continue;
    }
    errors << "error: " << folder << " has no file for input '";
    errors.name(input_type(session, i).name);
    errors << "'\n";
    return EXIT_FILE;
  }
  return EXIT_DONE;
}

// False when they differ.
bool compare_tensor(const Tensor& got, const Tensor& expected, const Options& options,
                    Printer& out) {
  if (!same_type(got, expected)) {
    out << "  ";
    out.name(got.name) << ": is ";
    print_type(out, got.element, got.rank, got.dims);
    out << ", expected is ";
    print_type(out, expected.element, expected.rank, expected.dims);
    out << "\n";
    return false;
  }
  bool text = is_text(*got.element);
  Difference difference =
      text ? compare_strings(got, expected) : compare(got, expected, options);
  text ? print_strings_difference(out, got, expected, difference)
       : print_difference(out, got, expected, difference);
  return difference.wrong == 0;
}

bool compare_value(const Session& session, const Value& value, const ValueData& expected,
                   const Options& options, Printer& out) {
  bool present = is_present(session, value);
  if (present != expected.present || (present && value.count != expected.count)) {
    out << "  ";
    out.name(value.name) << ": is ";
    print_value_kind(out, session, value);
    if (!present) out << ", left out";
    out << ", expected is ";
    if (expected.present) {
      out << "one of " << expected.count << "\n";
    } else {
      out << "one that is left out\n";
    }
    return false;
  }
  bool right = true;
  for (uint32_t i = 0; present && i < value.count; i++) {
    Tensor got = output_type(session, value.first + i);
    right = compare_tensor(got, expected.tensors[i], options, out) && right;
  }
  return right;
}

Exit compare_outputs(const Session& session, Text folder, const Options& options,
                     Printer& out, Printer& errors) {
  Exit result = EXIT_DONE;
  uint32_t compared = 0, count = value_count(session, Side::Output);
  for (uint32_t k = 0; k < count; k++) {
    Path path;
    ValueData expected;
    if (!data_path(path, folder, Text("output_"), k, Text(".pb"))) return EXIT_FILE;
    Value value = value_at(session, Side::Output, k);
    int32_t status = read_set_file(path, session, Side::Output, value, expected, errors);
    if (status < 0) return EXIT_BAD_DATA;
    if (status == 0) {
      out << "  ";
      out.name(value.name) << ": not compared, there is no " << path.text << "\n";
      continue;
    }
    compared++;
    value = find_named_value(session, Side::Output, expected.name, value);
    if (!compare_value(session, value, expected, options, out)) result = EXIT_MISMATCH;
  }
  if (compared > 0 || count == 0) return result;
  errors << "error: " << folder << " has no outputs to compare with\n";
  return EXIT_FILE;
}

} // namespace

Exit verify_set(Session& session, Text folder, const Options& options, Printer& out,
                Printer& errors) {
  Exit status = bind_set(session, folder, errors);
  if (status == EXIT_DONE) status = run(session, errors);
  if (status != EXIT_DONE) return status;
  out << folder << "\n";
  status = compare_outputs(session, folder, options, out, errors);
  if (status == EXIT_MISMATCH) out << "  mismatch\n";
  return status;
}

Exit verify(Session& session, const Options& options, Printer& errors) {
  Printer out(1);
  return for_each_set(Text(options.verify), errors, [&](Text folder) {
    return verify_set(session, folder, options, out, errors);
  });
}

} // namespace packed
