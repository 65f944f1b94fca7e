# A .deb, and a tarball that runs from wherever it is unpacked: the program is one static file that looks for no other.
set(CPACK_PACKAGE_NAME svod-pack)
set(CPACK_PACKAGE_VENDOR "svod-pack")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Packs ONNX models into self-contained programs and libraries")
set(CPACK_PACKAGE_DESCRIPTION "Import, fusion, layouts, memory planning, kernel compilation and weight packing happen when \
packing. What ships is a static executable or a library with a C99 header: kernels, weights, a plan and a small loop.")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES OFF) # LLD did
set(CPACK_THREADS 0)
set(CPACK_GENERATOR DEB TGZ)
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_FILE_NAME svod-pack-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})

# In the package of an executable that needs no library there is nothing to depend on.
if(NOT SVOD_STATIC)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The svod-pack developers <svod-pack@localhost>")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
# A tarball has its folder instead of a prefix.
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/cpack_generator.cmake)
include(CPack)
