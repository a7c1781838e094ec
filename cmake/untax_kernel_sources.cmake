# A hash of the sources that determine how long GEMM operators take on GPUs. Tables carry the hash
# (ops/choice/table.hpp), so that untax knows which tables were measured with the kernels that it runs. Comments and
# white space do not count. Sources that were proved to make the same kernels have the hash of the measured ones: SAME
# has a line for each, with both hashes.
#
# Included by CMakeLists.txt it adds UNTAX_KERNEL_HASH_SOURCE, which is made again when a source changes. As a script it
# makes that source:
#     cmake -D LIST=FILE -D SAME=FILE -D OUT=FILE -P untax_kernel_sources.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  file(STRINGS ${LIST} sources)
  set(text "")
  foreach(source IN LISTS sources)
    file(READ ${source} one)
    string(REGEX REPLACE "//[^\n]*" "" one "${one}")
    string(REGEX REPLACE "[ \t\r\n]+" " " one "${one}")
    string(APPEND text "${one}")
  endforeach()
  string(SHA256 hash "${text}")
  string(SUBSTRING ${hash} 0 16 hash)
  set(sources_hash ${hash})
  file(STRINGS ${SAME} same REGEX "^${hash} [0-9a-f]+$")
  if(same)
    string(REGEX REPLACE "^[0-9a-f]+ " "" hash "${same}")
  endif()
  file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[#include "ops/choice/measured_on.hpp"

namespace untax {

// The sources have the hash @sources_hash@.

std::string_view kernel_sources() noexcept { return "@hash@"; }

}  // namespace untax
]])
  return()
endif()

set(roots "")
foreach(part IN ITEMS channel comm copy gemm packets sm90 words)
  list(APPEND roots ${PROJECT_SOURCE_DIR}/engines/gpu/${part}/*)
endforeach()
foreach(operator IN ITEMS all_gather_gemm gemm_all_scatter gemm_reduce_common)
  foreach(part IN ITEMS chunking device_plan gathered_product gpu layout maps overlap_model protocol)
    list(APPEND roots ${PROJECT_SOURCE_DIR}/ops/${operator}/${part}*)
  endforeach()
endforeach()
list(APPEND roots ${PROJECT_SOURCE_DIR}/ops/common/planning.* ${CMAKE_CURRENT_LIST_DIR}/untax_kernels.cmake)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${roots})
list(FILTER sources INCLUDE REGEX "\\.(cpp|hpp|cu|cuh|def|cmake)$")
list(SORT sources)
set(list ${PROJECT_BINARY_DIR}/generated/kernel_sources.txt)
set(same ${PROJECT_SOURCE_DIR}/ops/choice/same_kernels.txt)
list(JOIN sources "\n" lines)
file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
set(UNTAX_KERNEL_HASH_SOURCE ${PROJECT_BINARY_DIR}/generated/kernel_sources.cpp)
add_custom_command(OUTPUT ${UNTAX_KERNEL_HASH_SOURCE}
  COMMAND ${CMAKE_COMMAND} -D LIST=${list} -D SAME=${same} -D OUT=${UNTAX_KERNEL_HASH_SOURCE} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${sources} ${list} ${same} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
