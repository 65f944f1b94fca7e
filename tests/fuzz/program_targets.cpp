// The readers of a packed program, each by way of its whole command line: what is read is
// bound, checked, run on, and what comes out is written.
#include "tests/fuzz/decisions.h"
#include "tests/fuzz/memory_platform.h"
#include "tests/fuzz/small_model.h"

#include <array>
#include <string_view>
#include <vector>

namespace svod::fuzz {

namespace {

using Strings = std::vector<std::string>;

struct Input {
  std::string name, otherwise; // what it has where the case does not give it
};
const std::vector<Input> kTensorInputs = {
    {"x", "random"},      {"n", "zeros"},    {"half", "random:3"},
    {"truth", "zeros"},   {"text", "zeros"}, {"bits", "random"},
    {"narrow", "random"}, {"c=d", "random"}, {"open", "2x3xf32=[7]"}};

// A file as input `number` of the plain model, and the other inputs; outputs in the form
// that is read, too.
void read_as(Bytes bytes, const std::string& suffix) {
  Decisions decide(bytes);
  const size_t number = decide.below(kTensorInputs.size());
  const Bytes content = decide.rest();
  choose_model(ModelForm::Tensors);
  Strings words = {"infer"};
  for (size_t i = 0; i < kTensorInputs.size(); ++i) {
    words.push_back("--input");
    const auto& [name, otherwise] = kTensorInputs[i];
    words.push_back(name + "=" + (i == number ? "@a" + suffix : otherwise));
  }
  // Names of outputs are the program's; an archive has all.
  const Strings outputs = {"y", "words", "some", "z"};
  if (suffix != ".npz")
    for (const std::string& output : outputs) {
      words.push_back("--output");
      words.push_back(output + "=@" + output + suffix);
    }
  run_program(words, {{"a" + suffix, content}});
}

} // namespace

void fuzz_npy(Bytes bytes) { read_as(bytes, ".npy"); }
void fuzz_json(Bytes bytes) { read_as(bytes, ".json"); }

// One member for an input, or one archive for all.
void fuzz_npz(Bytes bytes) {
  if (bytes.size() % 2 != 0) return read_as(bytes, ".npz");
  choose_model(ModelForm::Tensors);
  run_program({"infer", "a.npz", "--output", "b.npz"}, {{"a.npz", bytes}});
}

// As a tensor, or as each of the values that are none.
void fuzz_proto(Bytes bytes) {
  if (bytes.size() % 2 != 0) return read_as(bytes, ".pb");
  Decisions decide(bytes);
  const size_t number = decide.below(6);
  choose_model(ModelForm::Values);
  Strings words = {"infer"};
  const Strings names = {"x", "s", "m", "o", "gone", "ms"};
  words.push_back("--input");
  words.push_back(names[number] + "=@a.pb");
  for (size_t i = 0; i < names.size(); ++i) {
    // What is no tensor has no value but that of a file.
    if (i == number) continue;
    words.push_back("--input");
    words.push_back(names[i] + (i == 0 ? "=zeros" : "=@a.pb"));
  }
  for (const char* output : {"y", "z", "p", "q"}) {
    words.push_back("--output");
    words.push_back(std::string(output) + "=@" + output + ".pb");
  }
  run_program(words, {{"a.pb", decide.rest()}});
}

void fuzz_json_lines(Bytes bytes) {
  choose_model(bytes.size() % 2 != 0 ? ModelForm::Tensors : ModelForm::Records);
  run_program({"infer", "--stream=jsonl", "--finite"}, {{"", bytes}});
}

void fuzz_records(Bytes bytes) {
  choose_model(ModelForm::Records);
  run_program({"infer", "--stream", "n=zeros"}, {{"", bytes}});
  run_program({"infer", "--stream", "--finite"}, {{"", bytes}});
}

// Words between zeros; a number of options comes first, by which longer ones are found.
void fuzz_words(Bytes bytes) {
  static constexpr std::array kStarts = {"",
                                         "--input",
                                         "--output",
                                         "--info=json",
                                         "--verify=d",
                                         "--bench",
                                         "--profile",
                                         "--labels=a",
                                         "--top",
                                         "--stream",
                                         "--isa",
                                         "--batch-dir=d",
                                         "--finite",
                                         "--threads=3",
                                         "--softmax",
                                         "--self-check",
                                         "--rtol=",
                                         "--profile=trace.json",
                                         "--bench=json"};
  Decisions decide(bytes);
  choose_model(decide.chance(128) ? ModelForm::Values : ModelForm::Tensors);
  Strings words = {"infer"};
  for (size_t count = decide.below(4); count > 0; --count)
    words.emplace_back(decide.one_of(kStarts));
  const Bytes rest = decide.rest();
  std::string word;
  for (uint8_t c : rest) {
    if (c != 0 && c != '\n') {
      word += static_cast<char>(c);
      continue;
    }
    words.push_back(word);
    word.clear();
  }
  words.push_back(word);
  if (words.size() > 64) return;
  run_program(words, {{"a", rest}, {"d/a.npy", rest}, {"", rest}});
}

void fuzz_labels(Bytes bytes) {
  choose_model(ModelForm::Records);
  Decisions decide(bytes);
  Strings words = {"infer", "x=random", "n=zeros", "--labels", "a"};
  if (decide.chance(128)) words.emplace_back("--softmax");
  words.push_back("--top");
  words.push_back(std::to_string(1 + decide.below(8)));
  run_program(words, {{"a", decide.rest()}});
}

// With the end that says whose weights they are, or its own; run, or checked as a whole.
void fuzz_weights(Bytes bytes) {
  choose_model(ModelForm::Weights);
  Decisions decide(bytes);
  const bool ours = decide.chance(128), checked = decide.chance(128);
  const Bytes rest = decide.rest();
  std::vector<uint8_t> file(rest.begin(), rest.end());
  if (ours) {
    const SvodWeightsEnd end = end_of_weights();
    const auto* from = reinterpret_cast<const uint8_t*>(&end);
    file.insert(file.end(), from, from + sizeof end);
  }
  Strings words = {"infer", "--weights", "w"};
  for (const char* word : {"x=random", "n=zeros"})
    if (!checked) words.emplace_back(word);
  if (checked) words.emplace_back("--self-check");
  const int code = run_program(words, {{"w", file}}, true);
  if (ours && rest.size() == kFileWeights.size())
    must(checked ? (code == 0) == std::ranges::equal(rest, kFileWeights) : code == 0,
         "weights that are as they were packed");
}

// The first bytes are an input's file, the others an output's.
void fuzz_verified(Bytes bytes) {
  Decisions decide(bytes);
  const ModelForm form = decide.chance(128) ? ModelForm::Records : ModelForm::Values;
  const size_t input = decide.below(3), output = decide.below(4);
  const Bytes given = decide.take(decide.below(100));
  const Bytes expected = decide.rest();
  choose_model(form);
  Strings words = {"infer", "--verify", "d"};
  if (form == ModelForm::Records) {
    if (input != 0) words.emplace_back("x=random");
    if (input != 1) words.emplace_back("n=zeros");
  }
  run_program(words, {{"d/input_" + std::to_string(input) + ".pb", given},
                      {"d/output_0.pb", output == 0 ? expected : given},
                      {"d/output_" + std::to_string(output) + ".pb", expected}});
}

} // namespace svod::fuzz
