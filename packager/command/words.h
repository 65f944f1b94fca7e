// The words that options choose from. Tables: reading, help, completion and the man page
// take them from here.
#pragma once

#include "packager/options.h"

#include <algorithm>
#include <string>

namespace svod::packager {

template <class T> struct Word {
  const char* word;
  T value;
};

inline constexpr Word<Output> kEmits[] = {
    {"exe", Output::Executable},      {"static", Output::Static},
    {"shared", Output::Shared},       {"obj", Output::Object},
    {"module", Output::Module},       {"source", Output::Source},
    {"graph", Output::Graph},         {"algorithms", Output::Algorithms},
    {"fused", Output::Fused},         {"plan", Output::Plan},
    {"schedule", Output::Schedule},   {"cpp", Output::Cpp},
    {"asm", Output::Assembly},        {"ptx", Output::Ptx},
    {"testbench", Output::Testbench},
};
inline constexpr Word<FolderLayout> kLayouts[] = {
    {"cmake", FolderLayout::Cmake},           {"zephyr", FolderLayout::Zephyr},
    {"esp-idf", FolderLayout::EspIdf},        {"arduino", FolderLayout::Arduino},
    {"platformio", FolderLayout::PlatformIo}, {"cmsis-pack", FolderLayout::CmsisPack},
};
// What a suffix of the output's name asks for.
inline constexpr Word<Output> kSuffixes[] = {{".a", Output::Static},
                                             {".so", Output::Shared},
                                             {".o", Output::Object},
                                             {".wasm", Output::Module},
                                             {".cpp", Output::Source}};
inline constexpr Word<WeightPlace> kWeightPlaces[] = {{"embed", WeightPlace::Embed},
                                                      {"file", WeightPlace::File},
                                                      {"zstd", WeightPlace::Zstd},
                                                      {"expand", WeightPlace::Expand}};
inline constexpr Word<Color> kColors[] = {
    {"auto", Color::Auto}, {"always", Color::Always}, {"never", Color::Never}};
inline constexpr Word<ListFormat> kFormats[] = {{"text", ListFormat::Text},
                                                {"markdown", ListFormat::Markdown},
                                                {"json", ListFormat::Json}};
inline constexpr Word<Accuracy> kAccuracies[] = {
    {"exact", Accuracy::Exact}, {"fast", Accuracy::Fast}, {"tf32", Accuracy::Tf32}};
// Whether a remote cache is read only.
inline constexpr Word<bool> kRemoteModes[] = {{"rw", false}, {"ro", true}};

template <class T, size_t N>
std::string_view word_of(const Word<T> (&table)[N], const T& value) {
  return std::ranges::find(table, value, &Word<T>::value)->word;
}

// "auto|always|never": how help names a choice.
template <class T, size_t N> std::string choice_of(const Word<T> (&table)[N]) {
  std::string out;
  for (const Word<T>& row : table)
    out += (out.empty() ? "" : "|") + std::string(row.word);
  return out;
}

} // namespace svod::packager
