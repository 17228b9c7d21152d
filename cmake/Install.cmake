# What `cmake --install` and `make package` put in place: the program with its completions, documents, scenarios and
# examples (component program); headers, static libraries, a CMake package and pkg-config files (component development).
include(CMakePackageConfigHelpers)

# From a library to those that it uses: the order in which a linker needs them.
set(crossdock_libraries rocksdb local drive faults store memory copy executor planner model base)

list(TRANSFORM crossdock_libraries PREPEND crossdock_ OUTPUT_VARIABLE targets)
foreach(library ${crossdock_libraries})
  set_target_properties(crossdock_${library} PROPERTIES EXPORT_NAME ${library})
endforeach()
set_target_properties(crossdock_flags PROPERTIES EXPORT_NAME headers)
install(TARGETS crossdock_flags ${targets} EXPORT CrossdockTargets COMPONENT development)
# Headers include each other from the root of the tree, which is this folder.
install(DIRECTORY base model planner executor backends DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/crossdock
        COMPONENT development FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Crossdock)
install(EXPORT CrossdockTargets NAMESPACE Crossdock:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(cmake/CrossdockConfig.cmake.in install/CrossdockConfig.cmake
                              INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(install/CrossdockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/install/CrossdockConfig.cmake ${CMAKE_BINARY_DIR}/install/CrossdockConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)

file(RELATIVE_PATH relative_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(REMOVE_ITEM targets crossdock_rocksdb)
list(TRANSFORM targets PREPEND -l)
list(JOIN targets " " crossdock_link)
foreach(file crossdock.pc crossdock-rocksdb.pc)
  configure_file(cmake/${file}.in install/${file} @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/install/${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

install(TARGETS crossdock RUNTIME COMPONENT program)
if(TARGET crossdock-sim)
  install(TARGETS crossdock-sim RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/crossdock COMPONENT program)
endif()
install(CODE "
  file(MAKE_DIRECTORY \"${CMAKE_BINARY_DIR}/install/completions\")
  foreach(shell bash zsh fish)
    execute_process(COMMAND \"$<TARGET_FILE:crossdock>\" completion \${shell} COMMAND_ERROR_IS_FATAL ANY
                    OUTPUT_FILE \"${CMAKE_BINARY_DIR}/install/completions/\${shell}\")
  endforeach()" COMPONENT program)
set(completions ${CMAKE_BINARY_DIR}/install/completions)
install(FILES ${completions}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME crossdock COMPONENT program)
install(FILES ${completions}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _crossdock COMPONENT program)
install(FILES ${completions}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME crossdock.fish COMPONENT program)
# In the layout of the tree: the pages link to each other.
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES bench/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench COMPONENT program)
install(FILES tests/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY scenarios examples DESTINATION ${CMAKE_INSTALL_DATADIR}/crossdock COMPONENT program)
