# Devices and kernels that `untax locality` knows by name, compiled in: devices/*.json, devices/kernels/*.txt and
# devices/swizzleperf/*.txt, whose names begin with "swizzleperf_", become
# lines of text in a generated source, UNTAX_DEVICES_SOURCE. A changed file configures again.
set(UNTAX_DEVICES_SOURCE ${PROJECT_BINARY_DIR}/generated/built_in_devices.cpp)
set(json_texts "")
set(kernels_texts "")
set(swizzleperf_texts "")
foreach(kind devices/json devices/kernels/txt devices/swizzleperf/txt)
  get_filename_component(folder ${kind} DIRECTORY)
  get_filename_component(suffix ${kind} NAME)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.${suffix})
  get_filename_component(group ${folder} NAME)
  set(prefix "")
  if(group STREQUAL "devices")
    set(group json)
  elseif(group STREQUAL "swizzleperf")
    set(prefix swizzleperf_)
  endif()
  foreach(path IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(name ${path} NAME_WE)
    file(READ ${path} text)
    string(APPEND ${group}_texts "{\"${prefix}${name}\", R\"text(${text})text\"},\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${UNTAX_DEVICES_SOURCE} @ONLY CONTENT [[#include <untax/locality/device.hpp>

namespace untax::locality {

std::vector<named_text> built_in_devices() {
  return {
@json_texts@};
}

std::vector<named_text> built_in_kernels() {
  return {
@kernels_texts@};
}

std::vector<named_text> swizzleperf_kernels() {
  return {
@swizzleperf_texts@};
}

}  // namespace untax::locality
]])
