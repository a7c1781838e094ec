# Kernels that are compiled from generated sources: sets UNTAX_KERNEL_SOURCES, the GEMMs, one for each line of a list,
# and UNTAX_COMM_SOURCES, the kernels that only send. The sources are generated also without nvcc, so that configuring
# finds a line that cannot be parsed.
#
# The engine has the kernels as templates over the protocol of an operator; `headers` define both.
set(UNTAX_KERNEL_SOURCES "")
set(UNTAX_COMM_SOURCES "")

# untax_includes(out headers...): the lines that include `headers`.
function(untax_includes out)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \"\\1\"\n")
  list(JOIN ARGN "" text)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# untax_kernels(prefix list io headers...): the GEMMs of a list in kernels.hpp with `io`, which `headers` define.
set(UNTAX_KERNEL_LISTS ${PROJECT_SOURCE_DIR}/engines/gpu/gemm/kernels.hpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${UNTAX_KERNEL_LISTS})
function(untax_kernels prefix list io)
  untax_includes(includes engines/gpu/gemm/kernel.cuh ${ARGN})
  file(READ ${UNTAX_KERNEL_LISTS} text)
  if(NOT text MATCHES "tile_config ${list}\\[\\] = {([^;]+)}\\;")
    message(FATAL_ERROR "${UNTAX_KERNEL_LISTS}: there is no list ${list}")
  endif()
  string(REGEX MATCHALL "{[^\n]+" lines "${CMAKE_MATCH_1}")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^{([a-z0-9, ]+)}, +// ([a-z0-9_]+)$")
      message(FATAL_ERROR "${UNTAX_KERNEL_LISTS}: cannot read '${line}'")
    endif()
    set(source ${PROJECT_BINARY_DIR}/generated/kernels/${prefix}_${CMAKE_MATCH_2}.cu)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[@includes@
template untax::gpu::kernel_variant
untax::gpu::variant_of<untax::gpu::tile_config{@CMAKE_MATCH_1@}, @io@>();
]])
    list(APPEND UNTAX_KERNEL_SOURCES ${source})
  endforeach()
  set(UNTAX_KERNEL_SOURCES ${UNTAX_KERNEL_SOURCES} PARENT_SCOPE)
endfunction()

# untax_comm_kernels(name instances headers...): a source with explicit instantiations of functions that start kernels.
function(untax_comm_kernels name instances)
  set(source ${PROJECT_BINARY_DIR}/generated/comm/${name}.cu)
  untax_includes(includes ${ARGN})
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[@includes@
namespace untax {
@instances@
}  // namespace untax
]])
  set(UNTAX_COMM_SOURCES ${UNTAX_COMM_SOURCES} ${source} PARENT_SCOPE)
endfunction()

untax_kernels(gemm gemm_kernels untax::gpu::local_io engines/gpu/gemm/io.cuh)
untax_kernels(gather gather_kernels "untax::gather_io<untax::all_gather_gemm_protocol>"
  engines/gpu/comm/sources/gathered.cuh engines/gpu/comm/shard_senders.cuh ops/all_gather_gemm/protocol.hpp)
untax_kernels(gather_packets packet_kernels "untax::packet_gather_io<untax::all_gather_gemm_protocol>"
  engines/gpu/comm/sources/packets.cuh ops/all_gather_gemm/protocol.hpp)
untax_kernels(scatter scatter_kernels "untax::scatter_io<untax::gemm_all_scatter_protocol>"
  engines/gpu/comm/sinks/all_copies.cuh engines/gpu/comm/tile_senders.cuh ops/gemm_all_scatter/protocol.hpp)
untax_kernels(row_sums scatter_kernels "untax::row_sums_io<untax::gemm_reduce_protocol>"
  engines/gpu/comm/sinks/row_partials.cuh engines/gpu/comm/tile_senders.cuh ops/gemm_reduce_common/protocol.hpp)
untax_kernels(sums sums_kernels untax::gpu::summed_io engines/gpu/comm/sinks/owner_sums.cuh)

untax_comm_kernels(gather
  "template void move_gathered(const shard_io<all_gather_gemm_protocol>&, std::uint64_t*, int, cudaStream_t);"
  engines/gpu/comm/gather_kernels.cuh ops/all_gather_gemm/protocol.hpp)
untax_comm_kernels(gather_tma
  "template void gather_all_by_tma(const shard_io<all_gather_gemm_protocol>&, const receiving_grid&, std::uint64_t*, int, bool, cudaStream_t);"
  engines/gpu/comm/gather_kernels.cuh ops/all_gather_gemm/protocol.hpp)
untax_comm_kernels(scatter
  "template void move_scattered(const tile_io<gemm_all_scatter_protocol>&, std::uint64_t*, int, cudaStream_t);
template void meet_scattered(const tile_io<gemm_all_scatter_protocol>&, scatter_meeting, std::uint64_t*, cudaStream_t);
template void scatter_all(const tile_io<gemm_all_scatter_protocol>&, std::uint64_t*, bool, cudaStream_t);"
  engines/gpu/comm/scatter_kernels.cuh ops/gemm_all_scatter/protocol.hpp)
untax_comm_kernels(row_sums
  "template void add_rows(const row_sums<gemm_reduce_protocol>&, int, bool, cudaStream_t);"
  engines/gpu/comm/row_sums.cuh ops/gemm_reduce_common/protocol.hpp)
