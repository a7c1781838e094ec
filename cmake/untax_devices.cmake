# Devices and kernels that `untax locality` knows by name, compiled in: devices/*.json and devices/kernels/*.txt become
# lines of text in a generated source, UNTAX_DEVICES_SOURCE. A changed file configures again.
set(UNTAX_DEVICES_SOURCE ${PROJECT_BINARY_DIR}/generated/built_in_devices.cpp)
foreach(kind devices/json devices/kernels/txt)
  get_filename_component(folder ${kind} DIRECTORY)
  get_filename_component(suffix ${kind} NAME)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.${suffix})
  set(${suffix}_texts "")
  foreach(path IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(name ${path} NAME_WE)
    file(READ ${path} text)
    string(APPEND ${suffix}_texts "{\"${name}\", R\"text(${text})text\"},\n")
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
@txt_texts@};
}

}  // namespace untax::locality
]])
