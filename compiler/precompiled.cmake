# The headers of the standard library that most files include are parsed once: half a second less for each of
# nearly 400 files. A file still names what it uses; tests/layers compiles one without them.
option(SVOD_PRECOMPILED_HEADERS "Parse the headers of the standard library once" ON)

# ccache takes a precompiled header for what it is when it may trust the header's own list of macros.
if(SVOD_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$" AND
   NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES "CCACHE_SLOPPINESS")
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# svod_precompile(TARGET): with the flags of all libraries; the first target makes what the others use.
function(svod_precompile target)
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
