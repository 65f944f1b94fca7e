# The headers of the standard library that most files include are parsed once: half a second less for each of
# nearly 400 files. A file still names what it uses; tests/layers compiles one without them.
option(SVOD_PRECOMPILED_HEADERS "Parse the headers of the standard library once" ON)

# ccache takes a precompiled header for what it is when it may trust the header's own list of macros.
if(SVOD_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$" AND
   NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES "CCACHE_SLOPPINESS")
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Files of one library share the headers of the project and the templates that they use: eight at a time they take
# 60 % of the time. Whoever changes one file compiles all eight, so a build that is worked on does without.
option(SVOD_UNITY "Compile eight files of a library at a time: a build from nothing is shorter" OFF)

# svod_shorten_build(TARGET): a library. All have the same flags; the first makes the precompiled header that the others
# use.
function(svod_shorten_build target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${SVOD_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  if(NOT SVOD_PRECOMPILED_HEADERS)
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  if(TARGET svod_support AND NOT target STREQUAL svod_support)
    target_precompile_headers(${target} REUSE_FROM svod_support)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <bit> <charconv> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <numeric>
    <optional> <set> <span> <sstream> <string> <string_view> <tuple> <utility> <variant> <vector>)
endfunction()
