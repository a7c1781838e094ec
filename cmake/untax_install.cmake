# `cmake --install`: the libraries with their public headers and package files, the command, and models to try it with.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/untax)

install(TARGETS ${UNTAX_LIBRARIES} untax_c EXPORT untaxTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/untax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "*.h")
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
  cmake/FindLibcsv.cmake
  DESTINATION ${package_dir})

# Package files for builds without CMake, one for each library. The libraries are static, so their dependencies are
# linked with them. Paths are relative to the package file, so that the folder may be moved.
set(pkg_config_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkg_config_prefix /prefix/${pkg_config_dir} /prefix)
string(REGEX REPLACE "/$" "" pkg_config_prefix "${pkg_config_prefix}")
set(pkg_config_cuda "")
if(UNTAX_HAS_CUDA)
  set(pkg_config_cuda "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
endif()
foreach(library IN LISTS UNTAX_LIBRARIES)
  get_target_property(uses ${library} INTERFACE_LINK_LIBRARIES)
  set(pkg_config_requires "")
  foreach(use IN LISTS uses)
    if(use IN_LIST UNTAX_LIBRARIES)
      string(APPEND pkg_config_requires " ${use}")
    endif()
  endforeach()
  set(pkg_config_libs "")
  if(library STREQUAL "untax")
    set(pkg_config_requires " fmt")
    set(pkg_config_libs " ${pkg_config_cuda} -ldl -pthread")
  elseif(library STREQUAL "untax_select")
    set(pkg_config_libs " -lcsv")
  elseif(library STREQUAL "untax_files")
    string(APPEND pkg_config_requires " zlib")
  endif()
  configure_file(cmake/untax.pc.in ${PROJECT_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${pkg_config_dir})
endforeach()
