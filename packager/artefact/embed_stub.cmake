# Writes the stub's sources and zstd's decoder into one C++ file: cmake -DOUTPUT=... -DROOT=... -DZSTD=... -P embed_stub.cmake
include(${ROOT}/compiler/codegen/literal.cmake)
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/runtime_stub/*.h ${ROOT}/runtime_stub/*.cpp
     ${ROOT}/runtime_stub/*.def ${ROOT}/runtime_stub/*.hpp)
list(SORT files)
set(text "#include \"packager/artefact/stub_sources.h\"\n\nnamespace svod::packager {\n\nusing namespace std::string_view_literals;\n\n")
# The suffix tells each length: Clang would count the characters in its constant evaluator, which has a step limit.
string(APPEND text "static constexpr StubFile kFiles[] = {\n")
foreach(file IN LISTS files)
  file(READ ${ROOT}/${file} content)
  svod_literal(literal "${content}")
  string(APPEND text "{\"${file}\"sv,\n${literal}\"\"sv},\n")
endforeach()
file(READ ${ZSTD} content)
svod_literal(literal "${content}")
string(APPEND text "{\"zstd.c\"sv,\n${literal}\"\"sv},\n")
string(APPEND text "};\n\nstd::span<const StubFile> stub_files() { return kFiles; }\n\n}\n")
file(WRITE ${OUTPUT} "${text}")
