# Finds libcsv, which reads comma-separated values, and makes libcsv::libcsv.
find_path(Libcsv_INCLUDE_DIR NAMES csv.h)
find_library(Libcsv_LIBRARY NAMES csv)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libcsv REQUIRED_VARS Libcsv_LIBRARY Libcsv_INCLUDE_DIR)
if(Libcsv_FOUND AND NOT TARGET libcsv::libcsv)
  add_library(libcsv::libcsv UNKNOWN IMPORTED)
  set_target_properties(libcsv::libcsv PROPERTIES
    IMPORTED_LOCATION ${Libcsv_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${Libcsv_INCLUDE_DIR})
endif()
mark_as_advanced(Libcsv_INCLUDE_DIR Libcsv_LIBRARY)
