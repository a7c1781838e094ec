# The kernels of GEMMs, each compiled from a source of its own, which is made here of a line of a kernels.def: sets
# UNTAX_KERNEL_SOURCES. They are made also where nvcc is not, since configuring then shows a line that cannot be read.
set(UNTAX_KERNEL_SOURCES "")

# untax_kernels(prefix def header protocol): the kernels of `def` with a protocol, which `header` defines.
function(untax_kernels prefix def header protocol)
  set(file ${PROJECT_SOURCE_DIR}/${def})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} lines REGEX "^UNTAX_KERNEL")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^UNTAX_KERNEL\\(([a-z0-9_]+), ([a-z0-9, ]+)\\)$")
      message(FATAL_ERROR "${def}: cannot read '${line}'")
    endif()
    set(source ${PROJECT_BINARY_DIR}/generated/kernels/${prefix}_${CMAKE_MATCH_1}.cu)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[#include "engines/sm90/gemm/variant_of.cuh"
#include "@header@"

template untax::sm90::kernel_variant
untax::sm90::variant_of<untax::sm90::tile_config{@CMAKE_MATCH_2@}, @protocol@>();
]])
    list(APPEND UNTAX_KERNEL_SOURCES ${source})
  endforeach()
  set(UNTAX_KERNEL_SOURCES ${UNTAX_KERNEL_SOURCES} PARENT_SCOPE)
endfunction()

untax_kernels(gemm engines/sm90/gemm/kernels.def engines/sm90/gemm/io.cuh untax::sm90::local_io)
untax_kernels(gather ops/all_gather_gemm/kernels.def ops/all_gather_gemm/gather.cuh untax::gather_io)
untax_kernels(gather_packets ops/all_gather_gemm/packet_kernels.def ops/all_gather_gemm/packets.cuh untax::packet_gather)
untax_kernels(scatter ops/gemm_all_scatter/kernels.def ops/gemm_all_scatter/scatter.cuh untax::scatter_io)
