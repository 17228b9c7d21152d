# `make package`: crossdock, the program with what it needs to run, and crossdock-dev, the libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME crossdock)
set(CPACK_PACKAGE_VENDOR Crossdock)
set(CPACK_PACKAGE_CONTACT "Crossdock <crossdock@localhost>")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_CMAKE_PROJECTS ${CMAKE_BINARY_DIR} Crossdock ALL /)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME crossdock)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Moves KV cache between parallel layouts
 Makes exact copy plans from documents of KV cache, proves them, and runs them:
 in one process, into and out of a store on disk, and on a simulated cluster.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME crossdock-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmt-dev, libisal-dev, librocksdb-dev, libssl-dev, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers and static libraries of Crossdock
 With a CMake package and pkg-config files.")
include(CPack)
