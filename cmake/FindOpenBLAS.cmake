# Finds OpenBLAS with its own cblas.h, of which it makes OpenBLAS::headers. The shared library, OpenBLAS_LIBRARY, is
# loaded at run time and not linked.
# The pthread build is preferred: calls from many threads at once, each with one OpenBLAS thread,
# are its ordinary use; the OpenMP build would bring a second thread pool.
set(_openblas_variants openblas-pthread openblas openblas-openmp openblas-serial)
set(_openblas_suffixes "")
foreach(_variant IN LISTS _openblas_variants)
  list(APPEND _openblas_suffixes ${CMAKE_LIBRARY_ARCHITECTURE}/${_variant} ${_variant})
endforeach()
find_path(OpenBLAS_INCLUDE_DIR NAMES openblas_config.h PATH_SUFFIXES ${_openblas_suffixes})
find_library(OpenBLAS_LIBRARY NAMES libopenblas.so.0 libopenblas.so PATH_SUFFIXES ${_openblas_suffixes})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)
if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::headers)
  add_library(OpenBLAS::headers INTERFACE IMPORTED)
  target_include_directories(OpenBLAS::headers INTERFACE ${OpenBLAS_INCLUDE_DIR})
endif()
mark_as_advanced(OpenBLAS_INCLUDE_DIR OpenBLAS_LIBRARY)
