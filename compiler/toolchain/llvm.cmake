# LLVM, Clang and LLD in one of two forms, never both in one program: each option of LLVM registers itself once.
#
# svod_llvm is the shared libraries, what tests and tools use. svod_llvm_static is the archives, what the packer uses: it
# is one file that runs on a Linux without LLVM and without a matching libc, starts in 10 ms where 200 MB of shared
# libraries take 36 ms, and packs 5 % faster. LLD links it in a second, since it takes from the archives what is asked for
# and drops the functions that nothing reaches; of LLVM's 21 targets those of llvm_targets.def are left.

add_library(svod_llvm INTERFACE)
target_link_libraries(svod_llvm INTERFACE lldELF lldWasm clang-cpp LLVM)

# Archives have no sanitized form, and a sanitized program is not static.
set(static_is_usual ON)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  set(static_is_usual OFF)
endif()
option(SVOD_STATIC "Link svod-pack to LLVM's archives, as a static program" ${static_is_usual})

# svod_static_program(TARGET): as a static PIE. Libraries of ours that need LLVM ask for this property of the program.
function(svod_static_program target)
  if(NOT SVOD_STATIC)
    return()
  endif()
  set_target_properties(${target} PROPERTIES SVOD_STATIC TRUE)
  target_link_options(${target} PRIVATE -static-pie -fuse-ld=lld -B${SVOD_LLVM_PREFIX}/bin
    LINKER:--gc-sections LINKER:--pack-dyn-relocs=relr $<$<CONFIG:Release>:LINKER:--strip-all>)
endfunction()
set(svod_chosen_llvm svod_llvm)
if(NOT SVOD_STATIC)
  return()
endif()
set(svod_chosen_llvm $<IF:$<BOOL:$<TARGET_PROPERTY:SVOD_STATIC>>,svod_llvm_static,svod_llvm>)

# LLD initialises every target that LLVM was built with, and Clang asks whether Polly is there. What is left out is
# defined as empty, so that its archive is not opened.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/llvm_targets.def rows REGEX "^SVOD_LLVM_TARGET")
list(TRANSFORM rows REPLACE "^SVOD_LLVM_TARGET[A-Z_]*\\(([A-Za-z0-9]+)\\).*" "\\1")
set(left_out ${LLVM_TARGETS_TO_BUILD})
list(REMOVE_ITEM left_out ${rows})
set(text "#include <llvm/Passes/PassPlugin.h>\n\nextern \"C\" {\n")
foreach(target ${left_out})
  foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
    string(APPEND text "void LLVMInitialize${target}${part}() {}\n")
  endforeach()
endforeach()
string(APPEND text "}\n\nllvm::PassPluginLibraryInfo getPollyPluginInfo() {\n"
  "  return {LLVM_PLUGIN_API_VERSION, \"\", \"\", [](llvm::PassBuilder&) {}};\n}\n")
set(left_out_file ${PROJECT_BINARY_DIR}/generated/llvm_left_out.cpp)
file(CONFIGURE OUTPUT ${left_out_file} CONTENT "${text}" @ONLY)
add_library(svod_llvm_left_out OBJECT ${left_out_file})
target_include_directories(svod_llvm_left_out SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})

file(GLOB archives ${SVOD_LLVM_PREFIX}/lib/liblldELF.a ${SVOD_LLVM_PREFIX}/lib/liblldWasm.a
     ${SVOD_LLVM_PREFIX}/lib/liblldCommon.a
     ${SVOD_LLVM_PREFIX}/lib/libclang[A-Z]*.a ${SVOD_LLVM_PREFIX}/lib/libLLVM*.a)
# LLVM compresses debug sections by these; nothing else of what its own build lists is reached.
find_library(SVOD_ZLIB_ARCHIVE libz.a REQUIRED)
find_library(SVOD_ZSTD_ARCHIVE libzstd.a REQUIRED)
add_library(svod_llvm_static INTERFACE)
target_link_libraries(svod_llvm_static INTERFACE $<TARGET_OBJECTS:svod_llvm_left_out> ${archives}
                      ${SVOD_ZLIB_ARCHIVE} ${SVOD_ZSTD_ARCHIVE})
