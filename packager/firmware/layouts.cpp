// A table: per layout where archive and headers lie, and texts in which @NAME@ stands for
// the library's prefix, @TARGET@ for the target and @VERSION@ for ours.
#include "packager/firmware/layouts.h"

#include "compiler/support/check.h"
#include "packager/version.h"

#include <algorithm>
#include <iterator>

namespace svod::packager {

namespace {

struct TextRow {
  const char *path, *text;
};
struct LayoutRow {
  FolderLayout layout;
  const char *library, *headers;
  std::vector<TextRow> texts;
};

constexpr char kCmake[] = R"(# add_subdirectory() this folder and link with @NAME@.
add_library(@NAME@ STATIC IMPORTED GLOBAL)
set_target_properties(@NAME@ PROPERTIES
  IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/lib/lib@NAME@.a"
  INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/include")
)";

constexpr char kZephyrModule[] = R"(name: @NAME@
build:
  cmake: .
  kconfig: Kconfig
)";
constexpr char kZephyrCmake[] = R"(if(CONFIG_SVOD_MODEL_@NAME@)
  zephyr_include_directories(include)
  zephyr_library_import(@NAME@ ${CMAKE_CURRENT_LIST_DIR}/lib/lib@NAME@.a)
endif()
)";
constexpr char kZephyrKconfig[] = R"(config SVOD_MODEL_@NAME@
	bool "Packed model @NAME@"
	default y
)";

constexpr char kEspCmake[] = R"(idf_component_register(INCLUDE_DIRS include)
add_prebuilt_library(@NAME@_packed lib/lib@NAME@.a)
target_link_libraries(${COMPONENT_LIB} INTERFACE @NAME@_packed)
)";
constexpr char kEspManifest[] = R"(version: "@VERSION@"
description: Packed model @NAME@ for @TARGET@
)";

constexpr char kArduino[] = R"(name=@NAME@
version=@VERSION@
author=svod-pack
maintainer=svod-pack
sentence=Packed model @NAME@ for @TARGET@
paragraph=One call computes it. No heap, no library beneath.
category=Data Processing
url=https://onnx.ai
architectures=*
precompiled=true
ldflags=-l@NAME@
includes=@NAME@.h
)";

constexpr char kPlatformIo[] = R"({
  "name": "@NAME@",
  "version": "@VERSION@",
  "description": "Packed model @NAME@ for @TARGET@",
  "frameworks": "*",
  "platforms": "*",
  "headers": "@NAME@.h",
  "build": {"includeDir": "include", "extraScript": "link.py"}
}
)";
constexpr char kPlatformIoScript[] = R"(import os

Import("env")
DefaultEnvironment().Append(LIBPATH=[os.path.join(os.getcwd(), "lib")], LIBS=["@NAME@"])
)";

constexpr char kCmsis[] = R"(<?xml version="1.0" encoding="UTF-8"?>
<package schemaVersion="1.7.7" xmlns:xs="http://www.w3.org/2001/XMLSchema-instance"
         xs:noNamespaceSchemaLocation="PACK.xsd">
  <vendor>svod</vendor>
  <name>@NAME@</name>
  <description>Packed model @NAME@ for @TARGET@</description>
  <url></url>
  <releases>
    <release version="@VERSION@">Packed by svod-pack</release>
  </releases>
  <components>
    <component Cclass="Machine Learning" Cgroup="@NAME@" Cversion="@VERSION@">
      <description>Library and header of the packed model</description>
      <files>
        <file category="include" name="include/"/>
        <file category="header" name="include/@NAME@.h"/>
        <file category="library" name="lib/lib@NAME@.a"/>
      </files>
    </component>
  </components>
</package>
)";

const std::vector<LayoutRow>& rows() {
  static const std::vector<LayoutRow> kRows = {
      {FolderLayout::Cmake, "lib/lib@NAME@.a", "include", {{"CMakeLists.txt", kCmake}}},
      {FolderLayout::Zephyr,
       "lib/lib@NAME@.a",
       "include",
       {{"zephyr/module.yml", kZephyrModule},
        {"CMakeLists.txt", kZephyrCmake},
        {"Kconfig", kZephyrKconfig}}},
      {FolderLayout::EspIdf,
       "lib/lib@NAME@.a",
       "include",
       {{"CMakeLists.txt", kEspCmake}, {"idf_component.yml", kEspManifest}}},
      // Arduino looks for archives in a folder that is called as the core is.
      {FolderLayout::Arduino,
       "src/@TARGET@/lib@NAME@.a",
       "src",
       {{"library.properties", kArduino}}},
      {FolderLayout::PlatformIo,
       "lib/lib@NAME@.a",
       "include",
       {{"library.json", kPlatformIo}, {"link.py", kPlatformIoScript}}},
      {FolderLayout::CmsisPack,
       "lib/lib@NAME@.a",
       "include",
       {{"svod.@NAME@.pdsc", kCmsis}}},
  };
  return kRows;
}

std::string filled(const Options& options, std::string text) {
  const std::pair<const char*, std::string> words[] = {{"@NAME@", options.name},
                                                       {"@TARGET@", options.target.alias},
                                                       {"@VERSION@", kVersion}};
  for (const auto& [word, with] : words)
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;
         at += with.size())
      text.replace(at, std::string(word).size(), with);
  return text;
}

} // namespace

LayoutFiles layout_files(const Options& options) {
  const auto row = std::ranges::find(rows(), options.layout, &LayoutRow::layout);
  SVOD_CHECK(row != rows().end()) << "a layout without a row";
  LayoutFiles out{filled(options, row->library), row->headers, {}};
  for (const TextRow& text : row->texts)
    out.texts.emplace_back(filled(options, text.path), filled(options, text.text));
  return out;
}

} // namespace svod::packager
