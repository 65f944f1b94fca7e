# svod_add_model(<target> MODEL <model.onnx> [NAME <name>] [SHAPE <input=AxBxC>...] [TARGET <alias or triple>]
#                [CPU <cpu>] [OPTIONS <option>...])
#
# Packs a model while the project builds. <target> becomes a static library to link with; its include folder holds
# <name>.h (C99) and <name>.hpp (C++20). NAME is the prefix of the C functions, <target> unless given. The model is
# packed again when the file, a file of its weights, or svod-pack changes, and at no other time. Without TARGET it is
# packed for the machine that the project is built for.

# The --target of svod-pack for what CMake compiles for; empty: the machine that builds.
function(svod_pack_target result)
  set(${result} "" PARENT_SCOPE)
  if(NOT CMAKE_CROSSCOMPILING)
    return()
  endif()
  string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" processor)
  set(words "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}")
  if(CMAKE_C_COMPILER_TARGET OR CMAKE_CXX_COMPILER_TARGET)
    string(TOLOWER "${CMAKE_C_COMPILER_TARGET}" triple)
    if(NOT triple)
      string(TOLOWER "${CMAKE_CXX_COMPILER_TARGET}" triple)
    endif()
    string(REGEX REPLACE "-.*" "" of_triple "${triple}")
    if(NOT of_triple MATCHES "^(arm|thumb)")
      set(processor "${of_triple}")
    endif()
  endif()
  if(words MATCHES "-mcpu=(cortex-m[0-9]+(plus)?)")
    set(found "${CMAKE_MATCH_1}")
  elseif(processor MATCHES "^cortex-m[0-9]+(plus)?$")
    set(found "${processor}")
  elseif(processor MATCHES "^(x86_64|amd64)$")
    set(found x86-64)
  elseif(processor MATCHES "^(aarch64|arm64)")
    set(found aarch64)
  elseif(processor MATCHES "^(armv7|armhf)" OR triple MATCHES "^(armv7|arm-linux-gnueabihf)" OR
         (processor STREQUAL "arm" AND CMAKE_SYSTEM_NAME STREQUAL "Linux"))
    set(found armv7)
  elseif(processor STREQUAL "riscv64")
    set(found riscv64)
  elseif(processor STREQUAL "riscv32")
    set(found rv32imac)
  else()
    message(FATAL_ERROR "svod_add_model: which machine '${CMAKE_SYSTEM_PROCESSOR}' is cannot be told from "
                        "CMAKE_SYSTEM_PROCESSOR, CMAKE_C_COMPILER_TARGET or -mcpu; give TARGET "
                        "('svod-pack doctor' lists them)")
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

function(svod_add_model target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "MODEL;NAME;TARGET;CPU" "SHAPE;OPTIONS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "svod_add_model: unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_MODEL)
    message(FATAL_ERROR "svod_add_model: MODEL is missing")
  endif()
  cmake_path(ABSOLUTE_PATH ARG_MODEL BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
  if(NOT ARG_NAME)
    string(MAKE_C_IDENTIFIER "${target}" ARG_NAME)
  endif()
  if(NOT ARG_TARGET)
    svod_pack_target(ARG_TARGET)
  endif()

  set(words --name ${ARG_NAME})
  foreach(shape IN LISTS ARG_SHAPE)
    list(APPEND words --shape ${shape})
  endforeach()
  if(ARG_TARGET)
    list(APPEND words --target ${ARG_TARGET})
  endif()
  if(ARG_CPU)
    list(APPEND words --cpu ${ARG_CPU})
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/svod/${target})
  set(library ${folder}/${ARG_NAME}.a)
  set(headers ${folder}/${ARG_NAME}.h ${folder}/${ARG_NAME}.hpp)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${library} ${headers}
    COMMAND SvodPack::svod-pack ${ARG_MODEL} -o ${library} --emit static --deps ${folder}/${ARG_NAME}.d ${words}
            ${ARG_OPTIONS}
    DEPENDS ${ARG_MODEL} SvodPack::svod-pack
    DEPFILE ${folder}/${ARG_NAME}.d
    COMMENT "Packing ${ARG_MODEL}"
    VERBATIM)
  add_custom_target(${target}_packed DEPENDS ${library} ${headers})
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${library}
                                             INTERFACE_INCLUDE_DIRECTORIES ${folder})
  add_dependencies(${target} ${target}_packed)
endfunction()
