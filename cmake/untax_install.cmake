# `cmake --install`: the library with its headers and package files, and the command.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/untax)

install(TARGETS untax EXPORT untaxTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/untax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
# Headers named from the project's root ("engines/...", "ops/..."): whoever writes an operator needs them.
install(DIRECTORY engines/host engines/schedule
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/untax/tree/engines
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(DIRECTORY ops DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/untax/tree
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "_skeleton" EXCLUDE)
if(TARGET untax_cli)
  install(TARGETS untax_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(EXPORT untaxTargets NAMESPACE untax:: DESTINATION ${package_dir})
configure_package_config_file(cmake/untaxConfig.cmake.in ${PROJECT_BINARY_DIR}/untaxConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/untaxConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/untaxConfig.cmake
  ${PROJECT_BINARY_DIR}/untaxConfigVersion.cmake
  cmake/FindOpenBLAS.cmake
  cmake/FindHwloc.cmake
  DESTINATION ${package_dir})
