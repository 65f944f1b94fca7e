# gRPC, for the cache that machines share: svod_remote_api is its library with what protoc makes of the two .proto files.
# It is left out where Debian's packages libgrpc++-dev and protobuf-compiler-grpc are not there; then svod-pack says so when
# it is asked for such a cache.
#
# As with LLVM there are two forms: shared libraries for tests and tools, archives for the packer.

option(SVOD_REMOTE_CACHE "Build the remote cache, where gRPC's library is found" ON)
find_program(SVOD_GRPC_PLUGIN grpc_cpp_plugin)
find_library(SVOD_GRPC_LIBRARY grpc++)
find_library(SVOD_GRPC_ARCHIVE libgrpc++.a)
if(NOT SVOD_REMOTE_CACHE)
  return()
endif()
if(NOT SVOD_GRPC_PLUGIN OR NOT SVOD_GRPC_LIBRARY OR (SVOD_STATIC AND NOT SVOD_GRPC_ARCHIVE))
  message(STATUS "No gRPC (libgrpc++-dev, protobuf-compiler-grpc): svod-pack is built without the remote cache")
  return()
endif()

set(grpc_form svod_grpc)
# gRPC's headers call functions of these by themselves.
set(grpc_libraries ${SVOD_GRPC_LIBRARY})
foreach(name grpc gpr absl_synchronization protobuf-lite)
  find_library(SVOD_LIBRARY_${name} ${name} REQUIRED)
  list(APPEND grpc_libraries ${SVOD_LIBRARY_${name}})
endforeach()
add_library(svod_grpc INTERFACE)
target_link_libraries(svod_grpc INTERFACE ${grpc_libraries})

# LLD opens of these archives those that something asks for. TLS is OpenSSL's, names of machines are found by c-ares: a
# static glibc would need its shared objects for them.
if(SVOD_STATIC)
  set(grpc_archives)
  foreach(name grpc++ grpc gpr address_sorting re2 upb cares ssl crypto protobuf-lite)
    find_library(SVOD_ARCHIVE_${name} lib${name}.a REQUIRED)
    list(APPEND grpc_archives ${SVOD_ARCHIVE_${name}})
  endforeach()
  cmake_path(GET SVOD_GRPC_ARCHIVE PARENT_PATH folder)
  file(GLOB abseil ${folder}/libabsl_*.a)
  add_library(svod_grpc_static INTERFACE)
  target_link_libraries(svod_grpc_static INTERFACE ${grpc_archives} ${abseil} ${SVOD_ZLIB_ARCHIVE})
  set(grpc_form $<IF:$<BOOL:$<TARGET_PROPERTY:SVOD_STATIC>>,svod_grpc_static,svod_grpc>)
endif()

set(generated ${PROJECT_BINARY_DIR}/generated/remote)
file(MAKE_DIRECTORY ${generated})
set(sources)
foreach(name remote_execution byte_stream)
  set(proto ${CMAKE_CURRENT_LIST_DIR}/${name}.proto)
  set(made ${generated}/${name}.pb.cc ${generated}/${name}.grpc.pb.cc)
  add_custom_command(
    OUTPUT ${made} ${generated}/${name}.pb.h ${generated}/${name}.grpc.pb.h
    COMMAND protobuf::protoc --proto_path=${CMAKE_CURRENT_LIST_DIR} --cpp_out=${generated} --grpc_out=${generated}
            --plugin=protoc-gen-grpc=${SVOD_GRPC_PLUGIN} ${name}.proto
    DEPENDS ${proto}
    VERBATIM)
  list(APPEND sources ${made})
endforeach()
add_library(svod_remote_messages STATIC ${sources})
# Text of other programs is not ours to mend.
target_compile_options(svod_remote_messages PRIVATE -w)
set_target_properties(svod_remote_messages PROPERTIES CXX_CLANG_TIDY "")
foreach(use PRIVATE INTERFACE)
  target_include_directories(svod_remote_messages SYSTEM ${use} ${generated} ${Protobuf_INCLUDE_DIRS})
  # Messages of protobuf's small library.
  target_compile_definitions(svod_remote_messages ${use} GRPC_USE_PROTO_LITE)
endforeach()
add_library(svod_remote_api INTERFACE)
target_link_libraries(svod_remote_api INTERFACE svod_remote_messages ${grpc_form})
