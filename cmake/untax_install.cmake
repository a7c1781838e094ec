# `cmake --install`: the library with its headers and package files, the command, and models to try it with.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/untax)

install(TARGETS untax untax_c EXPORT untaxTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/untax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "*.h")
# Headers named from the project's root ("engines/...", "ops/..."): authors of operators need them.
install(DIRECTORY engines/host engines/schedule engines/timing
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/untax/tree/engines
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(DIRECTORY ops DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/untax/tree
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "_skeleton" EXCLUDE)
if(TARGET untax_cli)
  install(TARGETS untax_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(DIRECTORY models machines DESTINATION ${CMAKE_INSTALL_DATADIR}/untax FILES_MATCHING PATTERN "*.json")

install(EXPORT untaxTargets NAMESPACE untax:: DESTINATION ${package_dir})
configure_package_config_file(cmake/untaxConfig.cmake.in ${PROJECT_BINARY_DIR}/untaxConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/untaxConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/untaxConfig.cmake
  ${PROJECT_BINARY_DIR}/untaxConfigVersion.cmake
  cmake/FindHwloc.cmake
  cmake/FindLibcsv.cmake
  DESTINATION ${package_dir})

# For builds without CMake. The library is static, so what it needs is linked with it; where the file lies says where the
# rest does, so that the folder may be moved.
set(pkg_config_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkg_config_prefix /prefix/${pkg_config_dir} /prefix)
string(REGEX REPLACE "/$" "" pkg_config_prefix "${pkg_config_prefix}")
set(pkg_config_cuda "")
if(UNTAX_HAS_CUDA)
  set(pkg_config_cuda "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
endif()
configure_file(cmake/untax.pc.in ${PROJECT_BINARY_DIR}/untax.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/untax.pc DESTINATION ${pkg_config_dir})
